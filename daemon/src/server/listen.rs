//! From the lock to the last answer: how the daemon begins, takes clients in, and leaves.
//!
//! Invariants: the socket is bound only by the holder of the lock, with mode 0600, and never over
//! another; only this user is served; a client that comes while the daemon leaves sees its connection
//! closed, never silence.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use interprocess::local_socket::tokio::{Listener, Stream, prelude::*};
use interprocess::local_socket::{GenericFilePath, ListenerOptions};
use interprocess::os::unix::local_socket::ListenerOptionsExt as _;
use semaprax_protocol::{Code, Diagnostic, Refusal};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::daemon::Daemon;
use super::failed;
use crate::session::unasked_refusal;
use crate::world::FileLock;

/// How long a daemon that starts waits for one that leaves.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// How often it looks.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);
/// How long a refused client has to read why.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long clients have to read their last answers.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);
/// The first and the longest pause after the system would not give another connection.
const ACCEPT_PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
/// No daemon leaves before its first client has had a chance to come.
const LEAST_IDLE: Duration = Duration::from_millis(200);

/// Serves until the daemon is to leave.
pub(super) async fn serve(daemon: Arc<Daemon>) -> Result<(), Refusal> {
    let Some(lock) = become_the_one(&daemon).await? else {
        tracing::info!("another daemon serves this directory already");
        return Ok(());
    };
    let mut signals = Signals::new()?;
    let disk = &*daemon.world.disk;
    daemon.place.remove_stale_socket(disk, &*lock)?;
    let listener = bind(&daemon)?;
    tracing::info!(socket = %daemon.place.socket(), pid = std::process::id(), "the daemon serves");
    accept_all(&daemon, &listener, &mut signals).await;
    daemon.stop();
    // Takes the socket away first: who comes now finds none, and starts a daemon that waits for the lock.
    drop(listener);
    tokio::select! {
        () = leave(&daemon) => tracing::info!("the daemon leaves"),
        () = signals.next() => tracing::warn!("the daemon leaves without waiting for its work"),
    }
    drop(lock);
    Ok(())
}

/// Takes the lock; `None` when another daemon holds it and answers.
async fn become_the_one(daemon: &Daemon) -> Result<Option<Box<dyn FileLock>>, Refusal> {
    let patience = Instant::now() + LOCK_PATIENCE;
    loop {
        if let Some(lock) = daemon.place.try_lock(&*daemon.world.disk)? {
            return Ok(Some(lock));
        }
        // The holder has just started, or is about to leave: the one answers soon, the other lets go.
        if connect(daemon).await.is_ok() {
            return Ok(None);
        }
        if Instant::now() >= patience {
            let socket = daemon.place.socket();
            let message = format!(
                "another daemon holds the runtime directory and does not answer on `{socket}`"
            );
            return Err(Diagnostic::new(Code::WorkspaceLocked, message)
                .at(socket.as_str())
                .hint("wait until it has finished its work, or end that process")
                .into());
        }
        sleep(LOCK_INTERVAL).await;
    }
}

async fn connect(daemon: &Daemon) -> io::Result<Stream> {
    let socket = daemon.place.socket();
    Stream::connect(socket.as_str().to_fs_name::<GenericFilePath>()?).await
}

fn bind(daemon: &Daemon) -> Result<Listener, Refusal> {
    let socket = daemon.place.socket();
    let named = socket.as_str().to_fs_name::<GenericFilePath>();
    let bound = named.and_then(|name| {
        let options = ListenerOptions::new().name(name);
        // Where the system knows no mode for sockets, the directory's own mode protects it.
        let options = if cfg!(target_os = "linux") {
            options.mode(0o600)
        } else {
            options
        };
        options.create_tokio()
    });
    bound.map_err(|error| failed(&format!("cannot listen on `{socket}`"), &error))
}

async fn accept_all(daemon: &Arc<Daemon>, listener: &Listener, signals: &mut Signals) {
    let idle_timeout = daemon.config.idle_timeout.max(LEAST_IDLE);
    let mut idle_since = Some(Instant::now());
    let mut trouble = Trouble::default();
    loop {
        let idle_until = idle_since.and_then(|since| since.checked_add(idle_timeout));
        let idle = async {
            match idle_until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = daemon.stops() => return,
            () = signals.next() => return,
            accepted = trouble.accept(listener) => if let Some(stream) = accepted {
                idle_since = None;
                take_in(daemon, stream);
            },
            () = daemon.something_ends() => {}
            () = idle => {
                tracing::info!("the daemon was idle for long enough");
                return;
            }
        }
        idle_since = daemon
            .is_idle()
            .then(|| idle_since.unwrap_or_else(Instant::now));
    }
}

/// How accepting goes. When the system has no file for another connection, the client that waits makes
/// every try fail at once: without a pause the daemon would do nothing else, and its log grow for ever.
#[derive(Default)]
struct Trouble {
    /// Tries since one succeeded.
    failed: u64,
    /// The last pause.
    pause: Duration,
    /// When it is over.
    until: Option<Instant>,
}

impl Trouble {
    /// The next connection; `None` when there was none to have. May be dropped at any time: the pause
    /// goes on.
    async fn accept(&mut self, listener: &Listener) -> Option<Stream> {
        if let Some(until) = self.until {
            sleep_until(until).await;
        }
        match listener.accept().await {
            Ok(stream) => {
                if self.failed > 0 {
                    tracing::info!(failed = self.failed, "connections are accepted again");
                }
                *self = Self::default();
                Some(stream)
            }
            Err(error) => {
                // Said once, and again when it is over.
                if self.failed == 0 {
                    tracing::warn!(%error, "a connection could not be accepted; it waits, and is tried again");
                }
                self.failed += 1;
                self.pause = (self.pause * 2).clamp(ACCEPT_PAUSES.0, ACCEPT_PAUSES.1);
                self.until = Some(Instant::now() + self.pause);
                None
            }
        }
    }
}

fn take_in(daemon: &Arc<Daemon>, stream: Stream) {
    let peer = match stream.peer_creds() {
        Ok(peer) => peer,
        Err(error) => {
            tracing::warn!(%error, "a client that cannot be identified was turned away");
            return;
        }
    };
    if peer.euid() != Some(daemon.uid) {
        let message = format!("this daemon serves the user {} only", daemon.uid);
        tracing::warn!(uid = ?peer.euid(), "a client of another user was turned away");
        tokio::spawn(turn_away(
            Arc::clone(daemon),
            stream,
            Diagnostic::new(Code::PermissionDenied, message),
        ));
        return;
    }
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
    if let Some(connection) = daemon.admit(pid) {
        tokio::spawn(connection.run(stream));
        return;
    }
    let bound = daemon.config.limits.connections;
    let message = format!("{bound} clients are connected already, as many as may");
    tokio::spawn(turn_away(
        Arc::clone(daemon),
        stream,
        Diagnostic::new(Code::LimitExceeded, message),
    ));
}

/// Says why, then closes. What the client has sent meanwhile is read and dropped: closing a socket
/// with unread bytes would break the client's own sending before it has read why.
async fn turn_away(daemon: Arc<Daemon>, stream: Stream, diagnostic: Diagnostic) {
    // In a flood most are just closed.
    let Ok(_permit) = daemon.farewells.try_acquire() else {
        return;
    };
    let line = unasked_refusal(&diagnostic.into());
    let (mut writer, mut reader) = (&stream, &stream);
    let told = timeout(REFUSAL_TIMEOUT, async {
        writer.write_all(&line).await?;
        // The stream's own `shutdown` only flushes: the client would wait for the end.
        end_of_lines(&stream)?;
        let mut dropped = [0; 1024];
        while reader.read(&mut dropped).await? > 0 {}
        Ok::<_, io::Error>(())
    });
    if let Ok(Err(error)) = told.await {
        tracing::debug!(%error, "a client did not wait to be told");
    }
}

/// Tells the client that nothing more comes.
fn end_of_lines(stream: &Stream) -> io::Result<()> {
    let Stream::UdSocket(socket) = stream;
    Ok(rustix::net::shutdown(socket, rustix::net::Shutdown::Write)?)
}

/// Finishes what runs, lets go of the workspaces, and closes the connections.
async fn leave(daemon: &Arc<Daemon>) {
    daemon.registry.close().await;
    daemon.dismiss();
    let farewell = async {
        while daemon.connections() > 0 {
            daemon.something_ends().await;
        }
    };
    if timeout(FAREWELL_TIMEOUT, farewell).await.is_err() {
        tracing::debug!(
            left = daemon.connections(),
            "some clients did not read their last answers"
        );
    }
}

/// The signals that ask for the same as `daemon.stop`.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Self, Refusal> {
        let listen =
            |kind| signal(kind).map_err(|error| failed("cannot listen for signals", &error));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
