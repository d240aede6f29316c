//! Which content is kept, and the sweep of what no kept publication needs.
//!
//! Owns: marking publications as collected, and removing nodes and blobs that nothing reaches.
//! Records and the journal are never shortened. Runs under the writer: nothing is being written.
//!
//! Keeps invariant 7 for content: ACTIVE, pinned and leased generations keep theirs.

use std::collections::BTreeSet;
use std::time::Duration;

use semaprax_protocol::{BlobDigest, Revision, Seq, StampedDigest};

use super::database::Database;
use super::tree::{Below, Branch};
use super::{Store, StoreError, StoreResult, active, own};
use crate::world::EntryType;

/// How much content is kept.
#[derive(Debug, Clone, Copy)]
pub struct ContentRetention {
    /// At least this many of the newest publications.
    pub publications: u64,
    /// And all that are younger than this.
    pub age: Duration,
    /// And older ones too, the newest first, while all content together takes no more bytes than this.
    pub bytes: Option<u64>,
}

/// The key that says whether there may be something to sweep.
const UNSWEPT: &str = "unswept";
const YES: &str = "yes";

/// Steps in which content beyond the first two rules goes while a budget of bytes is exceeded.
const STEPS: u64 = 8;

/// Collects the content that no rule keeps, nor a pin, a detached lease or one of `held` (the leases
/// that are in no table); answers how many publications lost theirs.
pub fn collect_content(
    store: &mut Store,
    tip: Seq,
    rule: ContentRetention,
    held: &BTreeSet<Revision>,
) -> StoreResult<u64> {
    let horizon = horizon(store, tip, rule)?;
    let Some(budget) = rule.bytes else {
        return collect_before(store, horizon, held);
    };
    let sql = "SELECT min(seq) FROM publications WHERE collected = 0";
    let oldest = store
        .database
        .query_one(sql, [], |row| row.get::<_, Option<i64>>(0))?;
    let oldest = oldest.flatten().map_or(horizon, i64::cast_unsigned);
    let step = horizon.saturating_sub(oldest).div_ceil(STEPS).max(1);
    let (mut collected, mut before) = (0, oldest);
    while before < horizon && content_bytes(store)? > budget {
        before = horizon.min(before + step);
        collected += collect_before(store, before, held)?;
    }
    Ok(collected)
}

/// The first publication that the rules of count and age keep.
fn horizon(store: &Store, tip: Seq, rule: ContentRetention) -> StoreResult<u64> {
    let by_count = (tip.get() + 1).saturating_sub(rule.publications.max(1));
    let age = i64::try_from(rule.age.as_nanos()).unwrap_or(i64::MAX);
    let oldest_kept = store.world.clock.now().saturating_add(age.saturating_neg());
    let sql = "SELECT min(seq) FROM publications WHERE at >= ?1";
    let by_age = store
        .database
        .query_one(sql, [oldest_kept.as_nanos()], |row| {
            row.get::<_, Option<i64>>(0)
        })?;
    let by_age = by_age.flatten().map_or(tip.get(), i64::cast_unsigned);
    Ok(by_count.min(by_age).min(tip.get()))
}

fn collect_before(store: &mut Store, seq: u64, held: &BTreeSet<Revision>) -> StoreResult<u64> {
    let collected = store.database.transaction(|database| {
        let collected = database.mark_collected(seq, held)?;
        if collected > 0 {
            leave_unswept(database)?;
        }
        Ok(collected)
    })?;
    if collected > 0 {
        sweep(store)?;
    }
    Ok(collected)
}

/// Says, inside the transaction that takes records or their content away, that nodes and blobs may be
/// left which no publication reaches: also should the daemon end before it has swept them.
pub fn leave_unswept(database: &Database) -> StoreResult<()> {
    database.set_meta(UNSWEPT, YES)
}

/// Whether there may be something to sweep.
pub fn is_unswept(database: &Database) -> StoreResult<bool> {
    Ok(database.meta(UNSWEPT)?.as_deref() == Some(YES))
}

/// Sweeps what a voided publication, or a collection that did not come to its end, left behind.
pub fn sweep_left(store: &mut Store) -> StoreResult<()> {
    if is_unswept(&store.database)? {
        sweep(store)?;
    }
    Ok(())
}

/// Bytes that all content takes: rows as they are packed, files as they are.
fn content_bytes(store: &Store) -> StoreResult<u64> {
    let sql = "SELECT (SELECT coalesce(sum(coalesce(length(data), bytes)), 0) FROM blobs)
                    + (SELECT coalesce(sum(length(data)), 0) FROM nodes)";
    let found = store
        .database
        .query_one(sql, [], |row| row.get::<_, i64>(0))?;
    Ok(found.map_or(0, i64::cast_unsigned))
}

/// Removes every node and blob that no publication with content reaches.
pub fn sweep(store: &mut Store) -> StoreResult<()> {
    let (mut nodes, mut blobs) = (BTreeSet::new(), BTreeSet::new());
    let active = active::read(&store.world, &store.layout)?
        .ok_or_else(|| StoreError::damaged("ACTIVE is missing"))?;
    let mut low = 1;
    loop {
        let records = store.database.records(low, u64::MAX, 256, false)?;
        // A damaged page may leave records out: then what is theirs would be taken for nobody's.
        let follows = records
            .first()
            .is_some_and(|first| first.record.seq.get() == low);
        if low <= active.seq.get() && !follows {
            return Err(StoreError::damaged(format!(
                "the record of @{low} is missing"
            )));
        }
        let Some(last) = records.last() else { break };
        low = last.record.seq.get() + 1;
        for stored in records.iter().filter(|stored| !stored.collected) {
            mark(store, stored.tree()?.root(), &mut nodes, &mut blobs)?;
        }
    }
    let dead_nodes = dead(store, "nodes", |digest| {
        nodes.contains(&StampedDigest::from_bytes(*digest))
    })?;
    let dead_blobs = dead(store, "blobs", |digest| {
        blobs.contains(&BlobDigest::from_bytes(*digest))
    })?;
    store.database.transaction(|database| {
        for digest in &dead_nodes {
            database.execute("DELETE FROM nodes WHERE digest = ?1", [digest])?;
        }
        for digest in &dead_blobs {
            database.execute("DELETE FROM blobs WHERE digest = ?1", [digest])?;
        }
        database.set_meta(UNSWEPT, "no")
    })?;
    sweep_objects(store)
}

fn mark(
    store: &Store,
    branch: &Branch,
    nodes: &mut BTreeSet<StampedDigest>,
    blobs: &mut BTreeSet<BlobDigest>,
) -> StoreResult<()> {
    if !nodes.insert(branch.stamped()) {
        return Ok(());
    }
    for below in branch.below(&store.database)? {
        match below {
            Below::Leaf(leaf) => drop(blobs.insert(leaf.blob)),
            Below::Node(node) => mark(store, node, nodes, blobs)?,
        }
    }
    Ok(())
}

fn dead(
    store: &Store,
    table: &str,
    is_live: impl Fn(&[u8; 32]) -> bool,
) -> StoreResult<Vec<[u8; 32]>> {
    let sql = format!("SELECT digest FROM {table}");
    let all: Vec<[u8; 32]> = store.database.query_all(&sql, [], |row| row.get(0))?;
    Ok(all.into_iter().filter(|digest| !is_live(digest)).collect())
}

/// Removes the files of large blobs that have no row: of collected ones, and of publications that
/// never happened.
pub fn sweep_objects(store: &Store) -> StoreResult<()> {
    let disk = &store.world.disk;
    let objects = store.layout.objects();
    own::must_be(&store.world, &objects, EntryType::Directory)?;
    for (head, kind) in disk.read_directory(&objects)? {
        // What is not ours is not touched: `doctor` tells of it.
        if !own::is_shard(&head, kind) {
            continue;
        }
        let directory = objects.join(&head);
        for (tail, _) in disk.read_directory(&directory)? {
            let Ok(digest) = format!("{head}{tail}").parse::<BlobDigest>() else {
                continue;
            };
            if store.database.blob_info(&digest)?.is_none() {
                super::trash::discard(&store.world, &store.layout, &directory.join(tail))?;
            }
        }
    }
    Ok(())
}
