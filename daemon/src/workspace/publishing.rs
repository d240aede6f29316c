//! From a publishing request to a proposal.
//!
//! Owns: what each of the five requests means: changes, a directory, old content again, one
//! publication taken out. Never: the stages; `pipeline::publish` goes through them.

use std::collections::BTreeSet;

use camino::Utf8Path;
use semaprax_protocol::documents::Receipt;
use semaprax_protocol::request::{
    Attribution, Publish, PublishDirectory, PublishOptions, Request, Response, Revert, Rollback,
};
use semaprax_protocol::submission::OnStale;
use semaprax_protocol::{
    Code, Diagnostic, LogicalPath, Refusal, Seq, Status, SubmissionId, WorkspaceId,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::import::{Importer, import};
use super::{Job, Writer};
use crate::pipeline::admit::{Attributed, Content, Rules};
use crate::pipeline::{Proposal, publish};
use crate::store::history::{Binding, StoredRecord, submission_digest};
use crate::store::layout::STATE_DIRECTORY;
use crate::store::objects::Blob;
use crate::store::tree::{Draft, Tree, for_each_leaf};
use crate::store::{StoreError, StoreResult, identity, revisions};
use crate::world::source::{IgnoreRules, SourceDirectory, scan};

/// A receipt, and the response it is of.
pub(super) type Outcome = (Receipt, fn(Receipt) -> Response);

/// The marker that `export` leaves in a directory.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ExportMarker {
    /// `semaprax.export-marker/1`.
    pub schema: String,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The revision that was exported.
    pub revision: String,
}

impl ExportMarker {
    pub(super) const SCHEMA: &'static str = "semaprax.export-marker/1";
    /// Its name in the directory's own state directory: never content, whatever the ignore rules.
    pub(super) const NAME: &'static str = "EXPORT";
}

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
                (self.directory(params, id)?, Response::PublishDirectory)
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
        let digest = submission_digest(&params.submission);
        self.ledger.replay(&Binding { id, digest })
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
        let attributed = attributed(&params.attribution, &params.options, id, message);
        let bound =
            json!({ "rollback": params.revision, "by": bound(&params.attribution) }).to_string();
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

    fn revert(
        &self,
        seq: Seq,
        verb: &'static str,
        attribution: &Attribution,
        options: &PublishOptions,
        id: SubmissionId,
    ) -> Result<Proposal, Refusal> {
        let bound = match verb {
            "undo" => json!({ "undo": true, "by": bound(attribution) }),
            _ => json!({ "revert": seq, "by": bound(attribution) }),
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
        let content = Content::Difference {
            from: stored.tree()?,
            to: before.tree()?,
        };
        let attributed = attributed(attribution, options, id, message);
        Proposal::of_tree(
            attributed,
            bound.to_string().as_bytes(),
            None,
            OnStale::Reject,
            content,
            &self.ledger.limits,
        )
    }

    fn directory(&self, params: &PublishDirectory, id: SubmissionId) -> Result<Proposal, Refusal> {
        let named = match &params.base {
            Some(base) => base.clone(),
            None => self.marked_base(&params.directory)?,
        };
        let base = self.resolve(&named)?;
        let (tree, blobs) = self.import_on(&base.tree()?, &params.directory)?;
        let bound = json!({
            "directory": tree.content(),
            "base": params.base,
            "onStale": params.on_stale,
            "by": bound(&params.attribution),
        });
        let attributed = attributed(&params.attribution, &params.options, id, String::new());
        let content = Content::Directory(tree, blobs);
        Proposal::of_tree(
            attributed,
            bound.to_string().as_bytes(),
            Some(base),
            params.on_stale,
            content,
            &self.ledger.limits,
        )
    }

    /// The base that `export` marked a directory with.
    fn marked_base(&self, directory: &Utf8Path) -> Result<String, Refusal> {
        let store = &self.ledger.store;
        let refuse = |message: String| -> Refusal {
            let hint =
                "name the base with `--base`, or start from a directory made by `semaprax export`";
            Diagnostic::new(Code::InvalidSubmission, message)
                .at(directory.as_str())
                .hint(hint)
                .into()
        };
        let marker = directory.join(STATE_DIRECTORY).join(ExportMarker::NAME);
        let bytes = store.world.disk.read(&marker).map_err(|_| {
            refuse(format!(
                "`{directory}` does not say which revision it comes from"
            ))
        })?;
        let marker: ExportMarker = serde_json::from_slice(&bytes).map_err(|error| {
            refuse(format!(
                "the marker of `{directory}` cannot be read: {error}"
            ))
        })?;
        if marker.workspace != identity::workspace_id(&store.database)? {
            return Err(refuse(format!(
                "`{directory}` was exported from another workspace"
            )));
        }
        Ok(marker.revision)
    }

    /// The content of `base` made equal to `directory`; what is ignored there stays as it is.
    fn import_on(&self, base: &Tree, directory: &Utf8Path) -> Result<(Tree, Vec<Blob>), Refusal> {
        let (store, limits) = (&self.ledger.store, &self.ledger.limits);
        let source = SourceDirectory::open(directory)?;
        let scan = scan(directory, &mut |_| true)?.unwrap_or_default();
        let (mut fresh, mut bytes) = (Vec::new(), 0u64);
        let mut sink = |blobs: Vec<Blob>| -> Result<(), Refusal> {
            for blob in blobs {
                if store.database.blob_info(&blob.info().digest)?.is_some() {
                    continue;
                }
                bytes += blob.info().bytes;
                if bytes > limits.submission_bytes {
                    let message = format!(
                        "the directory has more than {} bytes of new content",
                        limits.submission_bytes
                    );
                    return Err(Diagnostic::new(Code::LimitExceeded, message)
                        .at(directory.as_str())
                        .into());
                }
                fresh.push(blob);
            }
            Ok(())
        };
        let importer = Importer {
            source: &source,
            names: Some(self.ledger.names),
            file_bytes: limits.file_bytes,
            sink: &mut sink,
            progress: &mut |_, _| true,
        };
        let imported = import(scan, &super::NoNodes, importer)?
            .ok_or_else(|| StoreError::damaged("an import was abandoned by nobody"))?;
        if let Some(skipped) = imported
            .skipped
            .iter()
            .find(|skipped| refuses(skipped.reason))
        {
            // Leaving it out would look as if it had been deleted.
            let message = format!(
                "`{}` cannot be taken from the directory: {}",
                skipped.path,
                skipped.reason.word()
            );
            return Err(Diagnostic::new(Code::PathRefused, message)
                .at(skipped.path.as_str())
                .into());
        }
        let kept = self.kept_ignored(base, &imported.tree, directory)?;
        let mut draft = Draft::of(&imported.tree, &store.database)?;
        for (path, leaf) in kept {
            if matches!(draft.find(&path)?, crate::store::tree::Found::Nothing) {
                draft.set(&path, leaf)?;
            }
        }
        Ok((draft.seal(), fresh))
    }

    /// The paths of `base` that are not in the directory but would be ignored there.
    fn kept_ignored(
        &self,
        base: &Tree,
        imported: &Tree,
        directory: &Utf8Path,
    ) -> StoreResult<Vec<crate::store::tree::ListedLeaf>> {
        let database = &self.ledger.store.database;
        let mut present = BTreeSet::new();
        for_each_leaf(imported.root(), "", database, &mut |path, _| {
            present.insert(path);
            Ok(true)
        })?;
        let mut rules = IgnoreRules::of(directory);
        let mut kept = Vec::new();
        for_each_leaf(base.root(), "", database, &mut |path: LogicalPath, leaf| {
            if !present.contains(&path) && rules.is_ignored(path.as_str()) {
                kept.push((path, leaf));
            }
            Ok(true)
        })?;
        Ok(kept)
    }
}

/// Whether leaving this out of a directory would lose something without a word.
fn refuses(reason: semaprax_protocol::documents::SkipReason) -> bool {
    reason != semaprax_protocol::documents::SkipReason::EmptyDirectory
}

fn attributed(
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

fn bound(attribution: &Attribution) -> serde_json::Value {
    json!({ "author": attribution.author, "message": attribution.message })
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
