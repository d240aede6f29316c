//! Following the publications of a workspace.
//!
//! Owns: going on from the last token after a lost connection, and following ACTIVE where there is no
//! daemon. Never: reports a publication twice or leaves one out: what a notice or the file system
//! says is a hint, the record is the truth.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use camino::Utf8Path;
use notify::{EventKind as FileEvent, RecommendedWatcher, RecursiveMode, Watcher};
use semaprax_protocol::documents::{EventKind, WatchEvent};
use semaprax_protocol::request::Watch as Subscribe;
use semaprax_protocol::rpc::Notice;
use semaprax_protocol::{Refusal, Seq};

use crate::client::is_worth_repeating;
use crate::connect::Link;
use crate::transport::CallError;
use crate::{Client, layout};

/// How long nothing is looked at when the file system says nothing.
const QUIET: Duration = Duration::from_secs(2);
/// The same, where the file system cannot be asked to tell.
const POLL: Duration = Duration::from_millis(250);

/// A stream of events: first where it starts from, then every publication once, in order.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    /// Events that are there to be told.
    ready: VecDeque<WatchEvent>,
    token: String,
    seq: Seq,
    follower: Option<Follower>,
}

impl Client {
    /// Follows the publications after `since` (`SEQ` or `SEQ:RECORD`), or after ACTIVE without it.
    pub fn watch(mut self, since: Option<String>) -> Result<Watch, Refusal> {
        let first = self.call(Subscribe { since })?;
        Ok(Watch {
            client: self,
            token: first.token.clone(),
            seq: first.seq,
            ready: VecDeque::from([first]),
            follower: None,
        })
    }
}

impl Watch {
    /// Waits for the next event.
    pub fn next_event(&mut self) -> Result<WatchEvent, Refusal> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.token.clone_from(&event.token);
                self.seq = event.seq;
                return Ok(event);
            }
            let from_disk = matches!(self.client.link(), Link::Disk(_));
            if from_disk {
                self.read_disk()?;
            } else {
                self.read_socket()?;
            }
        }
    }

    /// Sends something, so that a made-up daemon goes on with its script.
    #[cfg(test)]
    pub(crate) fn provoke(&mut self) {
        let request =
            semaprax_protocol::request::Request::Queue(semaprax_protocol::request::QueueParams {});
        drop(self.client.attempt(&request, &mut |_| {}));
    }

    fn read_socket(&mut self) -> Result<(), Refusal> {
        let Link::Daemon(session) = self.client.link() else {
            return Ok(());
        };
        match session.connection.notice(None) {
            Ok(Some(Notice::Event { event, .. })) => self.ready.push_back(*event),
            Ok(_) => {}
            Err(failed) if is_worth_repeating(&failed) => self.resume()?,
            Err(failed) => return Err(CallError::into_refusal(failed)),
        }
        Ok(())
    }

    /// Subscribes anew, from the last event told.
    fn resume(&mut self) -> Result<(), Refusal> {
        self.client.reconnect()?;
        let start = self.client.call(Subscribe {
            since: Some(self.token.clone()),
        })?;
        // A snapshot is the place the stream had reached: nothing new. Anything else is told.
        if start.event != EventKind::Snapshot {
            self.ready.push_back(start);
        }
        Ok(())
    }

    fn read_disk(&mut self) -> Result<(), Refusal> {
        let Link::Disk(disk) = self.client.link() else {
            return Ok(());
        };
        // Look out first, then read: what happens between the two wakes the wait.
        if self.follower.is_none() {
            self.follower = Some(Follower::new(disk.root()));
        }
        let events = disk.events_after(self.seq)?;
        if events.is_empty() {
            if let Some(follower) = &self.follower {
                follower.wait();
            }
        } else {
            self.ready.extend(events);
        }
        Ok(())
    }
}

/// Wakes when ACTIVE changes.
#[derive(Debug)]
struct Follower {
    changed: Receiver<()>,
    watcher: Option<RecommendedWatcher>,
    /// Keeps `changed` open where there is no watcher.
    _keep: mpsc::SyncSender<()>,
}

impl Follower {
    fn new(root: &Utf8Path) -> Self {
        let (report, changed) = mpsc::sync_channel(1);
        let keep = report.clone();
        let state = layout::state(root);
        let active = layout::active(root);
        let told = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let matters = match event {
                // Reading a file is an event too; it must not wake who reads.
                Ok(event) => {
                    !matches!(event.kind, FileEvent::Access(_))
                        && event
                            .paths
                            .iter()
                            .any(|path| path.file_name() == active.as_std_path().file_name())
                }
                Err(_) => true,
            };
            if matters {
                // A full channel is a wake-up that is under way already.
                let _ = report.try_send(());
            }
        });
        let watcher = told.ok().and_then(|mut watcher| {
            watcher
                .watch(state.as_std_path(), RecursiveMode::NonRecursive)
                .ok()
                .map(|()| watcher)
        });
        Self {
            changed,
            watcher,
            _keep: keep,
        }
    }

    fn wait(&self) {
        let longest = if self.watcher.is_some() { QUIET } else { POLL };
        let _ = self.changed.recv_timeout(longest);
    }
}
