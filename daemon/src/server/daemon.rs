//! What all connections share, and the life of the daemon as a whole.
//!
//! Owns: the list of connections, the bounds on concurrent reads and imports, and the wish to stop.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use semaprax_protocol::documents::{DaemonIdentity, DaemonStatus};
use semaprax_protocol::version::BUILD;
use semaprax_protocol::{Code, Diagnostic, Refusal, SchemaTag};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;

use super::connection::Connection;
use super::locked;
use super::place::Place;
use super::registry::Registry;
use crate::config::Config;
use crate::engine::ConnectionId;
use crate::workspace::Holder;
use crate::world::World;

/// Reads that go to the disk at once.
const READERS: usize = 8;
/// Refused clients that are told why at once.
const FAREWELLS: usize = 64;
/// Imports at once.
const IMPORTS: usize = 2;

/// The daemon.
#[derive(Debug)]
pub(super) struct Daemon {
    pub(super) world: World,
    pub(super) config: Config,
    pub(super) place: Place,
    pub(super) uid: u32,
    pub(super) registry: Registry,
    pub(super) readers: Semaphore,
    pub(super) imports: Semaphore,
    pub(super) farewells: Semaphore,
    started: Instant,
    connections: Mutex<BTreeMap<ConnectionId, Arc<Connection>>>,
    numbers: AtomicU64,
    /// Bytes held in memory for all clients.
    held: AtomicUsize,
    stop: watch::Sender<bool>,
    /// Something ended: perhaps the daemon is idle now.
    ended: Notify,
}

impl Daemon {
    /// A daemon without clients.
    pub(super) fn new(world: World, config: Config, place: Place, uid: u32) -> Arc<Self> {
        Arc::new(Self {
            world,
            config,
            place,
            uid,
            registry: Registry::default(),
            readers: Semaphore::new(READERS),
            imports: Semaphore::new(IMPORTS),
            farewells: Semaphore::new(FAREWELLS),
            started: Instant::now(),
            connections: Mutex::default(),
            numbers: AtomicU64::new(1),
            held: AtomicUsize::new(0),
            stop: watch::Sender::new(false),
            ended: Notify::new(),
        })
    }

    /// Time since the start.
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// The moment on tokio's clock that is `at` after the start.
    pub(super) fn instant(&self, at: Duration) -> Instant {
        self.started + at
    }

    /// Who holds the workspaces it opens.
    pub(super) fn holder(&self) -> Holder {
        Holder {
            socket: self.place.socket(),
            pid: std::process::id(),
        }
    }

    /// Which daemon this is.
    pub(super) fn identity() -> DaemonIdentity {
        DaemonIdentity {
            pid: std::process::id(),
            version: BUILD.to_owned(),
        }
    }

    /// The answer of `daemon.status`.
    pub(super) fn status(&self, running: bool) -> DaemonStatus {
        DaemonStatus {
            schema: SchemaTag::new(),
            running,
            daemon: Some(Self::identity()),
            socket: self.place.socket(),
            log: Some(self.place.log()),
            uptime_ms: Some(u64::try_from(self.now().as_millis()).unwrap_or(u64::MAX)),
            workspaces: self.registry.roots(),
            connections: self.connections() as u64,
        }
    }

    /// How many clients are connected.
    pub(super) fn connections(&self) -> usize {
        locked(&self.connections).len()
    }

    /// Takes a client in; `None` when there are as many as may be.
    pub(super) fn admit(self: &Arc<Self>, pid: Option<u32>) -> Option<Arc<Connection>> {
        let mut connections = locked(&self.connections);
        if connections.len() as u64 >= self.config.limits.connections {
            return None;
        }
        let id = ConnectionId::new(self.numbers.fetch_add(1, Ordering::Relaxed));
        let connection = Connection::new(Arc::clone(self), id, pid);
        connections.insert(id, Arc::clone(&connection));
        Some(connection)
    }

    /// What is held for one client was `before` bytes and is `now`. Answers whether there is room.
    pub(super) fn holds(&self, before: usize, now: usize) -> bool {
        // Wraps where it shrinks; the sum over all clients never does.
        let change = now.wrapping_sub(before);
        let held = self.held.fetch_add(change, Ordering::Relaxed);
        held.wrapping_add(change) as u64 <= self.config.limits.client_bytes
    }

    /// A client has gone.
    pub(super) fn forget(&self, id: ConnectionId) {
        locked(&self.connections).remove(&id);
        self.ended.notify_one();
    }

    /// Work has ended: when nobody is connected, the daemon may be idle now.
    pub(super) fn work_ended(&self) {
        if self.connections() == 0 {
            self.ended.notify_one();
        }
    }

    /// Waits until something ends.
    pub(super) async fn something_ends(&self) {
        self.ended.notified().await;
    }

    /// Whether nobody is connected and nothing runs. Connection leases need a connection.
    pub(super) fn is_idle(&self) -> bool {
        self.connections() == 0 && !self.is_working()
    }

    /// Asks the daemon to stop; with `if_idle` only when the asking connection is the only one and
    /// nothing runs.
    pub(super) fn ask_to_stop(&self, if_idle: bool) -> Result<(), Refusal> {
        let others = self.connections().saturating_sub(1);
        if if_idle && (others > 0 || self.is_working()) {
            let message = format!(
                "the daemon is not idle: {others} other clients are connected, or work is under way"
            );
            return Err(Diagnostic::new(Code::WorkspaceLocked, message)
                .hint("try again later, or stop it all the same with `semaprax daemon stop`")
                .into());
        }
        Ok(())
    }

    /// The daemon leaves: nothing new is taken.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Whether it leaves.
    pub(super) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Waits until it is to leave.
    pub(super) async fn stops(&self) {
        // The sender lives as long as `self`.
        if self.stop.subscribe().wait_for(|stop| *stop).await.is_err() {
            tracing::trace!("the daemon is gone");
        }
    }

    /// Asks all clients to leave.
    pub(super) fn dismiss(&self) {
        for connection in locked(&self.connections).values() {
            connection.leave();
        }
    }

    fn is_working(&self) -> bool {
        self.imports.available_permits() < IMPORTS || self.registry.is_working()
    }
}

/// The daemon is stopping.
pub(super) fn shutting_down() -> Refusal {
    Diagnostic::new(
        Code::ShuttingDown,
        "the daemon is stopping and takes no new work",
    )
    .into()
}
