//! Editing a tree: directories are opened where they are touched, the rest stays shared.
//!
//! Owns: `Draft`. Never: whether an edit is allowed; the caller asks `find` first.

use std::collections::BTreeMap;
use std::sync::Arc;

use semaprax_protocol::LogicalPath;
use semaprax_protocol::submission::EntryKind;

use super::build::{Edit, changed};
use super::walk::joined;
use super::{Branch, Entry, Leaf, NodeSource, Tree};
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
    /// The name is taken away.
    Gone,
    Leaf(Leaf),
    Closed(Arc<Branch>),
    Open(OpenDirectory),
}

/// A directory being edited: what it was, and what was touched of it.
#[derive(Debug, Default)]
struct OpenDirectory {
    base: Option<Arc<Branch>>,
    slots: BTreeMap<String, Slot>,
}

/// A tree being edited.
pub struct Draft<'source> {
    root: OpenDirectory,
    source: &'source dyn NodeSource,
}

impl OpenDirectory {
    fn of(base: &Arc<Branch>) -> Self {
        Self {
            base: Some(Arc::clone(base)),
            slots: BTreeMap::new(),
        }
    }

    /// What `base` has under this name.
    fn before(&self, name: &str, source: &dyn NodeSource) -> StoreResult<Option<&Entry>> {
        match &self.base {
            Some(base) => base.get(name, source),
            None => Ok(None),
        }
    }

    /// The open directory at `segment`: opened when closed; `None` when there is none.
    fn step(&mut self, segment: &str, source: &dyn NodeSource) -> StoreResult<Option<&mut Self>> {
        if !self.slots.contains_key(segment) {
            let Some(Entry::Branch(branch)) = self.before(segment, source)? else {
                return Ok(None);
            };
            let opened = Slot::Open(Self::of(branch));
            self.slots.insert(segment.to_owned(), opened);
        }
        let Some(slot) = self.slots.get_mut(segment) else {
            return Ok(None);
        };
        if let Slot::Closed(branch) = slot {
            *slot = Slot::Open(Self::of(branch));
        }
        match slot {
            Slot::Open(directory) => Ok(Some(directory)),
            Slot::Gone | Slot::Leaf(_) | Slot::Closed(_) => Ok(None),
        }
    }

    /// The directory as it is now; `None` when nothing is in it.
    fn branch(&self, source: &dyn NodeSource) -> StoreResult<Option<Arc<Branch>>> {
        let mut edits: Vec<Edit> = Vec::with_capacity(self.slots.len());
        for (name, slot) in &self.slots {
            let entry = match slot {
                Slot::Gone => None,
                Slot::Leaf(leaf) => Some(Entry::Leaf(*leaf)),
                Slot::Closed(branch) => Some(Entry::Branch(Arc::clone(branch))),
                Slot::Open(directory) => directory.branch(source)?.map(Entry::Branch),
            };
            edits.push((name.as_str().into(), entry));
        }
        changed(self.base.as_ref(), edits, source)
    }

    fn is_empty(&self, source: &dyn NodeSource) -> StoreResult<bool> {
        let mut left = match &self.base {
            Some(base) => base.names(source)?,
            None => 0,
        };
        for (name, slot) in &self.slots {
            let is_nothing = match slot {
                Slot::Gone => true,
                Slot::Leaf(_) | Slot::Closed(_) => false,
                Slot::Open(directory) => directory.is_empty(source)?,
            };
            if !is_nothing {
                return Ok(false);
            }
            if self.before(name, source)?.is_some() {
                left -= 1;
            }
        }
        Ok(left == 0)
    }
}

impl<'source> Draft<'source> {
    /// Starts from `tree`.
    pub fn of(tree: &Tree, source: &'source dyn NodeSource) -> Self {
        Self {
            root: OpenDirectory::of(tree.root()),
            source,
        }
    }

    /// What `path` is now. A directory in which nothing is left is nothing.
    pub fn find(&mut self, path: &LogicalPath) -> StoreResult<Found> {
        let source = self.source;
        let mut here = &mut self.root;
        let mut walked = String::new();
        let mut segments = path.segments().peekable();
        while let Some(segment) = segments.next() {
            if !walked.is_empty() {
                walked.push('/');
            }
            walked.push_str(segment);
            let is_last = segments.peek().is_none();
            let slot = here.slots.get(segment);
            let leaf = match slot {
                Some(Slot::Gone) => return Ok(Found::Nothing),
                Some(Slot::Leaf(leaf)) => Some(*leaf),
                Some(Slot::Closed(branch)) if is_last => {
                    return Ok(Found::Directory(Arc::clone(branch)));
                }
                Some(Slot::Open(directory)) if directory.is_empty(source)? => {
                    return Ok(Found::Nothing);
                }
                Some(Slot::Closed(_) | Slot::Open(_)) => None,
                None => match here.before(segment, source)? {
                    None => return Ok(Found::Nothing),
                    Some(Entry::Leaf(leaf)) => Some(*leaf),
                    Some(Entry::Branch(branch)) if is_last => {
                        return Ok(Found::Directory(Arc::clone(branch)));
                    }
                    Some(Entry::Branch(_)) => None,
                },
            };
            match leaf {
                Some(leaf) if is_last => return Ok(Found::Leaf(leaf)),
                Some(leaf) => return Ok(Found::Blocked(joined(&walked)?, leaf.kind)),
                None => {}
            }
            match here.step(segment, source)? {
                Some(directory) => here = directory,
                None => return Ok(Found::Nothing),
            }
        }
        here.branch(source)
            .map(|found| found.map_or(Found::Nothing, Found::Directory))
    }

    /// Puts a leaf at `path`, making directories on the way. The path must be nothing or a leaf, and
    /// no parent a leaf.
    pub fn set(&mut self, path: &LogicalPath, leaf: Leaf) -> StoreResult<()> {
        let source = self.source;
        let directory = self.parent(path)?;
        if let Some(found) = directory.step(path.name(), source)?
            && !found.is_empty(source)?
        {
            return Err(StoreError::damaged(format!("`{path}` is a directory")));
        }
        directory
            .slots
            .insert(path.name().to_owned(), Slot::Leaf(leaf));
        Ok(())
    }

    /// Puts a whole directory at `path`, which must be nothing.
    pub fn set_directory(&mut self, path: &LogicalPath, branch: Arc<Branch>) -> StoreResult<()> {
        self.parent(path)?
            .slots
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
        here.slots.insert(path.name().to_owned(), Slot::Gone);
        Ok(())
    }

    fn parent(&mut self, path: &LogicalPath) -> StoreResult<&mut OpenDirectory> {
        let mut here = &mut self.root;
        let Some(parent) = path.parent() else {
            return Ok(here);
        };
        for segment in parent.segments() {
            let is_free = match here.slots.get(segment) {
                Some(slot) => matches!(slot, Slot::Gone),
                None => here.before(segment, self.source)?.is_none(),
            };
            if is_free {
                let made = Slot::Open(OpenDirectory::default());
                here.slots.insert(segment.to_owned(), made);
            }
            here = here.step(segment, self.source)?.ok_or_else(|| {
                StoreError::damaged(format!("`{segment}` in `{path}` is no directory"))
            })?;
        }
        Ok(here)
    }

    /// The tree as it is now.
    pub fn seal(self) -> StoreResult<Tree> {
        let root = self.root.branch(self.source)?;
        Ok(root.map_or_else(Tree::empty, Tree::of))
    }
}
