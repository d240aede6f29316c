//! What is true after a crash.
//!
//! Owns: taking LOCK, and the one routine that runs before a workspace answers anything: read ACTIVE,
//! void what was never published, make ACTIVE durable, put the trees in order.
//! Never: guesses; what contradicts itself is `workspace-damaged`.
//!
//! Keeps invariants 3, 4 and 5.

use std::time::Duration;

use camino::Utf8Path;
use semaprax_protocol::{Code, Diagnostic, Refusal, Revision, Seq};
use serde::{Deserialize, Serialize};

use super::active::{self, Active, SwitchError};
use super::check::{Depth, TreeFault, check_made, check_tree};
use super::checkout::{LinkSource, Modes, materialize};
use super::database::Database;
use super::history::{Event, EventDetail, StoredRecord};
use super::layout::GenerationLayout;
use super::objects::FreshBlobs;
use super::repair::repair_tree;
use super::restore::{end_restoring, is_restoring};
use super::retention::leave_unswept;
use super::tree::Tree;
use super::{Layout, Store, StoreError, StoreResult, own, trash};
use crate::world::{EntryType, FileLock, World};

/// How long a starting daemon waits for another one to leave.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// The key under which the newest confirmed record is kept.
const CONFIRMED: &str = "confirmed";
/// What a tree without a readable boot id is marked with: never equal to a boot.
const NO_BOOT: &str = "unknown";

/// Mode of what lies beside a tree.
const BESIDE_MODE: u32 = 0o444;

/// What LOCK says of its holder, for clients to find it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockContent {
    /// `semaprax.lock/1`.
    pub schema: String,
    /// The socket of the daemon; empty while `init` holds it.
    pub socket: String,
    /// Its process.
    pub pid: u32,
    /// Its build version.
    pub version: String,
}

/// Takes LOCK, waiting a second at most, and names the holder in it.
pub fn lock(
    world: &World,
    layout: &Layout,
    socket: &Utf8Path,
    pid: u32,
) -> StoreResult<Box<dyn FileLock>> {
    let start = world.clock.since_boot();
    let path = layout.lock();
    loop {
        let taken = world.disk.try_lock(&path, true, true);
        if let Some(lock) = taken.map_err(StoreError::of_own_file)? {
            let content = LockContent {
                schema: "semaprax.lock/1".to_owned(),
                socket: socket.as_str().to_owned(),
                pid,
                version: semaprax_protocol::version::BUILD.to_owned(),
            };
            let bytes = serde_json::to_vec(&content)
                .map_err(|error| StoreError::damaged(format!("LOCK cannot be written: {error}")))?;
            lock.write(&bytes)?;
            return Ok(lock);
        }
        if world.clock.since_boot().saturating_sub(start) >= LOCK_PATIENCE {
            let holder = world.disk.read(&path).unwrap_or_default();
            let holder = String::from_utf8_lossy(&holder).into_owned();
            let message = format!(
                "the workspace `{}` is held by {}",
                layout.root(),
                described(&holder)
            );
            let mut diagnostic =
                Diagnostic::new(Code::WorkspaceLocked, message).at(layout.root().as_str());
            diagnostic.found = Some(holder).filter(|text| !text.is_empty());
            return Err(Refusal::from(diagnostic).into());
        }
        world.clock.pause(LOCK_PAUSE);
    }
}

/// Who holds LOCK, for people.
fn described(content: &str) -> String {
    match serde_json::from_str::<LockContent>(content) {
        Ok(holder) if holder.socket.is_empty() => {
            format!("an `init` (process {})", holder.pid)
        }
        Ok(holder) => format!(
            "another daemon (process {}, listening on `{}`)",
            holder.pid, holder.socket
        ),
        Err(_) => "another daemon".to_owned(),
    }
}

/// The publication that ACTIVE names, checked against its record.
pub fn read_tip(world: &World, layout: &Layout, database: &Database) -> StoreResult<StoredRecord> {
    let active =
        active::read(world, layout)?.ok_or_else(|| StoreError::damaged("ACTIVE is missing"))?;
    tip_of(database, &active)
}

/// The record that `active` names.
pub fn tip_of(database: &Database, active: &Active) -> StoreResult<StoredRecord> {
    let stored = database.record_by_digest(&active.record)?.ok_or_else(|| {
        StoreError::damaged(format!("ACTIVE names the unknown record {}", active.record))
    })?;
    if stored.record.seq != active.seq || stored.record.revision != active.revision {
        return Err(StoreError::damaged(format!(
            "ACTIVE and record {} do not agree",
            active.record
        )));
    }
    Ok(stored)
}

/// Brings the store to what ACTIVE says and makes that durable. Answers the tip and its tree.
pub fn recover(store: &mut Store) -> StoreResult<(StoredRecord, Tree)> {
    own::make_missing(&store.world, &store.layout)?;
    let tip = read_tip(&store.world, &store.layout, &store.database)?;
    // What a kill left in the page cache is not durable yet.
    make_active_durable(store, &tip)?;
    let cause = if is_restoring(&store.database, &tip)? {
        "repair"
    } else {
        "recovery"
    };
    void_beyond(store, tip.record.seq, cause)?;
    end_restoring(store, &tip)?;
    clear_staging(store)?;
    let tree = tip.tree()?;
    ensure_tree(store, &tip, &tree, None)?;
    confirm(store, &tip)?;
    Ok((tip, tree))
}

/// The bytes of ACTIVE for this publication.
pub fn active_of(stored: &StoredRecord) -> Active {
    Active {
        seq: stored.record.seq,
        revision: stored.record.revision,
        record: stored.digest,
    }
}

pub(super) fn make_active_durable(store: &Store, tip: &StoredRecord) -> StoreResult<()> {
    let bytes = active_of(tip).encode()?;
    match active::switch(&store.world, &store.layout, &bytes) {
        Ok(()) => Ok(()),
        Err(SwitchError::NotSwitched(error) | SwitchError::InDoubt(error)) => Err(error.into()),
    }
}

/// Voids every record beyond `tip`, appending to the journal, in one transaction; then trashes every
/// generation without a record. The same routine after a crash and after a failed flip.
pub fn void_beyond(store: &mut Store, tip: Seq, cause: &'static str) -> StoreResult<()> {
    let at = store.world.clock.now();
    if store
        .database
        .newest_seq()?
        .is_some_and(|newest| newest > tip.get())
    {
        store.database.transaction(|database| {
            let beyond = database.records(tip.get() + 1, u64::MAX, usize::MAX, false)?;
            for record in &beyond {
                database.delete_record(record.record.seq)?;
                database.unbind_submissions(record.record.seq)?;
                database.append_event(&Event {
                    at,
                    detail: EventDetail::Voided { record, cause },
                })?;
            }
            leave_unswept(database)
        })?;
    }
    trash_unknown(store)
}

fn trash_unknown(store: &Store) -> StoreResult<()> {
    let generations = store.layout.generations();
    for (name, kind) in store.world.disk.read_directory(&generations)? {
        // A name of another form was never given here. It is in nobody's way, and stays.
        let Ok(revision) = name.parse::<Revision>() else {
            continue;
        };
        let known = match store.database.record_by_revision(&revision) {
            Ok(found) => kind == EntryType::Directory && found.is_some(),
            // Whose tree it is cannot be told any more: it stays for whoever mends the store.
            Err(error) if error.is_damage() => kind == EntryType::Directory,
            Err(error) => return Err(error),
        };
        if !known {
            trash::discard(&store.world, &store.layout, &generations.join(name))?;
        }
    }
    Ok(())
}

fn clear_staging(store: &Store) -> StoreResult<()> {
    let staging = store.layout.staging();
    store.world.disk.give_names(&staging)?;
    for (name, _) in store.world.disk.read_directory(&staging)? {
        trash::discard(&store.world, &store.layout, &staging.join(name))?;
    }
    Ok(())
}

/// Marks `tip` as confirmed: its flip is known to be durable.
pub fn confirm(store: &mut Store, tip: &StoredRecord) -> StoreResult<()> {
    let digest = tip.digest.to_string();
    match store.database.meta(CONFIRMED) {
        Ok(found) if found.as_deref() == Some(digest.as_str()) => return Ok(()),
        Ok(_) => {}
        // It is about to be written anew.
        Err(error) if error.is_damage() => {}
        Err(error) => return Err(error),
    }
    store
        .database
        .transaction(|database| database.set_meta(CONFIRMED, &digest))
}

/// Marks `previous` as confirmed, inside the transaction of the next turn.
pub fn confirm_in(database: &Database, previous: &StoredRecord) -> StoreResult<()> {
    database.set_meta(CONFIRMED, &previous.digest.to_string())
}

/// The newest record whose flip is known to be durable.
pub(super) fn confirmed(database: &Database) -> StoreResult<StoredRecord> {
    let confirmed = database
        .meta(CONFIRMED)?
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| StoreError::damaged("no record is known to be confirmed"))?;
    database
        .record_by_digest(&confirmed)?
        .ok_or_else(|| StoreError::damaged(format!("the confirmed record {confirmed} is missing")))
}

/// Whether the tree of a generation was made or verified in the running boot.
pub fn is_of_this_boot(world: &World, generation: &GenerationLayout) -> StoreResult<bool> {
    let Some(boot) = world.clock.boot_id() else {
        return Ok(false);
    };
    match world.disk.read(&generation.boot()) {
        Ok(found) => Ok(found == boot.as_bytes()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        // Something else in its place names no boot.
        Err(error) => match StoreError::of_own_file(error) {
            StoreError::Damaged { .. } => Ok(false),
            error => Err(error),
        },
    }
}

/// What BOOT says of a tree made or verified now.
pub fn boot_content(world: &World) -> Vec<u8> {
    world
        .clock
        .boot_id()
        .unwrap_or_else(|| NO_BOOT.to_owned())
        .into_bytes()
}

/// Makes sure that the tree of `stored` is on disk and verified in this boot. `source` is a tree that
/// is, to link from.
pub fn ensure_tree(
    store: &Store,
    stored: &StoredRecord,
    tree: &Tree,
    source: Option<(&Tree, &Revision)>,
) -> StoreResult<()> {
    let generation = store.layout.generation(&stored.record.revision);
    if store.world.disk.metadata(generation.directory())?.is_some() {
        if is_of_this_boot(&store.world, &generation)? && has_files(store, &generation)? {
            return Ok(());
        }
        return reverify(store, tree, &generation, stored);
    }
    let staging = GenerationLayout::at(super::checkout::new_staging(store)?);
    let source_files = source.map(|(_, revision)| store.layout.generation(revision).files());
    let link = source
        .zip(source_files.as_ref())
        .map(|((tree, _), files)| LinkSource { tree, files });
    let fresh = FreshBlobs::default();
    let made = materialize(store, tree, &fresh, link, &staging.files(), Modes::SEALED)?;
    check_made(store, tree, &made, &staging.files())?;
    finish_wrapper(store, &staging, stored)?;
    Ok(store
        .world
        .disk
        .rename(staging.directory(), generation.directory())?)
}

fn has_files(store: &Store, generation: &GenerationLayout) -> StoreResult<bool> {
    let found = store.world.disk.metadata(&generation.files())?;
    Ok(
        found.is_some_and(|found| found.kind == EntryType::Directory)
            && store.world.disk.metadata(&generation.lease())?.is_some(),
    )
}

fn reverify(
    store: &Store,
    tree: &Tree,
    generation: &GenerationLayout,
    stored: &StoredRecord,
) -> StoreResult<()> {
    let faults = check_tree(store, tree, &generation.files(), Depth::Content)?;
    if !faults.is_empty() {
        tracing::warn!(revision = %stored.record.revision, faults = faults.len(), "a tree of another boot is mended");
    }
    mend(store, generation, stored, &faults)
}

/// Mends these faults of a tree, and what lies beside it. BOOT goes first and comes back last: a tree
/// that is left half-mended is of no boot, so that it is verified before anyone reads it.
pub fn mend(
    store: &Store,
    generation: &GenerationLayout,
    stored: &StoredRecord,
    faults: &[TreeFault],
) -> StoreResult<()> {
    take_boot_away(store, generation)?;
    repair_tree(store, &generation.files(), faults)?;
    finish_wrapper(store, generation, stored)
}

/// Writes manifest.json, LEASE and BOOT beside a finished tree. A crash may have left the first two
/// without their bytes or modes; a LEASE that is right stays the same file. BOOT is written last.
pub fn finish_wrapper(
    store: &Store,
    generation: &GenerationLayout,
    stored: &StoredRecord,
) -> StoreResult<()> {
    let disk = &store.world.disk;
    let manifest = super::generation::Manifest::of(stored.record.seq, &stored.tree()?).encode()?;
    for (place, content) in [
        (generation.manifest(), &manifest[..]),
        (generation.lease(), b""),
    ] {
        if let Some(found) = disk.metadata(&place)? {
            let is_right = found.kind == EntryType::File
                && found.mode == BESIDE_MODE
                && disk.read(&place)? == content;
            if is_right {
                continue;
            }
            super::trash::discard(&store.world, &store.layout, &place)?;
        }
        disk.create(&place, content, BESIDE_MODE)?;
    }
    take_boot_away(store, generation)?;
    Ok(disk.create(&generation.boot(), &boot_content(&store.world), BESIDE_MODE)?)
}

fn take_boot_away(store: &Store, generation: &GenerationLayout) -> StoreResult<()> {
    let (disk, boot) = (&store.world.disk, generation.boot());
    match disk.metadata(&boot)? {
        None => Ok(()),
        Some(found) if found.kind == EntryType::Directory => {
            Ok(trash::discard(&store.world, &store.layout, &boot)?)
        }
        Some(_) => Ok(disk.remove_file(&boot)?),
    }
}
