//! Collecting: trees that nobody needs, and content that the retention rules let go.
//!
//! Owns: `gc`, asked for or routine. The rules themselves are the store's.

use std::collections::BTreeSet;
use std::time::Duration;

use semaprax_protocol::documents::{Collection, KeptGeneration, KeptReason};
use semaprax_protocol::request::Collect;
use semaprax_protocol::{Refusal, Revision, SchemaTag};
use serde_json::json;

use super::Writer;
use crate::config::Retention;
use crate::store::StoreResult;
use crate::store::collect::{
    Recycled, TreeRule, materialized, reasons, recycle, remove, settle_ages,
};
use crate::store::history::EventDetail;
use crate::store::retention::{ContentRetention, collect_content, sweep_left, sweep_objects};
use crate::store::spares::{Spare, Standing};
use crate::store::trash::measure;
use crate::world::EntryType;

impl Writer {
    pub(super) fn collect(&mut self, params: &Collect) -> Result<Collection, Refusal> {
        self.expire_leases()?;
        if !params.dry_run {
            settle_ages(&self.ledger.store)?;
        }
        let keep = params.keep.unwrap_or(self.retention.trees);
        let (min_age, young_trees) = match params.min_age_ms {
            // Who names an age means it.
            Some(age) => (Duration::from_millis(age), None),
            None => (self.retention.young, Some(self.retention.young_trees)),
        };
        let tip = self.ledger.tip.stored.record.seq;
        let rule = TreeRule::new(&self.ledger.store, tip, keep, min_age, young_trees)?;
        let mut collection = self.collect_trees(rule, params.dry_run)?;
        if !params.dry_run {
            collection.freed_bytes = self.empty_trash_here();
        }
        if !params.dry_run {
            let held = self.held(&collection.kept);
            collection.content_collected = self.collect_content(&held)?;
        }
        if !collection.removed.is_empty() && !params.dry_run {
            let detail = json!({
                "removed": collection.removed,
                "contentCollected": collection.content_collected,
            });
            self.ledger.record_event(EventDetail::Other {
                kind: "collected",
                detail,
            })?;
        }
        Ok(collection)
    }

    /// Collects by the configured rules; nothing is recorded when there was nothing to do.
    pub(super) fn collect_routinely(&mut self) -> Result<(), Refusal> {
        let params = Collect {
            dry_run: false,
            min_age_ms: None,
            keep: None,
        };
        self.collect(&params).map(drop)
    }

    /// After a publication: what has too many trees after it to be young makes room. Where one more spare
    /// is wanted, it becomes one.
    pub fn tidy(&mut self) {
        let Retention {
            trees: keep,
            young: min_age,
            young_trees,
            ..
        } = self.retention;
        let young = match min_age {
            Duration::ZERO => 0,
            _ => young_trees,
        };
        let kept = usize::try_from(keep.max(young).max(1)).unwrap_or(usize::MAX);
        if self.ledger.standing.len() <= kept {
            return;
        }
        let tip = self.ledger.tip.stored.record.seq;
        let rule = TreeRule::new(&self.ledger.store, tip, keep, min_age, Some(young_trees));
        let rule = match rule {
            Ok(rule) => rule,
            Err(error) => return tracing::warn!(%error, "no tree can be recycled"),
        };
        while self.ledger.standing.len() > kept {
            let Some(oldest) = self.ledger.standing.pop_front() else {
                return;
            };
            let revision = oldest.revision;
            if let Err(error) = self.let_go(rule, oldest) {
                tracing::warn!(%error, %revision, "a tree could not be recycled");
            }
        }
    }

    fn let_go(&mut self, rule: TreeRule, oldest: Standing) -> StoreResult<()> {
        let store = &self.ledger.store;
        let pins = store.database.pins()?;
        let (revision, leases) = (&oldest.revision, self.workspace.lease_table());
        if self.ledger.spares.wants() {
            match recycle(store, rule, revision, &pins, leases)? {
                Recycled::Spare(place) => {
                    let spare = Spare::new(place, oldest.tree, oldest.seen);
                    self.ledger.spares.put(spare);
                    return Ok(());
                }
                // From now on it is a matter of the collector.
                Recycled::Kept(_) => return Ok(()),
                Recycled::WasLeased => {}
            }
        }
        remove(store, rule, revision, &pins, leases).map(drop)
    }

    fn collect_trees(&mut self, rule: TreeRule, dry_run: bool) -> Result<Collection, Refusal> {
        let standing = &mut self.ledger.standing;
        let store = &self.ledger.store;
        let pins = store.database.pins()?;
        let (mut removed, mut kept, mut freed_bytes) = (Vec::new(), Vec::new(), 0);
        for revision in materialized(store)? {
            let why = reasons(store, rule, &revision, &pins, &self.workspace.leases())?;
            if !why.is_empty() {
                kept.push(KeptGeneration {
                    revision,
                    reasons: why,
                });
                continue;
            }
            if dry_run {
                let generation = store.layout.generation(&revision);
                freed_bytes += measure(&store.world, generation.directory(), EntryType::Directory)?;
                removed.push(revision);
                continue;
            }
            if remove(store, rule, &revision, &pins, self.workspace.lease_table())? {
                standing.retain(|standing| standing.revision != revision);
                removed.push(revision);
                continue;
            }
            // A lease came in between.
            let why = reasons(store, rule, &revision, &pins, &self.workspace.leases())?;
            kept.push(KeptGeneration {
                revision,
                reasons: why,
            });
        }
        Ok(Collection {
            schema: SchemaTag::new(),
            removed,
            kept,
            freed_bytes,
            dry_run,
            content_collected: 0,
        })
    }

    /// The generations under lease: of connections, whether their tree is there or being made, and of
    /// readers that hold the LEASE of a tree.
    fn held(&self, kept: &[KeptGeneration]) -> BTreeSet<Revision> {
        let now = self.ledger.store.world.clock.since_boot();
        let leases = self.workspace.leases();
        let by_lease = leases.list(now).into_iter().map(|(_, held)| held.revision);
        let by_file = kept
            .iter()
            .filter(|kept| kept.reasons.contains(&KeptReason::Leased));
        by_lease.chain(by_file.map(|kept| kept.revision)).collect()
    }

    fn collect_content(&mut self, held: &BTreeSet<Revision>) -> Result<u64, Refusal> {
        let rule = ContentRetention {
            publications: self.retention.content_publications,
            age: self.retention.content_age,
            bytes: self.retention.content_bytes,
        };
        let tip = self.ledger.tip.stored.record.seq;
        let now = self.ledger.store.world.clock.now();
        let collected = collect_content(&mut self.ledger.store, tip, rule, held)?;
        sweep_left(&mut self.ledger.store)?;
        sweep_objects(&self.ledger.store)?;
        self.ledger
            .store
            .database
            .transaction(|database| database.forget_unchanged(now))?;
        Ok(collected)
    }
}
