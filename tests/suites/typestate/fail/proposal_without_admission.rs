//! A proposal made of its fields, so that no limit and no path was checked.

use semaprax_daemon::pipeline::Proposal;
use semaprax_protocol::SubmissionId;

fn make(id: SubmissionId) -> Proposal {
    Proposal { id }
}

fn main() {
    let _ = make;
}
