//! The thread of a writer: one piece of work after the other, submissions that wait together, and idle
//! work between.
//!
//! Owns: the one `Writer` of a workspace, and what a panic of it means.
//! Invariants: 8 (a submission is looked up before it is carried out); after the last job idle work is
//! done until none is left, then the thread sleeps until there is work.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use semaprax_protocol::documents::{Receipt, ReceiptStatus, VerificationStatus};
use semaprax_protocol::request::{LeaseRelease, Method as _, Request, Response};
use semaprax_protocol::{LeaseId, Refusal, Revision};

use super::hosted::Hosted;
use super::internal;
use super::subscription::encode_event;
use crate::engine::{Event, Input, Outcome, Ticket, Unrecorded};
use crate::workspace::{Job, STACK_BYTES, Uploads, Workspace, Writer, is_publication};

/// How long nothing comes before idle work is begun.
const IDLE_DELAY: Duration = Duration::from_millis(50);

/// Refusals recorded in one transaction at most.
const RECORDED_AT_ONCE: usize = 128;

/// What the writer is asked to do.
#[derive(Debug)]
pub(super) enum Work {
    /// A request.
    Request(Box<Job>),
    /// The tree that a lease waits for.
    Tree(LeaseId, Revision),
    /// A defect.
    #[cfg(test)]
    Panic,
}

/// What the thread gets, in order.
#[derive(Debug)]
pub(super) enum Task {
    /// Carry out: one piece of work, or submissions.
    Run(Vec<(Ticket, Work)>),
    /// Record a refusal.
    Record(Box<Unrecorded<Work>>),
    /// Let go of the workspace.
    Close,
}

/// Starts the thread.
pub(super) fn spawn(writer: Writer, tasks: Receiver<Task>, hosted: Arc<Hosted>) -> io::Result<()> {
    let thread = WriterThread {
        writer: Some(writer),
        hosted,
        put_back: None,
    };
    std::thread::Builder::new()
        .name("writer".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || thread.run(&tasks))
        .map(drop)
}

struct WriterThread {
    /// `None` after a panic: nothing more is done with a writer that may be half way.
    writer: Option<Writer>,
    hosted: Arc<Hosted>,
    /// A task that was taken too early: the next one.
    put_back: Option<Task>,
}

impl WriterThread {
    fn run(mut self, tasks: &Receiver<Task>) {
        if let Some(writer) = &mut self.writer {
            writer.work_in_background();
        }
        while let Some(task) = self.next(tasks) {
            match task {
                Task::Run(all) => self.carry_out_all(all),
                Task::Record(unrecorded) => self.record(*unrecorded, tasks),
                Task::Close => break,
            }
        }
        if let Some(writer) = self.writer.take()
            && catch_unwind(AssertUnwindSafe(|| writer.close())).is_err()
        {
            tracing::error!("closing a workspace panicked");
        }
        tracing::info!(root = %self.hosted.workspace.root(), "the workspace is closed");
        self.hosted.set_closed();
    }

    /// The next task. While there is idle work, it is done whenever nothing comes.
    fn next(&mut self, tasks: &Receiver<Task>) -> Option<Task> {
        if let Some(task) = self.put_back.take() {
            return Some(task);
        }
        let mut delay = IDLE_DELAY;
        loop {
            match tasks.recv_timeout(delay) {
                Ok(task) => return Some(task),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => delay = Duration::ZERO,
            }
            if !self.attempt("idle work", Writer::idle).unwrap_or(false) {
                return tasks.recv().ok();
            }
        }
    }

    /// Carries out submissions together; anything else by itself.
    fn carry_out_all(&mut self, all: Vec<(Ticket, Work)>) {
        let (mut tickets, mut jobs) = (Vec::new(), Vec::new());
        for (ticket, work) in all {
            match work {
                Work::Request(job) if is_publication(&job.request) => {
                    tickets.push(ticket);
                    jobs.push(*job);
                }
                other => self.carry_out(ticket, other),
            }
        }
        if jobs.is_empty() {
            return;
        }
        // Each is answered when its turn is over, not when all are.
        let (mut done, hosted) = (0, Arc::clone(&self.hosted));
        self.attempt("submissions", |writer| {
            writer.perform_all(&jobs, &mut |index, outcome| {
                done = index + 1;
                if let (Some(&ticket), Some(job)) = (tickets.get(index), jobs.get(index)) {
                    tell(job, &outcome);
                    finish(&hosted, ticket, outcome);
                }
            });
        });
        for &ticket in tickets.get(done..).unwrap_or_default() {
            finish(&hosted, ticket, Err(internal("the request")));
        }
        self.hosted.journal_grew();
        self.attempt("tidying up", Writer::tidy);
    }

    fn carry_out(&mut self, ticket: Ticket, work: Work) {
        let workspace = Arc::clone(&self.hosted.workspace);
        let outcome = self
            .attempt("a request of the writer", |writer| match work {
                Work::Request(job) => perform(writer, &job),
                Work::Tree(lease, revision) => make_tree(writer, &workspace, lease, revision),
                #[cfg(test)]
                Work::Panic => panic!("a defect, for a test"),
            })
            .unwrap_or_else(|| Err(internal("the request")));
        let repaired = matches!(
            &outcome,
            Ok(Response::Verify(verification)) if verification.status == VerificationStatus::Repaired
        );
        if let Ok(Response::LeaseAcquire(grant)) = &outcome
            && grant.expires.is_some()
            && !self.hosted.is_awaited(ticket)
        {
            self.give_back(grant.lease);
        }
        if let Ok(Response::Collect(_)) = &outcome {
            return self.answer_when_swept(ticket, outcome);
        }
        finish(&self.hosted, ticket, outcome);
        if repaired {
            self.hosted.input(Input::HistoryChanged);
        }
        self.hosted.journal_grew();
    }

    /// Ends a detached lease whose client went away before it was told: nobody knows its name.
    fn give_back(&mut self, lease: LeaseId) {
        let release = Job {
            request: LeaseRelease { lease }.request(),
            submission: None,
            uploads: Uploads::new(),
            pid: None,
        };
        let released = self.attempt("giving a lease back", |writer| writer.perform(&release));
        if let Some(Err(refusal)) = released {
            tracing::warn!(%lease, %refusal, "a lease that nobody was told of stays until its end");
        }
    }

    /// A collection is answered when its trees are gone for good. Nobody else waits for that.
    fn answer_when_swept(&mut self, ticket: Ticket, outcome: Outcome) {
        self.hosted.input(Input::Aside(ticket));
        self.hosted.journal_grew();
        let hosted = Arc::clone(&self.hosted);
        let answer = move |freed| {
            let mut outcome = outcome;
            if let Ok(Response::Collect(collection)) = &mut outcome {
                collection.freed_bytes += if collection.dry_run { 0 } else { freed };
            }
            hosted.input(Input::Finished(ticket, Box::new(outcome), None));
        };
        match &mut self.writer {
            Some(writer) => writer.when_swept(Box::new(answer)),
            None => answer(0),
        }
    }

    /// Records a refusal, and those that follow it: each alone would wait for the disk, and a flood of
    /// what is refused would slow down what is not.
    fn record(&mut self, first: Unrecorded<Work>, tasks: &Receiver<Task>) {
        let mut refused = vec![first];
        while refused.len() < RECORDED_AT_ONCE {
            match tasks.try_recv() {
                Ok(Task::Record(next)) => refused.push(*next),
                Ok(other) => {
                    self.put_back = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        let of_requests: Vec<_> = refused
            .iter()
            .filter_map(|unrecorded| {
                let Work::Request(job) = &unrecorded.work else {
                    return None;
                };
                Some((unrecorded.submission, &job.request, &unrecorded.refusal))
            })
            .collect();
        if !of_requests.is_empty() {
            self.attempt("recording refusals", |writer| {
                writer.record_refusals(&of_requests);
            });
        }
        for Unrecorded {
            bytes,
            held,
            refusal,
            ..
        } in refused
        {
            self.hosted
                .input(Input::Recorded(bytes, held, Box::new(refusal)));
        }
        self.hosted.journal_grew();
    }

    /// Uses the writer. A panic ends it, and with it this handle of the workspace: the next client
    /// opens it anew, which recovers it.
    fn attempt<T>(&mut self, what: &str, work: impl FnOnce(&mut Writer) -> T) -> Option<T> {
        let mut writer = self.writer.take()?;
        match catch_unwind(AssertUnwindSafe(|| work(&mut writer))) {
            Ok(result) => {
                self.writer = Some(writer);
                Some(result)
            }
            Err(panic) => {
                // A panic's own drop may panic again.
                std::mem::forget(panic);
                tracing::error!(root = %self.hosted.workspace.root(), "{what} panicked: the workspace is given up");
                if catch_unwind(AssertUnwindSafe(|| drop(writer))).is_err() {
                    tracing::error!("dropping the writer panicked");
                }
                self.hosted.retire();
                None
            }
        }
    }
}

/// Hands an outcome over; a publication comes with its event.
fn finish(hosted: &Hosted, ticket: Ticket, outcome: Outcome) {
    let event = event_of(hosted, &outcome);
    hosted.input(Input::Finished(ticket, Box::new(outcome), event));
}

fn event_of(hosted: &Hosted, outcome: &Outcome) -> Option<Event> {
    let receipt = receipt_of(outcome.as_ref().ok()?)?;
    if receipt.status != ReceiptStatus::Published || receipt.replayed {
        return None;
    }
    let json = hosted
        .has_subscribers()
        .then(|| encode_event(receipt))
        .flatten();
    Some(Event {
        seq: receipt.seq?,
        json,
    })
}

fn perform(writer: &mut Writer, job: &Job) -> Result<Response, Refusal> {
    let outcome = writer.perform(job);
    tell(job, &outcome);
    outcome
}

fn tell(job: &Job, outcome: &Outcome) {
    let (method, submission) = (job.request.method(), job.submission);
    match outcome {
        Ok(_) => tracing::debug!(method, ?submission, "done"),
        Err(refusal) => tracing::info!(method, ?submission, %refusal, "refused"),
    }
}

fn make_tree(
    writer: &mut Writer,
    workspace: &Workspace,
    lease: LeaseId,
    revision: Revision,
) -> Result<Response, Refusal> {
    let made = writer
        .materialize(revision)
        .and_then(|()| workspace.grant(lease));
    if made.is_err() && workspace.release(lease).is_none() {
        tracing::debug!(%lease, "the lease has ended already");
    }
    made.map(Response::LeaseAcquire)
}

/// The receipt in an answer, of whichever request.
fn receipt_of(response: &Response) -> Option<&Receipt> {
    match response {
        Response::Publish(receipt)
        | Response::PublishDirectory(receipt)
        | Response::Rollback(receipt)
        | Response::Revert(receipt)
        | Response::Undo(receipt) => Some(receipt),
        _ => None,
    }
}

/// Whether a request is one for the writer that is no submission.
pub(super) fn is_upkeep(request: &Request) -> bool {
    matches!(
        request,
        Request::LeaseAcquire(_)
            | Request::LeaseRenew(_)
            | Request::LeaseRelease(_)
            | Request::Pin(_)
            | Request::Unpin(_)
            | Request::Collect(_)
            | Request::Verify(_)
            | Request::Doctor(_)
            | Request::Export(_)
    )
}
