//! Making a workspace: import a directory as publication 1.
//!
//! Owns: the order in which a state directory comes to be. Everything is built under `staging/`;
//! ACTIVE is next to last, and `store.db` gets its name last: a state directory without it is a failed
//! init, which the next one clears (`changes/` stays). The imported files are only read.
//!
//! Keeps invariants 1 and 4 from the first moment.

use std::sync::mpsc::{self, Receiver};

use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;
use semaprax_protocol::documents::{InitStatus, Initialized, Skipped};
use semaprax_protocol::limits::PAGE_ENTRIES;
use semaprax_protocol::request::Init;
use semaprax_protocol::submission::OnStale;
use semaprax_protocol::{Code, Diagnostic, Refusal, SchemaTag, Seq, SubmissionId, WorkspaceId};

use crate::config::Config;
use crate::import::{Imported, Importer, NoNodes, Progress, import};
use crate::store::database::Database;
use crate::store::generation::Manifest;
use crate::store::history::{Event, EventDetail, Record, StoredRecord};
use crate::store::layout::STATE_DIRECTORY;
use crate::store::objects::{Blob, PreparedBlob, prepare};
use crate::store::recover::{active_of, confirm_in, ensure_tree, lock};
use crate::store::tree::{Tree, stamped};
use crate::store::{Layout, Store, StoreError, StoreResult, active, identity, own, trash};
use crate::world::source::{SourceDirectory, scan};
use crate::world::{EntryType, World};

/// Batches of an import that may wait to be inserted: bounds the memory it takes.
const BATCHES_AHEAD: usize = 4;

/// Imports `params.directory` as publication 1 of a new workspace. When `progress` answers `false`, or
/// anything fails, nothing of it stays.
pub fn initialize(
    world: &World,
    params: &Init,
    config: &Config,
    progress: &mut Progress<'_>,
) -> Result<Initialized, Refusal> {
    let root = &params.directory;
    check_place(world, root, params.force)?;
    let layout = Layout::new(root);
    // What a link leads to is somebody's, and this is about to be cleared.
    own::must_be(world, layout.state(), EntryType::Directory)?;
    let mode = if params.shared { 0o755 } else { 0o700 };
    if world.disk.metadata(layout.state())?.is_none() {
        world.disk.create_directory(layout.state(), mode)?;
    }
    let held = lock(world, &layout, Utf8Path::new(""), std::process::id())?;
    // Another init may have finished while this one waited for LOCK.
    refuse_workspace(world, &layout)?;
    let outcome = clear(world, &layout)
        .map_err(Refusal::from)
        .and_then(|()| build(world, &layout, params, config, mode, progress));
    if outcome.is_err() {
        if let Err(error) = clear(world, &layout) {
            tracing::warn!(%error, "what a failed init left behind could not be cleared");
        }
        drop(held);
        remove_if_empty(world, &layout);
    }
    outcome
}

fn refuse_workspace(world: &World, layout: &Layout) -> Result<(), Refusal> {
    if world.disk.metadata(&layout.database())?.is_some() {
        let root = layout.root();
        let message = format!("`{root}` is a workspace already");
        return Err(Diagnostic::new(Code::AlreadyAWorkspace, message)
            .at(root.as_str())
            .into());
    }
    Ok(())
}

fn check_place(world: &World, root: &Utf8Path, force: bool) -> Result<(), Refusal> {
    match world.disk.metadata(root)? {
        Some(found) if found.kind == EntryType::Directory => {}
        Some(_) => {
            let message = format!("`{root}` is no directory");
            return Err(Diagnostic::new(Code::NotFound, message)
                .at(root.as_str())
                .into());
        }
        None => {
            let message = format!("there is no directory `{root}`");
            return Err(Diagnostic::new(Code::NotFound, message)
                .at(root.as_str())
                .into());
        }
    }
    if root
        .components()
        .any(|part| part.as_str().eq_ignore_ascii_case(STATE_DIRECTORY))
    {
        let message = format!("`{root}` lies inside the state directory of a workspace");
        return Err(Diagnostic::new(Code::AlreadyAWorkspace, message)
            .at(root.as_str())
            .into());
    }
    refuse_workspace(world, &Layout::new(root))?;
    let filesystem = world.disk.filesystem(root)?;
    if filesystem.is_refused() && !force {
        let name = filesystem.name().unwrap_or("unknown");
        let message =
            format!("`{root}` lies on {name}, which does not keep locks and renames as promised");
        return Err(Diagnostic::new(Code::UnsupportedFilesystem, message)
            .at(root.as_str())
            .into());
    }
    Ok(())
}

/// Empties the state directory, but for LOCK and `changes/`.
fn clear(world: &World, layout: &Layout) -> Result<(), StoreError> {
    for (name, kind) in world.disk.read_directory(layout.state())? {
        if name != "LOCK" && name != "changes" {
            trash::remove(world, &layout.state().join(name), kind)?;
        }
    }
    Ok(())
}

/// Takes a state directory away in which only LOCK is left. LOCK goes with it: nobody can hold it, for
/// there is no workspace.
fn remove_if_empty(world: &World, layout: &Layout) {
    let names = world
        .disk
        .read_directory(layout.state())
        .unwrap_or_default();
    if names.iter().all(|(name, _)| name == "LOCK") {
        drop(world.disk.remove_file(&layout.lock()));
        drop(world.disk.remove_directory(layout.state()));
    }
}

fn build(
    world: &World,
    layout: &Layout,
    params: &Init,
    config: &Config,
    mode: u32,
    progress: &mut Progress<'_>,
) -> Result<Initialized, Refusal> {
    let disk = &world.disk;
    disk.set_mode(layout.state(), mode)?;
    for directory in [
        layout.objects(),
        layout.generations(),
        layout.staging(),
        layout.trash(),
    ] {
        disk.create_directory(&directory, mode)?;
    }
    for (name, content) in own::KEEP_OUT {
        disk.create(&layout.state().join(name), content.as_bytes(), 0o644)?;
    }
    let staged = layout.staging().join("store.db");
    let file_mode = mode & 0o666;
    // Who can open LOCK can hold it, and with it the owner off: it is never for others.
    disk.set_mode(&layout.lock(), 0o600)?;
    let mut store = Store {
        world: world.clone(),
        layout: layout.clone(),
        database: Database::create(&staged)?,
    };
    // The log and its index take the mode of the database.
    disk.set_mode(&staged, file_mode)?;
    let imported = import_directory(&mut store, params, config, progress)?;
    let id = WorkspaceId::from_uuid(world.entropy.uuid());
    let stored = record_first(&mut store, params, &imported, id)?;
    ensure_tree(&store, &stored, &stored.tree()?, None)?;
    publish_first(store, &staged, &stored)?;
    Ok(answer(layout, id, &stored.record, imported))
}

fn import_directory(
    store: &mut Store,
    params: &Init,
    config: &Config,
    progress: &mut Progress<'_>,
) -> Result<Imported, Refusal> {
    let abandoned =
        || -> Refusal { Diagnostic::new(Code::Cancelled, "the import was abandoned").into() };
    let source = SourceDirectory::open(&params.directory)?;
    let scan = scan(&source, &mut |seen| progress(seen, None))?.ok_or_else(abandoned)?;
    let (world, layout) = (store.world.clone(), store.layout.clone());
    // The sink writes while the draft reads nothing of the store: all nodes are made in memory.
    let nodes = NoNodes;
    let database = &mut store.database;
    std::thread::scope(|scope| {
        let (sender, batches) = mpsc::sync_channel::<Vec<PreparedBlob>>(BATCHES_AHEAD);
        // Beside the reading and packing of the next ones.
        let inserting = scope.spawn(move || insert(database, &batches));
        let mut sink = |blobs: Vec<Blob>| -> Result<(), Refusal> {
            let prepared: Result<Vec<_>, StoreError> = blobs
                .par_iter()
                .map(|blob| prepare(&world, &layout, blob, false))
                .collect();
            // Nobody takes it only when inserting has failed, and that is what is told.
            sender.send(prepared?).map_err(|_| abandoned())
        };
        let mut importer = Importer {
            source: &source,
            names: params.names,
            path_bytes: layout.longest_path(),
            file_bytes: config.limits.file_bytes,
            sink: &mut sink,
            progress: &mut |done, total| progress(done, total),
        };
        let imported = import(scan, &nodes, &mut importer);
        drop(sender);
        match inserting.join() {
            Ok(inserted) => inserted?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        imported?.ok_or_else(abandoned)
    })
}

/// Names every batch in the database that is being made.
fn insert(database: &mut Database, batches: &Receiver<Vec<PreparedBlob>>) -> StoreResult<()> {
    for batch in batches {
        database
            .transaction(|database| batch.iter().try_for_each(|blob| database.insert_blob(blob)))?;
        database.checkpoint(false)?;
    }
    Ok(())
}

fn record_first(
    store: &mut Store,
    params: &Init,
    imported: &Imported,
    id: WorkspaceId,
) -> Result<StoredRecord, Refusal> {
    let seq = Seq::FIRST;
    let tree = stamped(&Tree::empty(), &imported.tree, seq.get(), &NoNodes)?;
    let message = match params.message.as_str() {
        "" if tree.root().files() == 1 => "import of 1 file".to_owned(),
        "" => format!("import of {} files", tree.root().files()),
        given => given.to_owned(),
    };
    let record = Record {
        schema: Record::SCHEMA.to_owned(),
        seq,
        revision: Manifest::of(seq, &tree).revision()?,
        tree: tree.content(),
        stamped: tree.stamped(),
        files: tree.root().files(),
        bytes: tree.root().bytes(),
        prev: None,
        parent: None,
        base: None,
        submission: SubmissionId::from_uuid(store.world.entropy.uuid()),
        on_stale: OnStale::Reject,
        rebased: false,
        merged: Vec::new(),
        moves: Vec::new(),
        changes: tree.root().files(),
        author: params.author.clone(),
        message,
        published_at: Record::time(store.world.clock.now(), None),
    };
    let digest = Record::digest(&record.encode()?);
    let stored = StoredRecord {
        digest,
        record,
        collected: false,
    };
    let at = stored.record.published_at;
    store.database.transaction(|database| {
        identity::write(database, id, imported.names)?;
        database.insert_nodes(&tree, None)?;
        database.insert_record(&stored.record)?;
        database.append_event(&Event {
            at,
            detail: EventDetail::Initialized(&stored),
        })?;
        confirm_in(database, &stored)
    })?;
    Ok(stored)
}

/// ACTIVE first, then the name of the database: from here on it is a workspace.
fn publish_first(store: Store, staged: &Utf8Path, stored: &StoredRecord) -> Result<(), Refusal> {
    let Store {
        world,
        layout,
        database,
    } = store;
    database.fold_in()?;
    database.close()?;
    let log = Utf8PathBuf::from(format!("{staged}-wal"));
    if world
        .disk
        .metadata(&log)?
        .is_some_and(|found| found.len > 0)
    {
        return Err(StoreError::damaged(
            "the write-ahead log of the new database was not folded in",
        )
        .into());
    }
    let bytes = active_of(stored).encode()?;
    active::switch(&world, &layout, &bytes).map_err(|error| match error {
        active::SwitchError::NotSwitched(error) | active::SwitchError::InDoubt(error) => {
            Refusal::from(error)
        }
    })?;
    let disk = &world.disk;
    // SQLite synced it at the checkpoint; its name is about to say that all is there. Trees are not
    // synced: one that is lost is made anew.
    disk.sync_file(staged)?;
    // The name of the state directory in the workspace, before anyone can take it for a workspace:
    // whoever opens it after a kill answers at once.
    disk.sync_directory(layout.root())?;
    disk.rename(staged, &layout.database())?;
    disk.sync_directory(layout.state())?;
    Ok(())
}

fn answer(layout: &Layout, id: WorkspaceId, record: &Record, imported: Imported) -> Initialized {
    let skipped_total = imported.skipped.len() as u64;
    let mut skipped: Vec<Skipped> = imported.skipped;
    let truncated = skipped.len() > PAGE_ENTRIES;
    skipped.truncate(PAGE_ENTRIES);
    Initialized {
        schema: SchemaTag::new(),
        status: InitStatus::Initialized,
        workspace: layout.root().to_owned(),
        id,
        seq: record.seq,
        revision: record.revision,
        tree: record.tree,
        files: record.files,
        bytes: record.bytes,
        names: imported.names,
        skipped,
        skipped_total,
        truncated,
    }
}
