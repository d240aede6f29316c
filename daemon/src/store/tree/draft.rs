//! Editing a tree: directories are opened where they are touched, the rest stays shared.
//!
//! Owns: `Draft`. Never: whether an edit is allowed; the caller asks `find` first.

use std::collections::BTreeMap;
use std::sync::Arc;

use semaprax_protocol::LogicalPath;
use semaprax_protocol::submission::EntryKind;

use super::walk::joined;
use super::{Branch, Directory, Entry, Leaf, NodeSource, Tree};
use crate::store::{StoreError, StoreResult};

/// What a path is.
#[derive(Debug, Clone)]
pub enum Found {
    /// Nothing has this path.
    Nothing,
    /// A file or symlink.
    Leaf(Leaf),
    /// A directory.
    Directory(Arc<Branch>),
    /// Nothing can have this path: a parent is the file or symlink named here.
    Blocked(LogicalPath, EntryKind),
}

impl Found {
    /// Whether both are the same content, or both nothing.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing, Self::Nothing) => true,
            (Self::Leaf(a), Self::Leaf(b)) => a.same_content(b),
            (Self::Directory(a), Self::Directory(b)) => a.content() == b.content(),
            (Self::Blocked(a, a_kind), Self::Blocked(b, b_kind)) => a == b && a_kind == b_kind,
            _ => false,
        }
    }

    /// The leaf, if it is one.
    pub fn leaf(&self) -> Option<Leaf> {
        match self {
            Self::Leaf(leaf) => Some(*leaf),
            _ => None,
        }
    }
}

#[derive(Debug)]
enum Slot {
    Leaf(Leaf),
    Closed(Arc<Branch>),
    Open(OpenDirectory),
}

#[derive(Debug, Default)]
struct OpenDirectory {
    entries: BTreeMap<String, Slot>,
}

/// A tree being edited.
pub struct Draft<'source> {
    root: OpenDirectory,
    source: &'source dyn NodeSource,
}

impl OpenDirectory {
    fn of(directory: &Directory) -> Self {
        let slot = |entry: &Entry| match entry {
            Entry::Leaf(leaf) => Slot::Leaf(*leaf),
            Entry::Branch(branch) => Slot::Closed(Arc::clone(branch)),
        };
        let entries = directory.entries();
        Self {
            entries: entries
                .iter()
                .map(|(name, entry)| (name.to_string(), slot(entry)))
                .collect(),
        }
    }

    /// The open directory at `segment`: opened when closed; `None` when there is none.
    fn step(&mut self, segment: &str, source: &dyn NodeSource) -> StoreResult<Option<&mut Self>> {
        let Some(slot) = self.entries.get_mut(segment) else {
            return Ok(None);
        };
        if let Slot::Closed(branch) = slot {
            let opened = Self::of(branch.open(source)?);
            *slot = Slot::Open(opened);
        }
        match slot {
            Slot::Open(directory) => Ok(Some(directory)),
            Slot::Leaf(_) | Slot::Closed(_) => Ok(None),
        }
    }

    /// The directory sealed; `None` when nothing is in it.
    fn seal(self) -> Option<Arc<Branch>> {
        let entries = self.entries.into_iter().filter_map(|(name, slot)| {
            let entry = match slot {
                Slot::Leaf(leaf) => Entry::Leaf(leaf),
                Slot::Closed(branch) => Entry::Branch(branch),
                Slot::Open(directory) => Entry::Branch(directory.seal()?),
            };
            Some((name.into_boxed_str(), entry))
        });
        let entries: Vec<_> = entries.collect();
        (!entries.is_empty()).then(|| Arc::new(Branch::of(Directory::from_sorted(entries))))
    }

    fn is_empty(&self) -> bool {
        self.entries
            .values()
            .all(|slot| matches!(slot, Slot::Open(directory) if directory.is_empty()))
    }
}

impl<'source> Draft<'source> {
    /// Starts from `tree`.
    pub fn of(tree: &Tree, source: &'source dyn NodeSource) -> StoreResult<Self> {
        Ok(Self {
            root: OpenDirectory::of(tree.root().open(source)?),
            source,
        })
    }

    /// What `path` is now. A directory in which nothing is left is nothing.
    pub fn find(&mut self, path: &LogicalPath) -> StoreResult<Found> {
        let mut here = &mut self.root;
        let mut walked = String::new();
        let mut segments = path.segments().peekable();
        while let Some(segment) = segments.next() {
            if !walked.is_empty() {
                walked.push('/');
            }
            walked.push_str(segment);
            let is_last = segments.peek().is_none();
            match here.entries.get(segment) {
                None => return Ok(Found::Nothing),
                Some(Slot::Leaf(leaf)) if is_last => return Ok(Found::Leaf(*leaf)),
                Some(Slot::Leaf(leaf)) => return Ok(Found::Blocked(joined(&walked)?, leaf.kind)),
                Some(Slot::Closed(branch)) if is_last => {
                    return Ok(Found::Directory(Arc::clone(branch)));
                }
                Some(Slot::Open(directory)) if directory.is_empty() => return Ok(Found::Nothing),
                Some(Slot::Closed(_) | Slot::Open(_)) => {}
            }
            match here.step(segment, self.source)? {
                Some(directory) => here = directory,
                None => return Ok(Found::Nothing),
            }
        }
        Ok(Found::Directory(here.snapshot()))
    }

    /// Puts a leaf at `path`, making directories on the way. The path must be nothing or a leaf, and
    /// no parent a leaf.
    pub fn set(&mut self, path: &LogicalPath, leaf: Leaf) -> StoreResult<()> {
        let source = self.source;
        let directory = self.parent(path)?;
        if directory
            .step(path.name(), source)?
            .is_some_and(|found| !found.is_empty())
        {
            return Err(StoreError::damaged(format!("`{path}` is a directory")));
        }
        directory
            .entries
            .insert(path.name().to_owned(), Slot::Leaf(leaf));
        Ok(())
    }

    /// Puts a whole directory at `path`, which must be nothing.
    pub fn set_directory(&mut self, path: &LogicalPath, branch: Arc<Branch>) -> StoreResult<()> {
        self.parent(path)?
            .entries
            .insert(path.name().to_owned(), Slot::Closed(branch));
        Ok(())
    }

    /// Takes away whatever is at `path`.
    pub fn remove(&mut self, path: &LogicalPath) -> StoreResult<()> {
        let mut here = &mut self.root;
        if let Some(parent) = path.parent() {
            for segment in parent.segments() {
                match here.step(segment, self.source)? {
                    Some(directory) => here = directory,
                    None => return Ok(()),
                }
            }
        }
        here.entries.remove(path.name());
        Ok(())
    }

    fn parent(&mut self, path: &LogicalPath) -> StoreResult<&mut OpenDirectory> {
        let mut here = &mut self.root;
        let Some(parent) = path.parent() else {
            return Ok(here);
        };
        for segment in parent.segments() {
            if !here.entries.contains_key(segment) {
                here.entries
                    .insert(segment.to_owned(), Slot::Open(OpenDirectory::default()));
            }
            here = here.step(segment, self.source)?.ok_or_else(|| {
                StoreError::damaged(format!("`{segment}` in `{path}` is no directory"))
            })?;
        }
        Ok(here)
    }

    /// The tree as it is now.
    pub fn seal(self) -> Tree {
        let root = self
            .root
            .seal()
            .unwrap_or_else(|| Arc::new(Branch::of(Directory::default())));
        Tree::of(root)
    }
}

impl OpenDirectory {
    /// The directory as it is now, while it goes on being edited.
    fn snapshot(&self) -> Arc<Branch> {
        let entry = |slot: &Slot| match slot {
            Slot::Leaf(leaf) => Some(Entry::Leaf(*leaf)),
            Slot::Closed(branch) => Some(Entry::Branch(Arc::clone(branch))),
            Slot::Open(directory) if directory.is_empty() => None,
            Slot::Open(directory) => Some(Entry::Branch(directory.snapshot())),
        };
        let entries = self.entries.iter();
        let entries = entries.filter_map(|(name, slot)| Some((name.as_str().into(), entry(slot)?)));
        Arc::new(Branch::of(Directory::from_sorted(entries.collect())))
    }
}
