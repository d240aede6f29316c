//! Finding the daemon of a workspace, or starting one.
//!
//! Owns: the order of places to look, the handshake, giving way of an older daemon to this build,
//! and what is done when there is no daemon.
//! Never: probes LOCK; a connection and its `hello` are the only proof that a daemon lives.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::Access;
use semaprax_protocol::request::{DaemonStop, Hello, Method, Request, Response, Welcome};
use semaprax_protocol::version::{self, ProtocolRange};
use semaprax_protocol::{Code, Refusal};

use crate::offline::{Disk, Why};
use crate::runtime::{self, Runtime};
use crate::transport::{CallError, Connection};
use crate::{env, error, layout, start};

/// How long a daemon may take to answer `hello`: it may have to recover the workspace first.
const HELLO: Duration = Duration::from_mins(1);
/// How long a daemon that is leaving may take to close its connections.
const LEAVING: Duration = Duration::from_secs(30);

/// What to do when no daemon answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// Nothing: requests that need no writer are answered from disk.
    Never,
    /// Start one with this `semaprax` program.
    Program(PathBuf),
}

/// How a client reaches its daemon.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory of the workspace, absolute; without it only `init` and the daemon's own
    /// requests are possible.
    pub workspace: Option<Utf8PathBuf>,
    /// What to do when no daemon answers.
    pub start: Start,
    /// Where the daemon listens.
    pub runtime: Runtime,
    /// Whether the daemon named in the workspace's LOCK is asked first. Not when the runtime
    /// directory was chosen on purpose.
    pub follow_lock: bool,
    /// How long a daemon started here stays without work, such as `30m`; its default without it.
    pub idle_timeout: Option<String>,
}

impl Options {
    /// What the environment says, for a workspace.
    pub fn from_environment(workspace: Option<Utf8PathBuf>, start: Start) -> Result<Self, Refusal> {
        let never = env::switch(env::NO_AUTOSTART);
        Ok(Self {
            workspace,
            start: if never { Start::Never } else { start },
            runtime: Runtime::from_environment()?,
            follow_lock: env::value(env::RUNTIME_DIR).is_none(),
            idle_timeout: None,
        })
    }
}

/// A connection that has said hello.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) welcome: Welcome,
}

/// Where answers come from.
#[derive(Debug)]
pub(crate) enum Link {
    /// A daemon.
    Daemon(Box<Session>),
    /// The files of the workspace.
    Disk(Box<Disk>),
}

/// Finds where answers come from: a daemon, one started for the purpose, or the disk.
pub(crate) fn establish(options: &Options) -> Result<Link, Refusal> {
    if let Some(workspace) = &options.workspace
        && is_read_only(workspace)
    {
        return Disk::open(workspace, Why::ReadOnly)
            .map(Box::new)
            .map(Link::Disk);
    }
    let why = match reach(options) {
        Ok(Some(session)) => return Ok(Link::Daemon(Box::new(session))),
        Ok(None) => Why::NoDaemon,
        // Nothing can be written: reading goes on.
        Err(full) if full.code() == Code::NoSpace => Why::Full(full),
        // The file system turned read-only and does not say so of itself.
        Err(refusal) if refusal.code() == Code::ReadOnly => Why::ReadOnly,
        Err(refusal) => return Err(refusal),
    };
    match &options.workspace {
        Some(workspace) => Disk::open(workspace, why).map(Box::new).map(Link::Disk),
        None => Err(error::unreachable(format!(
            "no daemon listens on `{}`, and none may be started",
            options.runtime.socket()
        ))),
    }
}

/// The daemon that answers, or one started for the purpose; `None` when there is none and none may be
/// started.
fn reach(options: &Options) -> Result<Option<Session>, Refusal> {
    match (find(options)?, &options.start) {
        (Some(session), _) => settle(options, session).map(Some),
        (None, Start::Program(program)) => start::start(options, program).map(Some),
        (None, Start::Never) => Ok(None),
    }
}

/// Whether nobody can write to the workspace from here.
fn is_read_only(workspace: &Utf8Path) -> bool {
    let state = layout::state(workspace);
    rustix::fs::access(state.as_std_path(), Access::WRITE_OK).is_err_and(|reason| {
        matches!(
            reason,
            rustix::io::Errno::ROFS | rustix::io::Errno::ACCESS | rustix::io::Errno::PERM
        )
    })
}

/// The daemon that answers, looked for in order; `None` when none does.
pub(crate) fn find(options: &Options) -> Result<Option<Session>, Refusal> {
    if options.follow_lock
        && let Some(workspace) = &options.workspace
        && let Some(socket) = runtime::named_by_lock(workspace)
        && socket != options.runtime.socket()
    {
        match greet(&socket, options.workspace.as_deref()) {
            Ok(Some(session)) => return Ok(Some(session)),
            // It is gone, another user's, or sees other files than we do (a container's, say).
            Ok(None) => {}
            Err(refusal)
                if matches!(refusal.code(), Code::PermissionDenied | Code::NotAWorkspace) => {}
            Err(refusal) => return Err(refusal),
        }
    }
    options.runtime.check_owner()?;
    greet(&options.runtime.socket(), options.workspace.as_deref())
}

/// The daemon that the LOCK of a workspace names. It is asked about itself, not about the workspace.
pub(crate) fn find_holder(workspace: &Utf8Path) -> Result<Option<Session>, Refusal> {
    runtime::named_by_lock(workspace).map_or(Ok(None), |socket| greet(&socket, None))
}

/// Connects and says hello. `None`: nobody listens there, or whoever did is leaving and has left.
pub(crate) fn greet(
    socket: &Utf8Path,
    workspace: Option<&Utf8Path>,
) -> Result<Option<Session>, Refusal> {
    let mut connection = match Connection::open(socket) {
        Ok(connection) => connection,
        Err(reason)
            if matches!(
                reason.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            return Ok(None);
        }
        Err(reason) => return Err(error::of_io("connect to", socket, &reason)),
    };
    let hello = Hello {
        protocol: ProtocolRange::CURRENT,
        client: format!("semaprax {}", version::BUILD),
        workspace: workspace.map(Utf8Path::to_owned),
    };
    match connection.exchange(&hello.request(), Some(HELLO), &mut |_| {}) {
        Ok(Response::Hello(welcome)) => Ok(Some(Session {
            connection,
            welcome,
        })),
        Ok(_) => Err(error::internal(
            "the daemon answered `hello` with another answer",
        )),
        Err(CallError::Refused(refusal)) if refusal.code() == Code::ShuttingDown => {
            if connection.await_end(Some(LEAVING)) {
                Ok(None)
            } else {
                Err(error::unreachable(format!(
                    "the daemon at `{socket}` has been leaving for {} seconds",
                    LEAVING.as_secs()
                )))
            }
        }
        Err(CallError::Refused(refusal)) => Err(refusal),
        Err(CallError::Lost(_)) => Ok(None),
        Err(CallError::TimedOut) => Err(error::unreachable(format!(
            "the daemon at `{socket}` took the connection but did not answer `hello` within {} seconds",
            HELLO.as_secs()
        ))),
    }
}

/// Keeps the daemon that was found, or, where it is older than this build and idle, asks it to leave
/// and starts this one.
fn settle(options: &Options, mut session: Session) -> Result<Session, Refusal> {
    let Start::Program(program) = &options.start else {
        return Ok(session);
    };
    if !version::is_newer_build(version::BUILD, &session.welcome.version) {
        return Ok(session);
    }
    let stop = Request::DaemonStop(DaemonStop { if_idle: true });
    match session.connection.exchange(&stop, Some(HELLO), &mut |_| {}) {
        // It has other clients or work: it serves this one too.
        Err(CallError::Refused(_)) => Ok(session),
        Ok(_) | Err(CallError::Lost(_)) => {
            session.connection.await_end(Some(LEAVING));
            start::start(options, program)
        }
        Err(late @ CallError::TimedOut) => Err(late.into_refusal()),
    }
}
