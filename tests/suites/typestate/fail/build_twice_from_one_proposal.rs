//! One proposal built twice: its id would take effect twice.

use semaprax_daemon::pipeline::build::build;
use semaprax_daemon::pipeline::{Ledger, Proposal};

fn make(ledger: &mut Ledger, proposal: Proposal) {
    drop(build(ledger, proposal));
    drop(build(ledger, proposal));
}

fn main() {
    let _ = make;
}
