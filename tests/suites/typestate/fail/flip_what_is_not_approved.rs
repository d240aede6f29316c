//! The gate left out: the verified candidate goes straight to the flip.

use semaprax_daemon::pipeline::flip::{decide, flip};
use semaprax_daemon::pipeline::verify::Verified;

fn publish(verified: Verified) {
    drop(decide(verified));
}

fn flip_at_once(verified: Verified) {
    drop(flip(verified));
}

fn main() {
    let _ = publish;
    let _ = flip_at_once;
}
