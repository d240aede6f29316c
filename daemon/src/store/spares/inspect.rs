//! Whether a spare still is what it should be: the walk that comes before a spare is used.
//!
//! Owns: `refresh` and `build`. A directory that has not changed since its names were last compared is
//! not looked through again. Elsewhere every name, kind and mode is compared with the tree, and each file
//! is the very inode that ACTIVE has at that path, or its bytes and its time are checked: what passes is
//! what a link farm of ACTIVE would be.
//!
//! Keeps invariants 1 and 5.

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::LogicalPath;
use semaprax_protocol::submission::EntryKind;

use super::super::check::{Depth, check_leaf};
use super::super::checkout::{LinkSource, Modes, Pace, SEALED_DIRECTORY, materialize_at, time_of};
use super::super::database::Database;
use super::super::objects::FreshBlobs;
use super::super::tree::{Branch, Entry, Found, Leaf, Named, UNSTAMPED};
use super::super::{Store, StoreResult};
use super::{Current, Fingerprint, Seen, Spare, new_place, patch, place_of};
use crate::world::{Disk, EntryType, Metadata};

/// A directory that changed less than this long ago may change again without showing it: clocks of file
/// systems tick that slowly.
const SETTLES_NANOS: i64 = 50_000_000;
const SECOND_NANOS: i64 = 1_000_000_000;
/// Mode of what a tree lies in.
const WRAPPER_MODE: u32 = 0o755;

/// Makes a spare of what is current, by links.
pub fn build(store: &Store, current: &Current, pace: Pace<'_>) -> StoreResult<Spare> {
    let place = new_place(store);
    let disk = &store.world.disk;
    disk.create_directory(place.directory(), WRAPPER_MODE)?;
    let source = LinkSource {
        tree: &current.tree,
        files: &current.files,
    };
    let fresh = FreshBlobs::default();
    let (tree, files) = (&current.tree, place.files());
    let source = Some(source);
    let made = materialize_at(store, tree, &fresh, source, &files, Modes::SEALED, pace);
    let spare = Spare::new(place, tree.clone(), Seen::default());
    match made {
        Ok(_) => Ok(spare),
        Err(error) => {
            spare.discard(store);
            Err(error)
        }
    }
}

/// Looks through a spare, unless that was done lately, and brings it up to what is current; `None` when it
/// was not what it should be, and was taken away.
pub fn refresh(
    store: &Store,
    mut spare: Spare,
    current: &Current,
    looks_through: bool,
) -> Option<Spare> {
    let inspected = if looks_through {
        inspect(store, &mut spare, current)
    } else {
        Ok(None)
    };
    let refreshed = inspected.and_then(|wrong| match wrong {
        None => {
            let (tree, fresh) = (&current.tree, FreshBlobs::default());
            patch(store, &mut spare, current, tree, &fresh).map(|_| None)
        }
        wrong => Ok(wrong),
    });
    match refreshed {
        Ok(None) => {
            spare.tree = current.tree.clone();
            Some(spare)
        }
        Ok(Some(wrong)) => {
            tracing::warn!(place = %spare.files(), wrong, "a spare tree was changed from outside");
            spare.discard(store);
            None
        }
        Err(error) => {
            tracing::warn!(place = %spare.files(), %error, "a spare tree could not be made ready");
            spare.discard(store);
            None
        }
    }
}

/// What is wrong with a spare, if anything is.
fn inspect(store: &Store, spare: &mut Spare, current: &Current) -> StoreResult<Option<String>> {
    let mut walk = Walk {
        store,
        current,
        files: spare.files(),
        now: 0,
        seen: Seen {
            unknown: Some(std::collections::BTreeSet::new()),
            ..Seen::default()
        },
        wrong: None,
    };
    walk.wrapper(spare.place.directory())?;
    let seen = std::mem::take(&mut spare.seen);
    match seen.unknown {
        None => walk.below("", spare.tree.root(), Some(current.tree.root()))?,
        Some(mut unknown) => {
            for (directory, print) in seen.known {
                let place = place_of(&walk.files, &directory);
                let found = store.world.disk.metadata(&place)?;
                if found.map(Fingerprint::from) == Some(print) {
                    walk.seen.known.insert(directory, print);
                } else {
                    unknown.insert(directory);
                }
            }
            for directory in unknown {
                walk.one(&directory, spare)?;
            }
        }
    }
    spare.seen = walk.seen;
    Ok(walk.wrong)
}

struct Walk<'walk> {
    store: &'walk Store,
    current: &'walk Current,
    files: Utf8PathBuf,
    /// The clock of the file system.
    now: i64,
    seen: Seen,
    wrong: Option<String>,
}

impl Walk<'_> {
    fn disk(&self) -> &dyn Disk {
        &*self.store.world.disk
    }

    fn is_wrong(&mut self, path: &str, what: &str) {
        let wrong = || format!("`{path}` {what}");
        self.wrong.get_or_insert_with(wrong);
    }

    /// The wrapper holds the tree and nothing else. Touching it tells the time.
    fn wrapper(&mut self, wrapper: &Utf8Path) -> StoreResult<()> {
        let names = self.disk().read_directory(wrapper)?;
        if names != [("files".to_owned(), EntryType::Directory)] {
            self.is_wrong("", "does not lie alone");
        }
        self.disk().set_mode(wrapper, WRAPPER_MODE)?;
        self.now = self
            .disk()
            .metadata(wrapper)?
            .map_or(0, |found| found.changed);
        Ok(())
    }

    /// A directory and all below it.
    fn below(&mut self, path: &str, branch: &Branch, other: Option<&Branch>) -> StoreResult<()> {
        if self.wrong.is_some() {
            return Ok(());
        }
        let database = &self.store.database;
        self.directory(path, branch, other)?;
        for (name, entry) in branch.entries(database)? {
            if let Entry::Branch(below) = entry {
                let other = match entry_of(other, name, database)? {
                    Some(Entry::Branch(other)) => Some(other.as_ref()),
                    _ => None,
                };
                self.below(&joined(path, name), below, other)?;
            }
        }
        Ok(())
    }

    /// A directory by itself.
    fn one(&mut self, path: &str, spare: &Spare) -> StoreResult<()> {
        let database = &self.store.database;
        let find = |tree: &super::Tree| -> StoreResult<Option<std::sync::Arc<Branch>>> {
            let Ok(logical) = path.parse::<LogicalPath>() else {
                return Ok(path.is_empty().then(|| tree.root().clone()));
            };
            match tree.find(&logical, database)? {
                Found::Directory(branch) => Ok(Some(branch)),
                _ => Ok(None),
            }
        };
        let Some(branch) = find(&spare.tree)? else {
            self.is_wrong(path, "is no directory of the tree");
            return Ok(());
        };
        let other = find(&self.current.tree)?;
        self.directory(path, &branch, other.as_deref())
    }

    fn directory(
        &mut self,
        path: &str,
        branch: &Branch,
        other: Option<&Branch>,
    ) -> StoreResult<()> {
        let place = place_of(&self.files, path);
        let before = self.disk().metadata(&place)?;
        match before {
            Some(found) if found.kind != EntryType::Directory => {
                self.is_wrong(path, "is no directory");
                return Ok(());
            }
            Some(found) if found.mode == SEALED_DIRECTORY => {}
            Some(_) => self.is_wrong(path, "has another mode"),
            None => {
                self.is_wrong(path, "is missing");
                return Ok(());
            }
        }
        let names = self.disk().read_directory(&place)?;
        let expected = branch.entries(&self.store.database)?;
        let same = |((name, kind), (expect, entry)): (&(String, EntryType), &&Named)| {
            **name == **expect && *kind == kind_of(entry)
        };
        if names.len() != expected.len() || !names.iter().zip(&expected).all(same) {
            self.is_wrong(path, "holds other names");
            return Ok(());
        }
        let mut shares_all = true;
        for (name, entry) in expected {
            if let Entry::Leaf(leaf) = entry
                && let Some(Entry::Leaf(found)) = entry_of(other, name, &self.store.database)?
                && found == leaf
            {
                shares_all &= self.leaf(&joined(path, name), leaf)?;
            }
            // What ACTIVE does not have is replaced before the spare is used.
        }
        let after = self.disk().metadata(&place)?.map(Fingerprint::from);
        if before.map(Fingerprint::from) != after {
            self.is_wrong(path, "changes while it is looked at");
        }
        match after.filter(|print| shares_all && self.is_settled(print.changed)) {
            Some(print) => drop(self.seen.known.insert(path.to_owned(), print)),
            None => self.seen.touch(path),
        }
        Ok(())
    }

    /// Whether a leaf that ACTIVE has too is the same inode.
    fn leaf(&mut self, path: &str, leaf: &Leaf) -> StoreResult<bool> {
        let place = self.files.join(path);
        let inode = |found: Metadata| found.inode;
        let here = self.disk().metadata(&place)?.map(inode);
        let there = self
            .disk()
            .metadata(&self.current.files.join(path))?
            .map(inode);
        if here.is_some() && here == there {
            return Ok(true);
        }
        let time = match leaf.stamp {
            UNSTAMPED => None,
            stamp => Some(time_of(self.store, stamp)?),
        };
        if let Some(fault) = check_leaf(self.disk(), &place, leaf, time, Depth::Content)? {
            self.is_wrong(path, &fault.detail());
        }
        Ok(false)
    }

    fn is_settled(&self, changed: i64) -> bool {
        let is_coarse = changed % SECOND_NANOS == 0 && self.now % SECOND_NANOS == 0;
        !is_coarse && changed.saturating_add(SETTLES_NANOS) <= self.now
    }
}

fn entry_of<'branch>(
    branch: Option<&'branch Branch>,
    name: &str,
    database: &Database,
) -> StoreResult<Option<&'branch Entry>> {
    branch.map_or(Ok(None), |branch| branch.get(name, database))
}

fn kind_of(entry: &Entry) -> EntryType {
    match entry {
        Entry::Branch(_) => EntryType::Directory,
        Entry::Leaf(leaf) if leaf.kind == EntryKind::Symlink => EntryType::Symlink,
        Entry::Leaf(_) => EntryType::File,
    }
}

fn joined(directory: &str, name: &str) -> String {
    if directory.is_empty() {
        name.to_owned()
    } else {
        format!("{directory}/{name}")
    }
}
