//! Making a tree on disk: hard links from another tree where a path is the same, copies of blobs for
//! the rest.
//!
//! Owns: the linking rules (same path, same stamp, same mode; only from tree to tree, never from the
//! store), modes, times, sealing. Never: which tree is made, or when.
//!
//! Keeps invariants 5, 7, 9 and 10: what is made here is a projection of the store.

use std::collections::BTreeMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;
use semaprax_protocol::LogicalPath;
use semaprax_protocol::submission::EntryKind;

use super::objects::{FreshBlobs, PackedBlob};
use super::tree::{Branch, Entry, ListedLeaf, Tree, UNSTAMPED};
use super::{Store, StoreError, StoreResult};
use crate::world::{Disk, WorldError, WorldResult};

/// Mode of a sealed directory.
pub const SEALED_DIRECTORY: u32 = 0o555;
/// Links made by one task, so that threads do not fight over small pieces.
const LINKS_AT_ONCE: usize = 128;
/// Files written by one task: below that, waking another thread takes longer.
const COPIES_BY_ONE: usize = 16;
/// Blobs held in memory at once.
const COPIES_AT_ONCE: usize = 128;

/// The permission bits of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes {
    /// Of a file.
    pub file: u32,
    /// Of an executable.
    pub executable: u32,
    /// Of a directory; while the tree is made it is writable.
    pub directory: u32,
}

impl Modes {
    /// A generation: nobody writes to it.
    pub const SEALED: Self = Self {
        file: 0o444,
        executable: 0o555,
        directory: SEALED_DIRECTORY,
    };
    /// An export: its user works in it.
    pub const WRITABLE: Self = Self {
        file: 0o644,
        executable: 0o755,
        directory: 0o755,
    };

    /// The bits of a leaf; a symlink has none of its own.
    pub fn of(self, kind: EntryKind) -> u32 {
        match kind {
            EntryKind::Executable => self.executable,
            EntryKind::File | EntryKind::Symlink => self.file,
        }
    }
}

/// A materialized tree to link from: what has the same content and stamp there. It was verified in this
/// boot.
#[derive(Debug, Clone, Copy)]
pub struct LinkSource<'tree> {
    /// What it is.
    pub tree: &'tree Tree,
    /// Where it is.
    pub files: &'tree Utf8Path,
}

/// What was made.
#[derive(Debug, Default)]
pub struct Made {
    /// Leaves written anew, in path order.
    pub copied: Vec<ListedLeaf>,
    /// Leaves linked from the source, or left where they were.
    pub linked: u64,
}

impl Made {
    /// What was made of these copies, and of so many links.
    pub(super) fn of(mut copied: Vec<ListedLeaf>, linked: u64) -> Self {
        copied.sort_by(|a, b| a.0.cmp(&b.0));
        Self { copied, linked }
    }
}

/// Asked now and then whether to go on. Who is asked may wait first, so that something more urgent is
/// done; work that asks runs on one thread.
pub type Pace<'pace> = Option<&'pace dyn Fn() -> bool>;

fn goes_on(pace: Pace<'_>) -> StoreResult<()> {
    match pace {
        Some(pace) if !pace() => Err(StoreError::Interrupted),
        _ => Ok(()),
    }
}

#[derive(Default)]
struct Plan {
    directories: Vec<String>,
    links: Vec<ListedLeaf>,
    copies: Vec<ListedLeaf>,
}

/// Makes `tree` at `files`, which must not exist. Blobs come from `fresh` or from the store.
pub fn materialize(
    store: &Store,
    tree: &Tree,
    fresh: &FreshBlobs,
    source: Option<LinkSource<'_>>,
    files: &Utf8Path,
    modes: Modes,
) -> StoreResult<Made> {
    materialize_at(store, tree, fresh, source, files, modes, None)
}

/// The same, at a pace.
pub fn materialize_at(
    store: &Store,
    tree: &Tree,
    fresh: &FreshBlobs,
    source: Option<LinkSource<'_>>,
    files: &Utf8Path,
    modes: Modes,
    pace: Pace<'_>,
) -> StoreResult<Made> {
    let mut plan = Plan::default();
    plan_branch(
        store,
        tree.root(),
        source.map(|source| source.tree.root().as_ref()),
        "",
        &mut plan,
    )?;
    let disk = &*store.world.disk;
    disk.create_directory(files, 0o755)?;
    for directory in &plan.directories {
        goes_on(pace)?;
        disk.create_directory(&files.join(directory), 0o755)?;
    }
    let mut linked = 0;
    if let Some(source) = source {
        let refused = link_all(disk, source.files, files, &plan.links, pace)?;
        linked = (plan.links.len() - refused.len()) as u64;
        plan.copies.extend(refused);
    }
    copy_all(store, fresh, files, &plan.copies, modes)?;
    for directory in plan.directories.iter().rev() {
        goes_on(pace)?;
        disk.set_mode(&files.join(directory), modes.directory)?;
    }
    disk.set_mode(files, modes.directory)?;
    Ok(Made::of(plan.copies, linked))
}

fn plan_branch(
    store: &Store,
    branch: &Branch,
    source: Option<&Branch>,
    prefix: &str,
    plan: &mut Plan,
) -> StoreResult<()> {
    for (name, entry) in branch.entries(&store.database)? {
        let path = if prefix.is_empty() {
            name.to_string()
        } else {
            format!("{prefix}/{name}")
        };
        let other = match source {
            Some(source) => source.get(name, &store.database)?,
            None => None,
        };
        match entry {
            Entry::Branch(branch) => {
                plan.directories.push(path.clone());
                let other = match other {
                    Some(Entry::Branch(other)) => Some(other.as_ref()),
                    _ => None,
                };
                plan_branch(store, branch, other, &path, plan)?;
            }
            Entry::Leaf(leaf) => {
                let path: LogicalPath = path.parse().map_err(|refusal| {
                    StoreError::damaged(format!("the tree holds an unacceptable path: {refusal}"))
                })?;
                match other {
                    Some(Entry::Leaf(other)) if leaf == other => plan.links.push((path, *leaf)),
                    _ => plan.copies.push((path, *leaf)),
                }
            }
        }
    }
    Ok(())
}

/// Links every path; answers those the file system refused to link, which are to be copied.
pub(super) fn link_all(
    disk: &dyn Disk,
    from: &Utf8Path,
    to: &Utf8Path,
    links: &[ListedLeaf],
    pace: Pace<'_>,
) -> StoreResult<Vec<ListedLeaf>> {
    if pace.is_none() && links.len() > LINKS_AT_ONCE {
        let refused: WorldResult<Vec<Vec<ListedLeaf>>> = links
            .par_chunks(LINKS_AT_ONCE)
            .map(|chunk| link_some(disk, from, to, chunk))
            .collect();
        return Ok(refused?.into_iter().flatten().collect());
    }
    let mut refused = Vec::new();
    for chunk in links.chunks(LINKS_AT_ONCE) {
        goes_on(pace)?;
        refused.extend(link_some(disk, from, to, chunk)?);
    }
    Ok(refused)
}

fn link_some(
    disk: &dyn Disk,
    from: &Utf8Path,
    to: &Utf8Path,
    links: &[ListedLeaf],
) -> WorldResult<Vec<ListedLeaf>> {
    let mut refused = Vec::new();
    for (path, leaf) in links {
        match disk.link(&from.join(path.as_str()), &to.join(path.as_str())) {
            Ok(()) => {}
            Err(error) if is_link_refusal(&error) => refused.push((path.clone(), *leaf)),
            Err(error) => return Err(error),
        }
    }
    Ok(refused)
}

/// ENOENT (somebody took the file away: the store has it), EMLINK (too many names), EPERM (`protected_hardlinks`, or no links at all), EXDEV, ENOTSUP.
fn is_link_refusal(error: &WorldError) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::TooManyLinks
            | io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::CrossesDevices
            | io::ErrorKind::Unsupported
    )
}

/// Writes every one of `copies`, each with the time of its stamp, if it has one.
pub(super) fn copy_all(
    store: &Store,
    fresh: &FreshBlobs,
    files: &Utf8Path,
    copies: &[ListedLeaf],
    modes: Modes,
) -> StoreResult<()> {
    let mut times = BTreeMap::new();
    for (_, leaf) in copies {
        if leaf.stamp != UNSTAMPED && !times.contains_key(&leaf.stamp) {
            times.insert(leaf.stamp, time_of(store, leaf.stamp)?);
        }
    }
    let (world, layout) = (&store.world, &store.layout);
    let write = |((path, leaf), packed): (&ListedLeaf, PackedBlob)| {
        let content = packed.unpack(world, layout)?;
        let time = times.get(&leaf.stamp).copied();
        let place = files.join(path.as_str());
        write_leaf(&*world.disk, &place, leaf.kind, &content, modes, time)
    };
    for chunk in copies.chunks(COPIES_AT_ONCE) {
        let mut packed = Vec::with_capacity(chunk.len());
        for (_, leaf) in chunk {
            packed.push(fresh.packed(store, &leaf.blob)?);
        }
        chunk
            .par_iter()
            .with_min_len(COPIES_BY_ONE)
            .zip(packed)
            .try_for_each(write)?;
    }
    Ok(())
}

/// The time that the files of publication `stamp` carry.
pub fn time_of(store: &Store, stamp: u64) -> StoreResult<i64> {
    store
        .database
        .publication_time(stamp)?
        .ok_or_else(|| StoreError::damaged(format!("the record of @{stamp} is missing")))
}

/// Writes one leaf at a place where nothing is.
pub fn write_leaf(
    disk: &dyn Disk,
    place: &Utf8Path,
    kind: EntryKind,
    content: &[u8],
    modes: Modes,
    time: Option<i64>,
) -> StoreResult<()> {
    if kind == EntryKind::Symlink {
        let target = std::str::from_utf8(content)
            .map_err(|_| StoreError::damaged(format!("the target of `{place}` is not UTF-8")))?;
        disk.symlink(target, place)?;
    } else {
        disk.create(place, content, modes.of(kind))?;
    }
    if let Some(time) = time {
        disk.set_mtime(place, time)?;
    }
    Ok(())
}

/// Where a new candidate is built; the wrapper stays writable so that a normal user can move it.
pub fn new_staging(store: &Store) -> WorldResult<Utf8PathBuf> {
    let place = store
        .layout
        .staging()
        .join(store.world.entropy.uuid().to_string());
    store.world.disk.create_directory(&place, 0o755)?;
    Ok(place)
}
