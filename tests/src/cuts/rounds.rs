//! Cuts at random instants, while a whole crew works.
//!
//! Owns: the workspaces, one after the other, each on a fresh file system: some cuts while it is made, some
//! under the crew; then all of them are judged.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::bench::{Bench, Site};
use super::tally::Tally;
use super::wreck::{Wreck, judge_all};
use crate::images::Kind;
use crate::process::{PATIENCE, within};
use crate::torture::account::Account;
use crate::torture::chance::Chance;
use crate::torture::crew::Crew;
use crate::torture::lab::{Lab, pause};
use crate::torture::rounds::{KEPT, Place};
use crate::torture::{During as _, Outcome, locked, violation};

/// Cuts under the crew in one workspace.
const CUTS: u64 = 6;
/// Cuts while a workspace is made.
const INIT_CUTS: u64 = 1;
/// The longest time between two cuts.
const INSTANT: u64 = 120;
/// The longest time from the start of an `init` to a cut in it.
const INIT: u64 = 60;
/// How often a recovery is cut as well, in a hundred.
const AGAIN: u64 = 25;

/// When to end.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// Not before this many cuts.
    pub cuts: u64,
    /// After this moment.
    pub at: Option<Instant>,
    /// In any case not before this many workspaces.
    pub workspaces: u64,
}

impl End {
    fn is_reached(self, tally: &Tally) -> bool {
        let is_enough = tally.cuts() >= self.cuts || self.at.is_some_and(|at| Instant::now() >= at);
        is_enough && tally.workspaces >= self.workspaces
    }
}

/// Workspaces from the number `first` on until the end, or until something is wrong.
pub fn run(
    program: &Path,
    kinds: &[Kind],
    seed: u64,
    first: u64,
    end: End,
    tally: &mut Tally,
) -> Outcome<()> {
    let bench = Bench::new(program, kinds)?;
    let mut workspace = first;
    while !end.is_reached(tally) {
        let index = usize::try_from(workspace).unwrap_or(0) % kinds.len();
        let Some(&kind) = kinds.get(index) else {
            return Ok(());
        };
        let mut chance = Chance::new(seed).part(workspace + 1);
        let name = format!("seed {seed}, workspace {workspace} ({})", kind.name());
        tally.workspaces += 1;
        // Every other time old content is let go of, so that the sweep is under way at the cut.
        let forgets = (workspace + workspace / kinds.len() as u64) % 2 == 1;
        let wrecks = round(&bench, kind, forgets, &mut chance).during(|| name.clone())?;
        judge_all(&bench, wrecks, tally).during(|| name)?;
        workspace += 1;
    }
    Ok(())
}

fn round(bench: &Bench, kind: Kind, forgets: bool, chance: &mut Chance) -> Outcome<Vec<Wreck>> {
    let site = bench.site(kind)?;
    let lab = bench.filled(&site)?;
    let mut wrecks = cuts_while_made(bench, &site, &lab, chance)?;
    let mut place = Place::of(lab);
    if forgets {
        place.forget()?;
        drop(place.lab.client().during(|| "starting".to_owned())?);
    }
    wrecks.extend(cuts_at_work(bench, &site, &place, chance, CUTS, INSTANT)?);
    drop(place);
    site.clear()?;
    Ok(wrecks)
}

/// Cuts at instants of an `init`, and one right after its answer.
fn cuts_while_made(
    bench: &Bench,
    site: &Site,
    lab: &Lab,
    chance: &mut Chance,
) -> Outcome<Vec<Wreck>> {
    let nobody = Mutex::new(Account::default());
    let is_answered = AtomicBool::new(false);
    let mut instants: Vec<u64> = (0..INIT_CUTS).map(|_| chance.below(INIT * 1000)).collect();
    instants.sort_unstable();
    std::thread::scope(|scope| {
        let made = scope.spawn(|| {
            let made = lab.init();
            is_answered.store(true, Ordering::Release);
            made
        });
        // The daemon has to start first, which takes longer than the `init` does.
        let begins = || lab.state().exists().then_some(());
        within(PATIENCE, begins);
        let start = Instant::now();
        let mut wrecks = Vec::new();
        for instant in instants {
            let left = Duration::from_micros(instant).saturating_sub(start.elapsed());
            pause(left, || is_answered.load(Ordering::Acquire));
            let is_workspace = is_answered.load(Ordering::Acquire);
            let name = format!("in init, after {instant} us");
            let mut wreck = Wreck::cut(bench, site, &nobody, name, "in init")?;
            wreck.is_workspace = is_workspace;
            wrecks.push(wreck);
        }
        let made = made.join().map_err(|_| violation("an init panicked"))?;
        made.during(|| "init".to_owned())?;
        let name = "after init".to_owned();
        wrecks.push(Wreck::cut(bench, site, &nobody, name, "after init")?);
        Ok(wrecks)
    })
}

/// Cuts at instants under a crew.
pub(super) fn cuts_at_work(
    bench: &Bench,
    site: &Site,
    place: &Place,
    chance: &mut Chance,
    cuts: u64,
    instant: u64,
) -> Outcome<Vec<Wreck>> {
    let mut when = chance.part(1);
    let crew = Crew::new(place, false);
    let (wrecks, guards) = crew.work(chance, |crew| {
        let mut wrecks = Vec::new();
        for number in 0..cuts {
            let before = crew.done.load(Ordering::Relaxed);
            let works = || (crew.done.load(Ordering::Relaxed) > before).then_some(());
            if within(PATIENCE, works).is_none() {
                return Err(violation("the crew does not work"));
            }
            pause(Duration::from_micros(when.below(instant * 1000)), || false);
            let name = format!("cut {number}");
            let mut wreck = Wreck::cut(bench, site, &place.account, name, "at work")?;
            wreck.kept = place.forgets.then_some(KEPT);
            wreck.again = when.percent(AGAIN).then(|| when.part(number));
            wrecks.push(wreck);
        }
        Ok(wrecks)
    });
    drop(guards);
    if let Some(first) = locked(&place.account).violations.first() {
        return Err(violation(format!("before any cut: {first}")));
    }
    wrecks
}
