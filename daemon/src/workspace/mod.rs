//! One open workspace: the handle that connections share, and the one writer.
//!
//! Owns: opening (LOCK, recovery), [`Workspace`] (reads and leases, from any thread) and [`Writer`]
//! (everything that changes the workspace, on a thread of its own). `init.rs` makes a workspace,
//! `leasing.rs`, `publishing.rs`, `upkeep.rs`, `verifying.rs` and
//! `exporting.rs` are what the writer does, `doctor.rs` and `tidying.rs` look at the environment.
//! Never: tokio, sockets, or the queue.
//!
//! Keeps invariants 4, 7 and 11.

mod directory;
mod doctor;
mod exporting;
mod init;
mod keeper;
mod leasing;
mod publishing;
mod shared;
mod sweeper;
mod tidying;
mod upkeep;
mod verifying;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::request::Request;
use semaprax_protocol::{Code, Diagnostic, Refusal, Revision, Sha256, SubmissionId};

pub use doctor::doctor;
pub use init::initialize;
pub use shared::{Acquired, Workspace};
pub use sweeper::Swept;
pub use tidying::doctor_unopened;
pub use verifying::verify_unopened;
pub use writer::{Writer, is_publication};

use crate::config::Config;
use crate::pipeline::Ledger;
use crate::pipeline::ledger::Tip;
use crate::store::database::Database;
use crate::store::history::StoredRecord;
use crate::store::recover::{self, ensure_tree, is_of_this_boot, recover};
use crate::store::tree::Tree;
use crate::store::{Layout, Store, StoreResult, active, identity, own, reserve, trash};
use crate::world::{FileLock, World};

/// Who holds a workspace: written into LOCK for clients to find.
#[derive(Debug, Clone)]
pub struct Holder {
    /// The socket of the daemon.
    pub socket: Utf8PathBuf,
    /// Its process.
    pub pid: u32,
}

/// Stack of a thread that goes through trees: a path has at most 2,048 segments, and each is a call deeper.
/// Only what is used of it takes memory.
pub const STACK_BYTES: usize = 16 << 20;

/// Content that a connection sent ahead with `blob.put`, by SHA-256.
pub type Uploads = BTreeMap<Sha256, Arc<Vec<u8>>>;

/// A request for the writer.
#[derive(Debug)]
pub struct Job {
    /// The request.
    pub request: Request,
    /// The name of the submission, for requests that publish: the client's own or a new one.
    pub submission: Option<SubmissionId>,
    /// Content sent ahead on the same connection.
    pub uploads: Uploads,
    /// The process of the client.
    pub pid: Option<u32>,
}

/// Trees under a detached lease are read without anyone asking again: after a boot they are verified
/// before the workspace answers. One that cannot be is taken away: better none than a wrong one.
fn ensure_leased_trees(
    store: &Store,
    workspace: &Workspace,
    tip: &StoredRecord,
    tip_tree: &Tree,
) -> StoreResult<()> {
    let revisions: BTreeSet<Revision> = {
        let leases = workspace.leases();
        let held = leases.list(store.world.clock.since_boot());
        held.iter().map(|(_, lease)| lease.revision).collect()
    };
    for revision in revisions {
        let stored = match store.database.record_by_revision(&revision) {
            Ok(Some(stored)) => stored,
            Ok(None) => continue,
            // The rest of the workspace is none the worse for it.
            Err(error) if error.is_damage() => {
                tracing::warn!(%error, %revision, "the record of a leased tree is damaged");
                continue;
            }
            Err(error) => return Err(error),
        };
        let source = (tip_tree, &tip.record.revision);
        let ensured = stored
            .tree()
            .and_then(|tree| ensure_tree(store, &stored, &tree, Some(source)));
        if let Err(error) = ensured {
            tracing::warn!(%error, %revision, "a leased tree could not be made ready");
            let generation = store.layout.generation(&revision);
            let is_there = store.world.disk.metadata(generation.directory())?.is_some();
            if is_there && !is_of_this_boot(&store.world, &generation)? {
                trash::discard(&store.world, &store.layout, generation.directory())?;
            }
        }
    }
    Ok(())
}

/// Opens a workspace: takes LOCK (retrying for a second), recovers, makes ACTIVE durable. On a full disk
/// it uses the room that was kept back.
pub fn open(
    world: &World,
    root: &Utf8Path,
    holder: &Holder,
    config: &Config,
) -> Result<(Arc<Workspace>, Writer), Refusal> {
    with_reserve(world, root, || open_once(world, root, holder, config))
}

/// Does `work`, and once more with the room that was kept back when the disk turns out to be full.
fn with_reserve<T>(
    world: &World,
    root: &Utf8Path,
    work: impl Fn() -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let layout = Layout::new(root);
    // SQLite does not always say that there was no room for a file of its own.
    let is_full = |refusal: &Refusal| {
        refusal.code() == Code::NoSpace
            || (refusal.code() == Code::Io && reserve::is_low(world, &layout))
    };
    let outcome = match work() {
        Err(refusal) if is_full(&refusal) && reserve::release(world, &layout)? => work(),
        other => other,
    };
    outcome.map_err(|refusal| {
        if !is_full(&refusal) {
            return refusal;
        }
        let message = format!("the disk has no room to open the workspace `{root}`: {refusal}");
        let hint = "make room on the disk by other means; what was published can be read meanwhile";
        Diagnostic::new(Code::NoSpace, message)
            .at(root.as_str())
            .hint(hint)
            .into()
    })
}

fn must_be_workspace(world: &World, layout: &Layout) -> Result<(), Refusal> {
    if world.disk.metadata(&layout.database())?.is_some() {
        return Ok(());
    }
    let root = layout.root();
    let message = format!("`{root}` is no workspace");
    Err(Diagnostic::new(Code::NotAWorkspace, message)
        .at(root.as_str())
        .into())
}

fn open_once(
    world: &World,
    root: &Utf8Path,
    holder: &Holder,
    config: &Config,
) -> Result<(Arc<Workspace>, Writer), Refusal> {
    let layout = Layout::new(root);
    must_be_workspace(world, &layout)?;
    own::check(world, &layout)?;
    active::refuse_newer(world, &layout)?;
    let lock = recover::lock(world, &layout, &holder.socket, holder.pid)?;
    match open_locked(world, layout, &*lock, config) {
        Ok((workspace, ledger)) => {
            let retention = config.retention.clone();
            let socket = holder.socket.clone();
            let mut writer = Writer::new(ledger, Arc::clone(&workspace), lock, retention, socket);
            writer.keep_reserve();
            Ok((workspace, writer))
        }
        Err(refusal) => {
            // Nobody holds it any more; what it says would lead clients astray.
            drop(lock.write(b""));
            Err(refusal)
        }
    }
}

fn open_locked(
    world: &World,
    layout: Layout,
    lock: &dyn FileLock,
    config: &Config,
) -> Result<(Arc<Workspace>, Ledger), Refusal> {
    let mut store = Store {
        world: world.clone(),
        layout: layout.clone(),
        database: Database::open_writer(&layout.database())?,
    };
    let (stored, tree) = recover(&mut store)?;
    let names = identity::name_policy(&store.database)?;
    let id = identity::workspace_id(&store.database)?;
    let workspace = Arc::new(Workspace::new(world, layout, id, config, lock.inode()));
    workspace.load_leases(&store)?;
    ensure_leased_trees(&store, &workspace, &stored, &tree)?;
    let ledger = Ledger::new(store, Tip { stored, tree }, names, config.limits.clone());
    Ok((workspace, ledger))
}
