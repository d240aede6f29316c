//! The queue of one workspace as a pure machine: what arrives goes in, what is to be done comes out.
//!
//! Owns: who waits and who runs, deadlines, joins, cancellation, shutdown, and what subscribers get.
//! Work reaches the writer by three lanes: trees that a lease waits for, then requests of upkeep and
//! submissions in turn, so that neither starves the other. Only submissions are counted and bounded.
//! Never: io, a clock, tokio, or what a piece of work does. Time is an argument, counted from any
//! fixed moment.
//!
//! Invariants: 8 (a repeat while the first one waits or runs joins it), 11 (a refusal decided here is
//! handed to the writer to be recorded); each piece of work gets exactly one outcome; never more wait
//! than the bound; no connection is served twice while another one waits; one that fills the queue does
//! not keep the others out of it.

mod binding;
mod events;
mod leave;
mod places;
mod refusals;
mod rotation;
#[cfg(test)]
mod tests;
mod words;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use semaprax_protocol::{Refusal, SubmissionId};

pub use binding::{Binding, Terms};
pub use events::{Cursor, Event, Pulled};
pub use words::{
    Arrival, Bounds, Caller, ConnectionId, Effect, Input, Lane, Outcome, Ticket, Unrecorded,
};

use events::Events;
use places::PLACES_INTERVAL;
use rotation::Rotation;

/// With more content than this in a batch, no further submission comes to it.
const BATCH_BYTES: u64 = 16 << 20;

/// Someone who wants an outcome.
#[derive(Debug, Clone, Copy)]
struct Waiter {
    /// Whom to answer; `None` once its connection ended and the submission stays.
    caller: Option<Caller>,
    deadline: Option<Duration>,
    detach: bool,
    /// Whether it repeated a submission that was there already.
    joined: bool,
}

/// What is known of a piece of work besides the work itself.
#[derive(Debug)]
struct Entry {
    /// `None` for trees and upkeep.
    submission: Option<SubmissionId>,
    binding: Option<Binding>,
    owner: ConnectionId,
    author: String,
    bytes: u64,
    since: Duration,
    waiters: Vec<Waiter>,
    told: u64,
}

/// The queue, the running work and the subscribers of one workspace.
#[derive(Debug)]
pub struct Engine<Work> {
    bounds: Bounds,
    tickets: u64,
    entries: BTreeMap<Ticket, Entry>,
    /// The work of what waits; what runs has given it away.
    waiting: BTreeMap<Ticket, Work>,
    running: BTreeSet<Ticket>,
    /// What the writer is done with, and whose outcome is still to come.
    aside: BTreeSet<Ticket>,
    trees: VecDeque<Ticket>,
    upkeep: VecDeque<Ticket>,
    submissions: Rotation,
    /// Bound submissions that wait or run.
    bound: BTreeMap<SubmissionId, Ticket>,
    deadlines: BTreeSet<(Duration, Ticket)>,
    queued: u64,
    queued_bytes: u64,
    unrecorded: u64,
    unrecorded_bytes: u64,
    upkeep_is_next: bool,
    places_moved: bool,
    places_told: Duration,
    events: Events,
    stopping: bool,
    effects: Vec<Effect<Work>>,
}

impl<Work> Engine<Work> {
    /// An engine with nothing in it.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            tickets: 0,
            entries: BTreeMap::new(),
            waiting: BTreeMap::new(),
            running: BTreeSet::new(),
            aside: BTreeSet::new(),
            trees: VecDeque::new(),
            upkeep: VecDeque::new(),
            submissions: Rotation::default(),
            bound: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            queued: 0,
            queued_bytes: 0,
            unrecorded: 0,
            unrecorded_bytes: 0,
            upkeep_is_next: false,
            places_moved: false,
            places_told: Duration::ZERO,
            events: Events::default(),
            stopping: false,
            effects: Vec::new(),
        }
    }

    /// Takes in what happened at `now` and tells what is to be done about it.
    #[must_use]
    pub fn handle(&mut self, now: Duration, input: Input<Work>) -> Vec<Effect<Work>> {
        match input {
            Input::Submit(arrival) => self.submit(now, *arrival),
            Input::Request(caller, lane, work) => self.request(now, caller, lane, work),
            Input::Cancel(caller, submission) => self.cancel(caller, submission),
            Input::Disconnected(connection) => self.disconnect(connection),
            Input::Finished(ticket, outcome, event) => self.finish(ticket, &outcome, event),
            Input::Aside(ticket) => self.set_aside(ticket),
            Input::Recorded(bytes, held, refusal) => self.recorded(bytes, held, &refusal),
            Input::HistoryChanged => {
                self.events.start_over();
                self.effects.push(Effect::Publish);
            }
            Input::Tick => {}
            Input::ShutDown => self.shut_down(),
        }
        self.expire(now);
        self.dispatch();
        self.tell_places(now);
        std::mem::take(&mut self.effects)
    }

    /// When `Tick` is due, if nothing else comes before.
    pub fn next_tick(&self) -> Option<Duration> {
        let deadline = self.deadlines.first().map(|&(at, _)| at);
        let places =
            (self.places_moved && self.queued > 0).then(|| self.places_told + PLACES_INTERVAL);
        deadline.into_iter().chain(places).min()
    }

    /// Whether nothing waits, runs or is to be recorded.
    pub fn is_idle(&self) -> bool {
        self.entries.is_empty() && self.unrecorded == 0
    }

    /// Whether anybody is still there to be told what comes of this work.
    pub fn is_awaited(&self, ticket: Ticket) -> bool {
        self.entries
            .get(&ticket)
            .is_some_and(|entry| entry.waiters.iter().any(|waiter| waiter.caller.is_some()))
    }

    /// One more subscriber. Answers the history that its numbers belong to.
    pub fn subscribe(&mut self) -> u64 {
        self.events.subscribe()
    }

    /// One subscriber less.
    pub fn unsubscribe(&mut self) {
        self.events.unsubscribe();
    }

    /// Whether the event of a publication is wanted by anybody.
    pub fn has_subscribers(&self) -> bool {
        self.events.wanted()
    }

    /// What a subscriber gets next, at most `limit` events.
    pub fn pull(&self, cursor: Cursor, limit: usize) -> Pulled {
        self.events.pull(cursor, limit)
    }

    fn submit(&mut self, now: Duration, arrival: Arrival<Work>) {
        if self.stopping {
            return self.turn_away(arrival, &refusals::shutting_down());
        }
        let waiter = Waiter {
            caller: Some(arrival.caller),
            deadline: arrival.deadline.map(|wait| now.saturating_add(wait)),
            detach: arrival.detach,
            joined: false,
        };
        let first = arrival
            .binding
            .and_then(|_| self.bound.get(&arrival.submission).copied());
        if let Some(first) = first {
            return self.join(first, waiter, arrival);
        }
        if !self.has_room(&arrival) && !self.make_room(&arrival) {
            return self.turn_away(arrival, &refusals::queue_full(self.bounds));
        }
        let bytes = self.queued_bytes.saturating_add(arrival.bytes);
        let ticket = self.next_ticket();
        if arrival.binding.is_some() {
            self.bound.insert(arrival.submission, ticket);
        }
        self.deadlines
            .extend(waiter.deadline.map(|at| (at, ticket)));
        self.places_moved |= self.queued > 0;
        self.queued += 1;
        self.queued_bytes = bytes;
        self.submissions.push(arrival.caller.connection, ticket);
        self.waiting.insert(ticket, arrival.work);
        let entry = Entry {
            submission: Some(arrival.submission),
            binding: arrival.binding,
            owner: arrival.caller.connection,
            author: arrival.author,
            bytes: arrival.bytes,
            since: now,
            waiters: vec![waiter],
            told: 0,
        };
        self.entries.insert(ticket, entry);
        self.dispatch();
        self.tell_place(ticket, 0);
    }

    /// Whether one more may wait. When nothing runs or waits, anything may.
    fn has_room(&self, arrival: &Arrival<Work>) -> bool {
        let bytes = self.queued_bytes.saturating_add(arrival.bytes);
        let busy = !self.running.is_empty() || self.queued > 0;
        !busy || (self.queued < self.bounds.queue && bytes <= self.bounds.queue_bytes)
    }

    fn join(&mut self, first: Ticket, waiter: Waiter, arrival: Arrival<Work>) {
        let Some(entry) = self
            .entries
            .get_mut(&first)
            .filter(|entry| entry.binding == arrival.binding)
        else {
            let refusal = refusals::other_content(arrival.submission);
            return self.turn_away(arrival, &refusal);
        };
        entry.waiters.push(Waiter {
            joined: true,
            ..waiter
        });
        let joined = entry.waiters.len() - 1;
        if self.waiting.contains_key(&first) {
            let deadline = self
                .entries
                .get(&first)
                .and_then(|entry| entry.waiters.last()?.deadline);
            self.deadlines.extend(deadline.map(|at| (at, first)));
            self.tell_place(first, joined);
        }
    }

    fn request(&mut self, now: Duration, caller: Caller, lane: Lane, work: Work) {
        if self.stopping {
            return self.answer(caller, Err(refusals::shutting_down()));
        }
        let ticket = self.next_ticket();
        let entry = Entry {
            submission: None,
            binding: None,
            owner: caller.connection,
            author: String::new(),
            bytes: 0,
            since: now,
            waiters: vec![Waiter {
                caller: Some(caller),
                deadline: None,
                detach: false,
                joined: false,
            }],
            told: 0,
        };
        self.entries.insert(ticket, entry);
        self.waiting.insert(ticket, work);
        match lane {
            Lane::Tree => self.trees.push_back(ticket),
            Lane::Upkeep => self.upkeep.push_back(ticket),
        }
    }

    fn finish(&mut self, ticket: Ticket, outcome: &Outcome, event: Option<Event>) {
        let ran = self.running.remove(&ticket);
        if !ran && !self.aside.remove(&ticket) {
            return;
        }
        if let Some(entry) = self.forget(ticket) {
            for waiter in &entry.waiters {
                let outcome = outcome.clone();
                let outcome = if waiter.joined {
                    refusals::replayed(outcome)
                } else {
                    outcome
                };
                if let Some(caller) = waiter.caller {
                    self.answer(caller, outcome);
                }
            }
        }
        // Before subscribers are told: the next one need not wait for them.
        self.dispatch();
        if let Some(event) = event {
            self.events.push(event);
            self.effects.push(Effect::Publish);
        }
        if ran && self.stopping && self.running.is_empty() {
            self.effects.push(Effect::Drained);
        }
    }

    fn set_aside(&mut self, ticket: Ticket) {
        if !self.running.remove(&ticket) {
            return;
        }
        self.aside.insert(ticket);
        if self.stopping && self.running.is_empty() {
            self.effects.push(Effect::Drained);
        }
    }

    fn recorded(&mut self, bytes: u64, held: Vec<Caller>, refusal: &Refusal) {
        self.unrecorded = self.unrecorded.saturating_sub(1);
        self.unrecorded_bytes = self.unrecorded_bytes.saturating_sub(bytes);
        for caller in held {
            self.answer(caller, Err(refusal.clone()));
        }
    }

    /// Gives the writer its next work when it has none.
    fn dispatch(&mut self) {
        if !self.running.is_empty() {
            return;
        }
        if let Some(ticket) = self.trees.pop_front() {
            return self.run(ticket);
        }
        if (self.upkeep_is_next || self.queued == 0)
            && let Some(ticket) = self.upkeep.pop_front()
        {
            self.upkeep_is_next = false;
            return self.run(ticket);
        }
        let mut bytes = 0;
        for _ in 0..self.bounds.batch.max(1) {
            if bytes > BATCH_BYTES {
                return;
            }
            let Some(ticket) = self.submissions.pop() else {
                return;
            };
            bytes += self.entries.get(&ticket).map_or(0, |entry| entry.bytes);
            self.upkeep_is_next = true;
            self.places_moved = true;
            self.run(ticket);
        }
    }

    fn run(&mut self, ticket: Ticket) {
        let (Some(work), Some(entry)) = (self.waiting.remove(&ticket), self.entries.get(&ticket))
        else {
            return;
        };
        for waiter in &entry.waiters {
            if let Some(at) = waiter.deadline {
                self.deadlines.remove(&(at, ticket));
            }
        }
        if entry.submission.is_some() {
            self.queued -= 1;
            self.queued_bytes -= entry.bytes;
        }
        self.running.insert(ticket);
        self.effects.push(Effect::Run(ticket, work));
    }

    fn answer(&mut self, caller: Caller, outcome: Outcome) {
        self.effects.push(Effect::Answer(caller, Box::new(outcome)));
    }

    fn next_ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket::new(self.tickets)
    }
}
