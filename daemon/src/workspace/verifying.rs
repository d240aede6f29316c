//! `verify`: everything against its digest, and what can be mended from the store.
//!
//! Owns: the walk over records, journal, nodes and blobs, and the repair of ACTIVE. `rows.rs` has the
//! database itself, `trees.rs` what is on disk beside it. Leftovers in `staging/` and `trash/` are not damage.

mod rows;
mod trees;

use std::collections::BTreeSet;

use camino::Utf8Path;
use semaprax_protocol::documents::{Damage, Verification, VerificationCounts, VerificationStatus};
use semaprax_protocol::request::Verify;
use semaprax_protocol::{BlobDigest, Refusal, Revision, SchemaTag, Seq, StampedDigest};
use serde_json::json;

use super::{Holder, Writer};
use crate::store::database::Database;
use crate::store::history::{EventDetail, StoredRecord};
use crate::store::rebuild::rebuild;
use crate::store::recover::{lock, read_tip};
use crate::store::restore::{restore_active, rewrite_active};
use crate::store::tree::{Below, Branch};
use crate::store::{Layout, Store, StoreError, StoreResult, active, own};
use crate::world::World;

use rows::{Structure, wrong_with};

const ROWS_AT_ONCE: usize = 512;

impl Writer {
    pub(super) fn verify(&mut self, params: &Verify) -> Result<Verification, Refusal> {
        let tip = self.ledger.tip.stored.record.seq;
        if params.repair {
            self.drop_spares();
        }
        let mut found = Vec::new();
        let structure = Structure::of(&self.ledger.store.database, params);
        structure.tell(params.repair, &mut found);
        let repair = params.repair && structure.is_sound;
        rows::check(&mut self.ledger.store, repair, &mut found)?;
        found.extend(self.pointer(repair)?);
        let mut check = Check::new(&self.ledger.store, params);
        check.damage = found;
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

impl Writer {
    /// While a writer has the workspace open, ACTIVE is what it wrote last.
    fn pointer(&self, repair: bool) -> StoreResult<Option<Damage>> {
        let (store, tip) = (&self.ledger.store, &self.ledger.tip.stored);
        let wrong = match read_tip(&store.world, &store.layout, &store.database) {
            Ok(found) if found.digest == tip.digest => return Ok(None),
            Ok(found) => format!(
                "ACTIVE names @{}, not @{}",
                found.record.seq, tip.record.seq
            ),
            Err(error) if error.is_damage() => error.to_string(),
            Err(error) => return Err(error),
        };
        if repair {
            rewrite_active(store, tip)?;
        }
        Ok(Some(damage("active", None, None, wrong, repair)))
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
    super::must_be_workspace(world, &layout)?;
    own::check(world, &layout)?;
    active::refuse_newer(world, &layout)?;
    let held = lock(world, &layout, &holder.socket, holder.pid)?;
    let mut database = Database::open_writer(&layout.database())?;
    let mut structure = Structure::of(&database, params);
    if params.repair && !structure.is_sound {
        database = rebuild(world, &layout, database)?;
        structure.is_sound = wrong_with(&database).is_empty();
    }
    // Nothing more is written into a file whose structure is broken.
    let repair = params.repair && structure.is_sound;
    let mut store = Store {
        world: world.clone(),
        layout,
        database,
    };
    let mut found = Vec::new();
    structure.tell(params.repair, &mut found);
    rows::check(&mut store, repair, &mut found)?;
    let tip = match read_tip(&store.world, &store.layout, &store.database) {
        Ok(tip) => Some(tip),
        // An error of the disk is no damage: what cannot be read now may well be there.
        Err(error) if error.is_damage() && repair => {
            let (tip, left_out) = restore_active(&mut store)?;
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
            own::make_missing(&store.world, &store.layout)?;
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
    /// Blobs that the store cannot give, and why.
    lost: Vec<(BlobDigest, String)>,
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
            lost: Vec::new(),
        }
    }

    fn everything(&mut self, tip: Seq) -> Result<(), Refusal> {
        self.journal()?;
        self.records(tip)?;
        self.mend_blobs()?;
        self.active_tree(tip)?;
        self.generations()
    }

    fn note(&mut self, kind: &str, outcome: StoreResult<()>) -> StoreResult<()> {
        match outcome {
            Err(error) if error.is_damage() => {
                let detail = error.to_string();
                self.damage.push(damage(kind, None, None, detail, false));
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
            let Some((first, end)) = page.first().zip(page.last()) else {
                return Ok(());
            };
            if first.prev != last {
                let detail = format!(
                    "journal entry {} does not follow the one before",
                    first.entry
                );
                self.damage.push(damage("event", None, None, detail, false));
            }
            self.counts.events += page.len() as u64;
            (since, last) = (end.entry, Some(end.digest));
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
            let follows = match &before {
                Some(before) => stored.follows(before),
                None => stored.record.prev.is_none() && stored.record.parent.is_none(),
            };
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
                            Err(error @ StoreError::World(_)) => {
                                self.lost.push((leaf.blob, error.to_string()));
                            }
                            Err(error) if error.is_damage() => {
                                self.lost.push((leaf.blob, error.to_string()));
                            }
                            Err(error) => return Err(error),
                        }
                    }
                }
            }
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
