//! Which publication brought each line of a file.
//!
//! Owns: the walk from version to version: a path's stamp names the publication that last changed it,
//! so only those are read. A whole-file rename is followed. A line that a rollback brought back
//! belongs to the rollback.

use std::rc::Rc;

use semaprax_protocol::documents::{BlameLine, ChangeKind};
use semaprax_protocol::request::BlameParams;
use semaprax_protocol::{Code, Diagnostic, LogicalPath, Refusal, SchemaTag, Seq};

use super::{View, no_such_path, path_of};
use crate::store::history::StoredRecord;
use crate::store::tree::{Found, Leaf};
use crate::store::{StoreError, StoreResult};
use crate::text::blame::Blame;
use crate::text::is_text;

/// Bytes of one answer, roughly, and of a line in it beside its author.
const ANSWER_BYTES: usize = 2 << 20;
const LINE_BYTES: usize = 160;

/// A version of the file: where it is, and as of which publication.
struct Version {
    path: LogicalPath,
    leaf: Leaf,
}

impl View<'_> {
    pub(super) fn blame(
        &self,
        params: &BlameParams,
    ) -> Result<semaprax_protocol::documents::Blame, Refusal> {
        let (stored, tree) = self.tree(params.revision.as_deref())?;
        let path = path_of(&params.path)?;
        let Found::Leaf(leaf) = tree.find(&path, self.database)? else {
            return Err(no_such_path(path.as_str(), &stored));
        };
        let newest = self.database.blob(self.world, self.layout, &leaf.blob)?;
        if !is_text(&newest) {
            let message = format!("`{path}` is not text");
            return Err(Diagnostic::new(Code::InvalidRequest, message)
                .at(path.as_str())
                .into());
        }
        let mut blame = Blame::new(&newest);
        let mut version = Version {
            path: path.clone(),
            leaf,
        };
        let (owner, is_cut) = loop {
            // Shared: a file may have hundreds of thousands of lines.
            let owner = Rc::new(self.publication(version.leaf.stamp)?);
            if blame.is_done() {
                break (owner, false);
            }
            match self.version_before(&version, &owner) {
                Ok(Some(older)) => {
                    let content = self
                        .database
                        .blob(self.world, self.layout, &older.leaf.blob)?;
                    blame.step(if is_text(&content) { &content } else { b"" }, owner);
                    version = older;
                }
                Ok(None) => break (owner, false),
                Err(StoreError::Collected { .. }) => break (owner, true),
                Err(error) => return Err(error.into()),
            }
        };
        let mut bytes = 0;
        let owners = blame.finish(owner);
        let total = owners.len();
        let fitting = owners.into_iter().zip(1..).take_while(|(owner, _)| {
            bytes += LINE_BYTES + owner.record.author.len();
            bytes <= ANSWER_BYTES
        });
        let lines: Vec<BlameLine> = fitting
            .map(|(owner, line)| BlameLine {
                line,
                seq: owner.record.seq,
                revision: owner.record.revision,
                author: owner.record.author.clone(),
            })
            .collect();
        Ok(semaprax_protocol::documents::Blame {
            schema: SchemaTag::new(),
            path,
            revision: stored.record.revision,
            truncated: is_cut || lines.len() < total,
            lines,
        })
    }

    fn publication(&self, stamp: u64) -> StoreResult<StoredRecord> {
        let missing = || StoreError::damaged(format!("the record of @{stamp} is missing"));
        self.known_record(Seq::new(stamp).ok_or_else(missing)?)
    }

    /// The file as it was before `owner` changed it; `None` when `owner` created it.
    fn version_before(
        &self,
        version: &Version,
        owner: &StoredRecord,
    ) -> StoreResult<Option<Version>> {
        if owner.record.seq == Seq::FIRST {
            return Ok(None);
        }
        let before = self.parent_tree(owner)?;
        if let Found::Leaf(leaf) = before.find(&version.path, self.database)? {
            return Ok(Some(Version {
                path: version.path.clone(),
                leaf,
            }));
        }
        let (changes, _) = self.changes_of(owner)?;
        let renamed = changes
            .into_iter()
            .find(|change| change.kind == ChangeKind::Renamed && change.path == version.path);
        let Some(from) = renamed.and_then(|change| change.from) else {
            return Ok(None);
        };
        match before.find(&from, self.database)? {
            Found::Leaf(leaf) => Ok(Some(Version { path: from, leaf })),
            _ => Ok(None),
        }
    }
}
