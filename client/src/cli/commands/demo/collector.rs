//! The collector: takes away trees that nobody holds, while others read.
//!
//! Owns: when, and how greedily: nothing is too young, and next to nothing is kept.
//! Never: waits on time alone.

use std::sync::Arc;
use std::time::Duration;

use semaprax_protocol::Refusal;
use semaprax_protocol::request::Collect;

use super::course::{Allowance, Course};
use crate::Client;

/// Publications from one collection to the next.
const EVERY: u64 = 20;
/// The newest trees that are kept.
const KEEP: u64 = 1;
/// How long one wait lasts; then it is looked whether the demo is over.
const LOOK: Duration = Duration::from_millis(500);

/// Collects for as long as the demo goes on.
pub(super) fn run(
    mut client: Client,
    course: &Arc<Course>,
    allowance: Allowance,
) -> Result<(), Refusal> {
    let mut seen = course.publications();
    while course.goes_on(allowance) {
        if !course.await_more(seen + EVERY - 1, LOOK) {
            continue;
        }
        let collection = client.call(Collect {
            dry_run: false,
            min_age_ms: Some(0),
            keep: Some(KEEP),
        });
        let collection = match collection {
            Ok(collection) => collection,
            // The demo, and with it the daemon, may have ended before the answer.
            Err(_) if !course.goes_on(allowance) => return Ok(()),
            Err(refusal) => return Err(refusal),
        };
        seen = course.publications();
        let removed = collection.removed.len() as u64;
        course.note(|tally| tally.collected += removed);
    }
    Ok(())
}
