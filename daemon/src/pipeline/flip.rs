//! Stage 5: the flip turn.
//!
//! Owns: `Published`, and the order of the turn: of each publication number and time, stamps, manifest,
//! record; the tree of the last one, with its times, read back; the database commit; manifest.json, LEASE,
//! BOOT; the rename into `generations/`; the switch of ACTIVE. Everything before the switch is "not
//! published". A generation inside a turn gets its tree when somebody leases it.
//!
//! Keeps invariants 1, 2, 3, 8 and 10.

use semaprax_protocol::SchemaTag;
use semaprax_protocol::documents::{PathChange, Receipt, ReceiptStatus};

use super::build::{Candidate, Staged, discard_staging, make_directory};
use super::gate::{Approved, Turn, Verdicts};
use super::ledger::{Ledger, Tip, current};
use crate::store::active::{self, SwitchError};
use crate::store::changes::{fitting, path_changes};
use crate::store::check::check_made;
use crate::store::generation::Manifest;
use crate::store::history::{Event, EventDetail, Record, StoredRecord};
use crate::store::recover::{active_of, confirm_in, finish_wrapper};
use crate::store::tree::{Tree, stamped};
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

/// Decides that this is published next: it gets its number, its time and its record, in the transaction of
/// the turn. Not decided, the turn comes back as it was.
pub fn decide(approved: Approved<'_>) -> Result<Turn<'_>, (Turn<'_>, Box<StoreError>)> {
    let Approved {
        mut turn,
        verified,
        verdicts,
    } = approved;
    match record(&mut turn, verified.candidate, verdicts) {
        Ok(()) => Ok(turn),
        Err(error) => Err((turn, Box::new(error))),
    }
}

fn record(turn: &mut Turn<'_>, candidate: Candidate, verdicts: Verdicts) -> StoreResult<()> {
    let ledger = &mut *turn.ledger;
    let store = &ledger.store;
    let sha256 = |blob: &_| candidate.fresh.sha256(store, blob);
    let changes = path_changes(&candidate.differences, &candidate.moves, sha256)?;
    let (stored, tree) = number(ledger, &candidate, changes.len() as u64)?;
    let receipt = receipt(&stored, changes, verdicts.into_outcomes());
    insert(ledger, &candidate, &stored, &tree, &receipt)?;
    ledger.tip = Tip { stored, tree };
    turn.decided.push(receipt);
    turn.fresh.extend(candidate.fresh);
    Ok(())
}

/// Publishes what was decided in the turn: the tree of the last one is made, all of it becomes durable,
/// and ACTIVE names the last one.
pub fn flip(mut turn: Turn<'_>) -> Result<Vec<Published>, FlipFailure> {
    if turn.is_empty() {
        return Ok(Vec::new());
    }
    let staged = stage(&turn)?;
    if let Err(failure) = publish(&mut turn, &staged) {
        let ledger = &*turn.ledger;
        let found = ledger.store.world.disk.metadata(staged.place.directory());
        if matches!(found, Ok(Some(_))) {
            discard_staging(ledger, &staged.place);
        }
        return Err(failure);
    }
    turn.is_flipped = true;
    turn.ledger.advance(staged.seen);
    let decided = std::mem::take(&mut turn.decided);
    Ok(decided
        .into_iter()
        .map(|receipt| Published { receipt })
        .collect())
}

/// Makes the tree of what was decided last, and reads back what was written of it.
fn stage(turn: &Turn<'_>) -> StoreResult<Staged> {
    let ledger = &*turn.ledger;
    let active = current(&ledger.store, &turn.active);
    let tree = &ledger.tip.tree;
    let staged = make_directory(ledger, &active, tree, &turn.fresh)?;
    match check_made(&ledger.store, tree, &staged.made, &staged.place.files()) {
        Ok(()) => Ok(staged),
        Err(error) => {
            discard_staging(ledger, &staged.place);
            Err(error)
        }
    }
}

fn publish(turn: &mut Turn<'_>, staged: &Staged) -> Result<(), FlipFailure> {
    let store = &mut turn.ledger.store;
    confirm_in(&store.database, &turn.active.stored)?;
    store.database.commit_turn()?;
    let (store, stored) = (&turn.ledger.store, &turn.ledger.tip.stored);
    finish_wrapper(store, &staged.place, stored)?;
    let generation = store.layout.generation(&stored.record.revision);
    let disk = &store.world.disk;
    disk.rename(staged.place.directory(), generation.directory())
        .map_err(StoreError::from)?;
    switch(store, stored)
}

/// Chooses number and time, stamps the tree, and makes the record.
fn number(
    ledger: &Ledger,
    candidate: &Candidate,
    changes: u64,
) -> StoreResult<(StoredRecord, Tree)> {
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
        changes,
        author: head.author.clone(),
        message: head.message.clone(),
        published_at: Record::time(store.world.clock.now(), Some(tip.record.published_at)),
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

fn receipt(
    stored: &StoredRecord,
    changes: Vec<PathChange>,
    gates: Vec<semaprax_protocol::documents::GateOutcome>,
) -> Receipt {
    let record = &stored.record;
    let (changes, truncated) = fitting(changes);
    Receipt {
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
    }
}

/// A part of the one transaction: blobs, nodes, record, event, outcome.
fn insert(
    ledger: &mut Ledger,
    candidate: &Candidate,
    stored: &StoredRecord,
    tree: &Tree,
    receipt: &Receipt,
) -> StoreResult<()> {
    let at = stored.record.published_at;
    let parent = ledger.tip.tree.clone();
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
        Ok(())
    })
}

fn switch(store: &Store, stored: &StoredRecord) -> Result<(), FlipFailure> {
    let bytes = active_of(stored).encode()?;
    active::switch(&store.world, &store.layout, &bytes).map_err(|error| match error {
        SwitchError::NotSwitched(error) => FlipFailure::NotFlipped(error.into()),
        SwitchError::InDoubt(error) => FlipFailure::InDoubt(error),
    })
}
