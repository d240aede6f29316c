//! What is asked of leases, pins and trees after each restart, and whether anything is left over.

use std::collections::BTreeSet;

use semaprax_protocol::documents::KeptReason;
use semaprax_protocol::request::{Collect, LeaseListParams, LeaseRenew, WhyParams};

use super::account::Lease;
use super::check::Check;
use super::readers::Guard;
use super::{During as _, Outcome, story, violation};
use crate::oracle::are_spares;
use crate::process::{PATIENCE, within};

/// Trees in the trash from which on its emptying is waited for.
const TRASH: usize = 4;

impl Check<'_> {
    /// Detached leases live, with their trees; connection leases are gone.
    pub(super) fn leases(&mut self, fresh: bool) -> Outcome<()> {
        let answer = self
            .client
            .call(LeaseListParams {})
            .during(|| "lease list".to_owned())?;
        if fresh && let Some(entry) = answer.leases.iter().find(|entry| entry.expires.is_none()) {
            return Err(violation(format!(
                "a connection lease outlived its daemon: {entry:?}"
            )));
        }
        let live: BTreeSet<_> = answer.leases.iter().map(|entry| entry.lease).collect();
        if let Some(lease) = self
            .account
            .released
            .iter()
            .find(|lease| live.contains(lease))
        {
            return Err(violation(format!("the released lease {lease} is back")));
        }
        let lost = self
            .account
            .leases
            .iter()
            .find(|(id, lease)| !lease.in_doubt && !live.contains(id));
        if let Some((id, lease)) = lost {
            return Err(violation(format!(
                "the detached lease {id} is gone: {lease:?}"
            )));
        }
        self.account.leases.retain(|id, _| live.contains(id));
        for entry in answer.leases.iter().filter(|entry| entry.expires.is_some()) {
            let lease = Lease {
                seq: entry.seq.get(),
                revision: entry.revision,
                path: None,
                in_doubt: false,
            };
            let held = self.account.leases.entry(entry.lease).or_insert(lease);
            held.in_doubt = false;
            if (held.seq, held.revision) != (entry.seq.get(), entry.revision) {
                return Err(violation(format!("the lease {held:?} is {entry:?} now")));
            }
            let revision = entry.revision;
            let lease = entry.lease;
            let grant = self
                .client
                .call(LeaseRenew {
                    lease,
                    ttl_ms: None,
                })
                .during(|| format!("renewing a lease of {revision}"))?;
            self.tree_of(grant.seq.get(), &grant.path)?;
        }
        Ok(())
    }

    pub(super) fn pins(&mut self) -> Outcome<()> {
        for (revision, pinned) in &mut self.account.pins {
            let why = self
                .client
                .call(WhyParams {
                    revision: revision.to_string(),
                })
                .during(|| format!("why {revision}"))?;
            let now = why.reasons.contains(&KeptReason::Pinned);
            if pinned.is_some_and(|pinned| pinned != now) {
                return Err(violation(format!("the pin of {revision} is {now}")));
            }
            *pinned = Some(now);
        }
        self.account.pins.retain(|_, pinned| *pinned == Some(true));
        Ok(())
    }

    /// After a collection nothing is left but what has a reason.
    pub(super) fn garbage(&mut self) -> Outcome<()> {
        let collection = self
            .client
            .call(Collect {
                dry_run: false,
                min_age_ms: Some(0),
                keep: Some(1),
            })
            .during(|| "gc".to_owned())?;
        let mut kept: Vec<_> = collection
            .kept
            .iter()
            .map(|kept| kept.revision.to_string())
            .collect();
        kept.sort();
        let there = self.lab.names("generations");
        if there != kept {
            return Err(violation(format!("gc keeps {kept:?}, there is {there:?}")));
        }
        let staged = self.lab.names("staging");
        if !are_spares(&staged) {
            return Err(violation(format!("{staged:?} stays in staging")));
        }
        // The writer empties the trash when it is idle, which takes a moment: not waited for each time.
        let trash = self.lab.names("trash").len();
        let empty = || self.lab.names("trash").is_empty().then_some(());
        if trash > TRASH && within(PATIENCE, empty).is_none() {
            return Err(violation(format!(
                "the trash is not emptied: {trash} trees"
            )));
        }
        let objects: usize = self
            .lab
            .names("objects")
            .iter()
            .map(|head| self.lab.names(&format!("objects/{head}")).len())
            .sum();
        let large = self.history.words_of(story::BIG);
        let as_many = if self.kept.is_some() {
            objects <= large.len()
        } else {
            objects == large.len()
        };
        if !as_many {
            return Err(violation(format!(
                "there are {objects} objects of {} large files",
                large.len()
            )));
        }
        Ok(())
    }

    /// Trees under leases of all kinds are whole after the collection.
    pub(super) fn held_trees(&self, guards: &[Guard]) -> Outcome<()> {
        for guard in guards {
            self.tree_of(guard.seen.seq, &guard.files)?;
        }
        for lease in self.account.leases.values() {
            let tree = self
                .lab
                .state()
                .join(format!("generations/{}/files", lease.revision));
            self.tree_of(lease.seq, &tree)?;
        }
        Ok(())
    }
}
