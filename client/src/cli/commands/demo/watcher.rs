//! The watcher: follows all publications and notes what it was told.
//!
//! Owns: the list of events in the order in which they came. Never: judges it (`outcome.rs` does).

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use semaprax_protocol::documents::EventKind;
use semaprax_protocol::{Refusal, Revision, Seq};

use super::course::Course;
use crate::{Client, error};

/// How long the last event may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the watcher was told of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// The publication number.
    pub(super) seq: Seq,
    /// The generation.
    pub(super) revision: Revision,
    /// How many paths it changed.
    pub(super) changes: u64,
}

/// A watcher at work.
#[derive(Debug)]
pub(super) struct Watcher {
    told: Receiver<Result<Told, Refusal>>,
}

impl Watcher {
    /// Begins to watch, from what is ACTIVE. The thread ends with the program: a watcher waits for
    /// events, and nothing but an event wakes it.
    pub(super) fn start(client: Client, course: &Arc<Course>) -> Result<Self, Refusal> {
        let mut watch = client.watch(None)?;
        let start = watch.next_event()?;
        if start.event != EventKind::Snapshot {
            return Err(error::internal(format!(
                "the watch began with {:?}, not with a snapshot",
                start.event
            )));
        }
        let (report, told) = mpsc::channel();
        let course = Arc::clone(course);
        std::thread::spawn(move || {
            loop {
                let event = watch.next_event().and_then(|event| match event.event {
                    EventKind::Published => Ok(Told {
                        seq: event.seq,
                        revision: event.revision,
                        changes: event.changes.map_or(0, |changes| changes.len() as u64),
                    }),
                    other => Err(error::internal(format!(
                        "the watcher was told {other:?} and has lost its place"
                    ))),
                });
                let ended = event.is_err();
                course.note(|tally| tally.watched += u64::from(!ended));
                if report.send(event).is_err() || ended {
                    return;
                }
            }
        });
        Ok(Self { told })
    }

    /// All it was told, up to publication `last`, or up to where nothing more came.
    pub(super) fn finish(self, last: Seq) -> Result<Vec<Told>, Refusal> {
        let mut all = Vec::new();
        while let Ok(event) = self.told.recv_timeout(PATIENCE) {
            let event = event?;
            all.push(event);
            if event.seq >= last {
                break;
            }
        }
        // What came once more after the last.
        for event in self.told.try_iter() {
            all.push(event?);
        }
        Ok(all)
    }
}
