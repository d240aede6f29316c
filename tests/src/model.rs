//! The reference model: a map of paths for each publication, and rules simple enough to be read as
//! the contract.
//!
//! Owns: what a list of changes does to a map, and what the model can say of a stale submission: where
//! it cannot decide (lines of one file changed on both sides), it says so instead of guessing.
//! Never: a Merkle tree, a digest, or a disk.

use std::collections::{BTreeMap, BTreeSet};

use semaprax_protocol::Code;
use semaprax_protocol::submission::{Change, EntryKind, FileMode, OnStale};

/// What a tree holds: path -> kind and bytes (of a symlink, its target).
pub type Content = BTreeMap<String, (EntryKind, Vec<u8>)>;

/// What a path is in a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Nothing.
    Nothing,
    /// A file or symlink.
    Leaf(EntryKind, Vec<u8>),
    /// A directory, with all below it.
    Directory(Content),
    /// Nothing can be here: this leaf is in the way.
    Blocked(String),
}

/// What the model says of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It gives this content.
    Becomes(Content),
    /// It is refused with this code.
    Refused(Code),
    /// It is merged or refused: the model cannot tell. When it is merged, paths that only one side
    /// changed are as that side has them.
    Undecided(Content, BTreeSet<String>),
}

/// What is at `path`.
pub fn place(content: &Content, path: &str) -> Place {
    if let Some((kind, bytes)) = content.get(path) {
        return Place::Leaf(*kind, bytes.clone());
    }
    for (end, _) in path.match_indices('/') {
        if content.contains_key(&path[..end]) {
            return Place::Blocked(path[..end].to_owned());
        }
    }
    let below: Content = content
        .iter()
        .filter(|(other, _)| is_below(other, path))
        .map(|(other, leaf)| (other.clone(), leaf.clone()))
        .collect();
    if below.is_empty() {
        Place::Nothing
    } else {
        Place::Directory(below)
    }
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// Applies `changes` in order; the first rule that is broken gives the code.
pub fn apply(base: &Content, changes: &[Change]) -> Result<Content, Code> {
    check_contradictions(changes)?;
    let mut content = base.clone();
    for change in changes {
        apply_one(&mut content, change)?;
    }
    Ok(content)
}

fn check_contradictions(changes: &[Change]) -> Result<(), Code> {
    for change in changes {
        if let Change::Move { from, to, .. } = change
            && is_below(to, from)
        {
            return Err(Code::InvalidSubmission);
        }
    }
    let mut settled = BTreeSet::new();
    for change in changes {
        match change {
            Change::Put { path, .. }
            | Change::Symlink { path, .. }
            | Change::Delete { path, .. } => {
                if !settled.insert(path.as_str()) {
                    return Err(Code::InvalidSubmission);
                }
            }
            Change::Move { from, to, .. } => {
                settled.remove(from.as_str());
                settled.remove(to.as_str());
            }
            Change::Edit { .. } | Change::Chmod { .. } => {}
        }
    }
    Ok(())
}

fn kind_of(mode: FileMode) -> EntryKind {
    match mode {
        FileMode::File => EntryKind::File,
        FileMode::Executable => EntryKind::Executable,
    }
}

fn apply_one(content: &mut Content, change: &Change) -> Result<(), Code> {
    match change {
        Change::Put {
            path,
            content: text,
            mode,
            ..
        } => {
            let kind = match place(content, path) {
                Place::Directory(_) | Place::Blocked(_) => return Err(Code::PathCollision),
                Place::Leaf(EntryKind::Executable, _) => EntryKind::Executable,
                Place::Leaf(..) | Place::Nothing => EntryKind::File,
            };
            let bytes = text.clone().unwrap_or_default().into_bytes();
            content.insert(path.clone(), (mode.map_or(kind, kind_of), bytes));
        }
        Change::Symlink { path, target, .. } => {
            if matches!(
                place(content, path),
                Place::Directory(_) | Place::Blocked(_)
            ) {
                return Err(Code::PathCollision);
            }
            content.insert(
                path.clone(),
                (EntryKind::Symlink, target.clone().into_bytes()),
            );
        }
        Change::Delete {
            path, recursive, ..
        } => match place(content, path) {
            Place::Nothing => return Err(Code::NotFound),
            Place::Blocked(_) => return Err(Code::PathCollision),
            Place::Directory(_) if !recursive => return Err(Code::InvalidSubmission),
            Place::Directory(_) | Place::Leaf(..) => remove(content, path),
        },
        Change::Move {
            from,
            to,
            recursive,
            ..
        } => {
            let what = place(content, from);
            match place(content, to) {
                Place::Nothing => {}
                Place::Leaf(..) | Place::Directory(_) => return Err(Code::AlreadyExists),
                Place::Blocked(_) => return Err(Code::PathCollision),
            }
            match what {
                Place::Nothing => return Err(Code::NotFound),
                Place::Blocked(_) => return Err(Code::PathCollision),
                Place::Directory(_) if !recursive => return Err(Code::InvalidSubmission),
                Place::Leaf(kind, bytes) => {
                    content.remove(from);
                    content.insert(to.clone(), (kind, bytes));
                }
                Place::Directory(below) => {
                    remove(content, from);
                    for (path, leaf) in below {
                        content.insert(format!("{to}{}", &path[from.len()..]), leaf);
                    }
                }
            }
        }
        Change::Chmod { path, mode, .. } => match place(content, path) {
            Place::Nothing => return Err(Code::NotFound),
            Place::Leaf(EntryKind::Symlink, _) | Place::Directory(_) | Place::Blocked(_) => {
                return Err(Code::PathCollision);
            }
            Place::Leaf(_, bytes) => {
                content.insert(path.clone(), (kind_of(*mode), bytes));
            }
        },
        Change::Edit { path, edits, .. } => match place(content, path) {
            Place::Nothing => return Err(Code::NotFound),
            Place::Leaf(EntryKind::Symlink, _) | Place::Directory(_) | Place::Blocked(_) => {
                return Err(Code::PathCollision);
            }
            Place::Leaf(kind, bytes) => {
                let mut text = String::from_utf8(bytes).expect("the model edits text only");
                for edit in edits {
                    match text.matches(&edit.old).count() {
                        0 => return Err(Code::EditNotFound),
                        1 => text = text.replace(&edit.old, &edit.new),
                        _ => return Err(Code::EditNotUnique),
                    }
                }
                content.insert(path.clone(), (kind, text.into_bytes()));
            }
        },
    }
    Ok(())
}

fn remove(content: &mut Content, path: &str) {
    content.retain(|other, _| other != path && !is_below(other, path));
}

/// The paths that the changes name.
pub fn touched(changes: &[Change]) -> BTreeSet<String> {
    let mut touched = BTreeSet::new();
    for change in changes {
        match change {
            Change::Put { path, .. }
            | Change::Edit { path, .. }
            | Change::Delete { path, .. }
            | Change::Symlink { path, .. }
            | Change::Chmod { path, .. } => drop(touched.insert(path.clone())),
            Change::Move { from, to, .. } => {
                touched.insert(from.clone());
                touched.insert(to.clone());
            }
        }
    }
    touched
}

/// The paths that differ.
pub fn difference(before: &Content, after: &Content) -> BTreeSet<String> {
    before
        .keys()
        .chain(after.keys())
        .filter(|path| before.get(*path) != after.get(*path))
        .cloned()
        .collect()
}

/// What becomes of `changes` made on `base` when `tip` is ACTIVE.
pub fn submit(base: &Content, tip: &Content, changes: &[Change], on_stale: OnStale) -> Verdict {
    let theirs = match apply(base, changes) {
        Ok(theirs) => theirs,
        Err(code) => return Verdict::Refused(code),
    };
    if base == tip {
        return Verdict::Becomes(theirs);
    }
    let named = touched(changes);
    match on_stale {
        OnStale::Reject => Verdict::Refused(Code::StaleBase),
        OnStale::Rebase => {
            if named
                .iter()
                .any(|path| place(base, path) != place(tip, path))
            {
                return Verdict::Refused(Code::StaleBase);
            }
            combine(base, tip, &theirs)
        }
        OnStale::Merge => {
            // A directory named as a whole that is not the same on both sides.
            let swept = named.iter().any(|path| {
                let (was, is) = (place(base, path), place(tip, path));
                let is_directory =
                    matches!(was, Place::Directory(_)) || matches!(is, Place::Directory(_));
                is_directory && was != is
            });
            match combine(base, tip, &theirs) {
                Verdict::Becomes(content) if swept => Verdict::Undecided(content, BTreeSet::new()),
                other => other,
            }
        }
    }
}

/// Puts what leads from `base` to `theirs` on top of `tip`.
pub fn combine(base: &Content, tip: &Content, theirs: &Content) -> Verdict {
    let ours_changed = difference(base, tip);
    let theirs_changed = difference(base, theirs);
    let meets =
        |one: &String, other: &String| one == other || is_below(one, other) || is_below(other, one);
    let doubtful: BTreeSet<String> = theirs_changed
        .iter()
        .filter(|path| ours_changed.iter().any(|other| meets(path, other)))
        .cloned()
        .collect();
    let mut content = tip.clone();
    for path in theirs_changed.difference(&doubtful) {
        match theirs.get(path) {
            Some(leaf) => drop(content.insert(path.clone(), leaf.clone())),
            None => drop(content.remove(path)),
        }
    }
    if doubtful.is_empty() {
        Verdict::Becomes(content)
    } else {
        Verdict::Undecided(content, doubtful)
    }
}
