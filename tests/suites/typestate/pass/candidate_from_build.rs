//! A candidate comes from `build`, and may be looked at.

use semaprax_daemon::pipeline::build::{Candidate, build};
use semaprax_daemon::pipeline::{Ledger, Proposal};
use semaprax_protocol::Refusal;

fn make(ledger: &mut Ledger, proposal: Proposal) -> Result<Candidate, Refusal> {
    let candidate = build(ledger, proposal)?;
    let _ = candidate.is_unchanged(ledger);
    Ok(candidate)
}

fn main() {
    let _ = make;
}
