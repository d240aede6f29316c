//! Whole trees as persistent Merkle nodes: equal digests are never descended into.
//!
//! Owns: `Leaf`, `Branch`, `Tree` and their two digests (content alone; content with stamps).
//! `page.rs` divides directories of many names, `build.rs` makes and changes them, `codec.rs` has the
//! bytes, `draft.rs` edits trees, `walk.rs` lists, `cursor.rs` and `compare.rs` find what differs,
//! `stamp.rs` gives paths the number of the publication that changed them.
//! Never: the disk; nodes come from a [`NodeSource`].

mod build;
mod codec;
mod compare;
mod cursor;
mod draft;
mod nodes;
mod page;
mod stamp;
mod walk;

use std::fmt;
use std::sync::{Arc, OnceLock};

use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{BlobDigest, LogicalPath, StampedDigest, TreeDigest};

pub use compare::{Difference, differences, restamped};
pub use draft::{Draft, Found};
pub use stamp::stamped;
pub use walk::{Below, ListedLeaf, for_each_leaf};

use page::Node;
use walk::trace;

use super::{StoreError, StoreResult};

/// A stamp that was not given yet: the leaf belongs to a candidate.
pub const UNSTAMPED: u64 = 0;

/// A file or symlink of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaf {
    /// What it is.
    pub kind: EntryKind,
    /// Its content; of a symlink, its target.
    pub blob: BlobDigest,
    /// Bytes of its content.
    pub bytes: u64,
    /// The publication that last changed it, or [`UNSTAMPED`].
    pub stamp: u64,
}

impl Leaf {
    /// Whether content and kind are the same, whatever the stamp.
    pub fn same_content(&self, other: &Self) -> bool {
        self.kind == other.kind && self.blob == other.blob
    }
}

/// A directory, or a page of one, as its parent knows it: digests and sums; the node itself is loaded
/// when needed.
pub struct Branch {
    content: TreeDigest,
    stamped: StampedDigest,
    files: u64,
    bytes: u64,
    stamp: u64,
    node: OnceLock<Arc<Node>>,
}

/// One name of a directory.
#[derive(Debug, Clone)]
pub enum Entry {
    /// A file or symlink.
    Leaf(Leaf),
    /// A directory.
    Branch(Arc<Branch>),
}

/// A name in a directory, with what it is.
pub type Named = (Box<str>, Entry);

/// A whole tree.
#[derive(Debug, Clone)]
pub struct Tree {
    root: Arc<Branch>,
}

/// Gives the bytes of nodes.
pub trait NodeSource {
    /// The bytes of the node with this digest.
    fn node(&self, digest: &StampedDigest) -> StoreResult<Vec<u8>>;
}

impl fmt::Debug for Branch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "Branch({}, {} files)",
            self.content.short(),
            self.files
        )
    }
}

impl Branch {
    /// A directory that is not loaded.
    pub(super) fn closed(
        content: TreeDigest,
        stamped: StampedDigest,
        files: u64,
        bytes: u64,
        stamp: u64,
    ) -> Self {
        Self {
            content,
            stamped,
            files,
            bytes,
            stamp,
            node: OnceLock::new(),
        }
    }

    /// A node made in memory.
    fn of(node: Node) -> Self {
        let (files, bytes) = node.sums();
        let (content, stamped) = codec::digests(&node);
        Self {
            content,
            stamped,
            files,
            bytes,
            stamp: UNSTAMPED,
            node: OnceLock::from(Arc::new(node)),
        }
    }

    /// The same directory, last changed by publication `seq`.
    fn with_stamp(&self, seq: u64) -> Self {
        Self {
            content: self.content,
            stamped: self.stamped,
            files: self.files,
            bytes: self.bytes,
            stamp: seq,
            node: self.node.clone(),
        }
    }

    /// Digest of the content alone.
    pub fn content(&self) -> TreeDigest {
        self.content
    }

    /// Digest of the content with stamps: the name of the node in the store.
    pub fn stamped(&self) -> StampedDigest {
        self.stamped
    }

    /// The publication that last changed anything below; also one that only took something away. Of a
    /// root, a page and a candidate's directory it is [`UNSTAMPED`]: the record says it of the root.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Files and symlinks below.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// Bytes of all content below.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The node, loaded when it is not yet.
    fn open(&self, source: &dyn NodeSource) -> StoreResult<&Arc<Node>> {
        if let Some(node) = self.node.get() {
            return Ok(node);
        }
        let bytes = source.node(&self.stamped)?;
        if codec::stamped_digest(&bytes) != self.stamped {
            return Err(StoreError::damaged(format!(
                "node {} does not match its digest",
                self.stamped
            )));
        }
        let node = codec::decode(&bytes)
            .ok_or_else(|| StoreError::damaged(format!("node {} cannot be read", self.stamped)))?;
        Ok(self.node.get_or_init(|| Arc::new(node)))
    }

    /// The node, when it is in memory.
    fn loaded(&self) -> Option<&Arc<Node>> {
        self.node.get()
    }

    /// All names with what they are, sorted by name.
    pub fn entries(&self, source: &dyn NodeSource) -> StoreResult<Vec<&Named>> {
        let mut found = Vec::new();
        self.collect_entries(source, &mut found)?;
        Ok(found)
    }

    fn collect_entries<'branch>(
        &'branch self,
        source: &dyn NodeSource,
        found: &mut Vec<&'branch Named>,
    ) -> StoreResult<()> {
        match self.open(source)?.as_ref() {
            Node::Names(names) => found.extend(names),
            Node::Pages(pages) => {
                for page in pages {
                    page.branch().collect_entries(source, found)?;
                }
            }
        }
        Ok(())
    }

    /// What has this name: opens one page of each height.
    pub fn get(&self, name: &str, source: &dyn NodeSource) -> StoreResult<Option<&Entry>> {
        let mut here = self;
        loop {
            match here.open(source)?.as_ref() {
                Node::Names(names) => {
                    let found = names.binary_search_by(|(other, _)| (**other).cmp(name));
                    let found = found.ok().and_then(|found| names.get(found));
                    return Ok(found.map(|(_, entry)| entry));
                }
                Node::Pages(pages) => {
                    let place = pages.partition_point(|page| page.last() < name);
                    match pages.get(place) {
                        Some(page) => here = page.branch(),
                        None => return Ok(None),
                    }
                }
            }
        }
    }

    /// How many names it has.
    fn names(&self, source: &dyn NodeSource) -> StoreResult<u64> {
        Ok(self.open(source)?.names())
    }
}

/// The bytes of a node as they are written once they were read; `None` when they are no node.
pub fn node_rewritten(bytes: &[u8]) -> Option<Vec<u8>> {
    codec::decode(bytes).map(|node| codec::encode(&node))
}

impl Tree {
    /// The tree with nothing in it.
    pub fn empty() -> Self {
        Self {
            root: Arc::new(Branch::of(Node::Names(Vec::new()))),
        }
    }

    /// A tree of the store, by what its record says of the root.
    pub fn stored(content: TreeDigest, stamped: StampedDigest, files: u64, bytes: u64) -> Self {
        Self {
            root: Arc::new(Branch::closed(content, stamped, files, bytes, UNSTAMPED)),
        }
    }

    /// The tree with this root.
    pub fn of(root: Arc<Branch>) -> Self {
        Self { root }
    }

    /// The root.
    pub fn root(&self) -> &Arc<Branch> {
        &self.root
    }

    /// Digest of the content alone.
    pub fn content(&self) -> TreeDigest {
        self.root.content
    }

    /// Digest of the content with stamps.
    pub fn stamped(&self) -> StampedDigest {
        self.root.stamped
    }

    /// What `path` is in this tree.
    pub fn find(&self, path: &LogicalPath, source: &dyn NodeSource) -> StoreResult<Found> {
        trace(self, path, source).map(|(found, _)| found)
    }

    /// What `path` is in this tree, and the publication since which it is so at the latest: the stamp of
    /// the path, or of the longest part of it that is there; `None` when no part is.
    pub fn trace(
        &self,
        path: &LogicalPath,
        source: &dyn NodeSource,
    ) -> StoreResult<(Found, Option<u64>)> {
        trace(self, path, source)
    }
}
