//! Reading a workspace straight from disk, without a daemon and without writing.
//!
//! Owns: choosing how the database may be opened: on a read-only directory without a write-ahead log
//! immutably; else in the ordinary read-only way; where that is not possible because the log cannot be
//! opened, from a copy. Never immutably while a log lies there: commits would silently be missed.

use camino::Utf8Path;
use semaprax_protocol::documents::WatchEvent;
use semaprax_protocol::request::{Request, Response};
use semaprax_protocol::{Code, Diagnostic, Limits, Refusal, Revision, Seq, Timestamp};

use super::status::StatusContext;
use super::with_view;
use crate::config::{self, Config};
use crate::store::check::{Depth, check_tree};
use crate::store::database::{Database, ReadMode};
use crate::store::recover::is_of_this_boot;
use crate::store::{Layout, Store, StoreError, own};
use crate::world::World;

/// Read-only access to one workspace.
#[derive(Debug)]
pub struct Offline {
    store: Store,
    /// Where a copy of the database lies, if one had to be made; removed at the end.
    copy: Option<camino::Utf8PathBuf>,
    limits: Limits,
}

impl Offline {
    /// Opens the workspace at `root`.
    pub fn open(world: &World, root: &Utf8Path) -> Result<Self, Refusal> {
        let layout = Layout::new(root);
        let path = layout.database();
        if world.disk.metadata(&path)?.is_none() {
            let message = format!("`{root}` is no workspace");
            return Err(Diagnostic::new(Code::NotAWorkspace, message)
                .at(root.as_str())
                .into());
        }
        // Opening what stands in the place of a file could take for ever.
        own::check(world, &layout)?;
        let log = camino::Utf8PathBuf::from(format!("{path}-wal"));
        let has_log = world.disk.metadata(&log)?.is_some();
        let (database, copy) = match open_and_probe(&path, ReadMode::Shared) {
            Ok(database) => (database, None),
            Err(error @ StoreError::Version { .. }) => return Err(error.into()),
            Err(_) if !has_log => (open_and_probe(&path, ReadMode::Immutable)?, None),
            Err(error) => {
                let copy = copy_aside(world, &path, &log).map_err(|_| Refusal::from(error))?;
                match open_and_probe(&copy, ReadMode::Shared) {
                    Ok(database) => (database, Some(copy)),
                    Err(error) => {
                        remove_copy(world, &copy);
                        return Err(error.into());
                    }
                }
            }
        };
        let store = Store {
            world: world.clone(),
            layout,
            database,
        };
        let limits = Limits::default();
        Ok(Self {
            store,
            copy,
            limits,
        })
    }

    /// Reads the settings of the user, below `config_home`, and of the workspace, as this user's daemon
    /// would. Such as a daemon would refuse are left out: nothing is decided by them here.
    pub fn read_settings(&mut self, config_home: Option<&Utf8Path>) {
        let root = self.store.layout.root();
        let files = [
            config_home.map(|home| (config::user_file(home), true)),
            Some((config::workspace_file(root), false)),
        ];
        let uid = rustix::process::geteuid().as_raw();
        let mut settings = Config::default();
        for (file, is_users) in files.into_iter().flatten() {
            let disk = &*self.store.world.disk;
            match config::load(settings.clone(), disk, uid, &file, is_users) {
                Ok(read) => settings = read,
                Err(refusal) => tracing::debug!(%refusal, "settings are left out"),
            }
        }
        self.limits = settings.limits;
    }

    /// Answers a request that needs no daemon.
    pub fn answer(&self, request: &Request) -> Result<Response, Refusal> {
        let Store {
            world,
            layout,
            database,
        } = &self.store;
        with_view(world, layout, database, |view| match request {
            Request::Status(params) => {
                let leases = database.leases()?;
                let now = world.clock.now();
                let live = leases.iter().filter(|lease| lease.expires > now).count() as u64;
                let context = StatusContext {
                    limits: &self.limits,
                    leases: live,
                };
                Ok(Response::Status(view.status(params, context)?))
            }
            other => view.answer(other),
        })
    }

    /// Where a subscriber that was at `since` starts.
    pub fn watch_start(&self, since: Option<&str>) -> Result<WatchEvent, Refusal> {
        let Store {
            world,
            layout,
            database,
        } = &self.store;
        with_view(world, layout, database, |view| view.watch_start(since))
    }

    /// The publications after `seq`, oldest first, at most `limit`.
    pub fn events_after(&self, seq: Seq, limit: usize) -> Result<Vec<WatchEvent>, Refusal> {
        let Store {
            world,
            layout,
            database,
        } = &self.store;
        with_view(world, layout, database, |view| {
            view.events_after(seq, limit).map_err(Into::into)
        })
    }

    /// When what is ACTIVE was published.
    pub fn published_at(&self) -> Result<Timestamp, Refusal> {
        let Store {
            world,
            layout,
            database,
        } = &self.store;
        with_view(world, layout, database, |view| {
            Ok(view.tip().record.published_at)
        })
    }

    /// Whether the tree of `revision` may be read as it is: made or verified in this boot, or found
    /// right now, byte for byte.
    pub fn verify_tree(&self, revision: &Revision) -> Result<bool, Refusal> {
        let generation = self.store.layout.generation(revision);
        if is_of_this_boot(&self.store.world, &generation)? {
            return Ok(true);
        }
        let stored = self.store.database.record_by_revision(revision)?;
        let stored = stored
            .ok_or_else(|| StoreError::damaged(format!("generation {revision} has no record")))?;
        let faults = check_tree(
            &self.store,
            &stored.tree()?,
            &generation.files(),
            Depth::Content,
        )?;
        Ok(faults.is_empty())
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        if let Some(copy) = &self.copy {
            remove_copy(&self.store.world, copy);
        }
    }
}

/// Opens the database and reads from it: that the log can be used shows only then.
fn open_and_probe(path: &Utf8Path, mode: ReadMode) -> Result<Database, StoreError> {
    let database = Database::open_reader(path, mode)?;
    database.newest_seq()?;
    Ok(database)
}

/// Copies the database and its log to a place that can be written to. A commit or a checkpoint in
/// between would tear the copy: the log is read before and after and must be the same.
fn copy_aside(
    world: &World,
    path: &Utf8Path,
    log: &Utf8Path,
) -> Result<camino::Utf8PathBuf, Refusal> {
    let disk = &world.disk;
    let place = camino::Utf8PathBuf::from_path_buf(std::env::temp_dir())
        .map_err(|_| StoreError::damaged("the temporary directory is not UTF-8"))?;
    for _ in 0..5 {
        let target = place.join(format!("semaprax-read-{}.db", world.entropy.uuid()));
        let first = disk.read(log)?;
        let database = disk.read(path)?;
        if disk.read(log)? == first {
            disk.create(&target, &database, 0o600)?;
            disk.create(
                &camino::Utf8PathBuf::from(format!("{target}-wal")),
                &first,
                0o600,
            )?;
            return Ok(target);
        }
    }
    Err(StoreError::damaged("the database kept changing while it was copied").into())
}

fn remove_copy(world: &World, copy: &Utf8Path) {
    for suffix in ["", "-wal", "-shm"] {
        // What cannot be removed is a leftover in the temporary directory.
        drop(
            world
                .disk
                .remove_file(&camino::Utf8PathBuf::from(format!("{copy}{suffix}"))),
        );
    }
}
