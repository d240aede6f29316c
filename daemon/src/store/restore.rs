//! ACTIVE put back when it was lost: to the newest confirmed record.
//!
//! Owns: the order of that, and the note by which whoever comes after a crash in the midst of it ends it. The
//! note is durable before ACTIVE is, and ACTIVE before anything is voided: so nothing is voided that ACTIVE
//! does not leave out, and the journal tells of every restoring whose ACTIVE stayed.
//!
//! Keeps invariants 3 and 4.

use semaprax_protocol::{RecordDigest, Seq};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::database::Database;
use super::history::{Event, EventDetail, StoredRecord};
use super::recover::{confirmed, make_active_durable, void_beyond};
use super::{Store, StoreError, StoreResult, own};
use crate::world::EntryType;

/// The key of the note.
const RESTORING: &str = "restoring";

/// What is being restored.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    record: RecordDigest,
    seq: Seq,
    left_out: Vec<Seq>,
}

/// Restores ACTIVE to the newest confirmed record, for `verify --repair`; answers what it leaves out.
pub fn restore_active(store: &mut Store) -> StoreResult<(StoredRecord, Vec<Seq>)> {
    let stored = confirmed(&store.database)?;
    let beyond = stored.record.seq.get() + 1;
    let left_out = store.database.seqs_from(beyond)?;
    let note = Note {
        record: stored.digest,
        seq: stored.record.seq,
        left_out: left_out.clone(),
    };
    let text = serde_json::to_string(&note)
        .map_err(|error| StoreError::damaged(format!("a note cannot be written: {error}")))?;
    store
        .database
        .transaction(|database| database.set_meta(RESTORING, &text))?;
    rewrite_active(store, &stored)?;
    void_beyond(store, stored.record.seq, "repair")?;
    end_restoring(store, &stored)?;
    Ok((stored, left_out))
}

/// Writes ACTIVE anew, whatever is in its place.
pub fn rewrite_active(store: &Store, tip: &StoredRecord) -> StoreResult<()> {
    let place = store.layout.active();
    let found = store.world.disk.metadata(&place)?;
    // A directory cannot be renamed over.
    if found.is_some_and(|found| found.kind == EntryType::Directory) {
        own::set_aside(&store.world, &store.layout, &place)?;
    }
    make_active_durable(store, tip)
}

/// Whether ACTIVE is where a restoring has put it that did not come to its end.
pub fn is_restoring(database: &Database, tip: &StoredRecord) -> StoreResult<bool> {
    Ok(note(database)?.is_some_and(|note| note.record == tip.digest))
}

/// Ends a restoring, if there is one: tells of it in the journal, and forgets the note. When ACTIVE names
/// something else, a person has put it right in another way.
pub fn end_restoring(store: &mut Store, tip: &StoredRecord) -> StoreResult<()> {
    let Some(note) = note(&store.database)? else {
        return Ok(());
    };
    let at = store.world.clock.now();
    store.database.transaction(|database| {
        if note.record == tip.digest {
            let detail = json!({ "restored": note.seq, "leftOut": note.left_out });
            let kind = "active-restored";
            database.append_event(&Event {
                at,
                detail: EventDetail::Other { kind, detail },
            })?;
        }
        database.delete_meta(RESTORING)
    })
}

/// Whether there is a note.
pub fn is_noted(database: &Database) -> StoreResult<bool> {
    Ok(note(database)?.is_some())
}

/// Forgets a note that cannot be read, inside a transaction.
pub fn forget(database: &Database) -> StoreResult<()> {
    database.delete_meta(RESTORING)
}

fn note(database: &Database) -> StoreResult<Option<Note>> {
    let text = database.meta(RESTORING)?;
    text.map(|text| {
        serde_json::from_str(&text)
            .map_err(|error| StoreError::damaged(format!("the note of a repair: {error}")))
    })
    .transpose()
}
