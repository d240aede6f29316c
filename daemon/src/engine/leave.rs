//! How work leaves the queue without having run.
//!
//! Owns: cancellation, disconnection, deadlines, shutdown, and the refusal that each of them is.
//! Invariants: 11 (a refusal decided here is handed to the writer to be recorded); whoever waits for
//! an outcome gets exactly one.

use std::time::Duration;

use semaprax_protocol::documents::Cancelled;
use semaprax_protocol::request::Response;
use semaprax_protocol::{Refusal, SchemaTag, SubmissionId};

use super::{
    Arrival, Caller, ConnectionId, Effect, Engine, Entry, Ticket, Unrecorded, Waiter, refusals,
};

impl<Work> Engine<Work> {
    pub(super) fn cancel(&mut self, caller: Caller, submission: SubmissionId) {
        let found = |ticket: &&Ticket| {
            self.entries
                .get(ticket)
                .is_some_and(|entry| entry.submission == Some(submission))
        };
        let Some(ticket) = self.waiting.keys().find(found).copied() else {
            let runs = self.running.iter().any(|ticket| found(&ticket));
            return self.answer(caller, Err(refusals::nothing_to_cancel(submission, runs)));
        };
        let cancelled = Cancelled {
            schema: SchemaTag::new(),
            cancelled: submission,
        };
        self.answer(caller, Ok(Response::Cancel(cancelled)));
        self.refuse(ticket, &refusals::cancelled(submission));
    }

    pub(super) fn disconnect(&mut self, connection: ConnectionId) {
        let mut left = Vec::new();
        for (&ticket, entry) in &mut self.entries {
            let Entry { waiters, .. } = entry;
            for waiter in waiters.iter_mut() {
                if waiter
                    .caller
                    .is_some_and(|caller| caller.connection == connection)
                {
                    waiter.caller = None;
                    if !waiter.detach
                        && let Some(at) = waiter.deadline.take()
                    {
                        self.deadlines.remove(&(at, ticket));
                    }
                }
            }
            waiters.retain(|waiter| waiter.caller.is_some() || waiter.detach);
            // Two waiters of one entry may have had the same deadline.
            if self.waiting.contains_key(&ticket) {
                self.deadlines.extend(
                    waiters
                        .iter()
                        .filter_map(|waiter| Some((waiter.deadline?, ticket))),
                );
                if waiters.is_empty() {
                    left.push((ticket, entry.submission));
                }
            }
        }
        for (ticket, submission) in left {
            match submission {
                Some(submission) => self.refuse(ticket, &refusals::client_gone(submission)),
                None => drop(self.withdraw(ticket)),
            }
        }
    }

    /// Makes room in a full queue for one who has far less in it than another: the newest that the other
    /// waits for goes, so that a flood is paid for by who makes it. Nobody gains by a second connection
    /// what many submissions on one would not have. What stays without its client is never taken.
    pub(super) fn make_room(&mut self, arrival: &Arrival<Work>) -> bool {
        let Some((connection, most)) = self.submissions.longest() else {
            return false;
        };
        let own = self.submissions.waiting(arrival.caller.connection);
        let newest = self.submissions.newest(connection).filter(|ticket| {
            self.entries.get(ticket).is_some_and(|entry| {
                let stays = entry.waiters.iter().any(|waiter| waiter.detach);
                let freed = self.queued_bytes - entry.bytes;
                let fits = freed.saturating_add(arrival.bytes) <= self.bounds.queue_bytes;
                !stays && entry.waiters.len() == 1 && fits
            })
        });
        match newest {
            Some(ticket) if own + 2 <= most => {
                self.refuse(ticket, &refusals::queue_full(self.bounds));
                self.queued < self.bounds.queue
            }
            _ => false,
        }
    }

    pub(super) fn shut_down(&mut self) {
        if std::mem::replace(&mut self.stopping, true) {
            return;
        }
        let waiting: Vec<Ticket> = self.waiting.keys().copied().collect();
        for ticket in waiting {
            self.refuse(ticket, &refusals::shutting_down());
        }
        if self.running.is_empty() {
            self.effects.push(Effect::Drained);
        }
    }

    /// Answers those whose deadline has passed, and takes out what nobody else waits for.
    pub(super) fn expire(&mut self, now: Duration) {
        while let Some(&(at, ticket)) = self.deadlines.first().filter(|&&(at, _)| at <= now) {
            self.deadlines.remove(&(at, ticket));
            let Some(entry) = self.entries.get_mut(&ticket) else {
                continue;
            };
            let late = |waiter: &Waiter| waiter.deadline.is_some_and(|deadline| deadline <= now);
            if entry.waiters.iter().all(late) {
                let refusal = refusals::deadline_passed(now.saturating_sub(entry.since));
                self.refuse(ticket, &refusal);
                continue;
            }
            let refusal = refusals::deadline_passed(now.saturating_sub(entry.since));
            let gone: Vec<Waiter> = entry
                .waiters
                .extract_if(.., |waiter| late(waiter))
                .collect();
            for caller in gone.into_iter().filter_map(|waiter| waiter.caller) {
                self.answer(caller, Err(refusal.clone()));
            }
        }
    }

    /// Takes a waiting piece of work out, whatever lane it is in.
    pub(super) fn withdraw(&mut self, ticket: Ticket) -> Option<(Entry, Work)> {
        let work = self.waiting.remove(&ticket)?;
        let entry = self.forget(ticket)?;
        if entry.submission.is_some() {
            self.queued -= 1;
            self.queued_bytes -= entry.bytes;
            self.submissions.remove(entry.owner, ticket);
            self.places_moved = true;
        } else {
            self.trees.retain(|&other| other != ticket);
            self.upkeep.retain(|&other| other != ticket);
        }
        Some((entry, work))
    }

    pub(super) fn forget(&mut self, ticket: Ticket) -> Option<Entry> {
        let entry = self.entries.remove(&ticket)?;
        for at in entry.waiters.iter().filter_map(|waiter| waiter.deadline) {
            self.deadlines.remove(&(at, ticket));
        }
        if let Some(submission) = entry.submission.filter(|_| entry.binding.is_some()) {
            self.bound.remove(&submission);
        }
        Some(entry)
    }

    /// Refuses a waiting piece of work for all who want its outcome.
    pub(super) fn refuse(&mut self, ticket: Ticket, refusal: &Refusal) {
        let Some((entry, work)) = self.withdraw(ticket) else {
            return;
        };
        let callers = entry
            .waiters
            .iter()
            .filter_map(|waiter| waiter.caller)
            .collect();
        match entry.submission {
            Some(submission) => {
                self.refuse_submission(submission, work, entry.bytes, callers, refusal);
            }
            None => {
                for caller in callers {
                    self.answer(caller, Err(refusal.clone()));
                }
            }
        }
    }

    pub(super) fn turn_away(&mut self, arrival: Arrival<Work>, refusal: &Refusal) {
        let Arrival {
            caller,
            submission,
            work,
            bytes,
            ..
        } = arrival;
        self.refuse_submission(submission, work, bytes, vec![caller], refusal);
    }

    /// Answers at once, and has the refusal recorded when the writer is free. When as much is still to
    /// be recorded as may wait, the answer is held back until then: that slows the one who asks too
    /// much, and keeps memory bounded.
    pub(super) fn refuse_submission(
        &mut self,
        submission: SubmissionId,
        work: Work,
        bytes: u64,
        callers: Vec<Caller>,
        refusal: &Refusal,
    ) {
        let room = self.unrecorded < self.bounds.queue.max(1)
            && self.unrecorded_bytes.saturating_add(bytes) <= self.bounds.queue_bytes;
        let held = if room { Vec::new() } else { callers.clone() };
        self.unrecorded += 1;
        self.unrecorded_bytes = self.unrecorded_bytes.saturating_add(bytes);
        if room {
            for caller in callers {
                self.answer(caller, Err(refusal.clone()));
            }
        }
        let unrecorded = Unrecorded {
            submission,
            work,
            refusal: refusal.clone(),
            bytes,
            held,
        };
        self.effects.push(Effect::Record(Box::new(unrecorded)));
    }
}
