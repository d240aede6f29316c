//! One open workspace: the handle that connections share, and the one writer.
//!
//! Owns: opening (LOCK, recovery), [`Workspace`] (reads and leases, from any thread) and [`Writer`]
//! (everything that changes the workspace, on a thread of its own). `init.rs` makes a workspace,
//! `leasing.rs`, `publishing.rs`, `upkeep.rs`, `verifying.rs` and
//! `exporting.rs` are what the writer does, `doctor.rs` looks at the environment.
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
pub use verifying::verify_unopened;
pub use writer::{Writer, is_publication};

use crate::config::Config;
use crate::pipeline::Ledger;
use crate::pipeline::ledger::Tip;
use crate::store::database::Database;
use crate::store::history::StoredRecord;
use crate::store::recover::{self, ensure_tree, is_of_this_boot, recover};
use crate::store::tree::Tree;
use crate::store::{Layout, Store, StoreResult, active, identity, trash};
use crate::world::World;

/// Who holds a workspace: written into LOCK for clients to find.
#[derive(Debug, Clone)]
pub struct Holder {
    /// The socket of the daemon.
    pub socket: Utf8PathBuf,
    /// Its process.
    pub pid: u32,
}

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
        let Some(stored) = store.database.record_by_revision(&revision)? else {
            continue;
        };
        let source = (tip_tree, &tip.record.revision);
        let ensured = stored
            .tree()
            .and_then(|tree| ensure_tree(store, &stored, &tree, Some(source)));
        if let Err(error) = ensured {
            tracing::warn!(%error, %revision, "a leased tree could not be made ready");
            let generation = store.layout.generation(&revision);
            if !is_of_this_boot(&store.world, &generation)? {
                trash::discard(&store.world, &store.layout, generation.directory())?;
            }
        }
    }
    Ok(())
}

/// Opens a workspace: takes LOCK (retrying for a second), recovers, makes ACTIVE durable.
pub fn open(
    world: &World,
    root: &Utf8Path,
    holder: &Holder,
    config: &Config,
) -> Result<(Arc<Workspace>, Writer), Refusal> {
    let layout = Layout::new(root);
    if world.disk.metadata(&layout.database())?.is_none() {
        let message = format!("`{root}` is no workspace");
        return Err(Diagnostic::new(Code::NotAWorkspace, message)
            .at(root.as_str())
            .into());
    }
    active::refuse_newer(world, &layout)?;
    let lock = recover::lock(world, &layout, &holder.socket, holder.pid)?;
    let database = Database::open_writer(&layout.database())?;
    let mut store = Store {
        world: world.clone(),
        layout: layout.clone(),
        database,
    };
    let (stored, tree) = recover(&mut store)?;
    let names = identity::name_policy(&store.database)?;
    let id = identity::workspace_id(&store.database)?;
    let workspace = Arc::new(Workspace::new(world, layout, id, config, lock.inode()));
    workspace.load_leases(&store)?;
    ensure_leased_trees(&store, &workspace, &stored, &tree)?;
    let ledger = Ledger::new(store, Tip { stored, tree }, names, config.limits.clone());
    let writer = Writer::new(
        ledger,
        Arc::clone(&workspace),
        lock,
        config.retention.clone(),
        holder.socket.clone(),
    );
    Ok((workspace, writer))
}
