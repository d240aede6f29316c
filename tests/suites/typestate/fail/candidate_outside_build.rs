//! A candidate made of its fields.

use semaprax_daemon::pipeline::build::Candidate;
use semaprax_protocol::Revision;

fn make(base: Revision) -> Candidate {
    Candidate { base }
}

fn main() {
    let _ = make;
}
