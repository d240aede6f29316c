//! A candidate called verified.

use semaprax_daemon::pipeline::build::Candidate;
use semaprax_daemon::pipeline::verify::Verified;

fn make(candidate: Candidate) -> Verified {
    Verified { candidate }
}

fn main() {
    let _ = make;
}
