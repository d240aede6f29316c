//! Spare trees: whole copies of a recent generation in `staging/`, kept so that a publication patches one
//! instead of making its tree anew.
//!
//! Owns: `Spare`, and what is known of its directories (`Seen`). `patch.rs` turns one into another tree,
//! `inspect.rs` finds out whether it still is what it should be, `pool.rs` has those that wait.
//! Never: which generation may become one; that is `collect.rs`.
//!
//! Keeps invariants 5 and 7: a spare is of the running daemon, and nobody else ever had it.

mod inspect;
mod patch;
mod pool;

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::Revision;

pub use inspect::{build, refresh};
pub use patch::patch;
pub use pool::{Chore, Pool, SPARES};

use super::layout::GenerationLayout;
use super::tree::Tree;
use super::{Store, trash};
use crate::world::Metadata;

/// What is ACTIVE: the tree, and where it lies. Spares are linked from it.
#[derive(Debug, Clone)]
pub struct Current {
    /// The tree.
    pub tree: Tree,
    /// Where it lies.
    pub files: Utf8PathBuf,
}

/// A whole tree in `staging/` that nobody reads.
#[derive(Debug)]
pub struct Spare {
    place: GenerationLayout,
    tree: Tree,
    seen: Seen,
}

impl Spare {
    /// The directory at `place`, which holds `tree`.
    pub fn new(place: GenerationLayout, tree: Tree, seen: Seen) -> Self {
        Self { place, tree, seen }
    }

    /// The tree that lies there.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Where it lies, and what is known of its directories: it is a candidate from now on.
    pub fn into_parts(self) -> (GenerationLayout, Seen) {
        (self.place, self.seen)
    }

    fn files(&self) -> Utf8PathBuf {
        self.place.files()
    }

    /// Takes it away.
    pub fn discard(self, store: &Store) {
        if let Err(error) = trash::discard(&store.world, &store.layout, self.place.directory()) {
            // Recovery clears what stays behind.
            tracing::warn!(%error, "a spare tree could not be taken away");
        }
    }
}

/// The tree of a publication of this daemon, as long as it may become a spare.
#[derive(Debug)]
pub struct Standing {
    /// Its revision.
    pub revision: Revision,
    /// What lies there.
    pub tree: Tree,
    /// What is known of its directories.
    pub seen: Seen,
}

/// The name of a new spare in `staging/`: it can be told from what a crash left there.
pub(super) fn new_place(store: &Store) -> GenerationLayout {
    let name = format!("spare-{}", store.world.entropy.uuid());
    GenerationLayout::at(store.layout.staging().join(name))
}

/// A directory as it was when its names were last compared with the tree. Any change of its names or of
/// its mode changes the second half, which nobody can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fingerprint {
    inode: (u64, u64),
    changed: i64,
}

impl From<Metadata> for Fingerprint {
    fn from(found: Metadata) -> Self {
        Self {
            inode: found.inode,
            changed: found.changed,
        }
    }
}

/// What is known of the directories of a tree on disk, by path; the root is the empty text.
#[derive(Debug, Default)]
pub struct Seen {
    known: BTreeMap<String, Fingerprint>,
    /// Those that must be looked through; `None` while no directory has been.
    unknown: Option<BTreeSet<String>>,
}

impl Seen {
    /// The names of a directory change, or it is made.
    fn touch(&mut self, directory: &str) {
        self.known.remove(directory);
        if let Some(unknown) = &mut self.unknown {
            unknown.insert(directory.to_owned());
        }
    }

    /// A directory goes.
    fn vanish(&mut self, directory: &str) {
        self.known.remove(directory);
        if let Some(unknown) = &mut self.unknown {
            unknown.remove(directory);
        }
    }
}

/// The place of a directory of a tree.
fn place_of(files: &Utf8Path, directory: &str) -> Utf8PathBuf {
    if directory.is_empty() {
        files.to_owned()
    } else {
        files.join(directory)
    }
}
