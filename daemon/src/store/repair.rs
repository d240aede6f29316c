//! Mending a tree from the store, entry by entry.
//!
//! Owns: the one way a kept tree is ever touched: a fresh inode with the right mode and time is
//! renamed over the damaged entry. A shared damaged inode is never written to; each tree that has it
//! gets its own fresh one.
//!
//! Keeps invariant 7.

use camino::{Utf8Path, Utf8PathBuf};

use super::check::{Fault, TreeFault};
use super::checkout::{Modes, SEALED_DIRECTORY, time_of, write_leaf};
use super::tree::Leaf;
use super::{Store, StoreResult, own, trash};
use crate::world::EntryType;

/// Mends these faults of the tree at `files`.
pub fn repair_tree(store: &Store, files: &Utf8Path, faults: &[TreeFault]) -> StoreResult<()> {
    // Directories first and from the top, so that what lies in them has a place to go to.
    for fault in faults
        .iter()
        .filter(|fault| matches!(fault.fault, Fault::Directory(_)))
    {
        repair_directory(store, files, &fault.path)?;
    }
    for fault in faults {
        let place = files.join(&fault.path);
        match (&fault.fault, &fault.leaf) {
            (Fault::Directory(_), _) => {}
            (Fault::Foreign, _) => unsealed(store, &place, |store| discard_foreign(store, &place))?,
            (_, Some(leaf)) => replace_leaf(store, &place, leaf)?,
            (_, None) => {}
        }
    }
    Ok(())
}

/// Moves what does not belong to a tree into the trash.
fn discard_foreign(store: &Store, place: &Utf8Path) -> StoreResult<()> {
    for place in own::foreign_at(&store.world, place)? {
        trash::discard(&store.world, &store.layout, &place)?;
    }
    Ok(())
}

fn repair_directory(store: &Store, files: &Utf8Path, path: &str) -> StoreResult<()> {
    let disk = &store.world.disk;
    let place = if path.is_empty() {
        files.to_owned()
    } else {
        files.join(path)
    };
    match disk.metadata(&place)? {
        Some(found) if found.kind == EntryType::Directory => {}
        found => unsealed(store, &place, |store| {
            if found.is_some() {
                trash::discard(&store.world, &store.layout, &place)?;
            }
            Ok(disk.create_directory(&place, SEALED_DIRECTORY)?)
        })?,
    }
    Ok(disk.set_mode(&place, SEALED_DIRECTORY)?)
}

fn replace_leaf(store: &Store, place: &Utf8Path, leaf: &Leaf) -> StoreResult<()> {
    let disk = &store.world.disk;
    let content = store
        .database
        .blob(&store.world, &store.layout, &leaf.blob)?;
    let aside: Utf8PathBuf = store
        .layout
        .staging()
        .join(store.world.entropy.uuid().to_string());
    let time = time_of(store, leaf.stamp)?;
    write_leaf(
        &**disk,
        &aside,
        leaf.kind,
        &content,
        Modes::SEALED,
        Some(time),
    )?;
    unsealed(store, place, |store| {
        // A directory cannot be renamed over.
        if disk
            .metadata(place)?
            .is_some_and(|found| found.kind == EntryType::Directory)
        {
            trash::discard(&store.world, &store.layout, place)?;
        }
        Ok(disk.rename(&aside, place)?)
    })
}

/// Runs `work` while the directory of `place` is writable. The directory of the root of a tree is the
/// wrapper, which is writable in any case.
fn unsealed(
    store: &Store,
    place: &Utf8Path,
    work: impl FnOnce(&Store) -> StoreResult<()>,
) -> StoreResult<()> {
    let disk = &store.world.disk;
    let Some(parent) = place.parent() else {
        return work(store);
    };
    let mode = disk
        .metadata(parent)?
        .map_or(SEALED_DIRECTORY, |found| found.mode);
    disk.set_mode(parent, 0o755)?;
    let outcome = work(store);
    disk.set_mode(parent, mode)?;
    outcome
}
