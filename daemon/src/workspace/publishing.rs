//! From a publishing request to a proposal.
//!
//! Owns: what each of the five requests means: changes, a directory, old content again, one
//! publication taken out. Never: the stages; `pipeline::publish` goes through them.

use semaprax_protocol::documents::Receipt;
use semaprax_protocol::request::{
    Attribution, Publish, PublishOptions, Request, Response, Revert, Rollback,
};
use semaprax_protocol::submission::OnStale;
use semaprax_protocol::{Code, Diagnostic, Refusal, Seq, Status, SubmissionId};
use serde_json::json;

use super::{Job, Writer};
use crate::pipeline::admit::{Attributed, Content, Rules, binding_of_tree};
use crate::pipeline::{Proposal, publish};
use crate::store::history::{Binding, StoredRecord, submission_digest};
use crate::store::{StoreResult, revisions};

/// A receipt, and the response it is of.
pub(super) type Outcome = (Receipt, fn(Receipt) -> Response);

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

impl Writer {
    pub(super) fn publish(&mut self, job: &Job, id: SubmissionId) -> Result<Outcome, Refusal> {
        // A workspace in need of recovery says so whatever is asked.
        self.ledger.check_writable()?;
        if let Some(outcome) = self.replay_of_tree(&job.request, id)? {
            return Ok(outcome);
        }
        let (proposal, wrap): (Proposal, fn(Receipt) -> Response) = match &job.request {
            Request::Publish(params) => {
                if let Some(receipt) = self.replay(params, id)? {
                    return Ok((receipt, Response::Publish));
                }
                let base = params
                    .submission
                    .base
                    .as_deref()
                    .map(|base| self.resolve(base))
                    .transpose()?;
                let rules = Rules {
                    names: self.ledger.names,
                    limits: &self.ledger.limits,
                };
                let dry_run = params.options.dry_run;
                let proposal = Proposal::of_submission(
                    &params.submission,
                    id,
                    base,
                    &job.uploads,
                    rules,
                    dry_run,
                )?;
                (proposal, Response::Publish)
            }
            Request::PublishDirectory(params) => {
                let (proposal, imported) = self.directory(params, id)?;
                let receipt = publish(&mut self.ledger, proposal)?;
                if !params.options.dry_run {
                    self.move_marker(&params.directory, imported, &receipt);
                }
                return Ok((receipt, Response::PublishDirectory));
            }
            Request::Rollback(params) => (self.rollback(params, id)?, Response::Rollback),
            Request::Revert(params) => {
                let Revert {
                    seq,
                    attribution,
                    options,
                } = params;
                (
                    self.revert(*seq, "revert", attribution, options, id)?,
                    Response::Revert,
                )
            }
            Request::Undo(params) => {
                let seq = self.ledger.tip.stored.record.seq;
                (
                    self.revert(seq, "undo", &params.attribution, &params.options, id)?,
                    Response::Undo,
                )
            }
            other => {
                let message = format!("`{}` publishes nothing", other.method());
                return Err(Diagnostic::new(Code::Internal, message).into());
            }
        };
        publish(&mut self.ledger, proposal).map(|receipt| (receipt, wrap))
    }

    /// The first outcome of a submission that is repeated. Looked for before it is admitted: what it
    /// needed then (content sent ahead, a short revision) may be gone.
    fn replay(&self, params: &Publish, id: SubmissionId) -> Result<Option<Receipt>, Refusal> {
        if params.options.dry_run {
            return Ok(None);
        }
        let digest = submission_digest(&params.submission)?;
        self.ledger.replay(&Binding { id, digest })
    }

    /// The same for what goes back to content of the store: that may have been collected.
    fn replay_of_tree(
        &self,
        request: &Request,
        id: SubmissionId,
    ) -> Result<Option<Outcome>, Refusal> {
        let (bound, options, wrap): (_, _, fn(Receipt) -> Response) = match request {
            Request::Rollback(params) => {
                (bound_rollback(params), &params.options, Response::Rollback)
            }
            Request::Revert(params) => {
                let bound = bound_revert(params.seq, &params.attribution);
                (bound, &params.options, Response::Revert)
            }
            Request::Undo(params) => {
                let bound = bound_undo(&params.attribution);
                (bound, &params.options, Response::Undo)
            }
            _ => return Ok(None),
        };
        if options.dry_run {
            return Ok(None);
        }
        let receipt = self.ledger.replay(&binding_of_tree(id, bound.as_bytes()))?;
        Ok(receipt.map(|receipt| (receipt, wrap)))
    }

    pub(super) fn resolve(&self, revision: &str) -> StoreResult<StoredRecord> {
        revisions::resolve(
            &self.ledger.store.database,
            self.ledger.tip.stored.record.seq,
            revision,
        )
    }

    fn rollback(&self, params: &Rollback, id: SubmissionId) -> Result<Proposal, Refusal> {
        let stored = self.resolve(&params.revision)?;
        let record = &stored.record;
        let message = format!("rollback to @{} ({})", record.seq, record.revision.short());
        let message = self.fitting(message);
        let attributed = attributed(&params.attribution, &params.options, id, message);
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
        id: SubmissionId,
    ) -> Result<Proposal, Refusal> {
        let bound = match verb {
            "undo" => bound_undo(attribution),
            _ => bound_revert(seq, attribution),
        };
        let stored = self.resolve(&format!("@{seq}"))?;
        let Some(previous) = seq.previous() else {
            let message = format!("there is nothing before @{seq} to go back to");
            return Err(Diagnostic::new(Code::NotFound, message)
                .hint("publish what is wanted instead")
                .into());
        };
        let before = self.resolve(&format!("@{previous}"))?;
        let message = match stored.record.message.as_str() {
            "" => format!("{verb} @{seq}"),
            text => format!("{verb} @{seq}: {}", text.lines().next().unwrap_or_default()),
        };
        let message = self.fitting(message);
        let content = Content::Difference {
            from: stored.tree()?,
            to: before.tree()?,
        };
        let attributed = attributed(attribution, options, id, message);
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
