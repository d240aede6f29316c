//! `Client`: what library users, the command line and the MCP server see of Semaprax.
//!
//! Owns: typed calls, repeating a call whose connection was lost, and the names of submissions.
//! Never: prints, or reads the command line.
//!
//! Invariant: whatever publishes carries an id made before it is first sent, so that repeating it
//! after a lost answer returns the first outcome instead of publishing twice.

use std::time::Duration;

use camino::Utf8Path;
use semaprax_protocol::documents::DaemonIdentity;
use semaprax_protocol::request::{Attribution, Method, Request, Response};
use semaprax_protocol::{Code, Refusal, SubmissionId};

use crate::connect::{self, Link, Options, Session};
use crate::error;
use crate::transport::{CallError, NoticeSink};

/// A connection to a workspace, or to a daemon when no workspace was named.
///
/// ```no_run
/// use semaprax_client::{Client, Options, Start};
/// use semaprax_protocol::request::StatusParams;
///
/// # fn main() -> Result<(), semaprax_protocol::Refusal> {
/// let options = Options::from_environment(
///     Some("/home/me/project".into()),
///     Start::Program("/usr/bin/semaprax".into()),
/// )?;
/// let mut client = Client::connect(options)?;
/// let status = client.call(StatusParams { drift: false, limits: false })?;
/// println!("@{} {}", status.active.seq, status.active.revision);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Client {
    options: Options,
    link: Link,
}

impl Client {
    /// Finds the daemon, or starts one, or reads from disk, as `options` say.
    pub fn connect(options: Options) -> Result<Self, Refusal> {
        let link = connect::establish(&options)?;
        Ok(Self { options, link })
    }

    /// Connects to the daemon that runs; `None` when none does. Never starts one.
    pub fn find(options: Options) -> Result<Option<Self>, Refusal> {
        let found = connect::find(&options)?;
        Ok(found.map(|session| Self {
            options,
            link: Link::Daemon(Box::new(session)),
        }))
    }

    /// Connects to the daemon that the LOCK of a workspace names, without opening the workspace;
    /// `None` when it names none, or one that is gone.
    pub fn find_holder(options: &Options, workspace: &Utf8Path) -> Result<Option<Self>, Refusal> {
        let found = connect::find_holder(workspace)?;
        Ok(found.map(|session| Self {
            options: options.clone(),
            link: Link::Daemon(Box::new(session)),
        }))
    }

    /// Waits until the daemon closes the connection; `false` when it did not `within` the time.
    pub fn await_end(&mut self, within: Option<Duration>) -> bool {
        match &mut self.link {
            Link::Daemon(session) => session.connection.await_end(within),
            Link::Disk(_) => true,
        }
    }

    /// The daemon that answers; `None` when the workspace is read from disk.
    pub fn daemon(&self) -> Option<DaemonIdentity> {
        match &self.link {
            Link::Daemon(session) => Some(DaemonIdentity {
                pid: session.welcome.pid,
                version: session.welcome.version.clone(),
            }),
            Link::Disk(_) => None,
        }
    }

    /// The directory of the workspace, where one was named.
    pub fn workspace(&self) -> Option<&Utf8Path> {
        self.options.workspace.as_deref()
    }

    /// Where the daemon listens.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Asks, and waits for the answer.
    pub fn call<M: Method>(&mut self, params: M) -> Result<M::Reply, Refusal> {
        self.call_noticing(params, &mut |_| {})
    }

    /// Asks, hands on what the daemon says meanwhile, and waits for the answer.
    pub fn call_noticing<M: Method>(
        &mut self,
        params: M,
        notices: NoticeSink<'_>,
    ) -> Result<M::Reply, Refusal> {
        let response = self.request(params.request(), notices)?;
        M::reply(response)
            .ok_or_else(|| error::internal("the answer belongs to a request of another kind"))
    }

    /// The untyped form of [`Client::call_noticing`].
    pub fn request(
        &mut self,
        request: Request,
        notices: NoticeSink<'_>,
    ) -> Result<Response, Refusal> {
        let request = named(request);
        match self.attempt(&request, notices) {
            Err(failed) if is_worth_repeating(&failed) && is_repeatable(&request) => {
                self.reconnect()?;
                self.attempt(&request, notices)
                    .map_err(CallError::into_refusal)
            }
            other => other.map_err(CallError::into_refusal),
        }
    }

    /// One attempt, without connecting again.
    pub(crate) fn attempt(
        &mut self,
        request: &Request,
        notices: NoticeSink<'_>,
    ) -> Result<Response, CallError> {
        match &mut self.link {
            Link::Daemon(session) => session.connection.exchange(request, None, notices),
            Link::Disk(disk) => disk.answer(request).map_err(CallError::Refused),
        }
    }

    /// Looks for a daemon again, as at first. Leases and content of the old connection are gone.
    pub(crate) fn reconnect(&mut self) -> Result<(), Refusal> {
        self.link = connect::establish(&self.options)?;
        Ok(())
    }

    pub(crate) fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    /// The session, where there is a daemon.
    pub(crate) fn session(&mut self) -> Option<&mut Session> {
        match &mut self.link {
            Link::Daemon(session) => Some(session),
            Link::Disk(_) => None,
        }
    }
}

/// Whether the daemon went away before it answered, so that the next one may be asked.
pub(crate) fn is_worth_repeating(failed: &CallError) -> bool {
    match failed {
        CallError::Lost(_) => true,
        CallError::Refused(refusal) => refusal.code() == Code::ShuttingDown,
        CallError::TimedOut => false,
    }
}

/// Whether asking twice has the effect of asking once.
fn is_repeatable(request: &Request) -> bool {
    match request {
        // A second import finds the first one's workspace, a second export its directory; content
        // belongs to the lost connection, and a daemon that is gone need not be asked to go.
        Request::Init(_)
        | Request::Export(_)
        | Request::BlobPut(_)
        | Request::DaemonStop(_)
        | Request::Hello(_) => false,
        Request::Publish(params) => !crate::submit::names_uploads(&params.submission),
        Request::DaemonStatus(_)
        | Request::Status(_)
        | Request::Resolve(_)
        | Request::Log(_)
        | Request::Show(_)
        | Request::Diff(_)
        | Request::List(_)
        | Request::Content(_)
        | Request::Blame(_)
        | Request::PublishDirectory(_)
        | Request::Rollback(_)
        | Request::Revert(_)
        | Request::Undo(_)
        | Request::Queue(_)
        | Request::Cancel(_)
        | Request::LeaseAcquire(_)
        | Request::LeaseRenew(_)
        | Request::LeaseRelease(_)
        | Request::LeaseList(_)
        | Request::Watch(_)
        | Request::Pin(_)
        | Request::Unpin(_)
        | Request::Collect(_)
        | Request::Why(_)
        | Request::Verify(_)
        | Request::Doctor(_)
        | Request::Journal(_)
        | Request::JournalHead(_) => true,
    }
}

/// The request, with a name where it publishes and has none yet.
fn named(mut request: Request) -> Request {
    let id = match &mut request {
        Request::Publish(params) => Some(&mut params.submission.id),
        Request::PublishDirectory(params) => Some(id_of(&mut params.attribution)),
        Request::Rollback(params) => Some(id_of(&mut params.attribution)),
        Request::Revert(params) => Some(id_of(&mut params.attribution)),
        Request::Undo(params) => Some(id_of(&mut params.attribution)),
        _ => None,
    };
    if let Some(id) = id {
        id.get_or_insert_with(new_submission_id);
    }
    request
}

fn id_of(attribution: &mut Attribution) -> &mut Option<SubmissionId> {
    &mut attribution.id
}

/// A new name for a submission, ordered by time.
pub fn new_submission_id() -> SubmissionId {
    SubmissionId::from_uuid(uuid::Uuid::now_v7())
}
