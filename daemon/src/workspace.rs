//! One open workspace: the handle that connections share, and the one writer.
//!
//! Owns: opening (LOCK, recovery), the `Workspace` handle and the `Writer`.
//! Never: tokio, sockets, or the queue.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::documents::{Initialized, LeaseGrant, LeaseReleased, WatchEvent};
use semaprax_protocol::request::{Init, LeaseAcquire, Request, Response};
use semaprax_protocol::{LeaseId, Refusal, Revision, Seq, Sha256, SubmissionId, WorkspaceId};

use crate::config::Config;
use crate::world::World;

/// Who holds a workspace: written into LOCK for clients to find.
#[derive(Debug, Clone)]
pub struct Holder {
    /// The socket of the daemon.
    pub socket: Utf8PathBuf,
    /// Its process.
    pub pid: u32,
}

/// Content that a connection sent ahead with `blob.put`, by SHA-256.
pub type Uploads = BTreeMap<Sha256, Arc<Vec<u8>>>;

/// A request for the writer.
#[derive(Debug)]
pub struct Job {
    /// The request.
    pub request: Request,
    /// The name of the submission, for requests that publish: the client's own or a new one.
    pub submission: Option<SubmissionId>,
    /// Content sent ahead on the same connection.
    pub uploads: Uploads,
    /// The process of the client.
    pub pid: Option<u32>,
}

/// What became of a request for a connection lease.
#[derive(Debug)]
pub enum Acquired {
    /// The tree is there.
    Ready(LeaseGrant),
    /// The lease holds, but the writer has to make the tree (`Writer::materialize`) before
    /// `Workspace::grant` can answer.
    NeedsTree(LeaseId, Revision),
}

/// The shared handle. All methods block on disk at most; none waits for the writer.
#[derive(Debug)]
pub struct Workspace {}

/// The one writer of a workspace. Lives on a thread of its own.
#[derive(Debug)]
pub struct Writer {}

/// Opens a workspace: takes LOCK (retrying for a second), recovers, makes ACTIVE durable.
pub fn open(
    _world: &World,
    _root: &Utf8Path,
    _holder: &Holder,
    _config: &Config,
) -> Result<(Arc<Workspace>, Writer), Refusal> {
    todo!()
}

/// Imports `params.directory` as publication 1 of a new workspace. `progress(done, total)` is called
/// now and then; when it answers `false` the import is abandoned and nothing of it stays.
pub fn initialize(
    _world: &World,
    _params: &Init,
    _config: &Config,
    _progress: &mut dyn FnMut(u64, Option<u64>) -> bool,
) -> Result<Initialized, Refusal> {
    todo!()
}

impl Workspace {
    /// The directory of the workspace.
    pub fn root(&self) -> &Utf8Path {
        todo!()
    }

    /// Its identity.
    pub fn id(&self) -> WorkspaceId {
        todo!()
    }

    /// Whether the state directory at the path is still the one that was opened; when not, the
    /// handle must be dropped and the workspace opened anew.
    pub fn is_current(&self) -> bool {
        todo!()
    }

    /// Answers a request that needs no writer: status resolve log show diff ls content blame why
    /// lease.list journal journal.head. Of `status` the caller fills in `queue` and `daemon`.
    pub fn answer(&self, _request: &Request) -> Result<Response, Refusal> {
        todo!()
    }

    /// Takes a lease that lives as long as its connection. The caller keeps the id and releases it.
    pub fn acquire(&self, _params: &LeaseAcquire, _pid: Option<u32>) -> Result<Acquired, Refusal> {
        todo!()
    }

    /// The answer for a lease whose tree has been made.
    pub fn grant(&self, _lease: LeaseId) -> Result<LeaseGrant, Refusal> {
        todo!()
    }

    /// Ends a connection lease; `None` when there is no connection lease of that id (the writer then
    /// looks among the detached ones: `Writer::perform` of `lease.release`).
    pub fn release(&self, _lease: LeaseId) -> Option<LeaseReleased> {
        todo!()
    }

    /// Where a subscriber that was at `since` starts: `snapshot`, or `fresh` when that history is gone
    /// or another.
    pub fn watch_start(&self, _since: Option<&str>) -> Result<WatchEvent, Refusal> {
        todo!()
    }

    /// The `published` events after `seq`, in order, at most `limit`.
    pub fn events_after(&self, _seq: Seq, _limit: usize) -> Result<Vec<WatchEvent>, Refusal> {
        todo!()
    }
}

impl Writer {
    /// Carries out a request that needs the writer: publish, publish.directory, rollback, revert,
    /// undo, lease.acquire with a ttl, lease.renew, lease.release, pin, unpin, gc, verify, export,
    /// doctor. Every refusal of a submission is recorded in the journal before this returns.
    pub fn perform(&mut self, _job: Job) -> Result<Response, Refusal> {
        todo!()
    }

    /// Makes the tree of a generation, for a lease.
    pub fn materialize(&mut self, _revision: Revision) -> Result<(), Refusal> {
        todo!()
    }

    /// The outcome bound to this submission id, if there is one: the receipt with `replayed: true`,
    /// or `invalid-submission` when the id belongs to other content. Asked before queueing.
    pub fn replay(&self, _request: &Request) -> Option<Result<Response, Refusal>> {
        todo!()
    }

    /// Records a refusal that was decided before the writer saw the submission (queue full, deadline,
    /// cancelled).
    pub fn record_refusal(
        &mut self,
        _submission: SubmissionId,
        _request: &Request,
        _refusal: &Refusal,
    ) {
        todo!()
    }

    /// Work for an idle moment: confirms the last flip, checkpoints, empties the trash. Answers
    /// whether anything is left to do.
    pub fn idle(&mut self) -> bool {
        todo!()
    }

    /// Confirms the last flip and lets go of LOCK.
    pub fn close(self) {
        todo!()
    }
}
