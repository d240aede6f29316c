//! The gate left out: the verified candidate goes straight to the flip.

use semaprax_daemon::pipeline::flip::flip;
use semaprax_daemon::pipeline::verify::Verified;

fn publish(verified: Verified) {
    drop(flip(verified));
}

fn main() {
    let _ = publish;
}
