//! Leaving out each sync in turn: the cuts must notice each one that matters.
//!
//! Owns: the table of syncs, when each is made, and what shows what it is for. A sync that is made and is not in
//! the table is told, and so is one that no file system misses though it is said to be missed.

use std::collections::BTreeSet;
use std::fmt;

use super::bench::Bench;
use super::deaf::Deaf;
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
    /// The syncs that SQLite makes of its log and its database while something is published.
    Database,
}

/// A sync that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Omission {
    /// When.
    pub when: When,
    /// Which, as a step of the disk; more than one where only together they are missed.
    pub syncs: &'static [&'static str],
    /// Where the real file systems of the lab are known to miss it; empty where it is explained.
    pub missed_on: &'static [Kind],
}

impl fmt::Display for Omission {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} {}", self.when, self.syncs.join(" + "))
    }
}

const fn omission(
    when: When,
    syncs: &'static [&'static str],
    missed_on: &'static [Kind],
) -> Omission {
    Omission {
        when,
        syncs,
        missed_on,
    }
}

const ALL: &[Kind] = &Kind::ALL;
/// On ext4 with a journal ACTIVE is written in time by chance, now and then.
const ALL_BUT_EXT4: &[Kind] = &[Kind::Ext4WithoutJournal, Kind::Xfs, Kind::Btrfs];
/// With a journal or a log the next transaction of the database carries the names as well.
const WITHOUT_JOURNAL: &[Kind] = &[Kind::Ext4WithoutJournal];

/// All of them. Those that nothing misses are explained in docs/durability.md.
pub const OMISSIONS: [Omission; 17] = [
    omission(When::Init, &["sync-directory objects"], &[]),
    omission(When::Init, &["sync-file staging/object-U"], ALL),
    omission(When::Init, &["sync-directory objects/R"], WITHOUT_JOURNAL),
    omission(When::Init, &["sync-file ACTIVE.next"], ALL_BUT_EXT4),
    omission(When::Init, &["sync-directory state"], ALL),
    omission(When::Init, &["sync-file staging/store.db"], &[]),
    omission(When::Init, &["sync-directory outside"], &[]),
    omission(When::Publish, &["sync-directory objects"], &[]),
    omission(When::Publish, &["sync-file staging/object-U"], ALL),
    omission(
        When::Publish,
        &["sync-directory objects/R"],
        WITHOUT_JOURNAL,
    ),
    omission(When::Publish, &["sync-file ACTIVE.next"], ALL_BUT_EXT4),
    omission(When::Publish, &["sync-directory state"], ALL),
    omission(When::Open, &["sync-file ACTIVE.next"], ALL_BUT_EXT4),
    omission(When::Open, &["sync-directory state"], &[]),
    omission(
        When::Open,
        &["sync-file ACTIVE.next", "sync-directory state"],
        ALL_BUT_EXT4,
    ),
    // Without a journal half a tree is none: the check of the file system takes it away.
    omission(When::Boot, &[], &[Kind::Ext4, Kind::Xfs, Kind::Btrfs]),
    omission(When::Database, &[], ALL),
];

/// The syncs that a daemon makes and the table does not have.
pub fn unknown(bench: &Bench, kind: Kind) -> Outcome<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut stage = Stage::new(bench, kind, 1, &[])?;
    let mut note = |when: When, stage: &Stage<'_>| {
        for step in stage.lab().trace() {
            let is_known = OMISSIONS
                .iter()
                .any(|omission| omission.when == when && omission.syncs.contains(&step.as_str()));
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
    let left_out = omission.syncs;
    let at_init = if omission.when == When::Init {
        left_out
    } else {
        &[]
    };
    let mut stage = Stage::new(bench, kind, seed, at_init)?;
    let mut wrecks = Vec::new();
    match omission.when {
        When::Init => wrecks.push(stage.cut("after init")?),
        When::Publish => {
            stage.restart(left_out)?;
            for deed in [Deed::Rename, Deed::Enlarge, Deed::Merge, Deed::Enlarge] {
                stage.perform(deed)?;
                wrecks.push(stage.cut("after a publication")?);
            }
        }
        When::Open => {
            stage.perform(Deed::Rename)?;
            stage.die_renamed(left_out)?;
            wrecks.push(stage.cut("after a kill and a restart")?);
        }
        When::Database => {
            let deaf = Deaf::attach(stage.running()?, &stage.lab().state())?;
            for deed in [Deed::Rename, Deed::Merge] {
                stage.perform(deed)?;
                wrecks.push(stage.cut("after a publication")?);
            }
            drop(deaf);
        }
        When::Boot => {
            stage.perform(Deed::Rename)?;
            stage.write_half()?;
            let mut wreck = stage.cut("with half a tree")?;
            wreck.reboots = false;
            wrecks.push(wreck);
        }
    }
    stage.clear()?;
    Ok(wrecks)
}

/// Goes through a part of the table on the kinds of a bench, and tells who noticed what. Answers how many
/// were noticed.
pub fn run(bench: &Bench, omissions: &[Omission]) -> Outcome<u64> {
    let (mut count, mut unmissed) = (0, Vec::new());
    for &omission in omissions {
        if omission.when == When::Database && !Deaf::is_possible() {
            println!("without {omission}: not tried: the program `strace` is missing");
            continue;
        }
        for kind in bench.kinds() {
            let notice = noticed(bench, kind, omission)?;
            let told = notice.as_deref().unwrap_or("not noticed");
            println!("without {omission} on {}: {told}", kind.name());
            count += u64::from(notice.is_some());
            if notice.is_none() && omission.missed_on.contains(&kind) {
                unmissed.push(format!("{omission} on {}", kind.name()));
            }
        }
    }
    if unmissed.is_empty() {
        Ok(count)
    } else {
        Err(violation(format!("not noticed: {unmissed:?}")))
    }
}
