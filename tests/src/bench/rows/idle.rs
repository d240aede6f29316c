//! `idle`: how often a daemon wakes that nobody asks anything.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::place::{Place, publish, submission};
use super::super::report::{Finding, Target, note};
use super::super::{Measured, Row, Settings};
use super::edit::EDITS;
use super::pause;

/// It is watched so many times at most: what it does after the last publication takes a while, and a
/// thread that helped ends after ten seconds without work.
const WATCHES: usize = 6;

/// How often each thread of a process has gone to sleep of itself: each time it was awake before.
fn sleeps(pid: u32) -> Measured<BTreeMap<String, u64>> {
    let mut counts = BTreeMap::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        // It may end just now.
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let count = status.lines().find_map(|line| {
            line.strip_prefix("voluntary_ctxt_switches:")?
                .trim()
                .parse()
                .ok()
        });
        if let Some(count) = count {
            counts.insert(thread.file_name().to_string_lossy().into_owned(), count);
        }
    }
    Ok(counts)
}

/// How often the threads of a process woke between the two looks. One that has ended woke to do so.
fn wake_ups(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> u64 {
    let went_on = after.iter().map(|(thread, count)| {
        let then = before.get(thread).copied().unwrap_or(0);
        count.saturating_sub(then)
    });
    let ended = before.keys().filter(|thread| !after.contains_key(*thread));
    went_on.sum::<u64>() + ended.count() as u64
}

pub(super) fn measure(settings: &Settings) -> Measured<Finding> {
    note("making the tree");
    let mut place = Place::new(settings)?;
    place.init()?;
    let mut client = place.client()?;
    publish(&mut client, submission(&place.edits(EDITS)))?;
    place.settle();
    let pid = client.daemon().ok_or("no daemon")?.pid;
    note("watching the daemon until it is at rest");
    let mut watched = Vec::new();
    while watched.len() < WATCHES && watched.last() != Some(&0) {
        let before = sleeps(pid)?;
        pause(settings.idle);
        watched.push(wake_ups(&before, &sleeps(pid)?));
    }
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let last = watched.last().copied().unwrap_or_default() as f64;
    Ok(Finding {
        row: Row::Idle,
        work: format!(
            "wake-ups of an idle daemon over {} s",
            settings.idle.as_secs()
        ),
        against: "none".to_owned(),
        ratio: Some(last),
        target: Target::AtMost(0.0),
        details: json!({"oneAfterTheOther": watched, "seconds": settings.idle.as_secs()}),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_came_or_went_woke() {
        let counts = |list: &[(&str, u64)]| {
            let owned = list
                .iter()
                .map(|(thread, count)| ((*thread).to_owned(), *count));
            owned.collect::<BTreeMap<_, _>>()
        };
        let check = |before: &[(&str, u64)], after: &[(&str, u64)], expect: u64| {
            assert_eq!(wake_ups(&counts(before), &counts(after)), expect);
        };
        check(&[("1", 5)], &[("1", 5)], 0);
        check(&[("1", 5)], &[("1", 8)], 3);
        check(&[("1", 5), ("2", 9)], &[("1", 5)], 1);
        check(&[("1", 5)], &[("1", 5), ("3", 2)], 2);
    }
}
