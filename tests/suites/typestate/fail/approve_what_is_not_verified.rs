//! Verification left out: the candidate goes straight to the gate.

use semaprax_daemon::pipeline::Ledger;
use semaprax_daemon::pipeline::build::Candidate;
use semaprax_daemon::pipeline::gate::{Turn, Verdicts, approve};

fn publish(ledger: &mut Ledger, candidate: Candidate, verdicts: Verdicts) {
    let turn = Turn::begin(ledger);
    drop(approve(turn, candidate, verdicts));
}

fn main() {
    let _ = publish;
}
