//! The one writer: everything that changes a workspace goes through it, one request at a time.
//!
//! Owns: which request is carried out where, the record of every refusal, and the work of idle moments.
//!
//! Keeps invariants 3 (an idle writer confirms) and 11 (every refusal is recorded).

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use semaprax_protocol::request::{Request, Response};
use semaprax_protocol::{Code, Diagnostic, Refusal, Revision, SubmissionId};

use super::keeper::{Keeper, keep};
use super::publishing::{InSubmission as _, author_of, shares_a_turn};
use super::sweeper::{Sweeper, Swept};
use super::{Job, Workspace};
use crate::config::Retention;
use crate::pipeline::Ledger;
use crate::store::recover::ensure_tree;
use crate::store::{reserve, trash};
use crate::world::FileLock;

/// The least time between two collections that nobody asked for.
const COLLECT_PAUSE: Duration = Duration::from_mins(1);

/// The one writer of a workspace. Lives on a thread of its own.
#[derive(Debug)]
pub struct Writer {
    pub(super) ledger: Ledger,
    pub(super) workspace: Arc<Workspace>,
    pub(super) retention: Retention,
    /// When it last collected on its own, on the boot-time clock.
    collected: Option<Duration>,
    /// The daemon's socket, for `doctor`.
    socket: Utf8PathBuf,
    /// Empties the trash; the writer does it itself where there is none.
    sweeper: Option<Sweeper>,
    /// Keeps the spare trees; the idle writer does it itself where there is none.
    keeper: Option<Keeper>,
    /// Whether the room kept back for a full disk is to be made, when there is any.
    owes_reserve: bool,
    /// The last to go: nothing of the workspace is touched once it is free.
    lock: Box<dyn FileLock>,
}

impl Writer {
    pub(super) fn new(
        ledger: Ledger,
        workspace: Arc<Workspace>,
        lock: Box<dyn FileLock>,
        retention: Retention,
        socket: Utf8PathBuf,
    ) -> Self {
        Self {
            ledger,
            workspace,
            retention,
            collected: None,
            lock,
            socket,
            sweeper: None,
            keeper: None,
            owes_reserve: true,
        }
    }

    /// From now on the trash is emptied, and spare trees are kept, on threads of their own.
    pub fn work_in_background(&mut self) {
        let store = &self.ledger.store;
        let pool = Arc::clone(&self.ledger.spares);
        match Keeper::start(store.world.clone(), store.layout.clone(), pool) {
            Ok(keeper) => self.keeper = Some(keeper),
            Err(error) => tracing::warn!(%error, "no spare trees are kept"),
        }
        match Sweeper::start(store.world.clone(), store.layout.clone()) {
            Ok(sweeper) => self.sweeper = Some(sweeper),
            Err(error) => tracing::warn!(%error, "the trash is emptied by the writer itself"),
        }
    }

    /// Does `then` when the trash is empty, with the bytes that were given back for it; at once, and
    /// with none, where the writer has emptied it itself.
    pub fn when_swept(&mut self, then: Swept) {
        match &self.sweeper {
            Some(sweeper) => sweeper.sweep(Some(then)),
            None => then(0),
        }
    }

    /// Empties the trash, where nobody else does; answers the bytes given back.
    pub(super) fn empty_trash_here(&self) -> u64 {
        let store = &self.ledger.store;
        if self.sweeper.is_some() {
            return 0;
        }
        trash::empty(&store.world, &store.layout, &|| true).unwrap_or_else(|error| {
            tracing::warn!(%error, "the trash could not be emptied");
            0
        })
    }

    /// Carries out a request that needs the writer: publish, publish.directory, rollback, revert,
    /// undo, lease.acquire with a ttl, lease.renew, lease.release, pin, unpin, gc, verify, export,
    /// doctor. Every refusal of a submission is recorded in the journal before this returns.
    pub fn perform(&mut self, job: &Job) -> Result<Response, Refusal> {
        if is_publication(&job.request) {
            let mut outcome = None;
            self.perform_all(std::slice::from_ref(job), &mut |_, decided| {
                outcome = Some(decided);
            });
            return outcome.unwrap_or_else(|| {
                Err(Diagnostic::new(Code::Internal, "a request was not answered").into())
            });
        }
        let is_collection = matches!(job.request, Request::Collect(_));
        if is_collection {
            self.give_up_reserve()?;
        }
        self.prepare();
        if is_collection {
            self.ledger.check_collectable()?;
        } else if writes(&job.request) {
            self.ledger.check_writable()?;
        }
        match &job.request {
            Request::LeaseAcquire(params) => self
                .acquire_detached(params, job.pid)
                .map(Response::LeaseAcquire),
            Request::LeaseRenew(params) => self.renew(params).map(Response::LeaseRenew),
            Request::LeaseRelease(params) => self
                .release_detached(params.lease)
                .map(Response::LeaseRelease),
            Request::Pin(params) => self.pin(params).map(Response::Pin),
            Request::Unpin(params) => self.unpin(params).map(Response::Unpin),
            Request::Collect(params) => self.collect(params).map(Response::Collect),
            Request::Verify(params) => self.verify(params).map(Response::Verify),
            Request::Export(params) => self.export(params).map(Response::Export),
            Request::Doctor(params) => {
                let store = &self.ledger.store;
                Ok(Response::Doctor(super::doctor::examine(
                    &store.world,
                    store.layout.root(),
                    &self.socket,
                    params.repair,
                )))
            }
            other => {
                let message = format!("`{}` does not need the writer", other.method());
                Err(Diagnostic::new(Code::Internal, message).into())
            }
        }
    }

    /// What is collected is recorded, and that takes room.
    fn give_up_reserve(&mut self) -> Result<(), Refusal> {
        let store = &self.ledger.store;
        if reserve::is_low(&store.world, &store.layout) {
            self.owes_reserve = true;
            reserve::release(&store.world, &store.layout)?;
        }
        Ok(())
    }

    /// Keeps room back, where there is enough.
    pub(super) fn keep_reserve(&mut self) {
        let store = &self.ledger.store;
        match reserve::keep(&store.world, &store.layout) {
            Ok(is_whole) => self.owes_reserve = !is_whole,
            Err(error) => {
                self.owes_reserve = true;
                tracing::warn!(%error, "no room could be kept back");
            }
        }
    }

    /// Carries out publishing requests, in order, several in a turn where that can be. Each is answered,
    /// by its place, when the turn it is in is over: every refusal is recorded by then.
    pub fn perform_all(
        &mut self,
        jobs: &[Job],
        answer: &mut dyn FnMut(usize, Result<Response, Refusal>),
    ) {
        self.prepare();
        let named: Vec<_> = jobs
            .iter()
            .map(|job| (job, job.submission.unwrap_or_else(|| self.new_submission())))
            .collect();
        let mut done = 0;
        while let Some(&(job, id)) = named.get(done) {
            let rest = named.get(done..).unwrap_or_default();
            let sharing = rest
                .iter()
                .take_while(|(job, _)| shares_a_turn(&job.request));
            let outcomes = match &job.request {
                Request::PublishDirectory(params) => vec![self.publish_directory(params, id)],
                _ => self.take_turn(rest.get(..sharing.count().max(1)).unwrap_or_default()),
            };
            // At least one was decided: the first.
            for outcome in outcomes {
                let Some((job, id)) = named.get(done) else {
                    break;
                };
                let outcome = outcome.map_err(|refusal| {
                    let refusal = refusal.in_submission_of(&job.request);
                    self.record_refusals(&[(*id, &job.request, &refusal)]);
                    refusal
                });
                answer(done, outcome);
                done += 1;
            }
        }
    }

    /// What comes before every request.
    fn prepare(&mut self) {
        self.ledger.spares.set_busy();
        self.ledger.settle();
        // Between two requests, never between a commit and its flip.
        if let Err(error) = self.ledger.store.database.checkpoint(false) {
            tracing::warn!(%error, "the write-ahead log could not be folded in");
        }
    }

    fn new_submission(&self) -> SubmissionId {
        SubmissionId::from_uuid(self.ledger.store.world.entropy.uuid())
    }

    /// Makes the tree of a generation, for a lease.
    pub fn materialize(&mut self, revision: Revision) -> Result<(), Refusal> {
        self.ledger.spares.set_busy();
        let store = &self.ledger.store;
        let stored = store
            .database
            .record_by_revision(&revision)?
            .ok_or_else(|| {
                Diagnostic::new(
                    Code::UnknownRevision,
                    format!("no publication has the revision {revision}"),
                )
            })?;
        let tip = &self.ledger.tip;
        let source = (&tip.tree, &tip.stored.record.revision);
        Ok(ensure_tree(store, &stored, &stored.tree()?, Some(source))?)
    }

    /// Records refusals in the journal: those that were decided before the writer saw the submission
    /// (queue full, deadline, cancelled).
    pub fn record_refusals(&mut self, refusals: &[(SubmissionId, &Request, &Refusal)]) {
        let by_author = refusals
            .iter()
            .map(|&(submission, request, refusal)| (submission, author_of(request), refusal));
        let by_author: Vec<_> = by_author.collect();
        self.ledger.record_refusals(&by_author);
    }

    /// Work for an idle moment: confirms the last flip, folds the log in, empties the trash, collects
    /// now and then. Answers whether anything is left to do.
    pub fn idle(&mut self) -> bool {
        self.ledger.settle();
        let outcome = self
            .ledger
            .confirm()
            .and_then(|()| self.ledger.store.database.checkpoint(true));
        if let Err(error) = outcome {
            tracing::warn!(%error, "idle work failed");
            return false;
        }
        self.tidy();
        let now = self.ledger.store.world.clock.since_boot();
        if self
            .collected
            .is_none_or(|last| now.saturating_sub(last) >= COLLECT_PAUSE)
        {
            self.collected = Some(now);
            if let Err(refusal) = self.collect_routinely() {
                tracing::warn!(%refusal, "the collector failed");
            }
        }
        match &self.sweeper {
            Some(sweeper) => sweeper.sweep(None),
            None => drop(self.empty_trash_here()),
        }
        self.ledger.spares.set_quiet(now);
        if self.keeper.is_none() {
            keep(&self.ledger.store, &self.ledger.spares);
        }
        if self.owes_reserve {
            self.keep_reserve();
        }
        false
    }

    /// Takes every spare tree away.
    pub(super) fn drop_spares(&mut self) {
        for spare in self.ledger.spares.give_up() {
            spare.discard(&self.ledger.store);
        }
    }

    /// Confirms the last flip and lets go of LOCK.
    pub fn close(self) {
        let Self {
            mut ledger,
            workspace,
            lock,
            sweeper,
            keeper,
            ..
        } = self;
        ledger.settle();
        // Nothing of this workspace is touched once LOCK is free.
        drop(keeper);
        drop(sweeper);
        if let Err(error) = ledger.confirm() {
            tracing::warn!(%error, "the last publication could not be confirmed; the next start will");
        }
        // The last one to close the database folds its log in, and only a writer can.
        workspace.close_readers();
        if let Err(error) = ledger.store.database.close() {
            tracing::warn!(%error, "the database could not be closed");
        }
        // The name stays: whoever waits for it holds the same file. Only the holder is gone.
        if let Err(error) = lock.write(b"") {
            tracing::warn!(%error, "LOCK could not be emptied");
        }
    }
}

/// Whether a request is a submission.
pub fn is_publication(request: &Request) -> bool {
    shares_a_turn(request) || matches!(request, Request::PublishDirectory(_))
}

/// Whether a request changes the workspace: then one in need of recovery refuses it. A publication
/// checks that itself, so that its refusal can be recorded.
fn writes(request: &Request) -> bool {
    match request {
        Request::LeaseAcquire(_)
        | Request::LeaseRenew(_)
        | Request::LeaseRelease(_)
        | Request::Pin(_)
        | Request::Unpin(_)
        | Request::Collect(_) => true,
        Request::Verify(params) => params.repair,
        Request::Doctor(params) => params.repair,
        _ => false,
    }
}
