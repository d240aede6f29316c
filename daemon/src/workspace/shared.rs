//! The handle that connections share: reads, and leases of connections. Nothing here waits for the
//! writer.
//!
//! Owns: a pool of reading connections, and the table of leases.

use std::sync::PoisonError;
use std::time::Duration;

use camino::Utf8Path;
use semaprax_protocol::documents::{
    LeaseEntry, LeaseGrant, LeaseList, LeaseReleased, WatchEvent, Why,
};
use semaprax_protocol::request::{LeaseAcquire, Request, Response, WhyParams};
use semaprax_protocol::{
    Code, Diagnostic, LeaseId, Limits, Refusal, Revision, SchemaTag, Seq, WorkspaceId,
};

use crate::config::{Config, Retention};
use crate::leases::{Lease, LeaseEnd, Leases};
use crate::reader::{StatusContext, View, with_view};
use crate::store::collect::{TreeRule, reasons};
use crate::store::database::{Database, ReadMode};
use crate::store::history::{DetachedLease, StoredRecord};
use crate::store::recover::is_of_this_boot;
use crate::store::{Layout, Store, StoreResult, own};
use crate::sync::{Mutex, MutexGuard, Step, is_left_out};
use crate::world::{EntryType, World};

/// Idle reading connections kept.
const READERS: usize = 8;

/// The shared handle of an open workspace.
#[derive(Debug)]
pub struct Workspace {
    world: World,
    layout: Layout,
    id: WorkspaceId,
    limits: Limits,
    retention: Retention,
    /// Device and inode of LOCK: tells whether the state directory is still the one opened.
    lock: (u64, u64),
    readers: std::sync::Mutex<Vec<Store>>,
    leases: Mutex<Leases>,
}

/// What became of a request for a connection lease.
#[derive(Debug)]
pub enum Acquired {
    /// The tree is there.
    Ready(LeaseGrant),
    /// The lease holds, but the writer has to make the tree (`Writer::materialize`) before
    /// `Workspace::grant` can answer.
    NeedsTree(LeaseId, Revision),
}

impl Workspace {
    pub(super) fn new(
        world: &World,
        layout: Layout,
        id: WorkspaceId,
        config: &Config,
        lock: (u64, u64),
    ) -> Self {
        Self {
            world: world.clone(),
            layout,
            id,
            limits: config.limits.clone(),
            retention: config.retention.clone(),
            lock,
            readers: std::sync::Mutex::new(Vec::new()),
            leases: Mutex::new(Leases::default()),
        }
    }

    /// Takes the detached leases of the store over. What is left of each is counted from now on the
    /// boot-time clock.
    pub(super) fn load_leases(&self, store: &Store) -> StoreResult<()> {
        let mut leases = self.leases();
        for lease in store.database.leases()? {
            let entry = self.detached(&lease);
            leases.put(lease.id, entry);
        }
        Ok(())
    }

    pub(super) fn detached(&self, lease: &DetachedLease) -> Lease {
        let left = lease
            .expires
            .as_nanos()
            .saturating_sub(self.world.clock.now().as_nanos());
        let left = Duration::from_nanos(u64::try_from(left).unwrap_or(0));
        // The clock was set back: nobody asked for more than this.
        let left = left.min(Duration::from_millis(lease.ttl_ms));
        let deadline = self.world.clock.since_boot().saturating_add(left);
        Lease {
            revision: lease.revision,
            seq: lease.seq,
            owner: lease.owner.clone(),
            pid: lease.pid,
            acquired: lease.acquired,
            end: Some(LeaseEnd {
                expires: lease.expires,
                deadline,
            }),
        }
    }

    /// The table of leases. A panic while it was held cannot have left it half-changed: each change is
    /// one call.
    pub(super) fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lease_table(&self) -> &Mutex<Leases> {
        &self.leases
    }

    /// The directory of the workspace.
    pub fn root(&self) -> &Utf8Path {
        self.layout.root()
    }

    /// Its identity.
    pub fn id(&self) -> WorkspaceId {
        self.id
    }

    /// Whether the state directory at the path is still the one that was opened; when not, the
    /// handle must be dropped and the workspace opened anew.
    pub fn is_current(&self) -> bool {
        let found = self.world.disk.metadata(&self.layout.lock());
        matches!(found, Ok(Some(found)) if found.inode == self.lock)
    }

    /// Runs `work` with a reading connection of the pool.
    fn read<T>(&self, work: impl FnOnce(&Store) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let pooled = self
            .readers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let store = match pooled {
            Some(store) => store,
            None => {
                // Opening what stands in the place of a file could take for ever.
                own::check(&self.world, &self.layout)?;
                Store {
                    world: self.world.clone(),
                    layout: self.layout.clone(),
                    database: Database::open_reader(&self.layout.database(), ReadMode::Shared)?,
                }
            }
        };
        let outcome = work(&store);
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < READERS {
            readers.push(store);
        }
        outcome
    }

    /// Closes the connections that nobody uses. The last connection folds the write-ahead log in and
    /// removes it; one that only reads cannot.
    pub(super) fn close_readers(&self) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.clear();
    }

    fn view<T>(&self, work: impl FnOnce(&View<'_>) -> Result<T, Refusal>) -> Result<T, Refusal> {
        self.read(|store| with_view(&store.world, &store.layout, &store.database, work))
    }

    /// Answers a request that needs no writer: status resolve log show diff ls content blame why
    /// lease.list journal journal.head. Of `status` the caller fills in `queue` and `daemon`.
    pub fn answer(&self, request: &Request) -> Result<Response, Refusal> {
        match request {
            Request::Status(params) => self.view(|view| {
                let leases = self.leases().list(self.world.clock.since_boot()).len() as u64;
                let context = StatusContext {
                    limits: &self.limits,
                    leases,
                };
                view.status(params, context).map(Response::Status)
            }),
            Request::Why(params) => self.why(params).map(Response::Why),
            Request::LeaseList(_) => Ok(Response::LeaseList(self.lease_list())),
            other => self.view(|view| view.answer(other)),
        }
    }

    fn why(&self, params: &WhyParams) -> Result<Why, Refusal> {
        self.read(|store| {
            let (stored, tip) = with_view(&store.world, &store.layout, &store.database, |view| {
                Ok((view.resolve(Some(&params.revision))?, view.tip().record.seq))
            })?;
            let revision = stored.record.revision;
            let generation = store.layout.generation(&revision);
            let materialized = store.world.disk.metadata(generation.directory())?.is_some();
            let Retention {
                trees,
                young,
                young_trees,
                ..
            } = self.retention;
            let rule = TreeRule::new(store, tip, trees, young, Some(young_trees))?;
            let pins = store.database.pins()?;
            let reasons = reasons(store, rule, &revision, &pins, &self.leases())?;
            Ok(Why {
                schema: SchemaTag::new(),
                revision,
                materialized,
                reasons,
            })
        })
    }

    fn lease_list(&self) -> LeaseList {
        let now = self.world.clock.now();
        let leases = self.leases();
        let entry = |(id, lease): (LeaseId, &Lease)| LeaseEntry {
            lease: id,
            seq: lease.seq,
            revision: lease.revision,
            owner: lease.owner.clone(),
            pid: lease.pid,
            age: now.millis_since(lease.acquired),
            expires: lease.end.map(|end| end.expires),
        };
        let leases = leases
            .list(self.world.clock.since_boot())
            .into_iter()
            .map(entry)
            .collect();
        LeaseList {
            schema: SchemaTag::new(),
            leases,
        }
    }

    /// Takes a lease that lives as long as its connection. The caller keeps the id and releases it.
    pub fn acquire(&self, params: &LeaseAcquire, pid: Option<u32>) -> Result<Acquired, Refusal> {
        check_owner(&params.owner)?;
        let id = LeaseId::from_uuid(self.world.entropy.uuid());
        let stored = self.view(|view| Ok(view.resolve(params.revision.as_deref())?))?;
        let revision = stored.record.revision;
        let lease = Lease {
            revision,
            seq: stored.record.seq,
            owner: params.owner.clone(),
            pid,
            acquired: self.world.clock.now(),
            end: None,
        };
        let looked = is_left_out(Step::LeaseFirst).then(|| self.is_ready(&stored));
        // From here on the collector sees it; what it took before is found missing below.
        self.leases().put(id, lease);
        match looked.unwrap_or_else(|| self.is_ready(&stored)) {
            Ok(true) => self.grant(id).map(Acquired::Ready),
            Ok(false) => Ok(Acquired::NeedsTree(id, revision)),
            Err(refusal) => {
                self.leases().remove(id);
                Err(refusal)
            }
        }
    }

    fn is_ready(&self, stored: &StoredRecord) -> Result<bool, Refusal> {
        let generation = self.layout.generation(&stored.record.revision);
        let found = self.world.disk.metadata(&generation.files())?;
        Ok(
            found.is_some_and(|found| found.kind == EntryType::Directory)
                && is_of_this_boot(&self.world, &generation)?,
        )
    }

    /// The answer for a lease whose tree has been made.
    pub fn grant(&self, lease: LeaseId) -> Result<LeaseGrant, Refusal> {
        let leases = self.leases();
        let held = leases
            .get(lease, self.world.clock.since_boot())
            .ok_or_else(|| unknown(lease))?;
        Ok(LeaseGrant {
            schema: SchemaTag::new(),
            lease,
            seq: held.seq,
            revision: held.revision,
            path: self.layout.generation(&held.revision).files(),
            expires: held.end.map(|end| end.expires),
        })
    }

    /// Ends a connection lease; `None` when there is no connection lease of that id (the writer then
    /// looks among the detached ones: `Writer::perform` of `lease.release`).
    pub fn release(&self, lease: LeaseId) -> Option<LeaseReleased> {
        let mut leases = self.leases();
        leases
            .get(lease, Duration::ZERO)
            .filter(|held| held.end.is_none())?;
        let held = leases.remove(lease)?;
        Some(LeaseReleased {
            schema: SchemaTag::new(),
            released: lease,
            revision: held.revision,
        })
    }

    /// Where a subscriber that was at `since` starts: `snapshot`, or `fresh` when that history is gone
    /// or another.
    pub fn watch_start(&self, since: Option<&str>) -> Result<WatchEvent, Refusal> {
        self.view(|view| view.watch_start(since))
    }

    /// The `published` events after `seq`, in order, at most `limit`.
    pub fn events_after(&self, seq: Seq, limit: usize) -> Result<Vec<WatchEvent>, Refusal> {
        self.view(|view| view.events_after(seq, limit).map_err(Into::into))
    }
}

pub(super) fn check_owner(owner: &str) -> Result<(), Refusal> {
    let bytes = owner.len();
    if bytes > semaprax_protocol::limits::LABEL_BYTES {
        let message = format!(
            "the owner has {bytes} bytes; {} are allowed",
            semaprax_protocol::limits::LABEL_BYTES
        );
        return Err(Diagnostic::new(Code::LimitExceeded, message).into());
    }
    Ok(())
}

pub(super) fn unknown(lease: LeaseId) -> Refusal {
    Diagnostic::new(Code::LeaseUnknown, format!("there is no lease {lease}")).into()
}
