//! An approval made of its fields.

use semaprax_daemon::pipeline::gate::{Approved, Turn, Verdicts};
use semaprax_daemon::pipeline::verify::Verified;

fn make<'writer>(turn: Turn<'writer>, verified: Verified, verdicts: Verdicts) -> Approved<'writer> {
    Approved {
        turn,
        verified,
        verdicts,
    }
}

fn main() {
    let _ = make;
}
