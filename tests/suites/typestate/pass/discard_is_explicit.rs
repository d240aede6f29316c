//! A verified candidate that is not to be published is discarded by name.

use semaprax_daemon::pipeline::Ledger;
use semaprax_daemon::pipeline::verify::Verified;

fn leave(ledger: &Ledger, verified: Verified) {
    verified.discard(ledger);
}

fn main() {
    let _ = leave;
}
