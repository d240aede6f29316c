//! The task of one connection: it reads, hands requests on, and writes what the outbox holds.
//!
//! Owns: the socket of one client, and that everything the client held ends with it, however it ends.
//! Never: what a request does.
//! Invariants: a client that reads nothing for long is disconnected; a client that has stopped sending
//! has gone away; nothing else of a client outlives its connection but detached submissions and leases.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use semaprax_protocol::rpc::{self, Notice};
use semaprax_protocol::{LeaseId, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::daemon::Daemon;
use super::hosted::Hosted;
use super::outbox::Outbox;
use super::{locked, serve};
use crate::engine::{Caller, ConnectionId, Outcome};
use crate::session::{Action, Session, answer_line};

/// A client that takes nothing for this long is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);
/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;
/// Subscriptions of one connection.
pub(super) const WATCHES: usize = 64;

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Requests are served.
    Open,
    /// What is under way is answered, then the connection ends.
    Leaving,
    /// The client is gone.
    Over,
}

/// One client.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: ConnectionId,
    pub(super) pid: Option<u32>,
    pub(super) daemon: Arc<Daemon>,
    session: Mutex<Session>,
    /// What the daemon counts as held for this client; changes under the session's lock.
    held: AtomicUsize,
    outbox: Outbox,
    hosted: OnceLock<Arc<Hosted>>,
    phase: watch::Sender<Phase>,
    /// Something under way was answered: more may be taken.
    resumed: Notify,
    /// The same, for one who waits for all of it.
    settled: Notify,
    watches: AtomicUsize,
}

impl Connection {
    /// A client that has just come.
    pub(super) fn new(daemon: Arc<Daemon>, id: ConnectionId, pid: Option<u32>) -> Arc<Self> {
        let session = Mutex::new(Session::new(daemon.config.limits.clone()));
        Arc::new(Self {
            id,
            pid,
            daemon,
            session,
            held: AtomicUsize::new(0),
            outbox: Outbox::new(),
            hosted: OnceLock::new(),
            phase: watch::Sender::new(Phase::Open),
            resumed: Notify::new(),
            settled: Notify::new(),
            watches: AtomicUsize::new(0),
        })
    }

    /// Serves the client until it or the daemon leaves.
    pub(super) async fn run(self: Arc<Self>, stream: Stream) {
        // Runs its course even when something below panics.
        let ended = Ended(Arc::clone(&self));
        let reading = async {
            tokio::select! {
                result = self.read_all(&stream) => log_end(self.id, "reading", result),
                () = self.left() => {}
            }
            self.depart();
            self.outbox.finish();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = reading => {}
            result = self.write_all(&stream) => log_end(self.id, "writing", result),
        }
        drop(ended);
    }

    /// Answers a request.
    pub(super) fn answer(&self, request: u64, outcome: &Outcome) {
        let line = answer_line(request, outcome);
        let mut session = locked(&self.session);
        let was_asked = session.answered(request);
        self.count_held(&session);
        drop(session);
        if was_asked {
            self.outbox.send(line);
            self.resumed.notify_one();
            self.settled.notify_one();
        }
    }

    /// Tells something that is only worth something now.
    pub(super) fn hint(&self, notice: &Notice) {
        match rpc::encode_notice(notice) {
            Ok(line) => self.outbox.hint(line),
            Err(error) => tracing::error!(%error, "a notice cannot be written"),
        }
    }

    /// The lines that wait for the client.
    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Whom the answer of a request goes to.
    pub(super) fn caller(&self, request: u64) -> Caller {
        Caller {
            connection: self.id,
            request,
        }
    }

    /// The workspace it is about.
    pub(super) fn hosted(&self) -> Option<&Arc<Hosted>> {
        self.hosted.get()
    }

    /// Binds it to a workspace, or to none, and lets it go on.
    pub(super) fn greeted(&self, hosted: Option<Arc<Hosted>>) {
        let limits: Option<Limits> = hosted.as_ref().map(|hosted| hosted.limits().clone());
        if let Some(hosted) = hosted
            && self.hosted.set(hosted).is_err()
        {
            tracing::error!("a connection was greeted twice");
        }
        locked(&self.session).greeted(Ok(limits));
    }

    /// Lets it greet again.
    pub(super) fn not_greeted(&self) {
        locked(&self.session).greeted(Err(()));
    }

    /// The connection holds this lease; `false` when it has ended already.
    pub(super) fn hold(&self, lease: LeaseId) -> bool {
        locked(&self.session).hold(lease)
    }

    /// How many leases it holds.
    pub(super) fn leases(&self) -> usize {
        locked(&self.session).leases()
    }

    /// The connection no longer holds this lease.
    pub(super) fn let_go(&self, lease: LeaseId) {
        locked(&self.session).let_go(lease);
    }

    /// Takes one of its subscriptions; `false` when it has as many as it may.
    pub(super) fn take_watch(&self) -> bool {
        self.watches.fetch_add(1, Ordering::Relaxed) < WATCHES
    }

    /// Whether the client is gone.
    pub(super) fn is_over(&self) -> bool {
        *self.phase.borrow() == Phase::Over
    }

    /// Waits until the client is gone or is asked to go.
    pub(super) async fn ends(&self) {
        self.phase_is_past(Phase::Open).await;
    }

    /// Asks it to leave: what is under way is answered, then it is closed.
    pub(super) fn leave(&self) {
        self.phase.send_if_modified(|phase| {
            let open = *phase == Phase::Open;
            if open {
                *phase = Phase::Leaving;
            }
            open
        });
    }

    async fn left(&self) {
        self.phase_is_past(Phase::Open).await;
        while locked(&self.session).is_busy() {
            self.settled.notified().await;
        }
    }

    async fn phase_is_past(&self, past: Phase) {
        // The sender lives as long as `self`.
        if self
            .phase
            .subscribe()
            .wait_for(|phase| *phase != past)
            .await
            .is_err()
        {
            tracing::trace!("the connection is gone");
        }
    }

    async fn read_all(self: &Arc<Self>, stream: &Stream) -> io::Result<()> {
        let mut reader = stream;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            if !self.take_actions().await {
                return Ok(());
            }
            if !locked(&self.session).wants_bytes() {
                self.resumed.notified().await;
                continue;
            }
            tokio::select! {
                read = reader.read(&mut buffer) => match read? {
                    0 => return Ok(()),
                    length => self.receive(buffer.get(..length).unwrap_or_default()),
                },
                () = self.resumed.notified() => {}
            }
        }
    }

    fn receive(&self, bytes: &[u8]) {
        let mut session = locked(&self.session);
        session.receive(bytes);
        if !self.count_held(&session) {
            session.no_room();
        }
    }

    fn next_action(&self) -> Option<Action> {
        let mut session = locked(&self.session);
        let action = session.next_action();
        self.count_held(&session);
        action
    }

    /// Tells the daemon what is held for this client; answers whether there is room for all.
    fn count_held(&self, session: &Session) -> bool {
        let now = session.held();
        let before = self.held.swap(now, Ordering::Relaxed);
        self.daemon.holds(before, now)
    }

    /// Does what the session asks for; `false` when the connection is to end.
    async fn take_actions(self: &Arc<Self>) -> bool {
        loop {
            self.outbox.has_room().await;
            if *self.phase.borrow() != Phase::Open {
                // `left` ends the connection once what is under way is answered.
                std::future::pending::<()>().await;
            }
            let Some(action) = self.next_action() else {
                return true;
            };
            match action {
                Action::Greet {
                    request,
                    protocol,
                    client,
                    workspace,
                } => {
                    tracing::debug!(connection = self.id.get(), client, "hello");
                    serve::greet(self, request, protocol, workspace).await;
                }
                Action::Serve(call) => serve::serve(self, call),
                Action::Answer(request, outcome) => {
                    self.outbox.send(answer_line(request, &outcome));
                }
                Action::Send(line) => self.outbox.send(line),
                Action::End => return false,
            }
        }
    }

    async fn write_all(&self, stream: &Stream) -> io::Result<()> {
        let mut writer = stream;
        while let Some(batch) = self.outbox.next_batch().await {
            let mut rest = batch.as_slice();
            while !rest.is_empty() {
                let written = timeout(WRITE_TIMEOUT, writer.write(rest)).await??;
                if written == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                rest = rest.get(written..).unwrap_or_default();
            }
            self.outbox.sent(batch.len());
        }
        writer.shutdown().await
    }

    /// Ends all that the client held.
    fn depart(&self) {
        let mut session = locked(&self.session);
        let leases = session.end();
        self.count_held(&session);
        drop(session);
        self.phase.send_replace(Phase::Over);
        if let Some(hosted) = self.hosted.get() {
            for lease in leases {
                hosted.release_quietly(lease);
            }
            hosted.detach(self.id);
        }
    }
}

/// Whatever ends the task, the connection ends.
struct Ended(Arc<Connection>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.depart();
        self.0.outbox.close();
        self.0.daemon.forget(self.0.id);
    }
}

fn log_end(id: ConnectionId, what: &str, result: io::Result<()>) {
    match result {
        Ok(()) => tracing::debug!(connection = id.get(), "the client left"),
        Err(error) => tracing::debug!(connection = id.get(), %error, "{what} ended"),
    }
}
