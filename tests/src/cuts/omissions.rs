//! Leaving out each sync in turn: the cuts must notice each one that matters.
//!
//! Owns: the table of syncs, when each is made, and what shows what it is for. A sync that is made and is not in
//! the table is told, and so is one that no file system misses though it is said to be missed.

use std::collections::{BTreeMap, BTreeSet};

use super::bench::Bench;
use super::moments::Stage;
use super::tally::Tally;
use super::wreck::{Wreck, judge};
use crate::images::Kind;
use crate::torture::deeds::Deed;
use crate::torture::{Outcome, violation};

/// How often one is tried before it is taken for not missed.
const TRIES: u64 = 3;

/// When a sync is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// While a workspace is made.
    Init,
    /// While something is published.
    Publish,
    /// While a daemon opens the workspace after a kill.
    Open,
    /// No sync: the trees of another boot are taken as they are.
    Boot,
}

/// A sync that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Omission {
    /// When.
    pub when: When,
    /// Which, as a step of the disk; more than one where only together they are missed.
    pub sync: &'static str,
    /// Where the real file systems of the lab are known to miss it; empty where it is explained.
    pub missed_on: &'static [Kind],
}

const fn omission(when: When, sync: &'static str, missed_on: &'static [Kind]) -> Omission {
    Omission {
        when,
        sync,
        missed_on,
    }
}

/// All of them, and BOOT.
pub const OMISSIONS: [Omission; 15] = [
    omission(When::Init, "sync-directory objects", &[]),
    omission(When::Init, "sync-file staging/object-U", &[]),
    omission(When::Init, "sync-directory objects/R", &[]),
    omission(When::Init, "sync-file ACTIVE.next", &[]),
    omission(When::Init, "sync-directory state", &[]),
    omission(When::Init, "sync-file staging/store.db", &[]),
    omission(When::Init, "sync-directory outside", &[]),
    omission(When::Publish, "sync-directory objects", &[]),
    omission(When::Publish, "sync-file staging/object-U", &[]),
    omission(When::Publish, "sync-directory objects/R", &[]),
    omission(When::Publish, "sync-file ACTIVE.next", &[]),
    omission(When::Publish, "sync-directory state", &[]),
    omission(When::Open, "sync-file ACTIVE.next", &[]),
    omission(When::Open, "sync-directory state", &[]),
    omission(When::Boot, "", &[]),
];

/// The syncs that a daemon makes and the table does not have.
pub fn unknown(bench: &Bench, kind: Kind) -> Outcome<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut stage = Stage::new(bench, kind, 1, &[])?;
    let mut note = |when: When, stage: &Stage<'_>| {
        for step in stage.lab().trace() {
            let is_known = OMISSIONS
                .iter()
                .any(|omission| omission.when == when && omission.sync == step);
            if step.starts_with("sync-") && !is_known {
                found.insert(format!("{when:?} {step}"));
            }
        }
    };
    stage.lab().order_trace()?;
    for deed in [Deed::Rename, Deed::Enlarge, Deed::StepBack] {
        stage.perform(deed)?;
    }
    note(When::Publish, &stage);
    stage.lab().order_trace()?;
    stage.restart(&[])?;
    note(When::Open, &stage);
    stage.lab().order_nothing();
    stage.lab().order_trace()?;
    stage.import_another()?;
    note(When::Init, &stage);
    stage.clear()?;
    Ok(found)
}

/// What a file system says when a sync is left out: the violation that it shows, if it shows one.
pub fn noticed(bench: &Bench, kind: Kind, omission: Omission) -> Outcome<Option<String>> {
    for seed in 0..TRIES {
        let wrecks = wrecks(bench, kind, seed, omission)?;
        for wreck in wrecks {
            let mut tally = Tally::default();
            if let Err(error) = judge(bench, wreck, &mut tally) {
                let first = error.0.lines().next().unwrap_or_default();
                return Ok(Some(first.to_owned()));
            }
        }
    }
    Ok(None)
}

fn wrecks(bench: &Bench, kind: Kind, seed: u64, omission: Omission) -> Outcome<Vec<Wreck>> {
    let left_out = [omission.sync];
    let at_init: &[&str] = if omission.when == When::Init {
        &left_out
    } else {
        &[]
    };
    let mut stage = Stage::new(bench, kind, seed, at_init)?;
    let mut wrecks = Vec::new();
    match omission.when {
        When::Init => wrecks.push(stage.cut("after init")?),
        When::Publish => {
            stage.restart(&left_out)?;
            for deed in [Deed::Rename, Deed::Enlarge, Deed::Merge, Deed::Enlarge] {
                stage.perform(deed)?;
                wrecks.push(stage.cut("after a publication")?);
            }
        }
        When::Open => {
            stage.perform(Deed::Rename)?;
            stage.die_renamed(&left_out)?;
            wrecks.push(stage.cut("after a kill and a restart")?);
        }
        When::Boot => {
            stage.perform(Deed::Rename)?;
            let mut wreck = stage.cut("after a publication")?;
            wreck.reboots = false;
            wrecks.push(wreck);
        }
    }
    stage.clear()?;
    Ok(wrecks)
}

/// Goes through the table on all kinds of a bench. Answers who noticed what.
pub fn run(bench: &Bench) -> Outcome<BTreeMap<Omission, BTreeMap<Kind, Option<String>>>> {
    let mut found = BTreeMap::new();
    for omission in OMISSIONS {
        let mut kinds = BTreeMap::new();
        for kind in bench.kinds() {
            let notice = noticed(bench, kind, omission)?;
            println!(
                "without {:?} {} on {}: {}",
                omission.when,
                omission.sync,
                kind.name(),
                notice.as_deref().unwrap_or("not noticed")
            );
            kinds.insert(kind, notice);
        }
        found.insert(omission, kinds);
    }
    let unmissed: Vec<String> = found
        .iter()
        .flat_map(|(omission, kinds)| {
            omission
                .missed_on
                .iter()
                .filter(|kind| kinds.get(kind).is_some_and(Option::is_none))
                .map(|kind| format!("{:?} {} on {}", omission.when, omission.sync, kind.name()))
        })
        .collect();
    if unmissed.is_empty() {
        Ok(found)
    } else {
        Err(violation(format!("not noticed: {unmissed:?}")))
    }
}
