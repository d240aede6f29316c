//! Stage 1: is this a submission at all?
//!
//! Owns: `Proposal`: paths well formed under the workspace's policy, limits held, contents present,
//! the list of changes free of contradictions. Never: looks at a tree.

use std::collections::BTreeMap;
use std::sync::Arc;

use semaprax_protocol::limits::LABEL_BYTES;
use semaprax_protocol::submission::{OnStale, Submission};
use semaprax_protocol::{Code, Diagnostic, Limits, NamePolicy, Refusal, Sha256, SubmissionId};

use super::plan::{PlannedChange, PlannedRead, plan};
use crate::store::history::{Binding, StoredRecord, submission_digest};
use crate::store::objects::Blob;
use crate::store::tree::Tree;

/// What is to become a candidate.
#[derive(Debug)]
pub enum Content {
    /// Changes on a base.
    Changes {
        /// The changes, in order.
        changes: Vec<PlannedChange>,
        /// The paths relied on.
        reads: Vec<PlannedRead>,
    },
    /// A whole tree, whatever is ACTIVE: a rollback.
    Whole(Tree),
    /// A whole tree made from a base, with its new blobs: a directory.
    Directory(Tree, Vec<Blob>),
    /// What leads from one tree to another, on top of ACTIVE: taking a publication out.
    Difference {
        /// Where it leads from.
        from: Tree,
        /// Where it leads to.
        to: Tree,
    },
}

/// A submission that may be built.
#[derive(Debug)]
#[must_use]
pub struct Proposal {
    id: SubmissionId,
    binding: Option<Binding>,
    base: Option<StoredRecord>,
    on_stale: OnStale,
    author: String,
    message: String,
    content: Content,
    dry_run: bool,
}

/// What every publishing request says of itself.
#[derive(Debug, Clone)]
pub struct Attributed {
    /// The submission's name.
    pub id: SubmissionId,
    /// Who.
    pub author: String,
    /// What and why.
    pub message: String,
    /// Everything but the publication.
    pub dry_run: bool,
}

/// The rules of a workspace that admission needs.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'rules> {
    /// Which names are accepted.
    pub names: NamePolicy,
    /// The bounds.
    pub limits: &'rules Limits,
}

impl Proposal {
    /// Admits a submission of changes. `base` is what its `base` names; `None` for ACTIVE at the time
    /// of the decision. Content named by `contentBlob` is taken from `uploads`.
    pub fn of_submission(
        submission: &Submission,
        id: SubmissionId,
        base: Option<StoredRecord>,
        uploads: &BTreeMap<Sha256, Arc<Vec<u8>>>,
        rules: Rules<'_>,
        dry_run: bool,
    ) -> Result<Self, Refusal> {
        check_labels(&submission.author, &submission.message, rules.limits)?;
        let count = submission.changes.len().max(submission.reads.len()) as u64;
        if count > rules.limits.changes {
            let message = format!(
                "the submission has {count} changes or reads; {} are allowed",
                rules.limits.changes
            );
            return Err(Diagnostic::new(Code::LimitExceeded, message).into());
        }
        let (changes, reads) = plan(submission, uploads, rules)?;
        let digest = submission_digest(submission)?;
        Ok(Self {
            id,
            binding: (!dry_run).then_some(Binding { id, digest }),
            base,
            on_stale: submission.on_stale,
            author: submission.author.clone(),
            message: submission.message.clone(),
            content: Content::Changes { changes, reads },
            dry_run,
        })
    }

    /// Admits a whole tree or a difference of trees. `bound` is what the id binds: equal requests
    /// give equal bytes.
    pub fn of_tree(
        attributed: Attributed,
        bound: &[u8],
        base: Option<StoredRecord>,
        on_stale: OnStale,
        content: Content,
        limits: &Limits,
    ) -> Result<Self, Refusal> {
        check_labels(&attributed.author, &attributed.message, limits)?;
        let id = attributed.id;
        Ok(Self {
            id,
            binding: (!attributed.dry_run).then(|| binding_of_tree(id, bound)),
            base,
            on_stale,
            author: attributed.author,
            message: attributed.message,
            content,
            dry_run: attributed.dry_run,
        })
    }

    /// What its id binds; `None` for a dry run.
    pub fn binding(&self) -> Option<&Binding> {
        self.binding.as_ref()
    }

    /// Whether everything but the publication is wanted.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    pub(super) fn into_parts(self) -> (Head, Content) {
        let head = Head {
            id: self.id,
            binding: self.binding,
            base: self.base,
            on_stale: self.on_stale,
            author: self.author,
            message: self.message,
            dry_run: self.dry_run,
        };
        (head, self.content)
    }
}

/// What the id of a submission of a tree binds.
pub fn binding_of_tree(id: SubmissionId, bound: &[u8]) -> Binding {
    let digest = blake3::derive_key("semaprax 1 submission of a tree", bound);
    Binding { id, digest }
}

/// What later stages carry along of a proposal.
#[derive(Debug)]
pub struct Head {
    pub(super) id: SubmissionId,
    pub(super) binding: Option<Binding>,
    pub(super) base: Option<StoredRecord>,
    pub(super) on_stale: OnStale,
    pub(super) author: String,
    pub(super) message: String,
    pub(super) dry_run: bool,
}

fn check_labels(author: &str, message: &str, limits: &Limits) -> Result<(), Refusal> {
    if author.len() > LABEL_BYTES {
        let message = format!(
            "the author has {} bytes; {LABEL_BYTES} are allowed",
            author.len()
        );
        return Err(Diagnostic::new(Code::LimitExceeded, message).into());
    }
    if author.chars().any(char::is_control) {
        return Err(Diagnostic::new(
            Code::InvalidSubmission,
            "the author has a control character",
        )
        .into());
    }
    if message.len() as u64 > limits.message_bytes {
        let text = format!(
            "the message has {} bytes; {} are allowed",
            message.len(),
            limits.message_bytes
        );
        return Err(Diagnostic::new(Code::LimitExceeded, text).into());
    }
    Ok(())
}
