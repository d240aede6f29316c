//! Cuts at chosen moments.
//!
//! Owns: a stage with one writer, on which things are done one after the other and the power is cut right
//! after an answer; and the cases a review of the design asked for: a kill between the rename of ACTIVE
//! and the sync of its directory with a cut after the restart has answered, and ACTIVE lost in a cut.

use std::fs::File;

use semaprax_protocol::request::DaemonStop;

use super::bench::{Bench, Site};
use super::tally::Tally;
use super::wreck::{Wreck, judge};
use crate::images::Kind;
use crate::torture::account::is_unknown;
use crate::torture::chance::Chance;
use crate::torture::deeds::{Deed, Writer};
use crate::torture::lab::{Lab, send};
use crate::torture::plan::Plan;
use crate::torture::readers::active;
use crate::torture::rounds::Place;
use crate::torture::{During as _, Outcome, locked, story, violation};

/// Where a flip is committed and not yet durable.
const RENAMED: &str = "after:rename:ACTIVE.next>ACTIVE:1";

/// A workspace with one writer.
#[derive(Debug)]
pub(super) struct Stage<'bench> {
    bench: &'bench Bench,
    // Before the site, which would be busy.
    place: Place,
    site: Site,
    chance: Chance,
}

impl<'bench> Stage<'bench> {
    /// A stage whose `init` leaves these syncs out.
    pub(super) fn new(
        bench: &'bench Bench,
        kind: Kind,
        seed: u64,
        omissions: &[&str],
    ) -> Outcome<Self> {
        let stage = Self::unmade(bench, kind, seed)?;
        stage.lab().order_omissions(omissions)?;
        stage.lab().init().during(|| "init".to_owned())?;
        Ok(stage)
    }

    /// A stage with a directory that is no workspace yet.
    pub(super) fn unmade(bench: &'bench Bench, kind: Kind, seed: u64) -> Outcome<Self> {
        let site = bench.site(kind)?;
        let place = Place::of(bench.filled(&site)?);
        let chance = Chance::new(seed);
        Ok(Self {
            bench,
            place,
            site,
            chance,
        })
    }

    /// The lab.
    pub(super) fn lab(&self) -> &Lab {
        &self.place.lab
    }

    /// One deed. Whether it was answered is the account's to know.
    pub(super) fn perform(&mut self, deed: Deed) -> Outcome<()> {
        let number = usize::try_from(self.chance.below(story::WRITERS as u64)).unwrap_or(0);
        let mut writer = Writer {
            number,
            chance: self.chance.part(1),
            client: self
                .lab()
                .modest_client()
                .during(|| "connecting".to_owned())?,
            account: &self.place.account,
        };
        match writer.perform(deed) {
            Err(refusal) if !is_unknown(refusal.code()) => Err(violation(refusal.to_string())),
            _ => Ok(()),
        }
    }

    /// The daemon.
    pub(super) fn running(&self) -> Outcome<u32> {
        self.place.running()
    }

    /// Kills the daemon; the next one leaves these syncs out.
    pub(super) fn restart(&self, omissions: &[&str]) -> Outcome<()> {
        Lab::kill(self.running()?)?;
        self.lab().order_omissions(omissions)?;
        let started = self.lab().client();
        started.map(drop).during(|| "starting".to_owned())
    }

    /// Dies right after a rename of ACTIVE, and starts again with these syncs left out; the submission
    /// that was under way is repeated, and so acknowledged.
    pub(super) fn die_renamed(&mut self, omissions: &[&str]) -> Outcome<()> {
        let daemon = self.running()?;
        let plan: Plan = RENAMED.parse().map_err(violation)?;
        self.lab().order(&plan)?;
        self.perform(Deed::Rename)?;
        Lab::await_death(daemon)?;
        let died = self.lab().death();
        died.ok_or_else(|| violation(format!("it did not die {RENAMED}")))?;
        self.lab().order_omissions(omissions)?;
        if self.repeat()? == 1 {
            return Ok(());
        }
        Err(violation("what was renamed was not published"))
    }

    /// Starts a daemon when none answers, and repeats what was under way, so that it is acknowledged. Answers how
    /// many had been published already.
    pub(super) fn repeat(&self) -> Outcome<usize> {
        let mut client = self.lab().client().during(|| "starting".to_owned())?;
        let mut account = locked(&self.place.account);
        let mut replayed = 0;
        for id in account.unknown() {
            let Some(sent) = account.sent.get(&id).cloned() else {
                continue;
            };
            let answer = send(&mut client, &sent.request);
            replayed += usize::from(answer.as_ref().is_ok_and(|receipt| receipt.replayed));
            if !account.answered(id, &answer) {
                return Err(violation(format!("repeating {id}: {answer:?}")));
            }
        }
        Ok(replayed)
    }

    /// Makes a second workspace beside this one.
    pub(super) fn import_another(&mut self) -> Outcome<()> {
        let workspace = self.lab().workspace().with_file_name("another");
        self.place.lab.fill(workspace.as_str())?;
        self.lab().init().during(|| "init".to_owned())
    }

    /// The disk has got round to some of the newest tree: its BOOT and the names above it are durable, its files
    /// are not.
    pub(super) fn write_half(&self) -> Outcome<()> {
        let (_, revision) = active(self.lab()).map_err(violation)?;
        let generations = self.lab().state().join("generations");
        let generation = generations.join(revision.to_string());
        for path in [generation.join("BOOT"), generation, generations] {
            let synced = File::open(&path).and_then(|file| file.sync_all());
            synced.during(|| format!("syncing {path}"))?;
        }
        Ok(())
    }

    /// The power is cut now.
    pub(super) fn cut(&self, moment: &'static str) -> Outcome<Wreck> {
        let account = &self.place.account;
        Wreck::cut(self.bench, &self.site, account, moment.to_owned(), moment)
    }

    /// Unmounts everything.
    pub(super) fn clear(self) -> Outcome<()> {
        drop(self.place);
        self.site.clear()
    }
}

/// A cut at a chosen moment, judged.
pub type Moment = fn(&Bench, Kind, u64, &mut Tally) -> Outcome<()>;

/// All of them.
pub const ALL: [Moment; 4] = [kill_then_cut, stop_then_cut, half_a_tree, lose_active];

/// A kill between the rename and the directory sync of ACTIVE, a restart that acknowledges it, a cut.
pub fn kill_then_cut(bench: &Bench, kind: Kind, seed: u64, tally: &mut Tally) -> Outcome<()> {
    let mut stage = Stage::new(bench, kind, seed, &[])?;
    stage.perform(Deed::Rename)?;
    stage.die_renamed(&[])?;
    let wreck = stage.cut("after a kill and a restart")?;
    stage.clear()?;
    judge(bench, wreck, tally)
}

/// A daemon that leaves in good order, which folds the log of its database in and removes it, and a cut.
pub fn stop_then_cut(bench: &Bench, kind: Kind, seed: u64, tally: &mut Tally) -> Outcome<()> {
    let mut stage = Stage::new(bench, kind, seed, &[])?;
    for deed in [Deed::Rename, Deed::Enlarge, Deed::Merge] {
        stage.perform(deed)?;
    }
    let daemon = stage.running()?;
    let mut client = stage.lab().client().during(|| "connecting".to_owned())?;
    let answer = client.call(DaemonStop { if_idle: false });
    answer.during(|| "daemon stop".to_owned())?;
    drop(client);
    Lab::await_death(daemon)?;
    let wreck = stage.cut("after a stop")?;
    stage.clear()?;
    judge(bench, wreck, tally)
}

/// A cut after which half of the newest tree is on the disk, and says that it is whole.
pub fn half_a_tree(bench: &Bench, kind: Kind, seed: u64, tally: &mut Tally) -> Outcome<()> {
    let mut stage = Stage::new(bench, kind, seed, &[])?;
    stage.perform(Deed::Rename)?;
    stage.write_half()?;
    let wreck = stage.cut("with half a tree")?;
    stage.clear()?;
    judge(bench, wreck, tally)
}

/// A cut after which ACTIVE is not there: the newest confirmed publication is restored, and at most the
/// last one that was acknowledged is left out.
pub fn lose_active(bench: &Bench, kind: Kind, seed: u64, tally: &mut Tally) -> Outcome<()> {
    let mut stage = Stage::new(bench, kind, seed, &[])?;
    for deed in [Deed::Rename, Deed::Enlarge, Deed::Merge] {
        stage.perform(deed)?;
    }
    let mut wreck = stage.cut("with ACTIVE lost")?;
    wreck.loses_active = true;
    stage.clear()?;
    judge(bench, wreck, tally)
}
