//! Stage 6: the answer.
//!
//! Owns: the receipts of everything that was not refused. Notices to subscribers are made of the
//! receipt by the server: they are hints, the record is the truth.

use semaprax_protocol::documents::{Receipt, ReceiptStatus};
use semaprax_protocol::{Refusal, SchemaTag};

use super::build::Candidate;
use super::flip::Published;
use super::gate::Verdicts;
use super::ledger::Ledger;
use super::verify::Verified;
use crate::store::changes::{fitting, path_changes};
use crate::store::history::{Event, EventDetail};

/// The receipt of a publication.
pub fn published(published: Published) -> Receipt {
    published.receipt
}

/// The receipt of a candidate that equals what is ACTIVE: recorded, bound, not published.
pub fn unchanged(ledger: &mut Ledger, candidate: &Candidate) -> Result<Receipt, Refusal> {
    let tip = &ledger.tip.stored;
    let mut receipt = unpublished(ledger, candidate, ReceiptStatus::Unchanged)?;
    receipt.seq = Some(tip.record.seq);
    receipt.revision = Some(tip.record.revision);
    receipt.record = Some(tip.digest);
    receipt.published_at = Some(tip.record.published_at);
    let at = ledger.store.world.clock.now();
    if let Some(binding) = &candidate.head.binding {
        ledger.store.database.transaction(|database| {
            database.bind_submission(binding, at, None, &receipt)?;
            let detail = EventDetail::Unchanged {
                submission: binding.id,
                author: &candidate.head.author,
            };
            database.append_event(&Event { at, detail })
        })?;
    }
    Ok(receipt)
}

/// The receipt of a dry run; its candidate is taken away.
pub fn ready(ledger: &Ledger, verified: Verified, verdicts: Verdicts) -> Result<Receipt, Refusal> {
    let mut receipt = unpublished(ledger, &verified.candidate, ReceiptStatus::Ready)?;
    receipt.gates = verdicts.into_outcomes();
    verified.discard(ledger);
    Ok(receipt)
}

fn unpublished(
    ledger: &Ledger,
    candidate: &Candidate,
    status: ReceiptStatus,
) -> Result<Receipt, Refusal> {
    let sha256 = |blob: &_| candidate.fresh.sha256(&ledger.store, blob);
    let (changes, truncated) = fitting(path_changes(
        &candidate.differences,
        &candidate.moves,
        sha256,
    )?);
    let head = &candidate.head;
    Ok(Receipt {
        schema: SchemaTag::new(),
        status,
        replayed: false,
        submission: head.id,
        seq: None,
        revision: None,
        tree: candidate.tree.content(),
        parent: Some(ledger.tip.stored.record.revision),
        base: Some(candidate.base),
        rebased: candidate.rebased,
        merged: candidate.merged.clone(),
        changes,
        truncated,
        gates: Vec::new(),
        author: head.author.clone(),
        message: head.message.clone(),
        published_at: None,
        record: None,
        file_count: candidate.tree.root().files(),
    })
}
