//! `idle`: how often a daemon wakes that nobody asks anything.

use std::time::Duration;

use serde_json::json;

use super::super::place::{Place, publish, submission};
use super::super::report::{Finding, Target, note};
use super::super::{Measured, Row, Settings};
use super::edit::EDITS;
use super::pause;
use crate::process::within;

/// What the daemon does after the last publication takes no longer than this.
const UPKEEP: Duration = Duration::from_secs(30);
/// It is at rest when it did not wake for so long.
const REST: Duration = Duration::from_secs(2);

/// How often the threads of a process have gone to sleep of themselves: each time they were awake before.
fn wake_ups(pid: u32) -> Measured<u64> {
    let mut count = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = std::fs::read_to_string(thread?.path().join("status"))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count += line.ok_or("no count of switches")?.trim().parse::<u64>()?;
    }
    Ok(count)
}

pub(super) fn measure(settings: &Settings) -> Measured<Finding> {
    note("making the tree");
    let mut place = Place::new(settings)?;
    place.init()?;
    let mut client = place.client()?;
    publish(&mut client, submission(&place.edits(EDITS)))?;
    place.settle();
    let pid = client.daemon().ok_or("no daemon")?.pid;
    note("waiting until the daemon is at rest, then watching it");
    within(UPKEEP, || {
        let before = wake_ups(pid).ok()?;
        pause(REST.min(settings.idle));
        (wake_ups(pid).ok()? == before).then_some(())
    });
    let before = wake_ups(pid)?;
    pause(settings.idle);
    let woken = wake_ups(pid)? - before;
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let ratio = woken as f64;
    Ok(Finding {
        row: Row::Idle,
        work: format!(
            "wake-ups of an idle daemon over {} s",
            settings.idle.as_secs_f32()
        ),
        against: "none".to_owned(),
        ratio: Some(ratio),
        target: Target::AtMost(0.0),
        details: json!({"wakeUps": woken, "seconds": settings.idle.as_secs_f32()}),
    })
}
