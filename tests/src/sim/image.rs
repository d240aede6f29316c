//! A simulated disk at one moment, and the machines that can be started from it.
//!
//! Owns: `Image` and `Point`: the golden run of a script leaves one before each operation that
//! changes something; each is a crash to be tried.

use std::sync::Arc;

use camino::Utf8Path;

use super::clock::Times;
use super::cut::{Concrete, Cut, Database, Frozen, freeze};
use super::disk::Sim;
use super::model::Model;

/// A disk and a clock at one moment.
#[derive(Debug, Clone)]
pub struct Image {
    /// The disk but for the database.
    pub model: Model,
    /// The database; `None` while there is none.
    pub database: Option<Arc<Database>>,
    /// The time.
    pub times: Times,
}

/// A moment of a run.
#[derive(Debug, Clone)]
pub struct Point {
    /// The number of operations before it.
    pub operation: u64,
    /// The operation about to be done.
    pub what: String,
    /// What the script noted last.
    pub note: usize,
    /// Whether the operation is half done: a power cut has such states by itself.
    pub is_torn: bool,
    /// The machine.
    pub image: Image,
}

/// What a crash left: enough to start from, and to tell whether it was seen before.
#[derive(Debug, Clone)]
pub struct Wreck {
    cut: Cut,
    frozen: Frozen,
    image: Image,
}

impl Image {
    /// What `cut` leaves of this machine.
    pub fn crash(&self, cut: Cut) -> Wreck {
        Wreck {
            cut,
            frozen: freeze(&self.model, cut),
            image: self.clone(),
        }
    }
}

impl Wreck {
    /// The same with a name missing, as if the disk had lost it.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        self.frozen.entries.remove(path);
        self.image.model.remove(path);
        self
    }

    /// Equal for wrecks that hold the same.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        let mut add = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        add(&[u8::from(self.cut == Cut::Kill)]);
        for (path, concrete) in &self.frozen.entries {
            add(path.as_bytes());
            match concrete {
                Concrete::Directory(mode) => add(&mode.to_le_bytes()),
                Concrete::File(ino, state) => {
                    add(&ino.to_le_bytes());
                    add(&state.content);
                    add(&state.mode.to_le_bytes());
                    add(&state.mtime.to_le_bytes());
                }
                Concrete::Symlink(target, mtime) => {
                    add(target.as_bytes());
                    add(&mtime.to_le_bytes());
                }
                Concrete::Database => add(b"database"),
            }
        }
        if let Some(database) = &self.image.database {
            add(&database.main);
            add(database.log.as_deref().unwrap_or_default());
        }
        hasher.finalize().into()
    }

    /// Starts a machine on it, with the directory of the workspace at `root`: after a kill what was
    /// not durable still is not; after a power cut what is there is durable.
    pub fn start(&self, root: &Utf8Path) -> Sim {
        let nothing = Database::default();
        let database = self.image.database.as_deref().unwrap_or(&nothing);
        self.frozen.write(root, database);
        let mut times = self.image.times;
        let model = if self.cut == Cut::Kill {
            self.image.model.clone()
        } else {
            times.reboot();
            self.frozen.thaw()
        };
        Sim::new(root, model, times)
    }
}
