//! From a submission to a publication, stage by stage.
//!
//! ```text
//! Proposal -> Candidate -> Verified -> Approved -> Published
//!  admit       build        verify      gate        flip       notify
//! ```
//!
//! Owns: the order of the stages. Each stage's value can be made only in its own module, holds private
//! fields, and is consumed by the next: leaving one out, or doing one twice, does not compile.
//! Never: sockets, the queue, or which client asks.
//!
//! Keeps invariants 1, 2, 3, 6, 8, 10 and 11.

pub mod admit;
pub mod build;
pub mod evaluate;
pub mod flip;
pub mod gate;
pub mod integrate;
pub mod ledger;
pub mod notify;
pub mod plan;
pub mod verify;

use semaprax_protocol::Refusal;
use semaprax_protocol::documents::Receipt;

pub use admit::Proposal;
pub use ledger::Ledger;

/// Publishes a proposal: the whole flow. What is refused on the way changed nothing.
pub fn publish(ledger: &mut Ledger, proposal: Proposal) -> Result<Receipt, Refusal> {
    ledger.check_writable()?;
    if let Some(binding) = proposal.binding()
        && let Some(receipt) = ledger.replay(binding)?
    {
        return Ok(receipt);
    }
    let candidate = build::build(ledger, proposal)?;
    if candidate.is_unchanged(ledger) {
        return notify::unchanged(ledger, &candidate);
    }
    let verified = verify::verify(ledger, candidate)?;
    let verdicts = gate::run(&verified);
    if verified.is_dry_run() {
        return notify::ready(ledger, verified, verdicts);
    }
    let turn = gate::Turn::begin(ledger);
    match gate::approve(turn, verified, verdicts) {
        Ok(approved) => match flip::flip(approved) {
            Ok(published) => Ok(notify::published(published)),
            Err(failure) => Err(ledger.after_failed_flip(failure)),
        },
        // One writer, one turn at a time: the tip cannot have moved since the candidate was built.
        Err(gate::NotApproved::Stale(verified)) => {
            verified.discard(ledger);
            Err(gate::moved_tip())
        }
    }
}
