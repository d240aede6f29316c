//! `verify`: everything against its digest, and what can be mended from the store.
//!
//! Owns: the walk over records, journal, nodes, blobs and trees, and the repair of ACTIVE and of trees.
//! Leftovers in `staging/` and `trash/` are not damage.

use std::collections::BTreeSet;

use camino::Utf8Path;
use semaprax_protocol::documents::{Damage, Verification, VerificationCounts, VerificationStatus};
use semaprax_protocol::request::Verify;
use semaprax_protocol::{BlobDigest, Refusal, Revision, SchemaTag, Seq, StampedDigest};
use serde_json::json;

use super::{Holder, Writer};
use crate::store::check::{Depth, check_tree};
use crate::store::database::Database;
use crate::store::generation::Manifest;
use crate::store::history::{Event, EventDetail, StoredRecord};
use crate::store::layout::GenerationLayout;
use crate::store::recover::{
    self, ensure_tree, is_of_this_boot, lock, mend, read_tip, void_beyond,
};
use crate::store::tree::{Below, Branch, Tree};
use crate::store::{Layout, Store, StoreError, StoreResult, active, trash};
use crate::world::{EntryType, World};

const ROWS_AT_ONCE: usize = 512;

impl Writer {
    pub(super) fn verify(&mut self, params: &Verify) -> Result<Verification, Refusal> {
        let tip = self.ledger.tip.stored.record.seq;
        if params.repair {
            self.drop_spares();
        }
        let mut check = Check::new(&self.ledger.store, params);
        check.is_open = true;
        check.everything(tip)?;
        let verification = check.finish();
        if verification.damage.iter().any(|damage| damage.repaired) {
            let detail = json!({ "damage": verification.damage.len() });
            self.ledger.record_event(EventDetail::Other {
                kind: "repaired",
                detail,
            })?;
        }
        Ok(verification)
    }
}

/// Verifies, and where asked repairs, a workspace that cannot be opened: ACTIVE is restored to the
/// newest confirmed record, and what that leaves out is named.
pub fn verify_unopened(
    world: &World,
    root: &Utf8Path,
    holder: &Holder,
    params: &Verify,
) -> Result<Verification, Refusal> {
    let layout = Layout::new(root);
    active::refuse_newer(world, &layout)?;
    let held = lock(world, &layout, &holder.socket, holder.pid)?;
    let database = Database::open_writer(&layout.database())?;
    let mut store = Store {
        world: world.clone(),
        layout,
        database,
    };
    let mut found = Vec::new();
    let tip = match read_tip(&store.world, &store.layout, &store.database) {
        Ok(tip) => Some(tip),
        // An error of the disk is no damage: what cannot be read now may well be there.
        Err(error @ StoreError::Damaged { .. }) if params.repair => {
            let (tip, left_out) = recover::restore_active(&mut store)?;
            let names: Vec<String> = left_out.iter().map(|seq| format!("@{seq}")).collect();
            let what = if names.is_empty() {
                "nothing".to_owned()
            } else {
                names.join(", ")
            };
            let detail = format!(
                "{error}; ACTIVE is @{} again, left out: {what}",
                tip.record.seq
            );
            found.push(damage("active", None, None, detail, true));
            void_beyond(&mut store, tip.record.seq, "repair")?;
            let at = store.world.clock.now();
            let detail = json!({ "restored": tip.record.seq, "leftOut": left_out });
            store.database.transaction(|database| {
                database.append_event(&Event {
                    at,
                    detail: EventDetail::Other {
                        kind: "active-restored",
                        detail,
                    },
                })
            })?;
            Some(tip)
        }
        // What a newer build wrote is nothing to repair.
        Err(error @ StoreError::Version { .. }) => return Err(error.into()),
        Err(error) => {
            found.push(damage("active", None, None, error.to_string(), false));
            None
        }
    };
    let mut check = Check::new(&store, params);
    check.damage = found;
    if let Some(tip) = tip {
        if params.repair {
            ensure_tree(&store, &tip, &tip.tree()?, None)?;
        }
        check.everything(tip.record.seq)?;
    }
    let verification = check.finish();
    store.database.close()?;
    drop(held.write(b""));
    Ok(verification)
}

fn damage(
    kind: &str,
    revision: Option<Revision>,
    path: Option<String>,
    detail: String,
    repaired: bool,
) -> Damage {
    Damage {
        kind: kind.to_owned(),
        revision,
        path,
        detail,
        repaired,
    }
}

struct Check<'check> {
    store: &'check Store,
    params: &'check Verify,
    /// Whether a writer has recovered the workspace.
    is_open: bool,
    counts: VerificationCounts,
    damage: Vec<Damage>,
    nodes: BTreeSet<StampedDigest>,
    blobs: BTreeSet<BlobDigest>,
}

impl<'check> Check<'check> {
    fn new(store: &'check Store, params: &'check Verify) -> Self {
        Self {
            store,
            params,
            is_open: false,
            counts: VerificationCounts::default(),
            damage: Vec::new(),
            nodes: BTreeSet::new(),
            blobs: BTreeSet::new(),
        }
    }

    fn everything(&mut self, tip: Seq) -> Result<(), Refusal> {
        if self.params.deep {
            for line in self.store.database.integrity()? {
                self.damage
                    .push(damage("database", None, None, line, false));
            }
        }
        self.journal()?;
        self.records(tip)?;
        self.active_tree(tip)?;
        self.generations()
    }

    fn note(&mut self, kind: &str, outcome: StoreResult<()>) -> StoreResult<()> {
        match outcome {
            Err(StoreError::Damaged { what }) => {
                self.damage.push(damage(kind, None, None, what, false));
                Ok(())
            }
            other => other,
        }
    }

    fn journal(&mut self) -> StoreResult<()> {
        let mut last = None;
        let mut since = 0;
        loop {
            let page = match self.store.database.events(since, ROWS_AT_ONCE) {
                Ok(page) => page,
                error => return self.note("event", error.map(drop)),
            };
            let Some(end) = page.last() else {
                return Ok(());
            };
            since = end.entry;
            for entry in page {
                self.counts.events += 1;
                if entry.prev != last {
                    let detail = format!(
                        "journal entry {} does not follow the one before",
                        entry.entry
                    );
                    self.damage.push(damage("event", None, None, detail, false));
                }
                last = Some(entry.digest);
            }
        }
    }

    fn records(&mut self, tip: Seq) -> StoreResult<()> {
        let mut before: Option<StoredRecord> = None;
        for seq in 1..=tip.get() {
            let Some(seq) = Seq::new(seq) else { continue };
            let stored = match self.store.database.record(seq) {
                Ok(Some(stored)) => stored,
                Ok(None) => {
                    let detail = format!("the record of @{seq} is missing");
                    self.damage
                        .push(damage("record", None, None, detail, false));
                    continue;
                }
                Err(error) => {
                    self.note("record", Err(error))?;
                    continue;
                }
            };
            self.counts.records += 1;
            let follows = before.as_ref().map(|before| before.digest) == stored.record.prev
                && before.as_ref().map(|before| before.record.revision) == stored.record.parent;
            if self.store.database.publication_time(seq.get())?
                != Some(stored.record.published_at.as_nanos())
            {
                let detail = format!("the time of @{seq} is not that of its record");
                self.damage.push(damage(
                    "record",
                    Some(stored.record.revision),
                    None,
                    detail,
                    false,
                ));
            }
            if !follows {
                let detail = format!("the record of @{seq} does not follow the one before");
                self.damage.push(damage(
                    "record",
                    Some(stored.record.revision),
                    None,
                    detail,
                    false,
                ));
            }
            if self.params.deep && !stored.collected {
                let outcome = stored.tree().and_then(|tree| self.content(tree.root()));
                self.note("node", outcome)?;
            }
            before = Some(stored);
        }
        Ok(())
    }

    /// Every node and blob below, each once.
    fn content(&mut self, branch: &Branch) -> StoreResult<()> {
        if !self.nodes.insert(branch.stamped()) {
            return Ok(());
        }
        self.counts.nodes += 1;
        let store = self.store;
        for below in branch.below(&store.database)? {
            match below {
                Below::Node(node) => {
                    let outcome = self.content(node);
                    self.note("node", outcome)?;
                }
                Below::Leaf(leaf) => {
                    if self.blobs.insert(leaf.blob) {
                        self.counts.blobs += 1;
                        match store.database.blob(&store.world, &store.layout, &leaf.blob) {
                            Ok(_) => {}
                            Err(StoreError::World(error)) => {
                                self.damage.push(damage(
                                    "blob",
                                    None,
                                    None,
                                    error.to_string(),
                                    false,
                                ));
                            }
                            Err(error) => self.note("blob", Err(error))?,
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Other trees may have been collected; that of ACTIVE must be there.
    fn active_tree(&mut self, tip: Seq) -> Result<(), Refusal> {
        let store = self.store;
        // A record that cannot be read is damage that was named already.
        let Ok(Some(stored)) = store.database.record(tip) else {
            return Ok(());
        };
        let revision = stored.record.revision;
        let place = store.layout.generation(&revision);
        if store.world.disk.metadata(place.directory())?.is_some() {
            return Ok(());
        }
        let made = if self.params.repair {
            ensure_tree(store, &stored, &stored.tree()?, None)
        } else {
            Err(StoreError::damaged("the tree of ACTIVE is missing"))
        };
        let (detail, repaired) = match made {
            Ok(()) => ("the tree of ACTIVE was missing".to_owned(), true),
            Err(error) => (error.to_string(), false),
        };
        self.damage
            .push(damage("tree", Some(revision), None, detail, repaired));
        Ok(())
    }

    /// Other programs rely on `manifest.json`, and its digest is the revision.
    fn manifest(
        &mut self,
        stored: &StoredRecord,
        tree: &Tree,
        layout: &GenerationLayout,
    ) -> Result<(), Refusal> {
        let disk = &self.store.world.disk;
        let right = Manifest::of(stored.record.seq, tree).encode()?;
        let place = layout.manifest();
        let is_right = match disk.metadata(&place)? {
            Some(found) if found.kind == EntryType::File => disk.read(&place)? == right,
            _ => false,
        };
        if is_right {
            return Ok(());
        }
        if self.params.repair {
            let name = self.store.world.entropy.uuid().to_string();
            let aside = self.store.layout.staging().join(name);
            disk.create(&aside, &right, 0o444)?;
            disk.rename(&aside, &place)?;
        }
        let detail = "manifest.json is not that of the revision".to_owned();
        let (revision, repaired) = (Some(stored.record.revision), self.params.repair);
        self.damage
            .push(damage("manifest", revision, None, detail, repaired));
        Ok(())
    }

    fn generations(&mut self) -> Result<(), Refusal> {
        let store = self.store;
        let generations = store.layout.generations();
        for (name, kind) in store.world.disk.read_directory(&generations)? {
            let known = match name.parse::<Revision>() {
                Ok(revision) if kind == EntryType::Directory => {
                    match store.database.record_by_revision(&revision) {
                        Ok(known) => known,
                        // The record is damaged, which was named already; its tree is not foreign.
                        Err(StoreError::Damaged { .. }) => continue,
                        Err(error) => return Err(error.into()),
                    }
                }
                _ => None,
            };
            match known {
                Some(stored) => self.generation(&stored)?,
                None => {
                    if self.params.repair {
                        trash::discard(&store.world, &store.layout, &generations.join(&name))?;
                    }
                    let detail = "no publication has this generation".to_owned();
                    self.damage.push(damage(
                        "foreign",
                        None,
                        Some(name),
                        detail,
                        self.params.repair,
                    ));
                }
            }
        }
        Ok(())
    }

    /// A tree of an earlier boot promises nothing yet: a power cut may have left anything of it. It is
    /// mended as before a lease. Where nobody tells which boot this is, what is wrong with it is damage.
    fn of_this_boot(
        &self,
        stored: &StoredRecord,
        tree: &Tree,
        layout: &GenerationLayout,
    ) -> StoreResult<()> {
        let world = &self.store.world;
        if world.clock.boot_id().is_none() || is_of_this_boot(world, layout)? {
            return Ok(());
        }
        match ensure_tree(self.store, stored, tree, None) {
            // What it cannot be mended from is found and named below.
            Err(StoreError::Damaged { .. }) => Ok(()),
            other => other,
        }
    }

    fn generation(&mut self, stored: &StoredRecord) -> Result<(), Refusal> {
        let store = self.store;
        self.counts.generations += 1;
        let revision = stored.record.revision;
        let tree = match stored.tree() {
            Ok(tree) => tree,
            // Without content there is nothing to hold the tree against.
            Err(StoreError::Collected { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        self.counts.files += tree.root().files();
        let layout = store.layout.generation(&revision);
        if self.is_open {
            self.of_this_boot(stored, &tree, &layout)?;
        }
        self.manifest(stored, &tree, &layout)?;
        let depth = if self.params.deep {
            Depth::Content
        } else {
            Depth::Shape
        };
        let faults = match check_tree(store, &tree, &layout.files(), depth) {
            Ok(faults) => faults,
            Err(StoreError::Damaged { what }) => {
                self.damage
                    .push(damage("node", Some(revision), None, what, false));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let mut repaired = false;
        if self.params.repair && !faults.is_empty() {
            repaired = match mend(store, &layout, stored, &faults) {
                Ok(()) => check_tree(store, &tree, &layout.files(), depth)?.is_empty(),
                Err(error) => {
                    self.damage.push(damage(
                        "tree",
                        Some(revision),
                        None,
                        error.to_string(),
                        false,
                    ));
                    false
                }
            };
        }
        for fault in faults {
            let path = Some(fault.path).filter(|path| !path.is_empty());
            self.damage.push(damage(
                "tree",
                Some(revision),
                path,
                fault.fault.detail(),
                repaired,
            ));
        }
        Ok(())
    }

    fn finish(self) -> Verification {
        let status = if self.damage.is_empty() {
            VerificationStatus::Ok
        } else if self.damage.iter().all(|damage| damage.repaired) {
            VerificationStatus::Repaired
        } else {
            VerificationStatus::Damaged
        };
        Verification {
            schema: SchemaTag::new(),
            status,
            checked: self.counts,
            damage: self.damage,
        }
    }
}
