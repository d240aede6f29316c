//! The newest publications, as subscribers are told of them.
//!
//! Owns: one encoded event for all subscribers, and the answer to "what comes after N". A subscriber
//! is only a number it has reached: a slow one holds nothing back and costs nothing.
//! Never: reads the store; a gap is reported, and filled by whoever can read it.

use std::collections::VecDeque;
use std::sync::Arc;

use semaprax_protocol::Seq;
use semaprax_protocol::limits::SUBSCRIBER_EVENTS;

/// Bytes of encoded events that are kept for subscribers of one workspace.
const EVENT_BYTES: usize = 64 << 20;

/// A publication as subscribers are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number.
    pub seq: Seq,
    /// The JSON of its `WatchEvent`, shared by all subscribers; `None` when nobody listened while it
    /// was made.
    pub json: Option<Arc<[u8]>>,
}

/// How far a subscriber is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The last publication it was told of.
    pub after: Seq,
    /// The history that number belongs to.
    pub history: u64,
}

/// What a subscriber gets next.
#[derive(Debug, PartialEq, Eq)]
pub enum Pulled {
    /// It has everything.
    Nothing,
    /// The next events, in order, without a gap.
    Events(Vec<(Seq, Arc<[u8]>)>),
    /// The next ones are no longer here, but in the store.
    Gap,
    /// It is further behind than a subscriber may be, or its history is no longer the one: it starts
    /// over with `fresh`.
    Fresh,
}

/// The ring of encoded events.
#[derive(Debug, Default)]
pub(super) struct Events {
    ring: VecDeque<(Seq, Arc<[u8]>)>,
    bytes: usize,
    newest: Option<Seq>,
    history: u64,
    subscribers: usize,
}

impl Events {
    /// One more listens. Answers the history its numbers belong to.
    pub(super) fn subscribe(&mut self) -> u64 {
        self.subscribers += 1;
        self.history
    }

    /// One less listens.
    pub(super) fn unsubscribe(&mut self) {
        self.subscribers = self.subscribers.saturating_sub(1);
        if self.subscribers == 0 {
            self.clear();
        }
    }

    /// Whether anybody listens.
    pub(super) fn wanted(&self) -> bool {
        self.subscribers > 0
    }

    /// A publication was made.
    pub(super) fn push(&mut self, event: Event) {
        let follows = self.newest.and_then(Seq::next) == Some(event.seq);
        if !follows {
            self.clear();
        }
        self.newest = Some(event.seq);
        match event.json {
            Some(json) if self.subscribers > 0 => {
                self.bytes += json.len();
                self.ring.push_back((event.seq, json));
            }
            _ => self.clear(),
        }
        while self.ring.len() > SUBSCRIBER_EVENTS || self.bytes > EVENT_BYTES {
            let Some((_, json)) = self.ring.pop_front() else {
                break;
            };
            self.bytes -= json.len();
        }
    }

    /// Publications were taken back by a repair: no number of before means what it meant.
    pub(super) fn start_over(&mut self) {
        self.clear();
        self.newest = None;
        self.history += 1;
    }

    /// What a subscriber gets next, at most `limit` events.
    pub(super) fn pull(&self, cursor: Cursor, limit: usize) -> Pulled {
        if cursor.history != self.history {
            return Pulled::Fresh;
        }
        let Some(behind) = self
            .newest
            .map(|newest| newest.get().saturating_sub(cursor.after.get()))
        else {
            return Pulled::Nothing;
        };
        if behind == 0 {
            return Pulled::Nothing;
        }
        if behind > SUBSCRIBER_EVENTS as u64 {
            return Pulled::Fresh;
        }
        let next = cursor.after.next();
        match self.ring.front() {
            Some((oldest, _)) if Some(*oldest) <= next => Pulled::Events(
                self.ring
                    .iter()
                    .filter(|(seq, _)| *seq > cursor.after)
                    .take(limit)
                    .cloned()
                    .collect(),
            ),
            _ => Pulled::Gap,
        }
    }

    fn clear(&mut self) {
        self.ring.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(number: u64) -> Seq {
        Seq::new(number).unwrap()
    }

    fn event(number: u64) -> Event {
        Event {
            seq: seq(number),
            json: Some(number.to_string().into_bytes().into()),
        }
    }

    #[test]
    fn a_subscriber_gets_what_follows() {
        let mut events = Events::default();
        events.push(event(1));
        let history = events.subscribe();
        let pull = |events: &Events, after: u64| match events.pull(
            Cursor {
                after: seq(after),
                history,
            },
            2,
        ) {
            Pulled::Events(list) => list
                .iter()
                .map(|(seq, _)| seq.to_string())
                .collect::<Vec<_>>()
                .join(" "),
            other => format!("{other:?}"),
        };
        assert_eq!(pull(&events, 1), "Nothing");
        events.push(Event {
            seq: seq(2),
            json: None,
        });
        assert_eq!(pull(&events, 1), "Gap");
        for number in 3..=5 {
            events.push(event(number));
        }
        assert_eq!(pull(&events, 1), "Gap");
        assert_eq!(pull(&events, 2), "3 4");
        assert_eq!(pull(&events, 4), "5");
        assert_eq!(pull(&events, 9), "Nothing");
        let bound = SUBSCRIBER_EVENTS as u64;
        for number in 6..=5 + bound {
            events.push(event(number));
        }
        assert_eq!(pull(&events, 4), "Fresh");
        assert_eq!(pull(&events, 5), "6 7");
        assert_eq!(events.ring.len(), SUBSCRIBER_EVENTS);
        events.start_over();
        assert_eq!(pull(&events, 5), "Fresh");
    }
}
