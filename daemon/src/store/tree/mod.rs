//! Whole trees as persistent Merkle nodes: equal digests are never descended into.
//!
//! Owns: `Leaf`, `Branch`, `Directory`, `Tree` and their two digests (content alone; content with
//! stamps). `codec.rs` has the bytes, `draft.rs` edits, `walk.rs` lists, `compare.rs` finds what differs,
//! `stamp.rs` gives paths the number of the publication that changed them.
//! Never: the disk; nodes come from a [`NodeSource`].

mod codec;
mod compare;
mod draft;
mod nodes;
mod stamp;
mod walk;

use std::fmt;
use std::sync::{Arc, OnceLock};

use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{BlobDigest, LogicalPath, StampedDigest, TreeDigest};

pub use compare::{Difference, differences, restamped};
pub use draft::{Draft, Found};
pub use stamp::stamped;
pub use walk::{ListedLeaf, for_each_leaf, lookup};

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

/// A directory as its parent knows it: digests and sums; the node itself is loaded when needed.
pub struct Branch {
    content: TreeDigest,
    stamped: StampedDigest,
    files: u64,
    bytes: u64,
    node: OnceLock<Arc<Directory>>,
}

/// One name of a directory.
#[derive(Debug, Clone)]
pub enum Entry {
    /// A file or symlink.
    Leaf(Leaf),
    /// A directory.
    Branch(Arc<Branch>),
}

/// The names of one directory, sorted.
#[derive(Debug, Default)]
pub struct Directory {
    entries: Vec<(Box<str>, Entry)>,
}

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
    ) -> Self {
        Self {
            content,
            stamped,
            files,
            bytes,
            node: OnceLock::new(),
        }
    }

    /// A directory made in memory.
    pub fn of(directory: Directory) -> Self {
        let (mut files, mut bytes) = (0, 0);
        for (_, entry) in &directory.entries {
            match entry {
                Entry::Leaf(leaf) => (files, bytes) = (files + 1, bytes + leaf.bytes),
                Entry::Branch(branch) => {
                    (files, bytes) = (files + branch.files, bytes + branch.bytes);
                }
            }
        }
        let (content, stamped) = codec::digests(&directory);
        Self {
            content,
            stamped,
            files,
            bytes,
            node: OnceLock::from(Arc::new(directory)),
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

    /// Files and symlinks below.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// Bytes of all content below.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The names, loaded when they are not yet.
    pub fn open(&self, source: &dyn NodeSource) -> StoreResult<&Arc<Directory>> {
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
        let directory = codec::decode(&bytes)
            .ok_or_else(|| StoreError::damaged(format!("node {} cannot be read", self.stamped)))?;
        Ok(self.node.get_or_init(|| Arc::new(directory)))
    }

    /// The node, when it is in memory.
    pub fn loaded(&self) -> Option<&Arc<Directory>> {
        self.node.get()
    }
}

impl Directory {
    /// The names with what they are, sorted by name.
    pub fn entries(&self) -> &[(Box<str>, Entry)] {
        &self.entries
    }

    /// What has this name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        let found = self
            .entries
            .binary_search_by(|(other, _)| (**other).cmp(name))
            .ok()?;
        self.entries.get(found).map(|(_, entry)| entry)
    }

    /// A directory of these names, which must be sorted and distinct.
    pub(super) fn from_sorted(entries: Vec<(Box<str>, Entry)>) -> Self {
        debug_assert!(
            entries.is_sorted_by(|a, b| a.0 < b.0),
            "names are sorted and distinct"
        );
        Self { entries }
    }

    /// The bytes of the node, as the store keeps them.
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }
}

impl Tree {
    /// The tree with nothing in it.
    pub fn empty() -> Self {
        Self {
            root: Arc::new(Branch::of(Directory::default())),
        }
    }

    /// A tree of the store, by what its record says of the root.
    pub fn stored(content: TreeDigest, stamped: StampedDigest, files: u64, bytes: u64) -> Self {
        Self {
            root: Arc::new(Branch::closed(content, stamped, files, bytes)),
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
        lookup(self, path, source)
    }
}
