//! Who stands where: the answer of `queue`, and the notices of a changed place.

use std::time::Duration;

use semaprax_protocol::SchemaTag;
use semaprax_protocol::documents::{Queue, QueueCounts, QueuedSubmission};

use super::{Effect, Engine, Entry, Ticket};

/// Changes of place are told at most this often.
pub(super) const PLACES_INTERVAL: Duration = Duration::from_millis(100);

impl<Work> Engine<Work> {
    /// How many submissions wait and run.
    pub fn counts(&self) -> QueueCounts {
        let running = self.running_entries().count();
        QueueCounts {
            waiting: self.queued,
            running: running as u64,
        }
    }

    /// The answer of `queue`.
    pub fn listing(&self, now: Duration) -> Queue {
        let describe = |entry: &Entry, position: u64, state: &str| {
            Some(QueuedSubmission {
                submission: entry.submission?,
                position,
                author: entry.author.clone(),
                since_ms: u64::try_from(now.saturating_sub(entry.since).as_millis())
                    .unwrap_or(u64::MAX),
                state: state.to_owned(),
            })
        };
        let order = self.submissions.in_order();
        let waiting = order
            .iter()
            .filter_map(|ticket| self.entries.get(ticket))
            .zip(1..);
        Queue {
            schema: SchemaTag::new(),
            waiting: waiting
                .filter_map(|(entry, place)| describe(entry, place, "waiting"))
                .collect(),
            running: self
                .running_entries()
                .filter_map(|entry| describe(entry, 0, "running"))
                .collect(),
        }
    }

    pub(super) fn running_entries(&self) -> impl Iterator<Item = &Entry> {
        self.running
            .iter()
            .filter_map(|ticket| self.entries.get(ticket))
            .filter(|entry| entry.submission.is_some())
    }

    /// Tells one who just came its place, if it has to wait.
    pub(super) fn tell_place(&mut self, ticket: Ticket, waiter: usize) {
        let Some(entry) = self.entries.get_mut(&ticket) else {
            return;
        };
        let Some(place) = self.submissions.position(entry.owner, ticket) else {
            return;
        };
        entry.told = place;
        let caller = entry.waiters.get(waiter).and_then(|waiter| waiter.caller);
        if let (Some(caller), Some(submission)) = (caller, entry.submission) {
            self.effects.push(Effect::Queued(caller, submission, place));
        }
    }

    /// Tells all whose place has changed, not more often than the interval.
    pub(super) fn tell_places(&mut self, now: Duration) {
        if !self.places_moved || now < self.places_told.saturating_add(PLACES_INTERVAL) {
            return;
        }
        self.places_moved = false;
        self.places_told = now;
        for (ticket, place) in self.submissions.in_order().into_iter().zip(1..) {
            let Some(entry) = self
                .entries
                .get_mut(&ticket)
                .filter(|entry| entry.told != place)
            else {
                continue;
            };
            entry.told = place;
            let Some(submission) = entry.submission else {
                continue;
            };
            let callers = entry.waiters.iter().filter_map(|waiter| waiter.caller);
            self.effects
                .extend(callers.map(|caller| Effect::Queued(caller, submission, place)));
        }
    }
}
