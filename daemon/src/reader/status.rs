//! The state of the workspace, and how its directory differs from ACTIVE.

use std::collections::{BTreeMap, BTreeSet};

use semaprax_protocol::documents::{
    ActiveGeneration, GenerationCounts, PathChange, QueueCounts, WorkspaceStatus,
};
use semaprax_protocol::request::StatusParams;
use semaprax_protocol::{Limits, Refusal, SchemaTag};

use super::View;
use crate::import::{Importer, NoNodes, import};
use crate::store::changes::{fitting, path_changes};
use crate::store::identity;
use crate::store::objects::Blob;
use crate::store::tree::differences;
use crate::world::EntryType;
use crate::world::source::{IgnoreRules, SourceDirectory, scan};

/// What a status says that is not in the store.
#[derive(Debug, Clone, Copy)]
pub struct StatusContext<'context> {
    /// The bounds in force.
    pub limits: &'context Limits,
    /// How many leases hold a generation.
    pub leases: u64,
}

impl View<'_> {
    /// The status; the daemon fills in queue and daemon.
    pub fn status(
        &self,
        params: &StatusParams,
        context: StatusContext<'_>,
    ) -> Result<WorkspaceStatus, Refusal> {
        let generations = self.world.disk.read_directory(&self.layout.generations())?;
        let materialized = generations
            .iter()
            .filter(|(_, kind)| *kind == EntryType::Directory)
            .count();
        let (drift, truncated) = if params.drift {
            let (changes, truncated) = self.drift(context.limits)?;
            (Some(changes), truncated)
        } else {
            (None, false)
        };
        let record = &self.tip.record;
        Ok(WorkspaceStatus {
            schema: SchemaTag::new(),
            workspace: self.layout.root().to_owned(),
            id: identity::workspace_id(self.database)?,
            names: identity::name_policy(self.database)?,
            active: ActiveGeneration {
                seq: record.seq,
                revision: record.revision,
                tree: record.tree,
                files: record.files,
                bytes: record.bytes,
                author: record.author.clone(),
                message: record.message.clone(),
                published_at: record.published_at,
            },
            generations: GenerationCounts {
                total: record.seq.get(),
                materialized: materialized as u64,
            },
            leases: context.leases,
            queue: QueueCounts::default(),
            daemon: None,
            drift,
            limits: params.limits.then(|| context.limits.clone()),
            truncated,
        })
    }

    /// How the directory of the workspace differs from ACTIVE, by the rules of `init`: what would not
    /// be imported is no difference.
    fn drift(&self, limits: &Limits) -> Result<(Vec<PathChange>, bool), Refusal> {
        let root = self.layout.root();
        let active = self.tip.tree()?;
        let source = SourceDirectory::open(root)?;
        let mut names = BTreeMap::new();
        let mut sink = |blobs: Vec<Blob>| {
            names.extend(
                blobs
                    .iter()
                    .map(|blob| (blob.info().digest, blob.info().sha256)),
            );
            Ok(())
        };
        let mut importer = Importer {
            source: &source,
            names: Some(identity::name_policy(self.database)?),
            path_bytes: self.layout.longest_path(),
            file_bytes: limits.file_bytes,
            sink: &mut sink,
            progress: &mut |_, _| true,
        };
        let found = scan(&source, &mut |_| true)?.unwrap_or_default();
        let Some(found) = import(found, &NoNodes, &mut importer)? else {
            return Ok((Vec::new(), false));
        };
        let left_out: BTreeSet<String> = found
            .skipped
            .into_iter()
            .map(|skipped| skipped.path)
            .collect();
        let mut ignored = IgnoreRules::of(&source);
        let mut differing = Vec::new();
        for difference in differences(&active, &found.tree, self.database)? {
            let path = difference.path.as_str();
            let is_there = difference.after.is_some();
            if is_there || !(left_out.contains(path) || ignored.is_ignored(path)?) {
                differing.push(difference);
            }
        }
        let sha256 = |blob: &_| match names.get(blob) {
            Some(sha256) => Ok(*sha256),
            None => self.database.known_blob(blob).map(|info| info.sha256),
        };
        Ok(fitting(path_changes(&differing, &[], sha256)?))
    }
}
