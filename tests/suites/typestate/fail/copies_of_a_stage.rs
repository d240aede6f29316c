//! A stage's value copied, or made from nothing.

use semaprax_daemon::pipeline::Proposal;
use semaprax_daemon::pipeline::build::Candidate;
use semaprax_daemon::pipeline::flip::Published;
use semaprax_daemon::pipeline::verify::Verified;

fn copied<T: Clone>() {}
fn from_nothing<T: Default>() {}

fn main() {
    copied::<Proposal>();
    copied::<Candidate>();
    copied::<Verified>();
    copied::<Published>();
    from_nothing::<Proposal>();
    from_nothing::<Candidate>();
}
