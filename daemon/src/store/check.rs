//! Checking a tree on disk against the store: names, kinds, modes, sizes, times, and bytes.
//!
//! Owns: `check_tree`. Never: mends anything; `repair.rs` does.
//!
//! Keeps invariant 5: a tree of another boot is checked before anyone reads it or links from it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{Code, Diagnostic, LogicalPath, Refusal};

use super::checkout::{Made, Modes, time_of};
use super::objects::digest_of;
use super::tree::{Leaf, Tree, for_each_leaf};
use super::{Store, StoreError, StoreResult};
use crate::world::{Disk, EntryType, WorldResult};

/// How closely a tree is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Names, kinds, modes, sizes, times.
    Shape,
    /// And every byte.
    Content,
}

/// What is wrong at a path of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is there.
    Missing,
    /// Something is there that the generation does not have.
    Foreign,
    /// What is there is not what the generation has.
    Wrong(String),
    /// A directory that the generation has is missing or has the wrong mode.
    Directory(String),
}

/// One damaged path. The root itself is the empty text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFault {
    /// The path, as text: a foreign name may be no logical path.
    pub path: String,
    /// What the generation has there.
    pub leaf: Option<Leaf>,
    /// What is wrong.
    pub fault: Fault,
}

impl Fault {
    /// In words.
    pub fn detail(&self) -> String {
        match self {
            Self::Missing => "it is missing".to_owned(),
            Self::Foreign => "the generation has no such path".to_owned(),
            Self::Wrong(what) | Self::Directory(what) => what.clone(),
        }
    }
}

struct Expected {
    leaves: BTreeMap<LogicalPath, Leaf>,
    directories: BTreeSet<String>,
}

fn expected(store: &Store, tree: &Tree) -> StoreResult<Expected> {
    let mut leaves = BTreeMap::new();
    let mut directories = BTreeSet::from([String::new()]);
    for_each_leaf(tree.root(), "", &store.database, &mut |path, leaf| {
        let mut parent = path.parent();
        while let Some(directory) = parent {
            parent = directory.parent();
            if !directories.insert(directory.as_str().to_owned()) {
                break;
            }
        }
        leaves.insert(path, leaf);
        Ok(true)
    })?;
    Ok(Expected {
        leaves,
        directories,
    })
}

/// What differs between `tree` and the sealed directory at `files`, in path order; nothing when all
/// is right.
pub fn check_tree(
    store: &Store,
    tree: &Tree,
    files: &Utf8Path,
    depth: Depth,
) -> StoreResult<Vec<TreeFault>> {
    let expected = expected(store, tree)?;
    let mut times = BTreeMap::new();
    for leaf in expected.leaves.values() {
        if let Entry::Vacant(time) = times.entry(leaf.stamp) {
            time.insert(time_of(store, leaf.stamp)?);
        }
    }
    let disk = &*store.world.disk;
    let mut faults = foreign_and_directories(disk, files, &expected)?;
    let leaves: Vec<_> = expected.leaves.iter().collect();
    let wrong: WorldResult<Vec<Option<TreeFault>>> = leaves
        .par_iter()
        .map(|(path, leaf)| {
            let time = times.get(&leaf.stamp).copied();
            let fault = check_leaf(disk, &files.join(path.as_str()), leaf, time, depth)?;
            Ok(fault.map(|fault| TreeFault {
                path: path.as_str().to_owned(),
                leaf: Some(**leaf),
                fault,
            }))
        })
        .collect();
    faults.extend(wrong?.into_iter().flatten());
    faults.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(faults)
}

fn foreign_and_directories(
    disk: &dyn Disk,
    files: &Utf8Path,
    expected: &Expected,
) -> StoreResult<Vec<TreeFault>> {
    let mut faults = Vec::new();
    for directory in &expected.directories {
        let place = join(files, directory);
        let fault = |fault| TreeFault {
            path: directory.clone(),
            leaf: None,
            fault,
        };
        match disk.metadata(&place)? {
            Some(found) if found.kind == EntryType::Directory => {
                if found.mode != Modes::SEALED.directory {
                    let what = format!("the directory has mode {:o}", found.mode);
                    faults.push(fault(Fault::Directory(what)));
                }
            }
            Some(_) => {
                faults.push(fault(Fault::Directory("it is no directory".to_owned())));
                continue;
            }
            None => {
                faults.push(fault(Fault::Directory(
                    "the directory is missing".to_owned(),
                )));
                continue;
            }
        }
        for (name, _) in disk.read_directory(&place)? {
            let path = if directory.is_empty() {
                name
            } else {
                format!("{directory}/{name}")
            };
            let is_known =
                expected.directories.contains(&path) || expected.leaves.contains_key(path.as_str());
            if !is_known {
                faults.push(TreeFault {
                    path,
                    leaf: None,
                    fault: Fault::Foreign,
                });
            }
        }
    }
    Ok(faults)
}

fn join(files: &Utf8Path, directory: &str) -> Utf8PathBuf {
    if directory.is_empty() {
        files.to_owned()
    } else {
        files.join(directory)
    }
}

/// What is wrong with one leaf. `time` is the time it must carry, where that is known already.
pub fn check_leaf(
    disk: &dyn Disk,
    place: &Utf8Path,
    leaf: &Leaf,
    time: Option<i64>,
    depth: Depth,
) -> WorldResult<Option<Fault>> {
    let Some(found) = disk.metadata(place)? else {
        return Ok(Some(Fault::Missing));
    };
    let wrong = |what: String| Ok(Some(Fault::Wrong(what)));
    let kind = if leaf.kind == EntryKind::Symlink {
        EntryType::Symlink
    } else {
        EntryType::File
    };
    if found.kind != kind {
        return wrong(format!("it is a {:?}, not a {:?}", found.kind, kind).to_lowercase());
    }
    if kind == EntryType::File && found.mode != Modes::SEALED.of(leaf.kind) {
        return wrong(format!("it has mode {:o}", found.mode));
    }
    if found.len != leaf.bytes {
        return wrong(format!("it has {} bytes, not {}", found.len, leaf.bytes));
    }
    if time.is_some_and(|time| time != found.mtime) {
        return wrong("it carries another time".to_owned());
    }
    if depth == Depth::Content || kind == EntryType::Symlink {
        let content = if kind == EntryType::Symlink {
            disk.read_link(place)?
        } else {
            disk.read(place)?
        };
        if digest_of(&content) != leaf.blob {
            return wrong("its content does not match its digest".to_owned());
        }
    }
    Ok(None)
}

/// Reads back what was written anew of a tree just made, and counts the whole: the links are covered by
/// the tree they came from.
pub fn check_made(store: &Store, tree: &Tree, made: &Made, files: &Utf8Path) -> StoreResult<()> {
    let (expected, found) = (tree.root().files(), made.linked + made.copied.len() as u64);
    if found != expected {
        return Err(StoreError::damaged(format!(
            "a tree was made with {found} files, not {expected}"
        )));
    }
    let disk = &*store.world.disk;
    made.copied.par_iter().try_for_each(|(path, leaf)| {
        match check_leaf(disk, &files.join(path.as_str()), leaf, None, Depth::Content)? {
            None => Ok(()),
            Some(fault) => {
                let message = format!("`{path}` read back is wrong: {}", fault.detail());
                Err(Refusal::from(Diagnostic::new(Code::Io, message).at(path.as_str())).into())
            }
        }
    })
}
