//! The state of the workspace, and how its directory differs from ACTIVE.

use std::collections::BTreeMap;

use semaprax_protocol::documents::{
    ActiveGeneration, GenerationCounts, PathChange, QueueCounts, WorkspaceStatus,
};
use semaprax_protocol::request::StatusParams;
use semaprax_protocol::{Limits, Refusal, SchemaTag};

use super::View;
use crate::store::changes::{fitting, path_changes};
use crate::store::identity;
use crate::store::objects::{digest_of, sha256_of};
use crate::store::tree::{Difference, Leaf, UNSTAMPED, for_each_leaf};
use crate::world::EntryType;
use crate::world::source::{ReadOutcome, SourceDirectory, scan};

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

    /// How the directory of the workspace differs from ACTIVE, by the ignore rules of `init`.
    fn drift(&self, limits: &Limits) -> Result<(Vec<PathChange>, bool), Refusal> {
        let tree = self.tip.tree()?;
        let mut before = BTreeMap::new();
        for_each_leaf(tree.root(), "", self.database, &mut |path, leaf| {
            before.insert(path, leaf);
            Ok(true)
        })?;
        let source = SourceDirectory::open(self.layout.root())?;
        let mut names = BTreeMap::new();
        let mut differences = Vec::new();
        let found = scan(self.layout.root(), &mut |_| true)?.unwrap_or_default();
        for file in found.found {
            let Ok(path) = file.path.parse::<semaprax_protocol::LogicalPath>() else {
                continue;
            };
            let ReadOutcome::Content(kind, content) = source.read(&file.path, limits.file_bytes)?
            else {
                continue;
            };
            let leaf = Leaf {
                kind,
                blob: digest_of(&content),
                bytes: content.len() as u64,
                stamp: UNSTAMPED,
            };
            let was = before.remove(&path);
            if was.is_some_and(|was| was.same_content(&leaf)) {
                continue;
            }
            names.insert(leaf.blob, sha256_of(&content));
            differences.push(Difference {
                path,
                before: was,
                after: Some(leaf),
            });
        }
        let mut ignored = crate::world::source::IgnoreRules::of(self.layout.root());
        for (path, leaf) in before {
            if !ignored.is_ignored(path.as_str()) {
                differences.push(Difference {
                    path,
                    before: Some(leaf),
                    after: None,
                });
            }
        }
        differences.sort_by(|a, b| a.path.cmp(&b.path));
        let sha256 = |blob: &_| match names.get(blob) {
            Some(sha256) => Ok(*sha256),
            None => self.database.known_blob(blob).map(|info| info.sha256),
        };
        Ok(fitting(path_changes(&differences, &[], sha256)?))
    }
}
