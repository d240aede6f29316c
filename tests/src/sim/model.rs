//! What a disk holds, and what of it would survive a power cut.
//!
//! Owns: `Model`: inodes and names as the process sees them, and for each what was made durable: a
//! file's content, mode and time by its last sync; a directory's names by its last sync. Between the
//! syncs every state that a name went through is kept, because a crash may bring any of them back.
//! Never: the real disk, or which of the possible states a crash leaves (`cut.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Names an inode of a model.
pub type Ino = u64;

/// What a file is at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// Its bytes.
    pub content: Arc<Vec<u8>>,
    /// Its permission bits.
    pub mode: u32,
    /// Its time.
    pub mtime: i64,
}

/// A regular file.
#[derive(Debug, Clone)]
pub struct File {
    /// As the process sees it.
    pub live: FileState,
    /// As of its last sync; empty when it never was synced.
    pub durable: FileState,
    /// A sync failed: the system believes the bytes written, so that a later sync brings nothing.
    pub lost: bool,
}

/// A state that a name had.
#[derive(Debug, Clone, Copy)]
pub struct Version {
    /// The operation after which it had it; 0 for the durable one.
    pub since: u64,
    /// What it named.
    pub ino: Option<Ino>,
}

/// A directory.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    /// Permission bits as the process sees them.
    pub mode: u32,
    /// Permission bits as of the last sync.
    pub durable_mode: u32,
    /// Names as the process sees them.
    pub names: BTreeMap<String, Ino>,
    /// The states of names that changed since the last sync, the durable one first.
    pub pending: BTreeMap<String, Vec<Version>>,
    /// Names that changed since a sync of this directory failed; a later sync carries only those.
    failed: Option<BTreeSet<String>>,
}

/// What an inode is.
#[derive(Debug, Clone)]
pub enum Body {
    /// A regular file.
    File(File),
    /// A symlink, with its time and the one it was born with.
    Symlink(String, i64, i64),
    /// A directory.
    Directory(Directory),
    /// A file of the database, whose content is durable at any moment.
    Database,
}

/// A disk, from the directory of the workspace down.
#[derive(Debug, Clone)]
pub struct Model {
    inodes: BTreeMap<Ino, Body>,
    /// Operations that changed something so far.
    pub operations: u64,
    /// The last of them that a sync has made durable on a file system that keeps their order.
    pub synced: u64,
}

/// The directory of the workspace.
pub const ROOT: Ino = 1;

impl Default for Model {
    fn default() -> Self {
        let root = Directory {
            mode: 0o755,
            durable_mode: 0o755,
            ..Directory::default()
        };
        Self {
            inodes: BTreeMap::from([(ROOT, Body::Directory(root))]),
            operations: 0,
            synced: 0,
        }
    }
}

impl Model {
    /// What an inode is.
    pub fn body(&self, ino: Ino) -> &Body {
        &self.inodes[&ino]
    }

    /// The directory `ino`.
    pub fn directory(&self, ino: Ino) -> &Directory {
        match &self.inodes[&ino] {
            Body::Directory(directory) => directory,
            other => panic!("inode {ino} is no directory: {other:?}"),
        }
    }

    fn directory_mut(&mut self, ino: Ino) -> Option<&mut Directory> {
        match self.inodes.get_mut(&ino) {
            Some(Body::Directory(directory)) => Some(directory),
            _ => None,
        }
    }

    /// What the relative `path` names.
    pub fn find(&self, path: &str) -> Option<Ino> {
        let mut here = ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            match self.inodes.get(&here) {
                Some(Body::Directory(directory)) => here = *directory.names.get(name)?,
                _ => return None,
            }
        }
        Some(here)
    }

    fn parent<'path>(&self, path: &'path str) -> Option<(Ino, &'path str)> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        Some((self.find(parent)?, name))
    }

    fn set_name(&mut self, path: &str, ino: Option<Ino>) {
        let Some((parent, name)) = self.parent(path) else {
            return;
        };
        self.operations += 1;
        let since = self.operations;
        let Some(directory) = self.directory_mut(parent) else {
            return;
        };
        let before = directory.names.get(name).copied();
        let first = Version {
            since: 0,
            ino: before,
        };
        let versions = directory.pending.entry(name.to_owned());
        versions
            .or_insert_with(|| vec![first])
            .push(Version { since, ino });
        if let Some(failed) = &mut directory.failed {
            failed.insert(name.to_owned());
        }
        match ino {
            Some(ino) => drop(directory.names.insert(name.to_owned(), ino)),
            None => drop(directory.names.remove(name)),
        }
    }

    fn add(&mut self, body: Body) -> Ino {
        let ino = self
            .inodes
            .last_key_value()
            .map_or(ROOT + 1, |(last, _)| last + 1);
        self.inodes.insert(ino, body);
        ino
    }

    /// A new file. A umask may have had its share of the mode before it was set.
    pub fn create(&mut self, path: &str, content: &[u8], mode: u32, mtime: i64) {
        let live = FileState {
            content: Arc::new(content.to_vec()),
            mode,
            mtime,
        };
        let durable = FileState {
            content: Arc::default(),
            mode: mode & 0o700,
            mtime,
        };
        let ino = self.add(Body::File(File {
            live,
            durable,
            lost: false,
        }));
        self.set_name(path, Some(ino));
    }

    /// New content of a file that is there, not synced; a file that is not there is made.
    pub fn write(&mut self, path: &str, content: &[u8], mode: u32, mtime: i64) {
        match self.find(path) {
            None => self.create(path, content, mode, mtime),
            Some(ino) => {
                self.operations += 1;
                if let Some(Body::File(file)) = self.inodes.get_mut(&ino) {
                    file.live.content = Arc::new(content.to_vec());
                }
            }
        }
    }

    /// Damage: what is there is another content, and that is durable.
    pub fn damage(&mut self, path: &str, content: &[u8]) {
        if let Some(ino) = self.find(path)
            && let Some(Body::File(file)) = self.inodes.get_mut(&ino)
        {
            file.live.content = Arc::new(content.to_vec());
            file.durable.content = Arc::clone(&file.live.content);
        }
    }

    /// A new directory.
    pub fn create_directory(&mut self, path: &str, mode: u32) {
        let ino = self.add(Body::Directory(Directory {
            mode,
            durable_mode: mode & 0o700,
            ..Directory::default()
        }));
        self.set_name(path, Some(ino));
    }

    /// A new symlink.
    pub fn symlink(&mut self, path: &str, target: &str, mtime: i64) {
        let ino = self.add(Body::Symlink(target.to_owned(), mtime, mtime));
        self.set_name(path, Some(ino));
    }

    /// A file of the database, which made itself known by `path`, and lasts.
    pub fn adopt(&mut self, path: &str) {
        if self.find(path).is_none() {
            let ino = self.add(Body::Database);
            if let Some((parent, name)) = self.parent(path)
                && let Some(directory) = self.directory_mut(parent)
            {
                directory.names.insert(name.to_owned(), ino);
            }
        }
    }

    /// A second name.
    pub fn link(&mut self, from: &str, to: &str) {
        if let Some(ino) = self.find(from) {
            self.set_name(to, Some(ino));
        }
    }

    /// Another name, in place of what had it.
    pub fn rename(&mut self, from: &str, to: &str) {
        if let Some(ino) = self.find(from) {
            self.set_name(to, Some(ino));
            self.set_name(from, None);
            // Both names changed in one operation.
            self.operations -= 1;
            let now = self.operations;
            if let Some((parent, name)) = self.parent(from)
                && let Some(directory) = self.directory_mut(parent)
                && let Some(last) = directory
                    .pending
                    .get_mut(name)
                    .and_then(|all| all.last_mut())
            {
                last.since = now;
            }
        }
    }

    /// A name goes.
    pub fn remove(&mut self, path: &str) {
        if self.find(path).is_some() {
            self.set_name(path, None);
        }
    }

    /// New permission bits.
    pub fn set_mode(&mut self, path: &str, mode: u32) {
        self.operations += 1;
        match self.find(path).and_then(|ino| self.inodes.get_mut(&ino)) {
            Some(Body::File(file)) => file.live.mode = mode,
            Some(Body::Directory(directory)) => directory.mode = mode,
            _ => {}
        }
    }

    /// A new time.
    pub fn set_mtime(&mut self, path: &str, mtime: i64) {
        self.operations += 1;
        match self.find(path).and_then(|ino| self.inodes.get_mut(&ino)) {
            Some(Body::File(file)) => file.live.mtime = mtime,
            Some(Body::Symlink(_, live, _)) => *live = mtime,
            _ => {}
        }
    }

    /// A file's content, mode and time are durable; its names are not.
    pub fn sync_file(&mut self, path: &str) {
        self.synced = self.operations;
        if let Some(Body::File(file)) = self.find(path).and_then(|ino| self.inodes.get_mut(&ino))
            && !file.lost
        {
            file.durable = file.live.clone();
        }
    }

    /// A directory's names are durable; the names above it are not.
    pub fn sync_directory(&mut self, path: &str) {
        self.synced = self.operations;
        if let Some(directory) = self.find(path).and_then(|ino| self.directory_mut(ino)) {
            directory.durable_mode = directory.mode;
            match directory.failed.take() {
                None => directory.pending.clear(),
                // Any change makes the whole block be written again.
                Some(changed) if !changed.is_empty() => directory.pending.clear(),
                Some(changed) => directory.failed = Some(changed),
            }
        }
    }

    /// A sync failed. The system has forgotten that there was something to write: a later sync
    /// succeeds and brings nothing, unless it was written again.
    pub fn fail_sync(&mut self, path: &str) {
        match self.find(path).and_then(|ino| self.inodes.get_mut(&ino)) {
            Some(Body::File(file)) => file.lost = true,
            Some(Body::Directory(directory)) => directory.failed = Some(BTreeSet::new()),
            _ => {}
        }
    }
}
