//! From a publishing request to a proposal.
//!
//! Owns: what each of the five requests means: changes, a directory, old content again, one
//! publication taken out. Never: the stages; `pipeline::take_turn` goes through them.

use semaprax_protocol::documents::Receipt;
use semaprax_protocol::request::{
    Attribution, Publish, PublishDirectory, PublishOptions, Request, Response, Rollback,
};
use semaprax_protocol::submission::OnStale;
use semaprax_protocol::{Code, Diagnostic, Refusal, Seq, Status, SubmissionId};
use serde_json::json;

use super::{Job, Writer};
use crate::pipeline::admit::{Attributed, Content, Rules, binding_of_tree};
use crate::pipeline::{Ask, Asked, Ledger, Proposal, publish, take_turn};
use crate::store::history::{Binding, StoredRecord, submission_digest};
use crate::store::{StoreResult, revisions};

/// Who a publishing request says it is of.
pub(super) fn author_of(request: &Request) -> &str {
    match request {
        Request::Publish(params) => &params.submission.author,
        Request::PublishDirectory(params) => &params.attribution.author,
        Request::Rollback(params) => &params.attribution.author,
        Request::Revert(params) => &params.attribution.author,
        Request::Undo(params) => &params.attribution.author,
        _ => "",
    }
}

/// The form of the response to a publishing request.
fn wrap_of(request: &Request) -> fn(Receipt) -> Response {
    match request {
        Request::PublishDirectory(_) => Response::PublishDirectory,
        Request::Rollback(_) => Response::Rollback,
        Request::Revert(_) => Response::Revert,
        Request::Undo(_) => Response::Undo,
        _ => Response::Publish,
    }
}

/// Whether a request publishes and can share a turn with others. A directory cannot: reading it takes
/// its time.
pub(super) fn shares_a_turn(request: &Request) -> bool {
    matches!(
        request,
        Request::Publish(_) | Request::Rollback(_) | Request::Revert(_) | Request::Undo(_)
    )
}

impl Writer {
    /// Publishes a directory.
    pub(super) fn publish_directory(
        &mut self,
        params: &PublishDirectory,
        id: SubmissionId,
    ) -> Result<Response, Refusal> {
        // A workspace in need of recovery says so whatever is asked.
        self.ledger.check_writable()?;
        let (proposal, imported) = self.directory(params, id)?;
        let receipt = publish(&mut self.ledger, proposal)?;
        if !params.options.dry_run {
            self.move_marker(&params.directory, imported, &receipt);
        }
        Ok(Response::PublishDirectory(receipt))
    }

    /// Takes one turn for the first of these requests, and for as many after it as go into it; a
    /// response to each.
    pub(super) fn take_turn(
        &mut self,
        jobs: &[(&Job, SubmissionId)],
    ) -> Vec<Result<Response, Refusal>> {
        let asks: Vec<_> = jobs
            .iter()
            .map(|&(job, id)| move |ledger: &Ledger| ask(ledger, job, id))
            .collect();
        let asks: Vec<&Ask<'_>> = asks.iter().map(|ask| -> &Ask<'_> { ask }).collect();
        let decisions = take_turn(&mut self.ledger, &asks);
        let jobs = jobs.iter();
        jobs.zip(decisions)
            .map(|((job, _), decision)| decision.map(wrap_of(&job.request)))
            .collect()
    }

    pub(super) fn resolve(&self, revision: &str) -> StoreResult<StoredRecord> {
        resolve(&self.ledger, revision)
    }
}

/// What a request comes to, on the tip that the ledger has now.
fn ask(ledger: &Ledger, job: &Job, id: SubmissionId) -> Result<Asked, Refusal> {
    if let Some(receipt) = replay_of_tree(ledger, &job.request, id)? {
        return Ok(Asked::Replayed(Box::new(receipt)));
    }
    let asking = Asking { ledger, id };
    let proposal = match &job.request {
        Request::Publish(params) => {
            if let Some(receipt) = replay(ledger, params, id)? {
                return Ok(Asked::Replayed(Box::new(receipt)));
            }
            let base = params.submission.base.as_deref();
            let base = base.map(|base| resolve(ledger, base)).transpose()?;
            let rules = Rules {
                names: ledger.names,
                limits: &ledger.limits,
            };
            let dry_run = params.options.dry_run;
            let (submission, uploads) = (&params.submission, &job.uploads);
            Proposal::of_submission(submission, id, base, uploads, rules, dry_run)?
        }
        Request::Rollback(params) => asking.rollback(params)?,
        Request::Revert(params) => {
            asking.revert(params.seq, "revert", &params.attribution, &params.options)?
        }
        Request::Undo(params) => {
            let seq = ledger.tip.stored.record.seq;
            asking.revert(seq, "undo", &params.attribution, &params.options)?
        }
        other => {
            let message = format!("`{}` publishes nothing in a turn", other.method());
            return Err(Diagnostic::new(Code::Internal, message).into());
        }
    };
    Ok(Asked::New(Box::new(proposal)))
}

/// The first outcome of a submission that is repeated. Looked for before it is admitted: what it
/// needed then (content sent ahead, a short revision) may be gone.
fn replay(ledger: &Ledger, params: &Publish, id: SubmissionId) -> Result<Option<Receipt>, Refusal> {
    if params.options.dry_run {
        return Ok(None);
    }
    let digest = submission_digest(&params.submission)?;
    ledger.replay(&Binding { id, digest })
}

/// The same for what goes back to content of the store: that may have been collected.
fn replay_of_tree(
    ledger: &Ledger,
    request: &Request,
    id: SubmissionId,
) -> Result<Option<Receipt>, Refusal> {
    let (bound, options) = match request {
        Request::Rollback(params) => (bound_rollback(params), &params.options),
        Request::Revert(params) => (
            bound_revert(params.seq, &params.attribution),
            &params.options,
        ),
        Request::Undo(params) => (bound_undo(&params.attribution), &params.options),
        _ => return Ok(None),
    };
    if options.dry_run {
        return Ok(None);
    }
    ledger.replay(&binding_of_tree(id, bound.as_bytes()))
}

fn resolve(ledger: &Ledger, revision: &str) -> StoreResult<StoredRecord> {
    revisions::resolve(
        &ledger.store.database,
        ledger.tip.stored.record.seq,
        revision,
    )
}

/// A request for old content, on the tip that the ledger has now.
struct Asking<'ledger> {
    ledger: &'ledger Ledger,
    id: SubmissionId,
}

impl Asking<'_> {
    fn rollback(&self, params: &Rollback) -> Result<Proposal, Refusal> {
        let stored = resolve(self.ledger, &params.revision)?;
        let record = &stored.record;
        let message = format!("rollback to @{} ({})", record.seq, record.revision.short());
        let message = self.fitting(message);
        let attributed = attributed(&params.attribution, &params.options, self.id, message);
        let bound = bound_rollback(params);
        let content = Content::Whole(stored.tree()?);
        Proposal::of_tree(
            attributed,
            bound.as_bytes(),
            None,
            OnStale::Reject,
            content,
            &self.ledger.limits,
        )
    }

    /// A message that nobody wrote, cut to what is allowed: a long message of a publication, or a small
    /// limit, does not keep anyone from going back.
    fn fitting(&self, mut message: String) -> String {
        let allowed = usize::try_from(self.ledger.limits.message_bytes).unwrap_or(usize::MAX);
        message.truncate(message.floor_char_boundary(allowed));
        message
    }

    fn revert(
        &self,
        seq: Seq,
        verb: &'static str,
        attribution: &Attribution,
        options: &PublishOptions,
    ) -> Result<Proposal, Refusal> {
        let bound = match verb {
            "undo" => bound_undo(attribution),
            _ => bound_revert(seq, attribution),
        };
        let stored = resolve(self.ledger, &format!("@{seq}"))?;
        let Some(previous) = seq.previous() else {
            let message = format!("there is nothing before @{seq} to go back to");
            return Err(Diagnostic::new(Code::NotFound, message)
                .hint("publish what is wanted instead")
                .into());
        };
        let before = resolve(self.ledger, &format!("@{previous}"))?;
        let message = match stored.record.message.as_str() {
            "" => format!("{verb} @{seq}"),
            text => format!("{verb} @{seq}: {}", text.lines().next().unwrap_or_default()),
        };
        let message = self.fitting(message);
        let content = Content::Difference {
            from: stored.tree()?,
            to: before.tree()?,
        };
        let attributed = attributed(attribution, options, self.id, message);
        Proposal::of_tree(
            attributed,
            bound.as_bytes(),
            None,
            OnStale::Reject,
            content,
            &self.ledger.limits,
        )
    }
}

pub(super) fn attributed(
    attribution: &Attribution,
    options: &PublishOptions,
    id: SubmissionId,
    message: String,
) -> Attributed {
    let message = if attribution.message.is_empty() {
        message
    } else {
        attribution.message.clone()
    };
    Attributed {
        id,
        author: attribution.author.clone(),
        message,
        dry_run: options.dry_run,
    }
}

pub(super) fn bound(attribution: &Attribution) -> serde_json::Value {
    json!({ "author": attribution.author, "message": attribution.message })
}

fn bound_rollback(params: &Rollback) -> String {
    json!({ "rollback": params.revision, "by": bound(&params.attribution) }).to_string()
}

fn bound_revert(seq: Seq, attribution: &Attribution) -> String {
    json!({ "revert": seq, "by": bound(attribution) }).to_string()
}

fn bound_undo(attribution: &Attribution) -> String {
    json!({ "undo": true, "by": bound(attribution) }).to_string()
}

/// Inside a submission a missing path is a rejection. Of `undo` and `revert` it is an error: there is
/// no such publication.
pub(super) trait InSubmission {
    /// The refusal with the status it has for this request.
    fn in_submission_of(self, request: &Request) -> Self;
}

impl InSubmission for Refusal {
    fn in_submission_of(mut self, request: &Request) -> Self {
        let is_submission = matches!(request, Request::Publish(_) | Request::PublishDirectory(_));
        if self.code() == Code::NotFound {
            self.status = if is_submission {
                Status::Rejected
            } else {
                Status::Failed
            };
        }
        self
    }
}
