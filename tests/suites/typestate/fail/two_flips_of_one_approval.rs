//! One approval decided twice, and one turn flipped twice.

use semaprax_daemon::pipeline::flip::{decide, flip};
use semaprax_daemon::pipeline::gate::{Approved, Turn};

fn publish(approved: Approved<'_>) {
    drop(decide(approved));
    drop(decide(approved));
}

fn flip_twice(turn: Turn<'_>) {
    drop(flip(turn));
    drop(flip(turn));
}

fn main() {
    let _ = publish;
    let _ = flip_twice;
}
