//! Verification left out: the candidate goes straight to the gate.

use semaprax_daemon::pipeline::build::Candidate;
use semaprax_daemon::pipeline::gate::{Turn, Verdicts, approve};

fn publish(turn: Turn<'_>, candidate: Candidate, verdicts: Verdicts) {
    drop(approve(turn, candidate, verdicts));
}

fn main() {
    let _ = publish;
}
