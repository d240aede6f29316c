//! Turning the tree of a spare into another one, path by path.
//!
//! Owns: `patch`. Inodes are replaced, never written to: a name goes and another file gets it, in the
//! directory where it stays. What ACTIVE has with the same stamp is linked from its tree, the rest is
//! written. The cost follows what differs.
//!
//! Keeps invariants 7, 9 and 10.

use std::collections::BTreeSet;

use camino::Utf8Path;
use semaprax_protocol::LogicalPath;

use super::super::checkout::{Made, Modes, SEALED_DIRECTORY, copy_all, link_all};
use super::super::objects::FreshBlobs;
use super::super::tree::{Difference, Found, ListedLeaf, Tree, restamped};
use super::super::{Store, StoreError, StoreResult};
use super::{Current, Spare, place_of};
use crate::world::{Disk, EntryType};

/// Mode of a directory while names in it change.
const OPEN_DIRECTORY: u32 = 0o755;

#[derive(Default)]
struct Plan {
    /// Names that go.
    gone: Vec<LogicalPath>,
    /// What ACTIVE has.
    links: Vec<ListedLeaf>,
    /// What it does not have.
    copies: Vec<ListedLeaf>,
    directories: Directories,
}

/// Directories in which names change, by whether they are there before and after.
#[derive(Default)]
struct Directories {
    /// There before and after.
    kept: BTreeSet<String>,
    made: BTreeSet<String>,
    removed: BTreeSet<String>,
}

/// Makes a spare the tree `target`. After an error it is good for nothing.
pub fn patch(
    store: &Store,
    spare: &mut Spare,
    current: &Current,
    target: &Tree,
    fresh: &FreshBlobs,
) -> StoreResult<Made> {
    let mut plan = plan(store, spare, current, target)?;
    let files = spare.files();
    let disk = &*store.world.disk;
    check_directories(disk, &files, &plan.directories)?;
    for directory in &plan.directories.kept {
        disk.set_mode(&place_of(&files, directory), OPEN_DIRECTORY)?;
    }
    for directory in &plan.directories.removed {
        disk.set_mode(&place_of(&files, directory), OPEN_DIRECTORY)?;
    }
    for path in &plan.gone {
        disk.remove_file(&files.join(path.as_str()))?;
    }
    // A directory comes before what lies in it.
    for directory in plan.directories.removed.iter().rev() {
        disk.remove_directory(&files.join(directory))?;
        spare.seen.vanish(directory);
    }
    for directory in &plan.directories.made {
        disk.create_directory(&files.join(directory), OPEN_DIRECTORY)?;
    }
    let refused = link_all(disk, &current.files, &files, &plan.links, None)?;
    let linked = (plan.links.len() - refused.len()) as u64;
    plan.copies.extend(refused);
    copy_all(store, fresh, &files, &plan.copies, Modes::SEALED)?;
    seal(store, spare, &files, &plan.directories)?;
    let kept = spare.tree.root().files() - plan.gone.len() as u64;
    Ok(Made::of(plan.copies, linked + kept))
}

/// Refuses a spare in which something else has come into the place of a directory since it was looked through:
/// what a link leads to is somebody's.
fn check_directories(
    disk: &dyn Disk,
    files: &Utf8Path,
    directories: &Directories,
) -> StoreResult<()> {
    let mut looked_at = BTreeSet::new();
    for directory in directories.kept.iter().chain(&directories.removed) {
        let ends = directory.match_indices('/').map(|(end, _)| end);
        let above = ends.filter_map(|end| directory.get(..end));
        for part in [""].into_iter().chain(above).chain([directory.as_str()]) {
            if !looked_at.insert(part) {
                continue;
            }
            let place = place_of(files, part);
            let found = disk.metadata(&place)?;
            if found.is_none_or(|found| found.kind != EntryType::Directory) {
                return Err(StoreError::damaged(format!(
                    "`{place}` is no directory any more"
                )));
            }
        }
    }
    Ok(())
}

fn seal(
    store: &Store,
    spare: &mut Spare,
    files: &Utf8Path,
    directories: &Directories,
) -> StoreResult<()> {
    for directory in directories.kept.iter().chain(&directories.made) {
        let place = place_of(files, directory);
        store.world.disk.set_mode(&place, SEALED_DIRECTORY)?;
        spare.seen.touch(directory);
    }
    Ok(())
}

fn plan(store: &Store, spare: &Spare, current: &Current, target: &Tree) -> StoreResult<Plan> {
    let mut plan = Plan::default();
    let parents = Parents {
        store,
        before: &spare.tree,
        after: target,
    };
    for difference in restamped(&spare.tree, target, &store.database)? {
        let Difference {
            path,
            before,
            after,
        } = difference;
        let (is_before, is_after) = (before.is_some(), after.is_some());
        parents.note(&path, is_before, is_after, &mut plan.directories)?;
        if is_before {
            plan.gone.push(path.clone());
        }
        let Some(leaf) = after else { continue };
        if current.tree.find(&path, &store.database)?.leaf() == Some(leaf) {
            plan.links.push((path, leaf));
        } else {
            plan.copies.push((path, leaf));
        }
    }
    Ok(plan)
}

struct Parents<'tree> {
    store: &'tree Store,
    before: &'tree Tree,
    after: &'tree Tree,
}

impl Parents<'_> {
    /// Notes the directories that a change at `path` concerns: those above it up to the first that is
    /// there before and after.
    fn note(
        &self,
        path: &LogicalPath,
        is_before: bool,
        is_after: bool,
        directories: &mut Directories,
    ) -> StoreResult<()> {
        let mut here = path.parent();
        loop {
            let Some(directory) = here else {
                directories.kept.insert(String::new());
                return Ok(());
            };
            let name = directory.as_str();
            let is_noted = directories.kept.contains(name)
                || directories.made.contains(name) && !is_before
                || directories.removed.contains(name) && !is_after;
            if is_noted {
                return Ok(());
            }
            match (
                self.is_directory(self.before, &directory)?,
                self.is_directory(self.after, &directory)?,
            ) {
                (true, true) => {
                    directories.kept.insert(name.to_owned());
                    return Ok(());
                }
                (true, false) => drop(directories.removed.insert(name.to_owned())),
                (false, true) => drop(directories.made.insert(name.to_owned())),
                (false, false) => {
                    let what = format!("`{directory}` is no directory before or after a change");
                    return Err(StoreError::damaged(what));
                }
            }
            here = directory.parent();
        }
    }

    fn is_directory(&self, tree: &Tree, path: &LogicalPath) -> StoreResult<bool> {
        let found = tree.find(path, &self.store.database)?;
        Ok(matches!(found, Found::Directory(_)))
    }
}
