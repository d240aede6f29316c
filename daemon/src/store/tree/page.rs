//! Pages: how a directory of many names is divided, so that a change of one name costs a few small nodes.
//!
//! Owns: what one node holds, and where a page ends. A page of height 0 holds names, one of height `h`
//! holds pages of height `h - 1`; a page of height `h` ends after a name whose [`level`] is above `h`. So
//! the division follows from the set of names alone, whatever the order they came in, and equal content
//! has equal digests. A directory of at most [`UNDIVIDED`] names is one node.
//! Never: how a directory is made or changed (`build.rs`).

use std::sync::Arc;

use super::{Branch, Entry, Named};

/// A directory of at most this many names is not divided.
pub(super) const UNDIVIDED: u64 = 64;

/// Bits of the digest of a name that decide about one height: a page holds 32 of what is below, in the mean.
const BITS: u32 = 5;

/// What one node holds.
#[derive(Debug)]
pub(super) enum Node {
    /// Names, sorted.
    Names(Vec<Named>),
    /// Pages of one height, sorted; at least one.
    Pages(Vec<Page>),
}

/// A page as the page above knows it.
#[derive(Debug, Clone)]
pub(super) struct Page {
    last: Box<str>,
    height: u8,
    names: u64,
    branch: Arc<Branch>,
}

/// Up to which height pages end after this name: 0 for most.
pub(super) fn level(name: &str) -> u8 {
    let digest = blake3::hash(name.as_bytes());
    let low = digest
        .as_bytes()
        .first_chunk()
        .copied()
        .map_or(0, u64::from_le_bytes);
    u8::try_from(low.trailing_zeros() / BITS).unwrap_or(u8::MAX)
}

impl Node {
    /// Entries of the node itself.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Names(names) => names.len(),
            Self::Pages(pages) => pages.len(),
        }
    }

    /// The directory of this name, if the node itself has it.
    pub(super) fn directory(&self, name: &str) -> Option<&Arc<Branch>> {
        let Self::Names(names) = self else {
            return None;
        };
        let found = names
            .binary_search_by(|(other, _)| (**other).cmp(name))
            .ok()?;
        match names.get(found)? {
            (_, Entry::Branch(branch)) => Some(branch),
            (_, Entry::Leaf(_)) => None,
        }
    }

    /// The page that ends at this name, if the node itself has it.
    pub(super) fn page(&self, last: &str) -> Option<&Arc<Branch>> {
        let Self::Pages(pages) = self else {
            return None;
        };
        let found = pages.binary_search_by(|page| page.last().cmp(last)).ok()?;
        pages.get(found).map(Page::branch)
    }

    /// Names below, in all its pages.
    pub(super) fn names(&self) -> u64 {
        match self {
            Self::Names(names) => names.len() as u64,
            Self::Pages(pages) => pages.iter().map(|page| page.names).sum(),
        }
    }

    /// Files and symlinks below, and the bytes of their content.
    pub(super) fn sums(&self) -> (u64, u64) {
        let add =
            |(files, bytes), (more_files, more_bytes)| (files + more_files, bytes + more_bytes);
        let of_branch = |branch: &Branch| (branch.files(), branch.bytes());
        match self {
            Self::Names(names) => names.iter().fold((0, 0), |sums, (_, entry)| {
                add(
                    sums,
                    match entry {
                        Entry::Leaf(leaf) => (1, leaf.bytes),
                        Entry::Branch(branch) => of_branch(branch),
                    },
                )
            }),
            Self::Pages(pages) => pages
                .iter()
                .fold((0, 0), |sums, page| add(sums, of_branch(&page.branch))),
        }
    }
}

impl Page {
    /// A page made of this node, which must not be empty.
    pub(super) fn of(node: Node) -> Option<Self> {
        let (last, height) = match &node {
            Node::Names(names) => (names.last()?.0.clone(), 0),
            Node::Pages(pages) => {
                let last = pages.last()?;
                (last.last.clone(), last.height + 1)
            }
        };
        let names = node.names();
        Some(Self {
            last,
            height,
            names,
            branch: Arc::new(Branch::of(node)),
        })
    }

    /// A page that the store has.
    pub(super) fn stored(last: Box<str>, height: u8, names: u64, branch: Arc<Branch>) -> Self {
        Self {
            last,
            height,
            names,
            branch,
        }
    }

    /// Its last name.
    pub(super) fn last(&self) -> &str {
        &self.last
    }

    /// How many pages lie below one another in it.
    pub(super) fn height(&self) -> u8 {
        self.height
    }

    /// Names in it.
    pub(super) fn names(&self) -> u64 {
        self.names
    }

    /// Its node, with digests and sums.
    pub(super) fn branch(&self) -> &Arc<Branch> {
        &self.branch
    }

    /// Whether it ends at a name that ends pages of its height: only the last of a directory need not.
    pub(super) fn is_closed(&self) -> bool {
        level(&self.last) > self.height
    }
}
