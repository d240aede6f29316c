//! One approval flipped twice.

use semaprax_daemon::pipeline::flip::flip;
use semaprax_daemon::pipeline::gate::Approved;

fn publish(approved: Approved<'_>) {
    drop(flip(approved));
    drop(flip(approved));
}

fn main() {
    let _ = publish;
}
