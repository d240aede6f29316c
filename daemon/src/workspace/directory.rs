//! Publishing a directory: the tree is made equal to it.
//!
//! Owns: the import on top of a base, what the ignore rules keep, and the marker by which a directory
//! made by `export` knows its base.
//! Never: the stages; what is made here is a proposal.

use std::collections::BTreeSet;

use camino::Utf8Path;
use semaprax_protocol::documents::{Receipt, SkipReason};
use semaprax_protocol::request::PublishDirectory;
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{
    Code, Diagnostic, LogicalPath, Refusal, Revision, SubmissionId, TreeDigest, WorkspaceId,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Writer;
use super::publishing::{attributed, bound};
use crate::import::{Importer, NoNodes, import};
use crate::pipeline::Proposal;
use crate::pipeline::admit::Content;
use crate::store::layout::STATE_DIRECTORY;
use crate::store::objects::Blob;
use crate::store::tree::{Draft, Found, ListedLeaf, Tree, for_each_leaf};
use crate::store::{StoreError, identity};
use crate::world::source::{IgnoreRules, ReadOutcome, SourceDirectory, scan};

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
    /// The largest one that is read.
    const BYTES: u64 = 4096;
}

impl Writer {
    pub(super) fn directory(
        &self,
        params: &PublishDirectory,
        id: SubmissionId,
    ) -> Result<(Proposal, TreeDigest), Refusal> {
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
        let digest = tree.content();
        let content = Content::Directory(tree, blobs);
        let proposal = Proposal::of_tree(
            attributed,
            bound.to_string().as_bytes(),
            Some(base),
            params.on_stale,
            content,
            &self.ledger.limits,
        )?;
        Ok((proposal, digest))
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
        match Self::read_marker(directory)? {
            None => Err(refuse(format!(
                "`{directory}` does not say which revision it comes from"
            ))),
            Some(marker) if marker.workspace != identity::workspace_id(&store.database)? => Err(
                refuse(format!("`{directory}` was exported from another workspace")),
            ),
            Some(marker) => Ok(marker.revision),
        }
    }

    /// The marker of a directory; `None` when there is none that can be read.
    fn read_marker(directory: &Utf8Path) -> Result<Option<ExportMarker>, Refusal> {
        let marker = format!("{STATE_DIRECTORY}/{}", ExportMarker::NAME);
        match SourceDirectory::open(directory)?.read(&marker, ExportMarker::BYTES)? {
            ReadOutcome::Content(EntryKind::File | EntryKind::Executable, bytes) => {
                Ok(serde_json::from_slice(&bytes).ok())
            }
            _ => Ok(None),
        }
    }

    /// Writes the marker of a directory, in place of the one it may have.
    pub(super) fn write_marker(
        &self,
        directory: &Utf8Path,
        revision: Revision,
    ) -> Result<(), Refusal> {
        let store = &self.ledger.store;
        let marker = ExportMarker {
            schema: ExportMarker::SCHEMA.to_owned(),
            workspace: identity::workspace_id(&store.database)?,
            revision: revision.to_string(),
        };
        let bytes = serde_json::to_vec(&marker).map_err(|error| {
            StoreError::damaged(format!("the marker cannot be written: {error}"))
        })?;
        let state = directory.join(STATE_DIRECTORY);
        let next = state.join(format!(
            "{}.{}",
            ExportMarker::NAME,
            store.world.entropy.uuid()
        ));
        store.world.disk.create(&next, &bytes, 0o644)?;
        Ok(store
            .world
            .disk
            .rename(&next, &state.join(ExportMarker::NAME))?)
    }

    /// A directory that equals what was just published goes on from there: its next publication has
    /// that base. One that was rebased or merged lacks what others changed, and keeps its base.
    pub(super) fn move_marker(
        &self,
        directory: &Utf8Path,
        imported: TreeDigest,
        receipt: &Receipt,
    ) {
        let Some(revision) = receipt.revision.filter(|_| receipt.tree == imported) else {
            return;
        };
        let ours = identity::workspace_id(&self.ledger.store.database).ok();
        let marked = Self::read_marker(directory).ok().flatten();
        if marked.is_some_and(|marker| {
            Some(marker.workspace) == ours && marker.revision != revision.to_string()
        }) && let Err(refusal) = self.write_marker(directory, revision)
        {
            // The publication stands; only the next one from here needs `--base`.
            tracing::warn!(%directory, %refusal, "the marker of a directory could not be moved");
        }
    }

    /// The content of `base` made equal to `directory`; what is ignored there stays as it is.
    fn import_on(&self, base: &Tree, directory: &Utf8Path) -> Result<(Tree, Vec<Blob>), Refusal> {
        let (store, limits) = (&self.ledger.store, &self.ledger.limits);
        let source = SourceDirectory::open(directory)?;
        let scan = scan(&source, &mut |_| true)?.unwrap_or_default();
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
        let mut importer = Importer {
            source: &source,
            names: Some(self.ledger.names),
            path_bytes: store.layout.longest_path(),
            file_bytes: limits.file_bytes,
            sink: &mut sink,
            progress: &mut |_, _| true,
        };
        let taken = import(scan, &NoNodes, &mut importer)?
            .ok_or_else(|| StoreError::damaged("an import was abandoned by nobody"))?;
        if let Some(skipped) = taken.skipped.iter().find(|skipped| refuses(skipped.reason)) {
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
        let kept = self.kept_ignored(base, &taken.tree, &source)?;
        let mut draft = Draft::of(&taken.tree, &store.database);
        for (path, leaf) in kept {
            if matches!(draft.find(&path)?, Found::Nothing) {
                draft.set(&path, leaf)?;
            }
        }
        Ok((draft.seal()?, fresh))
    }

    /// The paths of `base` that are not in the directory but would be ignored there.
    fn kept_ignored(
        &self,
        base: &Tree,
        imported: &Tree,
        source: &SourceDirectory,
    ) -> Result<Vec<ListedLeaf>, Refusal> {
        let database = &self.ledger.store.database;
        let mut present = BTreeSet::new();
        for_each_leaf(imported.root(), "", database, &mut |path, _| {
            present.insert(path);
            Ok(true)
        })?;
        let mut missing = Vec::new();
        for_each_leaf(base.root(), "", database, &mut |path: LogicalPath, leaf| {
            if !present.contains(&path) {
                missing.push((path, leaf));
            }
            Ok(true)
        })?;
        let mut rules = IgnoreRules::of(source);
        let mut kept = Vec::new();
        for (path, leaf) in missing {
            if rules.is_ignored(path.as_str())? {
                kept.push((path, leaf));
            }
        }
        Ok(kept)
    }
}

/// Whether leaving this out of a directory would lose something without a word.
fn refuses(reason: SkipReason) -> bool {
    reason != SkipReason::EmptyDirectory
}
