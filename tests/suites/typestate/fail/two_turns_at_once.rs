//! Two turns of one writer.

use semaprax_daemon::pipeline::Ledger;
use semaprax_daemon::pipeline::gate::Turn;

fn two_turns(ledger: &mut Ledger) {
    let first = Turn::begin(ledger);
    let second = Turn::begin(ledger);
    drop(first);
    drop(second);
}

fn main() {
    let _ = two_turns;
}
