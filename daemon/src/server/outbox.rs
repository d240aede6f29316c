//! What a connection has still to send.
//!
//! Owns: the lines that wait for the client to read, and their bound. Answers always get in: how many
//! there can be is bounded by the requests under way. All else waits for room, or is left out.
//! Never: writes to a socket.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};

use super::locked;

/// Above this many bytes there is no room for more than answers.
const FULL_BYTES: usize = 1 << 20;
/// Small lines are sent together up to this many bytes.
const BATCH_BYTES: usize = 64 << 10;

/// The lines of one connection.
#[derive(Debug)]
pub(super) struct Outbox {
    lines: Mutex<Lines>,
    filled: Notify,
    room: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Lines {
    waiting: VecDeque<Line>,
    /// Bytes that wait or are being sent.
    bytes: usize,
    /// Nothing is added any more; what waits is still sent.
    finished: bool,
    closed: bool,
}

#[derive(Debug)]
enum Line {
    Whole(Vec<u8>),
    /// A line around a piece that many connections share.
    Around {
        head: Vec<u8>,
        shared: Arc<[u8]>,
        tail: &'static [u8],
    },
}

impl Line {
    fn len(&self) -> usize {
        match self {
            Self::Whole(line) => line.len(),
            Self::Around { head, shared, tail } => head.len() + shared.len() + tail.len(),
        }
    }

    fn append_to(self, batch: &mut Vec<u8>) {
        match self {
            Self::Whole(line) if batch.is_empty() => *batch = line,
            Self::Whole(line) => batch.extend_from_slice(&line),
            Self::Around { head, shared, tail } => {
                batch.extend_from_slice(&head);
                batch.extend_from_slice(&shared);
                batch.extend_from_slice(tail);
            }
        }
    }
}

impl Outbox {
    /// An empty one.
    pub(super) fn new() -> Self {
        Self {
            lines: Mutex::default(),
            filled: Notify::new(),
            room: watch::Sender::new(true),
        }
    }

    /// Sends an answer.
    pub(super) fn send(&self, line: Vec<u8>) {
        self.push(Line::Whole(line));
    }

    /// Sends a line that is only worth something now: left out while there is no room.
    pub(super) fn hint(&self, line: Vec<u8>) {
        if self.has_room_now() {
            self.push(Line::Whole(line));
        }
    }

    /// Sends a line around a shared piece.
    pub(super) fn send_around(&self, head: Vec<u8>, shared: Arc<[u8]>, tail: &'static [u8]) {
        self.push(Line::Around { head, shared, tail });
    }

    /// Waits until there is room, or nothing is sent any more.
    pub(super) async fn has_room(&self) {
        // The sender lives as long as `self`.
        if self.room.subscribe().wait_for(|room| *room).await.is_err() {
            tracing::trace!("the outbox is gone");
        }
    }

    /// Whether there is room.
    pub(super) fn has_room_now(&self) -> bool {
        *self.room.borrow()
    }

    /// The next bytes to send; waits for some. `None` once all is sent and nothing will come.
    pub(super) async fn next_batch(&self) -> Option<Vec<u8>> {
        loop {
            if let Some(batch) = self.try_next_batch() {
                return Some(batch);
            }
            if locked(&self.lines).finished {
                return None;
            }
            self.filled.notified().await;
        }
    }

    /// The next bytes to send, if there are any.
    fn try_next_batch(&self) -> Option<Vec<u8>> {
        let mut lines = locked(&self.lines);
        let mut batch = Vec::new();
        while let Some(next) = lines.waiting.front() {
            if !batch.is_empty() && batch.len() + next.len() > BATCH_BYTES {
                break;
            }
            lines.waiting.pop_front()?.append_to(&mut batch);
        }
        (!batch.is_empty()).then_some(batch)
    }

    /// That many bytes have been sent.
    pub(super) fn sent(&self, bytes: usize) {
        let mut lines = locked(&self.lines);
        lines.bytes = lines.bytes.saturating_sub(bytes);
        if lines.closed || lines.bytes <= FULL_BYTES / 2 {
            // Under the lock, so that `push` cannot come between.
            self.set_room(true);
        }
    }

    /// Nothing is added any more: `next_batch` ends once all is sent.
    pub(super) fn finish(&self) {
        locked(&self.lines).finished = true;
        self.filled.notify_one();
    }

    /// Nothing is sent any more: whoever waits for room goes on, and what is sent is dropped.
    pub(super) fn close(&self) {
        let mut lines = locked(&self.lines);
        lines.closed = true;
        lines.waiting.clear();
        drop(lines);
        self.set_room(true);
    }

    fn push(&self, line: Line) {
        let mut lines = locked(&self.lines);
        if lines.closed || lines.finished {
            return;
        }
        lines.bytes += line.len();
        lines.waiting.push_back(line);
        if lines.bytes > FULL_BYTES {
            self.set_room(false);
        }
        drop(lines);
        self.filled.notify_one();
    }

    fn set_room(&self, room: bool) {
        self.room
            .send_if_modified(|old| std::mem::replace(old, room) != room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_out_in_order_and_room_is_told() {
        let outbox = Outbox::new();
        outbox.send(b"1\n".to_vec());
        outbox.send_around(b"<".to_vec(), b"2".to_vec().into(), b">\n");
        outbox.hint(b"3\n".to_vec());
        assert_eq!(outbox.try_next_batch().unwrap(), b"1\n<2>\n3\n");
        outbox.sent(8);
        outbox.send(vec![b'x'; FULL_BYTES + 1]);
        assert!(!*outbox.room.borrow());
        outbox.hint(b"4\n".to_vec());
        outbox.send(b"5\n".to_vec());
        assert_eq!(outbox.try_next_batch().unwrap().len(), FULL_BYTES + 1);
        outbox.sent(FULL_BYTES + 1);
        assert!(*outbox.room.borrow());
        assert_eq!(outbox.try_next_batch().unwrap(), b"5\n");
        assert!(outbox.try_next_batch().is_none());
        outbox.close();
        outbox.send(b"6\n".to_vec());
        assert!(outbox.try_next_batch().is_none());
    }
}
