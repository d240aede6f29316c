//! Stage 5: the flip turn.
//!
//! Owns: `Published`, and the order of the turn: number and time; stamps, manifest, record; the
//! database commit; times of the changed files, manifest.json, LEASE, BOOT; the rename into
//! `generations/`; the switch of ACTIVE. Everything before the switch is "not published".
//!
//! Keeps invariants 1, 2, 3, 8 and 10.

use semaprax_protocol::documents::{Receipt, ReceiptStatus};
use semaprax_protocol::{SchemaTag, Timestamp};

use super::build::{Candidate, Staged, discard_staging};
use super::gate::Approved;
use super::ledger::{Ledger, Tip};
use crate::store::active::{self, SwitchError};
use crate::store::changes::{fitting, path_changes};
use crate::store::generation::Manifest;
use crate::store::history::{Event, EventDetail, Record, StoredRecord};
use crate::store::recover::{active_of, confirm_in, finish_wrapper};
use crate::store::tree::{ListedLeaf, Tree, UNSTAMPED, stamped};
use crate::store::{Store, StoreError, StoreResult};
use crate::world::WorldError;

/// A publication: ACTIVE names it, and that is durable.
#[derive(Debug)]
#[must_use]
pub struct Published {
    pub(super) receipt: Receipt,
}

/// How a flip failed.
#[derive(Debug)]
pub enum FlipFailure {
    /// ACTIVE is what it was.
    NotFlipped(StoreError),
    /// ACTIVE is the new one, but the disk did not confirm that it stays.
    InDoubt(WorldError),
}

impl From<StoreError> for FlipFailure {
    fn from(error: StoreError) -> Self {
        Self::NotFlipped(error)
    }
}

/// Publishes what was approved.
pub fn flip(approved: Approved<'_>) -> Result<Published, FlipFailure> {
    let Approved {
        turn,
        verified,
        verdicts,
    } = approved;
    let ledger = turn.into_ledger();
    let mut candidate = verified.candidate;
    let (stored, tree) = number(ledger, &candidate)?;
    let receipt = receipt(&ledger.store, &candidate, &stored, verdicts.into_outcomes())?;
    let staged = candidate.staged.take();
    let switched = commit(ledger, &candidate, &stored, &tree, &receipt)
        .map_err(FlipFailure::from)
        .and_then(|()| {
            let Some(Staged { place, made, .. }) = &staged else {
                return Err(StoreError::damaged("the candidate has no directory").into());
            };
            let files = place.files();
            let disk = &ledger.store.world.disk;
            let untimed = |(_, leaf): &&ListedLeaf| leaf.stamp == UNSTAMPED;
            for (path, _) in made.copied.iter().filter(untimed) {
                let time = stored.record.published_at.as_nanos();
                disk.set_mtime(&files.join(path.as_str()), time)
                    .map_err(StoreError::from)?;
            }
            finish_wrapper(&ledger.store, place, &stored)?;
            let generation = ledger.store.layout.generation(&stored.record.revision);
            disk.rename(place.directory(), generation.directory())
                .map_err(StoreError::from)?;
            switch(&ledger.store, &stored)
        });
    match switched {
        Ok(()) => {
            let seen = staged.map(|staged| staged.seen).unwrap_or_default();
            ledger.advance(Tip { stored, tree }, seen);
            Ok(Published { receipt })
        }
        Err(failure) => {
            if let Some(Staged { place, .. }) = staged
                && matches!(
                    ledger.store.world.disk.metadata(place.directory()),
                    Ok(Some(_))
                )
            {
                discard_staging(ledger, &place);
            }
            Err(failure)
        }
    }
}

/// Chooses number and time, stamps the tree, and makes the record.
fn number(ledger: &Ledger, candidate: &Candidate) -> StoreResult<(StoredRecord, Tree)> {
    let (store, tip) = (&ledger.store, &ledger.tip.stored);
    let overflow = || StoreError::damaged("publication numbers have run out");
    let seq = tip.record.seq.next().ok_or_else(overflow)?;
    let tree = stamped(
        &ledger.tip.tree,
        &candidate.tree,
        seq.get(),
        &store.database,
    )?;
    let revision = Manifest::of(seq, &tree).revision()?;
    let head = &candidate.head;
    let record = Record {
        schema: Record::SCHEMA.to_owned(),
        seq,
        revision,
        tree: tree.content(),
        stamped: tree.stamped(),
        files: tree.root().files(),
        bytes: tree.root().bytes(),
        prev: Some(tip.digest),
        parent: Some(tip.record.revision),
        base: Some(candidate.base),
        submission: head.id,
        on_stale: head.on_stale,
        rebased: candidate.rebased,
        merged: candidate.merged.clone(),
        moves: candidate.moves.clone(),
        changes: path_changes(&candidate.differences, &candidate.moves, |blob| {
            candidate.fresh.sha256(store, blob)
        })?
        .len() as u64,
        author: head.author.clone(),
        message: head.message.clone(),
        published_at: later_than(store.world.clock.now(), tip.record.published_at),
    };
    let digest = Record::digest(&record.encode()?);
    Ok((
        StoredRecord {
            digest,
            record,
            collected: false,
        },
        tree,
    ))
}

/// Publication times strictly increase, whatever the clock does.
fn later_than(now: Timestamp, last: Timestamp) -> Timestamp {
    now.max(last.saturating_add(1))
}

fn receipt(
    store: &Store,
    candidate: &Candidate,
    stored: &StoredRecord,
    gates: Vec<semaprax_protocol::documents::GateOutcome>,
) -> StoreResult<Receipt> {
    let record = &stored.record;
    let sha256 = |blob: &_| candidate.fresh.sha256(store, blob);
    let (changes, truncated) = fitting(path_changes(
        &candidate.differences,
        &candidate.moves,
        sha256,
    )?);
    Ok(Receipt {
        schema: SchemaTag::new(),
        status: ReceiptStatus::Published,
        replayed: false,
        submission: record.submission,
        seq: Some(record.seq),
        revision: Some(record.revision),
        tree: record.tree,
        parent: record.parent,
        base: record.base,
        rebased: record.rebased,
        merged: record.merged.clone(),
        changes,
        truncated,
        gates,
        author: record.author.clone(),
        message: record.message.clone(),
        published_at: Some(record.published_at),
        record: Some(stored.digest),
        file_count: record.files,
    })
}

/// The one transaction: blobs, nodes, record, event, outcome, and the confirmation of the flip before.
fn commit(
    ledger: &mut Ledger,
    candidate: &Candidate,
    stored: &StoredRecord,
    tree: &Tree,
    receipt: &Receipt,
) -> StoreResult<()> {
    let (previous, parent) = (ledger.tip.stored.clone(), ledger.tip.tree.clone());
    let at = stored.record.published_at;
    ledger.store.database.transaction(|database| {
        for blob in &candidate.prepared {
            database.insert_blob(blob)?;
        }
        database.insert_nodes(tree, Some(&parent))?;
        database.insert_record(&stored.record)?;
        database.append_event(&Event {
            at,
            detail: EventDetail::Published(stored),
        })?;
        if let Some(binding) = &candidate.head.binding {
            database.bind_submission(binding, at, Some(stored.record.seq), receipt)?;
        }
        confirm_in(database, &previous)
    })
}

fn switch(store: &Store, stored: &StoredRecord) -> Result<(), FlipFailure> {
    let bytes = active_of(stored).encode()?;
    active::switch(&store.world, &store.layout, &bytes).map_err(|error| match error {
        SwitchError::NotSwitched(error) => FlipFailure::NotFlipped(error.into()),
        SwitchError::InDoubt(error) => FlipFailure::InDoubt(error),
    })
}
