//! The workspaces that are open, by their one path.
//!
//! Owns: that a workspace is open at most once, however many clients ask for it at the same moment; that
//! a handle whose directory was replaced is given up; and that a failure is shared by all who waited.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::{Code, Diagnostic, Refusal};

use super::canonical::canonical;
use super::daemon::{Daemon, shutting_down};
use super::hosted::Hosted;
use super::{blocking, guarded, internal, locked};
use crate::config;
use crate::workspace;

/// The open workspaces.
#[derive(Debug, Default)]
pub(super) struct Registry {
    slots: Mutex<BTreeMap<Utf8PathBuf, Arc<Slot>>>,
}

/// The place of one workspace.
#[derive(Debug, Default)]
struct Slot {
    /// Held while it is opened or given up.
    opening: tokio::sync::Mutex<Opening>,
    /// For those who only look.
    hosted: Mutex<Option<Arc<Hosted>>>,
    failures: AtomicU64,
}

#[derive(Debug, Default)]
struct Opening {
    failure: Option<Refusal>,
}

impl Registry {
    /// The workspace in `directory`, opened if it is not yet.
    pub(super) async fn open(
        daemon: &Arc<Daemon>,
        directory: Utf8PathBuf,
    ) -> Result<Arc<Hosted>, Refusal> {
        let daemon = Arc::clone(daemon);
        // On a task of its own: a client that goes away must not leave a workspace half open.
        let opened = tokio::spawn(async move { open(&daemon, &directory).await });
        opened.await.unwrap_or_else(|error| {
            tracing::error!(%error, "opening a workspace panicked");
            Err(internal("opening the workspace"))
        })
    }

    /// Does blocking work on a workspace that is not open, and keeps it closed meanwhile.
    pub(super) async fn while_closed<T: Send + 'static>(
        daemon: &Arc<Daemon>,
        directory: &Utf8Path,
        work: impl FnOnce(&Utf8Path) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let root = find(daemon, directory).await?;
        let slot = daemon.registry.slot(&root);
        let opening = slot.opening.lock().await;
        let outcome = if slot.current().is_some_and(|hosted| !hosted.is_retired()) {
            Err(is_open(&root))
        } else {
            slot.give_up().await;
            let root = root.clone();
            blocking("work on a closed workspace", move || work(&root)).await?
        };
        drop(opening);
        daemon.registry.tidy(&root, &slot);
        outcome
    }

    /// The directories of the open workspaces.
    pub(super) fn roots(&self) -> Vec<Utf8PathBuf> {
        self.all()
            .iter()
            .map(|hosted| hosted.workspace.root().to_owned())
            .collect()
    }

    /// Whether anything waits or runs in any of them.
    pub(super) fn is_working(&self) -> bool {
        self.all().iter().any(|hosted| hosted.is_working())
    }

    /// Gives all of them up, and waits until their writers have let go.
    pub(super) async fn close(&self) {
        let slots: Vec<Arc<Slot>> = locked(&self.slots).values().cloned().collect();
        for slot in &slots {
            if let Some(hosted) = slot.current() {
                hosted.retire();
            }
        }
        for slot in slots {
            let _opening = slot.opening.lock().await;
            slot.give_up().await;
        }
    }

    fn all(&self) -> Vec<Arc<Hosted>> {
        locked(&self.slots)
            .values()
            .filter_map(|slot| slot.current())
            .collect()
    }

    fn slot(&self, root: &Utf8Path) -> Arc<Slot> {
        Arc::clone(locked(&self.slots).entry(root.to_owned()).or_default())
    }

    /// Gives up the workspaces whose directory is no longer where it was, besides the one in `except`.
    /// Answers whether there were any: one that was moved is locked, by its old handle, against its
    /// new place.
    async fn let_go_of_lost(&self, except: &Arc<Slot>) -> bool {
        let mut others: Vec<Arc<Slot>> = locked(&self.slots).values().cloned().collect();
        others.retain(|slot| !Arc::ptr_eq(slot, except));
        let mut any = false;
        for slot in others {
            // One that is being opened or given up right now is looked at by who does so.
            let Ok(_opening) = slot.opening.try_lock() else {
                continue;
            };
            let lost = slot.current().is_some_and(|hosted| {
                guarded("looking at a workspace", || !hosted.workspace.is_current())
                    .unwrap_or(false)
            });
            if lost {
                slot.give_up().await;
                any = true;
            }
        }
        any
    }

    /// Forgets a place that holds nothing and that nobody else waits for, so that mistaken paths do not
    /// pile up. Whoever asks for it takes it under the same lock.
    fn tidy(&self, root: &Utf8Path, slot: &Arc<Slot>) {
        let mut slots = locked(&self.slots);
        let same = slots
            .get(root)
            .is_some_and(|found| Arc::ptr_eq(found, slot));
        let unwanted = Arc::strong_count(slot) <= 2;
        if same && unwanted && slot.current().is_none() {
            slots.remove(root);
        }
    }
}

impl Slot {
    fn current(&self) -> Option<Arc<Hosted>> {
        locked(&self.hosted).clone()
    }

    async fn give_up(&self) {
        let Some(hosted) = self.current() else {
            return;
        };
        hosted.retire();
        hosted.is_closed().await;
        *locked(&self.hosted) = None;
    }
}

async fn open(daemon: &Arc<Daemon>, directory: &Utf8Path) -> Result<Arc<Hosted>, Refusal> {
    let root = find(daemon, directory).await?;
    let slot = daemon.registry.slot(&root);
    let failures = slot.failures.load(Ordering::Acquire);
    let mut opening = slot.opening.lock().await;
    if let Some(hosted) = slot.current() {
        let current = !hosted.is_retired()
            && guarded("looking at a workspace", || hosted.workspace.is_current())?;
        if current {
            return Ok(hosted);
        }
        slot.give_up().await;
    }
    if daemon.is_stopping() {
        return Err(shutting_down());
    }
    if slot.failures.load(Ordering::Acquire) > failures
        && let Some(failure) = &opening.failure
    {
        let failure = failure.clone();
        daemon.registry.tidy(&root, &slot);
        return Err(failure);
    }
    let mut opened = open_anew(daemon, &root).await;
    if opened
        .as_ref()
        .is_err_and(|refusal| refusal.code() == Code::WorkspaceLocked)
        && daemon.registry.let_go_of_lost(&slot).await
    {
        opened = open_anew(daemon, &root).await;
    }
    match opened {
        Ok(hosted) => {
            *locked(&slot.hosted) = Some(Arc::clone(&hosted));
            Ok(hosted)
        }
        Err(refusal) => {
            slot.failures.fetch_add(1, Ordering::AcqRel);
            opening.failure = Some(refusal.clone());
            daemon.registry.tidy(&root, &slot);
            Err(refusal)
        }
    }
}

async fn open_anew(daemon: &Arc<Daemon>, root: &Utf8Path) -> Result<Arc<Hosted>, Refusal> {
    let (shared, root) = (Arc::clone(daemon), root.to_owned());
    let opened = blocking("opening a workspace", move || {
        let file = config::workspace_file(&root);
        let disk = &*shared.world.disk;
        let config = config::load(shared.config.clone(), disk, shared.uid, &file, false)?;
        let (workspace, writer) = workspace::open(&shared.world, &root, &shared.holder(), &config)?;
        tracing::info!(%root, "the workspace is open");
        Ok::<_, Refusal>((workspace, writer, config))
    });
    let (workspace, writer, config) = opened.await??;
    Hosted::start(daemon, workspace, writer, config)
}

async fn find(daemon: &Daemon, directory: &Utf8Path) -> Result<Utf8PathBuf, Refusal> {
    let (world, path) = (daemon.world.clone(), directory.to_owned());
    blocking("finding a workspace", move || {
        canonical(&*world.disk, &path)
    })
    .await?
}

fn is_open(root: &Utf8Path) -> Refusal {
    let message = format!("the workspace `{root}` is open: name it in `hello`");
    Diagnostic::new(Code::InvalidRequest, message)
        .at(root.as_str())
        .into()
}
