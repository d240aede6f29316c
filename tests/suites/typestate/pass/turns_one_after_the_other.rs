//! The writer's turn comes back when it is used up.

use semaprax_daemon::pipeline::Ledger;
use semaprax_daemon::pipeline::gate::Turn;

fn two_turns(ledger: &mut Ledger) {
    let first = Turn::begin(ledger);
    drop(first);
    let second = Turn::begin(ledger);
    drop(second);
}

fn main() {
    let _ = two_turns;
}
