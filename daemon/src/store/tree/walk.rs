//! Finding and listing paths of a tree.
//!
//! Owns: the order of paths: that of their whole text, byte by byte.

use std::sync::Arc;

use semaprax_protocol::LogicalPath;

use super::page::Node;
use super::{Branch, Entry, Found, Leaf, Named, NodeSource, Tree};
use crate::store::{StoreError, StoreResult};

/// A leaf with its path.
pub type ListedLeaf = (LogicalPath, Leaf);

/// What `path` is in `tree`, and the stamp of the longest part of it that is there.
pub(super) fn trace(
    tree: &Tree,
    path: &LogicalPath,
    source: &dyn NodeSource,
) -> StoreResult<(Found, Option<u64>)> {
    let mut here = Arc::clone(tree.root());
    let mut stamp = None;
    let mut walked = String::new();
    let mut segments = path.segments().peekable();
    while let Some(segment) = segments.next() {
        if !walked.is_empty() {
            walked.push('/');
        }
        walked.push_str(segment);
        let next = here.get(segment, source)?.cloned();
        match next {
            None => return Ok((Found::Nothing, stamp)),
            Some(Entry::Branch(branch)) => {
                stamp = Some(branch.stamp());
                here = branch;
            }
            Some(Entry::Leaf(leaf)) => {
                let found = if segments.peek().is_none() {
                    Found::Leaf(leaf)
                } else {
                    Found::Blocked(joined(&walked)?, leaf.kind)
                };
                return Ok((found, Some(leaf.stamp)));
            }
        }
    }
    Ok((Found::Directory(here), stamp))
}

/// A path put together from segments of a tree; a node with an unacceptable name is damaged.
pub(super) fn joined(text: &str) -> StoreResult<LogicalPath> {
    text.parse().map_err(|refusal| {
        StoreError::damaged(format!("the tree holds the path `{text}`: {refusal}"))
    })
}

/// The entries of a directory in path order: a directory sorts as its name with `/`.
fn in_path_order<'branch>(
    branch: &'branch Branch,
    source: &dyn NodeSource,
) -> StoreResult<Vec<&'branch Named>> {
    let mut entries = branch.entries(source)?;
    let key = |(name, entry): &Named| {
        let mut key = name.as_bytes().to_vec();
        if matches!(entry, Entry::Branch(_)) {
            key.push(b'/');
        }
        key
    };
    // Only a directory can stand in another place than its name says.
    if entries
        .iter()
        .any(|(_, entry)| matches!(entry, Entry::Branch(_)))
    {
        entries.sort_by_cached_key(|entry| key(entry));
    }
    Ok(entries)
}

/// What a node names.
#[derive(Debug)]
pub enum Below<'node> {
    /// Another node: a directory, or a page of this one.
    Node(&'node Arc<Branch>),
    /// Content.
    Leaf(&'node Leaf),
}

impl Branch {
    /// What its node names itself: one step towards everything that it needs of the store.
    pub fn below(&self, source: &dyn NodeSource) -> StoreResult<Vec<Below<'_>>> {
        let below = match self.open(source)?.as_ref() {
            Node::Names(names) => names
                .iter()
                .map(|(_, entry)| match entry {
                    Entry::Leaf(leaf) => Below::Leaf(leaf),
                    Entry::Branch(branch) => Below::Node(branch),
                })
                .collect(),
            Node::Pages(pages) => pages
                .iter()
                .map(|page| Below::Node(page.branch()))
                .collect(),
        };
        Ok(below)
    }
}

/// Calls `visit` for every leaf below `branch`, in path order, with `prefix` before its path. A
/// directory `prefix` is written without a `/` at its end; the root is the empty text. Stops when
/// `visit` answers `false`.
pub fn for_each_leaf(
    branch: &Branch,
    prefix: &str,
    source: &dyn NodeSource,
    visit: &mut dyn FnMut(LogicalPath, Leaf) -> StoreResult<bool>,
) -> StoreResult<bool> {
    for (name, entry) in in_path_order(branch, source)? {
        let path = if prefix.is_empty() {
            name.to_string()
        } else {
            format!("{prefix}/{name}")
        };
        let go_on = match entry {
            Entry::Leaf(leaf) => visit(joined(&path)?, *leaf)?,
            Entry::Branch(branch) => for_each_leaf(branch, &path, source, visit)?,
        };
        if !go_on {
            return Ok(false);
        }
    }
    Ok(true)
}
