//! The collector: removes trees that nobody needs, or recycles them.
//!
//! Owns: the reasons a tree is kept, and the removal: re-checked under the writer with the leases
//! held, LEASE locked exclusively without waiting, renamed to the trash, or to `staging/` as a spare,
//! while locked. Unlinking is for whoever has time.
//! Never: shortens records or the journal.
//!
//! Keeps invariant 7.

use std::collections::BTreeSet;
use std::time::Duration;

use semaprax_protocol::documents::KeptReason;
use semaprax_protocol::{Revision, Seq};

use super::layout::GenerationLayout;
use super::{Store, StoreResult, spares, trash};
use crate::leases::Leases;
use crate::sync::{Mutex, PoisonError, Step, is_left_out};
use crate::world::{EntryType, FileLock};

/// What decides about trees.
#[derive(Debug, Clone, Copy)]
pub struct TreeRule {
    tip: Seq,
    keep: u64,
    min_age: Duration,
    /// Only trees of this publication and later ones are young, whatever their age.
    young_from: u64,
}

impl TreeRule {
    /// Kept are the trees of the `keep` newest publications, and those younger than `min_age`; but for
    /// those with `young_trees` trees of later publications (without it age alone decides). These are
    /// counted here, once: nobody waits for it who wants a lease meanwhile.
    pub fn new(
        store: &Store,
        tip: Seq,
        keep: u64,
        min_age: Duration,
        young_trees: Option<u64>,
    ) -> StoreResult<Self> {
        let young_from = young_trees.map_or(Ok(0), |count| young_from(store, count))?;
        Ok(Self {
            tip,
            keep,
            min_age,
            young_from,
        })
    }
}

/// The publication of the last tree that has fewer than `count` trees of later publications.
fn young_from(store: &Store, count: u64) -> StoreResult<u64> {
    let Some(place) = count.checked_sub(1) else {
        return Ok(u64::MAX);
    };
    let mut seqs = Vec::new();
    for revision in materialized(store)? {
        seqs.extend(store.database.seq_of_revision(&revision)?);
    }
    seqs.sort_unstable_by_key(|seq| std::cmp::Reverse(*seq));
    let last = usize::try_from(place)
        .ok()
        .and_then(|place| seqs.get(place));
    Ok(last.map_or(0, |seq| seq.get()))
}

/// The generations that have a tree on disk.
pub fn materialized(store: &Store) -> StoreResult<Vec<Revision>> {
    let names = store
        .world
        .disk
        .read_directory(&store.layout.generations())?;
    let directories = names
        .into_iter()
        .filter(|(_, kind)| *kind == EntryType::Directory);
    Ok(directories
        .filter_map(|(name, _)| name.parse().ok())
        .collect())
}

/// Why the tree of `revision` is kept; nothing when it may go.
pub fn reasons(
    store: &Store,
    rule: TreeRule,
    revision: &Revision,
    pins: &BTreeSet<Revision>,
    leases: &Leases,
) -> StoreResult<Vec<KeptReason>> {
    let mut reasons = Vec::new();
    let seq = store
        .database
        .record_by_revision(revision)?
        .map(|stored| stored.record.seq);
    if seq == Some(rule.tip) {
        reasons.push(KeptReason::Active);
    }
    if leases.holds(revision, store.world.clock.since_boot())
        || matches!(file_lease(store, revision)?, FileLease::Held)
    {
        reasons.push(KeptReason::Leased);
    }
    if pins.contains(revision) {
        reasons.push(KeptReason::Pinned);
    }
    let is_late = seq.is_none_or(|seq| seq.get() >= rule.young_from);
    if is_late && is_young(store, rule, revision)? {
        reasons.push(KeptReason::Young);
    }
    if seq.is_some_and(|seq| seq.get() + rule.keep > rule.tip.get()) {
        reasons.push(KeptReason::Retention);
    }
    Ok(reasons)
}

fn is_young(store: &Store, rule: TreeRule, revision: &Revision) -> StoreResult<bool> {
    // LEASE is a fresh file for each materialization: its time is the age of the tree. A time in the
    // future (the clock was set back) counts as young.
    let lease = store.layout.generation(revision).lease();
    let Some(found) = store.world.disk.metadata(&lease)? else {
        return Ok(false);
    };
    let age = store
        .world
        .clock
        .now()
        .as_nanos()
        .saturating_sub(found.mtime);
    Ok(rule.min_age > Duration::ZERO
        && u128::try_from(age).map_or(true, |age| age < rule.min_age.as_nanos()))
}

/// Trees whose age lies ahead of the clock, which was wrong then or is now, begin to age now: they would
/// be young for as long as it was wrong by.
pub fn settle_ages(store: &Store) -> StoreResult<()> {
    let now = store.world.clock.now().as_nanos();
    for revision in materialized(store)? {
        let lease = store.layout.generation(&revision).lease();
        let found = store.world.disk.metadata(&lease)?;
        if found.is_some_and(|found| found.kind == EntryType::File && found.mtime > now) {
            store.world.disk.set_mtime(&lease, now)?;
        }
    }
    Ok(())
}

/// Who may read a generation without a daemon, by its LEASE.
enum FileLease {
    /// Nobody does; while the lock is held nobody can start to. A tree without LEASE cannot be read
    /// without a daemon at all.
    Free(Option<Box<dyn FileLock>>),
    /// Somebody does.
    Held,
}

fn file_lease(store: &Store, revision: &Revision) -> StoreResult<FileLease> {
    let lease = store.layout.generation(revision).lease();
    let found = store.world.disk.metadata(&lease)?;
    // What is no file cannot be locked, by a reader either.
    if found.is_none_or(|found| found.kind != EntryType::File) {
        return Ok(FileLease::Free(None));
    }
    let lock = store.world.disk.try_lock(&lease, true, false)?;
    Ok(lock.map_or(FileLease::Held, |lock| FileLease::Free(Some(lock))))
}

/// Moves one tree to the trash, unless it turns out to be kept after all; whether it did.
pub fn remove(
    store: &Store,
    rule: TreeRule,
    revision: &Revision,
    pins: &BTreeSet<Revision>,
    leases: &Mutex<Leases>,
) -> StoreResult<bool> {
    // From here to the rename no lease can be taken: taking one needs this lock.
    let leases = leases.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_left_out(Step::LookAgain) && !reasons(store, rule, revision, pins, &leases)?.is_empty() {
        return Ok(false);
    }
    let FileLease::Free(mut lock) = file_lease(store, revision)? else {
        return Ok(false);
    };
    let mut leases = Some(leases).filter(|_| !is_left_out(Step::HoldTable));
    lock = lock.filter(|_| !is_left_out(Step::HoldLease));
    let generation = store.layout.generation(revision);
    trash::discard(&store.world, &store.layout, generation.directory())?;
    if let Some(leases) = &mut leases {
        leases.forget(revision);
    }
    drop((lock, leases));
    Ok(true)
}

/// What became of a tree that was to be recycled.
#[derive(Debug)]
pub enum Recycled {
    /// It lies in `staging/` now, with nothing beside it.
    Spare(GenerationLayout),
    /// It may go, but somebody had a lease of it and may still look at it.
    WasLeased,
    /// It is kept, for these reasons.
    Kept(Vec<KeptReason>),
}

/// Takes a tree that nothing keeps out of `generations/`, to be made another one. Nobody can be reading
/// it: it was never leased, and LEASE is locked and replaced.
pub fn recycle(
    store: &Store,
    rule: TreeRule,
    revision: &Revision,
    pins: &BTreeSet<Revision>,
    leases: &Mutex<Leases>,
) -> StoreResult<Recycled> {
    // As in `remove`.
    let leases = leases.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = reasons(store, rule, revision, pins, &leases)?;
    if !kept.is_empty() && !is_left_out(Step::LookAgain) {
        return Ok(Recycled::Kept(kept));
    }
    if leases.ever_held(revision) && !is_left_out(Step::NeverLeased) {
        return Ok(Recycled::WasLeased);
    }
    let FileLease::Free(mut lock) = file_lease(store, revision)? else {
        return Ok(Recycled::Kept(vec![KeptReason::Leased]));
    };
    let leases = Some(leases).filter(|_| !is_left_out(Step::HoldTable));
    lock = lock.filter(|_| !is_left_out(Step::HoldLease));
    let spare = spares::new_place(store);
    let disk = &store.world.disk;
    let generation = store.layout.generation(revision);
    disk.rename(generation.directory(), spare.directory())?;
    for beside in [spare.lease(), spare.boot(), spare.manifest()] {
        match disk.metadata(&beside)? {
            Some(found) if found.kind == EntryType::Directory => {
                trash::discard(&store.world, &store.layout, &beside)?;
            }
            Some(_) => disk.remove_file(&beside)?,
            None => {}
        }
    }
    drop((lock, leases));
    Ok(Recycled::Spare(spare))
}
