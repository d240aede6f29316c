//! Listing a tree, and what differs between two.

use std::sync::Arc;

use semaprax_protocol::documents::{Listing, ListingEntry, TreeDiff, TreeReference};
use semaprax_protocol::request::{Diff, List};
use semaprax_protocol::{LogicalPath, Refusal, SchemaTag, Seq};

use super::{View, no_such_path, path_of};
use crate::store::history::{NamedMove, StoredRecord};
use crate::store::tree::{Branch, Found, Leaf, for_each_leaf};
use crate::store::{StoreError, StoreResult};

/// Bytes that the entries of one listing may take, roughly.
const LISTING_BYTES: usize = 2 << 20;
const ENTRY_BYTES: usize = 200;

impl View<'_> {
    pub(super) fn list(&self, params: &List) -> Result<Listing, Refusal> {
        let (stored, tree) = self.tree(params.revision.as_deref())?;
        let (branch, prefix) = match params
            .prefix
            .as_deref()
            .map(|prefix| prefix.trim_end_matches('/'))
        {
            None | Some("" | ".") => (Arc::clone(tree.root()), String::new()),
            Some(prefix) => match tree.find(&path_of(prefix)?, self.database)? {
                Found::Directory(branch) => (branch, prefix.to_owned()),
                Found::Leaf(leaf) => {
                    let entry = self.listing_entry(path_of(prefix)?, leaf)?;
                    let wanted = params
                        .after
                        .as_ref()
                        .is_none_or(|after| *after < entry.path);
                    return Ok(listing(
                        &stored,
                        wanted.then_some(entry).into_iter().collect(),
                        false,
                    ));
                }
                Found::Nothing | Found::Blocked(..) => return Err(no_such_path(prefix, &stored)),
            },
        };
        let limit = params.limit.map_or(usize::MAX, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        });
        let (entries, truncated) = self.page(&branch, &prefix, params.after.as_ref(), limit)?;
        Ok(listing(&stored, entries, truncated))
    }

    fn page(
        &self,
        branch: &Branch,
        prefix: &str,
        after: Option<&LogicalPath>,
        limit: usize,
    ) -> StoreResult<(Vec<ListingEntry>, bool)> {
        let mut entries = Vec::new();
        let mut bytes = 0;
        let finished = for_each_leaf(branch, prefix, self.database, &mut |path, leaf| {
            if after.is_some_and(|after| path <= *after) {
                return Ok(true);
            }
            bytes += ENTRY_BYTES + path.as_str().len();
            if entries.len() == limit || bytes > LISTING_BYTES {
                return Ok(false);
            }
            entries.push(self.listing_entry(path, leaf)?);
            Ok(true)
        })?;
        Ok((entries, !finished))
    }

    fn listing_entry(&self, path: LogicalPath, leaf: Leaf) -> StoreResult<ListingEntry> {
        let seq = Seq::new(leaf.stamp)
            .ok_or_else(|| StoreError::damaged(format!("`{path}` has no stamp")))?;
        let sha256 = self.database.known_blob(&leaf.blob)?.sha256;
        Ok(ListingEntry {
            path,
            kind: leaf.kind,
            bytes: leaf.bytes,
            sha256,
            seq,
        })
    }

    pub(super) fn diff(&self, params: &Diff) -> Result<TreeDiff, Refusal> {
        let (from, before) = self.tree(Some(&params.from))?;
        let (to, after) = self.tree(params.to.as_deref())?;
        let moves = Self::named_moves(&from, &to);
        let (changes, truncated) = self.changes_between(&before, &after, &moves)?;
        Ok(TreeDiff {
            schema: SchemaTag::new(),
            from: reference(&from),
            to: reference(&to),
            changes,
            truncated,
        })
    }

    /// The moves that submissions named between two neighbours: the same change is shown the same way
    /// by `diff` and `show`.
    fn named_moves(from: &StoredRecord, to: &StoredRecord) -> Vec<NamedMove> {
        let is_next = from.record.seq.next() == Some(to.record.seq);
        if is_next {
            to.record.moves.clone()
        } else {
            Vec::new()
        }
    }
}

fn listing(stored: &StoredRecord, entries: Vec<ListingEntry>, truncated: bool) -> Listing {
    let record = &stored.record;
    Listing {
        schema: SchemaTag::new(),
        revision: record.revision,
        seq: record.seq,
        entries,
        truncated,
    }
}

fn reference(stored: &StoredRecord) -> TreeReference {
    let record = &stored.record;
    TreeReference {
        seq: record.seq,
        revision: record.revision,
        tree: record.tree,
    }
}
