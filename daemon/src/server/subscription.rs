//! `watch`: every later publication, exactly once and in order.
//!
//! A subscriber is a number it has reached. What follows comes from the store while it catches up,
//! then from the engine's ring of encoded events; a hole in the ring is filled from the store. So the
//! hand-over needs no care: whatever is asked for is "what comes after N".
//! Invariants: a slow reader holds nothing back; it waits for room of its own outbox, and is told
//! `fresh` when it is further behind than the bound once it had caught up.

use std::sync::Arc;

use semaprax_protocol::documents::{EventKind, Receipt, WatchEvent};
use semaprax_protocol::limits::LINE_BYTES;
use semaprax_protocol::request::Response;
use semaprax_protocol::{Refusal, SchemaTag, Seq};
use tokio::sync::watch;

use super::blocking;
use super::connection::{Connection, WATCHES};
use super::daemon::shutting_down;
use super::hosted::Hosted;
use super::serve::too_many;
use crate::engine::{Cursor, Pulled};

/// Events read from the store, or taken from the ring, at once.
const PAGE: usize = 256;
/// What an event's line has besides the event.
const AROUND_BYTES: usize = 256;

/// Starts a subscription.
pub(super) fn start(
    connection: &Arc<Connection>,
    hosted: &Arc<Hosted>,
    id: u64,
    since: Option<String>,
) {
    if !connection.take_watch() {
        return connection.answer(id, &Err(too_many("subscriptions", WATCHES)));
    }
    let (connection, hosted) = (Arc::clone(connection), Arc::clone(hosted));
    tokio::spawn(async move {
        let (history, news) = hosted.subscribe();
        let mut feed = Feed {
            connection,
            hosted,
            request: id,
            history,
            news,
        };
        if let Err(refusal) = feed.run(since).await {
            tracing::warn!(%refusal, "a subscription ended");
            // What it was told so far is true; reconnecting with its token goes on from there.
            feed.connection.leave();
        }
    });
}

/// One subscription; it counts as one as long as it exists.
struct Feed {
    connection: Arc<Connection>,
    hosted: Arc<Hosted>,
    request: u64,
    history: u64,
    news: watch::Receiver<()>,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.hosted.unsubscribe();
    }
}

impl Feed {
    async fn run(&mut self, since: Option<String>) -> Result<(), Refusal> {
        let start = match self.start_from(since).await {
            Ok(start) => start,
            Err(refusal) => {
                self.connection.answer(self.request, &Err(refusal));
                return Ok(());
            }
        };
        let mut after = start.seq;
        self.connection
            .answer(self.request, &Ok(Response::Watch(start)));
        let mut catching_up = true;
        loop {
            self.connection.outbox().has_room().await;
            if self.connection.is_over() {
                return Ok(());
            }
            if catching_up {
                let last = self.stored_page(after).await?;
                after = last.unwrap_or(after);
                catching_up = last.is_some();
                continue;
            }
            self.news.mark_unchanged();
            let cursor = Cursor {
                after,
                history: self.history,
            };
            match self.hosted.pull(cursor, PAGE) {
                Pulled::Events(events) => {
                    for (seq, json) in events {
                        self.send(json);
                        after = seq;
                    }
                }
                Pulled::Gap => catching_up = true,
                Pulled::Fresh => {
                    after = self.start_over().await?;
                    catching_up = true;
                }
                Pulled::Nothing => tokio::select! {
                    changed = self.news.changed() => if changed.is_err() { return Ok(()) },
                    () = self.connection.ends() => return Ok(()),
                },
            }
        }
    }

    async fn start_from(&self, since: Option<String>) -> Result<WatchEvent, Refusal> {
        let hosted = Arc::clone(&self.hosted);
        self.read(move || hosted.workspace.watch_start(since.as_deref()))
            .await
    }

    /// Sends the next page of the store. Answers the last number sent; `None` when there was nothing.
    async fn stored_page(&self, after: Seq) -> Result<Option<Seq>, Refusal> {
        let hosted = Arc::clone(&self.hosted);
        let events = self
            .read(move || hosted.workspace.events_after(after, PAGE))
            .await?;
        let mut last = None;
        for event in events {
            last = Some(event.seq);
            self.send_event(event);
        }
        Ok(last)
    }

    /// Tells `fresh` with what is ACTIVE now. Answers its number.
    async fn start_over(&mut self) -> Result<Seq, Refusal> {
        // Counted anew first: what comes between is seen as coming after.
        (self.history, self.news) = self.hosted.subscribe();
        self.hosted.unsubscribe();
        let active = self.start_from(None).await?;
        let seq = active.seq;
        self.send_event(WatchEvent {
            event: EventKind::Fresh,
            ..active
        });
        Ok(seq)
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let daemon = &self.connection.daemon;
        let _permit = daemon
            .readers
            .acquire()
            .await
            .map_err(|_| shutting_down())?;
        blocking("watch", work).await?
    }

    fn send_event(&self, event: WatchEvent) {
        if let Some(json) = encode(event) {
            self.send(json);
        }
    }

    fn send(&self, json: Arc<[u8]>) {
        let head = head(self.request);
        self.connection.outbox().send_around(head, json, TAIL);
    }
}

/// What stands around the event in the line of a notice: the same as `rpc::encode_notice` writes.
fn head(request: u64) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","method":"notice","params":{{"notice":"event","request":{request},"event":"#)
        .into_bytes()
}

const TAIL: &[u8] = b"}}\n";

/// The event of a publication, encoded once for all subscribers.
pub(super) fn encode_event(receipt: &Receipt) -> Option<Arc<[u8]>> {
    let (seq, record) = (receipt.seq?, receipt.record?);
    encode(WatchEvent {
        schema: SchemaTag::new(),
        event: EventKind::Published,
        seq,
        revision: receipt.revision?,
        token: format!("{seq}:{record}"),
        parent: receipt.parent,
        author: Some(receipt.author.clone()),
        message: Some(receipt.message.clone()),
        changes: Some(receipt.changes.clone()),
        truncated: receipt.truncated,
    })
}

fn encode(mut event: WatchEvent) -> Option<Arc<[u8]>> {
    let json = match serde_json::to_vec(&event) {
        Ok(json) if json.len() + AROUND_BYTES > LINE_BYTES => {
            // `show` tells the changes in full.
            event.changes = event.changes.map(|_| Vec::new());
            event.truncated = true;
            serde_json::to_vec(&event)
        }
        json => json,
    };
    json.inspect_err(|error| tracing::error!(%error, "an event cannot be written"))
        .ok()
        .map(Arc::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use semaprax_protocol::Revision;
    use semaprax_protocol::rpc::{Notice, encode_notice};

    #[test]
    fn a_shared_event_makes_the_same_line() {
        let event = WatchEvent {
            schema: SchemaTag::new(),
            event: EventKind::Published,
            seq: Seq::FIRST,
            revision: Revision::from_bytes([7; 32]),
            token: "1:x".to_owned(),
            parent: None,
            author: Some("a\"b".to_owned()),
            message: None,
            changes: Some(Vec::new()),
            truncated: false,
        };
        let json = encode(event.clone()).unwrap();
        let line = [&head(5), &json[..], TAIL].concat();
        let notice = Notice::Event {
            request: 5,
            event: Box::new(event),
        };
        assert_eq!(
            String::from_utf8(line).unwrap(),
            String::from_utf8(encode_notice(&notice).unwrap()).unwrap()
        );
    }
}
