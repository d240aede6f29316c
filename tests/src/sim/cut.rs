//! What a crash leaves of a model.
//!
//! Owns: `Cut` (which of the possible states comes true), `Frozen` (one concrete state, and how it is
//! put on a real directory).
//! Never: what a daemon makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use camino::Utf8Path;
use semaprax_daemon::world::World;

use super::chance::Chance;
use super::model::{Body, Directory, File, FileState, Ino, Model, ROOT};

/// Which of the possible states a crash leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The process dies: everything it did is there.
    Kill,
    /// Power: nothing that was not synced is there.
    Lost,
    /// Power: all names are there, and no content that was not synced.
    Names,
    /// Power: everything happens to be there.
    Kept,
    /// Power: names up to some moment, as a journal keeps them; content by chance.
    Ordered(u64),
    /// Power: each name, content, mode and time by chance.
    Random(u64),
}

/// One name of a frozen state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Concrete {
    /// A directory and its permission bits.
    Directory(u32),
    /// A file; the inode tells which names share it.
    File(Ino, FileState),
    /// A symlink and its time.
    Symlink(String, i64),
    /// The database.
    Database,
}

/// One concrete state of a disk: relative paths, parents first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frozen {
    /// The names.
    pub entries: BTreeMap<String, Concrete>,
}

struct Freezer<'model> {
    model: &'model Model,
    cut: Cut,
    chance: Chance,
    until: u64,
    files: BTreeMap<Ino, FileState>,
    placed: BTreeSet<Ino>,
    frozen: Frozen,
}

/// The state that `cut` leaves of `model`.
pub fn freeze(model: &Model, cut: Cut) -> Frozen {
    let mut chance = Chance::new(match cut {
        Cut::Ordered(seed) | Cut::Random(seed) => seed,
        _ => 0,
    });
    let until = model.synced + chance.below(model.operations - model.synced + 1);
    let mut freezer = Freezer {
        model,
        cut,
        chance,
        until,
        files: BTreeMap::new(),
        placed: BTreeSet::new(),
        frozen: Frozen::default(),
    };
    freezer.directory(model.directory(ROOT), "");
    freezer.frozen
}

impl Freezer<'_> {
    fn directory(&mut self, directory: &Directory, prefix: &str) {
        let names: BTreeSet<&String> = directory
            .names
            .keys()
            .chain(directory.pending.keys())
            .collect();
        for name in names {
            if let Some(ino) = self.choose(directory, name) {
                self.place(ino, format!("{prefix}{name}"));
            }
        }
    }

    fn choose(&mut self, directory: &Directory, name: &str) -> Option<Ino> {
        let live = directory.names.get(name).copied();
        let Some(versions) = directory.pending.get(name) else {
            return live;
        };
        let first = versions.first()?;
        match self.cut {
            Cut::Kill | Cut::Names | Cut::Kept => live,
            Cut::Lost => first.ino,
            Cut::Ordered(_) => {
                let kept = versions.iter().rev();
                kept.clone()
                    .find(|version| version.since <= self.until)
                    .unwrap_or(first)
                    .ino
            }
            Cut::Random(_) => versions[self.chance.index(versions.len())].ino,
        }
    }

    fn place(&mut self, ino: Ino, path: String) {
        let concrete = match self.model.body(ino) {
            Body::Database => Concrete::Database,
            Body::Symlink(target, live, born) => {
                let is_old = self.cut == Cut::Lost || self.is_by_chance() && self.chance.coin();
                Concrete::Symlink(target.clone(), if is_old { *born } else { *live })
            }
            Body::File(file) => {
                let state = match self.files.get(&ino) {
                    Some(state) => state.clone(),
                    None => self.file(file),
                };
                self.files.insert(ino, state.clone());
                Concrete::File(ino, state)
            }
            Body::Directory(directory) => {
                // A directory that moved is found in one place.
                if !self.placed.insert(ino) {
                    return;
                }
                let is_old = self.cut == Cut::Lost || self.is_by_chance() && self.chance.coin();
                let mode = if is_old {
                    directory.durable_mode
                } else {
                    directory.mode
                };
                self.frozen
                    .entries
                    .insert(path.clone(), Concrete::Directory(mode));
                return self.directory(directory, &format!("{path}/"));
            }
        };
        self.frozen.entries.insert(path, concrete);
    }

    fn is_by_chance(&self) -> bool {
        matches!(self.cut, Cut::Ordered(_) | Cut::Random(_))
    }

    fn file(&mut self, file: &File) -> FileState {
        if file.live == file.durable {
            return file.live.clone();
        }
        match self.cut {
            Cut::Kill | Cut::Kept => file.live.clone(),
            Cut::Lost => file.durable.clone(),
            Cut::Names => FileState {
                content: Arc::clone(&file.durable.content),
                ..file.live
            },
            Cut::Ordered(_) | Cut::Random(_) => {
                let content = match self.chance.below(4) {
                    0 => Arc::clone(&file.live.content),
                    1 => Arc::clone(&file.durable.content),
                    // Torn: a part of it, or its length without its bytes.
                    2 => {
                        let length = self.chance.index(file.live.content.len() + 1);
                        Arc::new(file.live.content[..length].to_vec())
                    }
                    _ => Arc::new(vec![0; file.live.content.len()]),
                };
                let pick = |is_old, old, new| if is_old { old } else { new };
                FileState {
                    content,
                    mode: pick(self.chance.coin(), file.durable.mode, file.live.mode),
                    mtime: if self.chance.coin() {
                        file.durable.mtime
                    } else {
                        file.live.mtime
                    },
                }
            }
        }
    }
}

impl Frozen {
    /// A disk that holds this state, all of it durable.
    pub fn thaw(&self) -> Model {
        let mut model = Model::default();
        let mut inodes: BTreeMap<Ino, &str> = BTreeMap::new();
        for (path, concrete) in &self.entries {
            match concrete {
                Concrete::Directory(mode) => model.create_directory(path, *mode),
                Concrete::Symlink(target, mtime) => model.symlink(path, target, *mtime),
                Concrete::Database => model.adopt(path),
                Concrete::File(ino, state) => {
                    if let Some(first) = inodes.get(ino) {
                        model.link(first, path);
                    } else {
                        model.create(path, &state.content, state.mode, state.mtime);
                        model.sync_file(path);
                        inodes.insert(*ino, path);
                    }
                }
            }
        }
        for (path, concrete) in &self.entries {
            if matches!(concrete, Concrete::Directory(_)) {
                model.sync_directory(path);
            }
        }
        model.sync_directory("");
        model
    }

    /// Puts the state at `root`, which holds nothing of it yet.
    pub fn write(&self, root: &Utf8Path, database: &Database) {
        let disk = World::real().disk;
        let mut inodes: BTreeMap<Ino, &str> = BTreeMap::new();
        for (path, concrete) in &self.entries {
            let place = root.join(path);
            match concrete {
                Concrete::Directory(_) => disk.create_directory(&place, 0o755).unwrap(),
                Concrete::Symlink(target, mtime) => {
                    disk.symlink(target, &place).unwrap();
                    disk.set_mtime(&place, *mtime).unwrap();
                }
                Concrete::Database => database.write(&place),
                Concrete::File(ino, state) => {
                    if let Some(first) = inodes.get(ino) {
                        disk.link(&root.join(first), &place).unwrap();
                    } else {
                        disk.create(&place, &state.content, state.mode).unwrap();
                        disk.set_mtime(&place, state.mtime).unwrap();
                        inodes.insert(*ino, path);
                    }
                }
            }
        }
        for (path, concrete) in self.entries.iter().rev() {
            if let Concrete::Directory(mode) = concrete {
                let mode = std::fs::Permissions::from_mode(*mode);
                std::fs::set_permissions(root.join(path), mode).unwrap();
            }
        }
    }
}

/// The files of the database at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Database {
    /// `store.db`.
    pub main: Vec<u8>,
    /// `store.db-wal`.
    pub log: Option<Vec<u8>>,
}

impl Database {
    /// Reads the files at `place`, if there are any.
    pub fn read(place: &Utf8Path) -> Option<Self> {
        Some(Self {
            main: std::fs::read(place).ok()?,
            log: std::fs::read(format!("{place}-wal")).ok(),
        })
    }

    fn write(&self, place: &Utf8Path) {
        std::fs::write(place, &self.main).unwrap();
        if let Some(log) = &self.log {
            std::fs::write(format!("{place}-wal"), log).unwrap();
        }
    }
}
