//! One open workspace as the server sees it: the engine, its clients, and the way to its writer.
//!
//! Owns: the one lock around the engine, and the translation of effects into sends. Every effect is
//! done under that lock and none of them waits, so that what a client sees is in order.
//! Never: decides anything.
//! Invariants: after a panic of the writer nothing more is done with it; who was connected to the
//! workspace is disconnected, because the leases of its handle end with it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use semaprax_protocol::documents::{Queue, QueueCounts};
use semaprax_protocol::rpc::Notice;
use semaprax_protocol::{Code, Diagnostic, LeaseId, Limits, Refusal};
use tokio::sync::{Notify, watch};

use super::connection::Connection;
use super::daemon::{Daemon, shutting_down};
use super::writer::{self, Task, Work};
use super::{failed, guarded, locked};
use crate::config::Config;
use crate::engine::{Bounds, ConnectionId, Cursor, Effect, Engine, Input, Pulled, Ticket};
use crate::workspace::{Workspace, Writer};

/// Submissions the writer takes at once: they share a turn where they can.
const BATCH: usize = 64;

/// One open workspace.
#[derive(Debug)]
pub(super) struct Hosted {
    pub(super) workspace: Arc<Workspace>,
    pub(super) daemon: Arc<Daemon>,
    limits: Limits,
    desk: Mutex<Desk>,
    retired: AtomicBool,
    /// The engine's next tick may have changed, or subscribers are to be woken.
    stirred: Notify,
    published: AtomicBool,
    /// Subscribers have something to pull.
    news: watch::Sender<()>,
    /// The journal may have grown.
    journal: watch::Sender<()>,
    /// The writer's thread has ended.
    closed: watch::Sender<bool>,
}

/// What the lock guards.
#[derive(Debug)]
struct Desk {
    engine: Engine<Work>,
    attached: BTreeMap<ConnectionId, Arc<Connection>>,
    writer: mpsc::Sender<Task>,
}

impl Hosted {
    /// Puts an open workspace to work: its writer on a thread, its timer on a task.
    pub(super) fn start(
        daemon: &Arc<Daemon>,
        workspace: Arc<Workspace>,
        writer: Writer,
        config: Config,
    ) -> Result<Arc<Self>, Refusal> {
        let bounds = Bounds {
            queue: config.limits.queue,
            queue_bytes: config.limits.queue_bytes,
            batch: BATCH,
        };
        let (tasks, receiver) = mpsc::channel();
        let desk = Desk {
            engine: Engine::new(bounds),
            attached: BTreeMap::new(),
            writer: tasks,
        };
        let hosted = Arc::new(Self {
            workspace,
            daemon: Arc::clone(daemon),
            limits: config.limits,
            desk: Mutex::new(desk),
            retired: AtomicBool::new(false),
            stirred: Notify::new(),
            published: AtomicBool::new(false),
            news: watch::Sender::new(()),
            journal: watch::Sender::new(()),
            closed: watch::Sender::new(false),
        });
        writer::spawn(writer, receiver, Arc::clone(&hosted))
            .map_err(|error| failed("cannot start the thread of the writer", &error))?;
        tokio::spawn(Arc::clone(&hosted).keep_time());
        Ok(hosted)
    }

    /// The limits of this workspace.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Takes in what happened, and does what the engine says.
    pub(super) fn input(&self, input: Input<Work>) {
        let mut desk = locked(&self.desk);
        let before = desk.engine.next_tick();
        let effects = desk.engine.handle(self.daemon.now(), input);
        let mut runs = Vec::new();
        for effect in effects {
            match effect {
                Effect::Run(ticket, work) => runs.push((ticket, work)),
                other => self.perform(&desk, other),
            }
        }
        // At once, so that the writer can take all of it in one turn.
        if !runs.is_empty() {
            self.hand_over(&desk, Task::Run(runs));
        }
        if desk.engine.next_tick() != before {
            self.stirred.notify_one();
        }
        let idle = desk.engine.is_idle();
        drop(desk);
        if idle {
            self.daemon.work_ended();
        }
    }

    /// Whether anybody is still there to be told what comes of this work.
    pub(super) fn is_awaited(&self, ticket: Ticket) -> bool {
        locked(&self.desk).engine.is_awaited(ticket)
    }

    /// A client is about this workspace from now on.
    pub(super) fn attach(&self, connection: &Arc<Connection>) -> Result<(), Refusal> {
        let mut desk = locked(&self.desk);
        if self.is_retired() {
            return Err(shutting_down());
        }
        if desk.attached.len() as u64 >= self.limits.connections {
            return Err(too_many_connections(self.limits.connections));
        }
        desk.attached.insert(connection.id, Arc::clone(connection));
        Ok(())
    }

    /// A client has gone.
    pub(super) fn detach(&self, connection: ConnectionId) {
        let attached = locked(&self.desk).attached.remove(&connection);
        if attached.is_some() {
            self.input(Input::Disconnected(connection));
        }
    }

    /// Ends a lease whose connection has gone.
    pub(super) fn release_quietly(&self, lease: LeaseId) {
        match guarded("releasing a lease", || self.workspace.release(lease)) {
            Ok(Some(released)) => {
                tracing::debug!(%lease, revision = %released.revision, "the lease ended");
            }
            Ok(None) => {}
            Err(refusal) => tracing::error!(%lease, %refusal, "the lease could not be released"),
        }
    }

    /// The answer of `queue`.
    pub(super) fn listing(&self) -> Queue {
        locked(&self.desk).engine.listing(self.daemon.now())
    }

    /// How many submissions wait and run.
    pub(super) fn counts(&self) -> QueueCounts {
        locked(&self.desk).engine.counts()
    }

    /// Whether anything waits or runs.
    pub(super) fn is_working(&self) -> bool {
        !locked(&self.desk).engine.is_idle()
    }

    /// One more subscriber. Answers the history its numbers belong to, and how it is woken.
    pub(super) fn subscribe(&self) -> (u64, watch::Receiver<()>) {
        (locked(&self.desk).engine.subscribe(), self.news.subscribe())
    }

    /// One subscriber less.
    pub(super) fn unsubscribe(&self) {
        locked(&self.desk).engine.unsubscribe();
    }

    /// Whether anybody wants the event of a publication.
    pub(super) fn has_subscribers(&self) -> bool {
        locked(&self.desk).engine.has_subscribers()
    }

    /// What a subscriber gets next.
    pub(super) fn pull(&self, cursor: Cursor, limit: usize) -> Pulled {
        locked(&self.desk).engine.pull(cursor, limit)
    }

    /// Wakes when the journal may have grown.
    pub(super) fn journal(&self) -> watch::Receiver<()> {
        self.journal.subscribe()
    }

    /// The journal may have grown.
    pub(super) fn journal_grew(&self) {
        self.journal.send_replace(());
    }

    /// Whether no client may attach any more.
    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Lets the writer finish what runs, refuses what waits, and lets go of the workspace. Its clients
    /// are asked to leave.
    pub(super) fn retire(&self) {
        let desk = locked(&self.desk);
        self.retired.store(true, Ordering::Release);
        let clients: Vec<_> = desk.attached.values().cloned().collect();
        drop(desk);
        self.input(Input::ShutDown);
        for client in clients {
            client.leave();
        }
    }

    /// Waits until the writer has let go.
    pub(super) async fn is_closed(&self) {
        // The sender lives as long as `self`.
        if self
            .closed
            .subscribe()
            .wait_for(|closed| *closed)
            .await
            .is_err()
        {
            tracing::trace!("the workspace is gone");
        }
    }

    /// The writer's thread has ended.
    pub(super) fn set_closed(&self) {
        self.closed.send_replace(true);
        self.stirred.notify_one();
    }

    fn perform(&self, desk: &Desk, effect: Effect<Work>) {
        let client = |id: ConnectionId| desk.attached.get(&id);
        match effect {
            Effect::Run(ticket, work) => self.hand_over(desk, Task::Run(vec![(ticket, work)])),
            Effect::Record(unrecorded) => self.hand_over(desk, Task::Record(unrecorded)),
            Effect::Drained => self.hand_over(desk, Task::Close),
            Effect::Answer(caller, outcome) => {
                if let Some(client) = client(caller.connection) {
                    client.answer(caller.request, &outcome);
                }
            }
            Effect::Queued(caller, submission, position) => {
                if let Some(client) = client(caller.connection) {
                    client.hint(&Notice::Queued {
                        request: caller.request,
                        submission,
                        position,
                    });
                }
            }
            Effect::Publish => {
                self.published.store(true, Ordering::Release);
                self.stirred.notify_one();
            }
        }
    }

    fn hand_over(&self, desk: &Desk, task: Task) {
        if desk.writer.send(task).is_err() {
            // Only after `Drained`, or when the thread itself has come to grief.
            tracing::error!(root = %self.workspace.root(), "the writer is gone");
        }
    }

    /// Ticks the engine when it is due, and wakes subscribers: away from the writer's thread, which has
    /// better things to do.
    async fn keep_time(self: Arc<Self>) {
        while !*self.closed.borrow() {
            if self.published.swap(false, Ordering::AcqRel) {
                self.news.send_replace(());
            }
            let due = locked(&self.desk).engine.next_tick();
            let tick = async {
                match due {
                    Some(at) => tokio::time::sleep_until(self.daemon.instant(at)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = tick => self.input(Input::Tick),
                () = self.stirred.notified() => {}
            }
        }
    }
}

fn too_many_connections(bound: u64) -> Refusal {
    let message =
        format!("{bound} clients are connected to this workspace already, as many as may");
    Diagnostic::new(Code::LimitExceeded, message).into()
}
