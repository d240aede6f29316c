//! A death at every named step.
//!
//! Owns: going through the scenes: each is run once with its steps written down, then once for each step
//! and each side of it, with a death there, a restart and a check.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::account::Account;
use super::chance::Chance;
use super::history::History;
use super::lab::Lab;
use super::plan::{Plan, Side, Step};
use super::rounds::{Place, end_of};
use super::scenes::Scene;
use super::tally::Tally;
use super::{During as _, Outcome, locked, violation};
use crate::process::within;

/// Deaths in one workspace.
const DEATHS: usize = 40;
/// How long an order is waited for when its command was answered all the same.
const LATE: Duration = Duration::from_millis(200);

/// How many repetitions of one step are gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The first and the last, and only those sides that no neighbour has.
    Ends,
    /// The first so many, and the last.
    First(u64),
}

/// Goes through all scenes.
pub fn run(program: &Path, seed: u64, depth: Depth, tally: &mut Tally) -> Outcome<()> {
    for (number, scene) in Scene::ALL.into_iter().enumerate() {
        let mut chance = Chance::new(seed).part(number as u64);
        let plans = {
            let mut place = stage(program, scene, tally)?;
            let plans = steps(scene, &mut place, &mut chance, depth, tally);
            finished(place, scene, seed, plans, tally)?
        };
        for plans in plans.chunks(DEATHS) {
            let mut place = stage(program, scene, tally)?;
            let outcome = plans.iter().try_for_each(|plan| {
                death(scene, &mut place, plan, &mut chance, tally)
                    .during(|| format!("{}, {plan}", scene.name()))
            });
            finished(place, scene, seed, outcome, tally)?;
        }
    }
    Ok(())
}

fn stage(program: &Path, scene: Scene, tally: &mut Tally) -> Outcome<Place> {
    tally.workspaces += 1;
    Place::new(program).during(|| scene.name().to_owned())
}

fn finished<T>(
    mut place: Place,
    scene: Scene,
    seed: u64,
    outcome: Outcome<T>,
    tally: &mut Tally,
) -> Outcome<T> {
    tally.add(&locked(&place.account).counts);
    outcome.map_err(|error| {
        place.lab.keep = true;
        let log = place.lab.log();
        violation(format!(
            "seed {seed}, scene `{}`: {error}\n--- end of the daemon's log\n{}",
            scene.name(),
            end_of(&log)
        ))
    })
}

/// The steps of a scene, by running it.
fn steps(
    scene: Scene,
    place: &mut Place,
    chance: &mut Chance,
    depth: Depth,
    tally: &mut Tally,
) -> Outcome<Vec<Plan>> {
    begin(scene, place, chance, tally)?;
    place.lab.order_trace()?;
    scene.act(place, chance)?;
    place.lab.order_nothing();
    let mut count: BTreeMap<Step, u64> = BTreeMap::new();
    let mut order = Vec::new();
    for line in place.lab.trace() {
        let Some((kind, class)) = line.split_once(' ') else {
            continue;
        };
        let step = Step {
            kind: kind.to_owned(),
            class: class.to_owned(),
        };
        let seen = count.entry(step.clone()).or_default();
        *seen += 1;
        if *seen == 1 {
            order.push(step);
        }
    }
    scene.mend(place)?;
    place.check(&[], tally)?;
    let mut plans = Vec::new();
    for step in order {
        let last = count.get(&step).copied().unwrap_or(1);
        let first = match depth {
            Depth::Ends => 1,
            Depth::First(first) => first,
        };
        for nth in (1..=last).filter(|&nth| nth <= first || nth == last) {
            for side in [Side::Before, Side::After] {
                // After a step that changes nothing is before the next one.
                let is_same = side == Side::After && !changes_names(&step);
                if depth == Depth::Ends && is_same {
                    continue;
                }
                let step = step.clone();
                plans.push(Plan { side, step, nth });
            }
        }
    }
    Ok(plans)
}

/// Whether a step is one of those around which most depends on the side.
fn changes_names(step: &Step) -> bool {
    let kinds = ["rename", "sync-directory", "sync-file", "write"];
    kinds.contains(&step.kind.as_str())
}

fn begin(scene: Scene, place: &mut Place, chance: &mut Chance, tally: &mut Tally) -> Outcome<()> {
    if scene == Scene::Init {
        // Another directory each time.
        place.lab.fill(&format!("ws{:x}", chance.number()))?;
        place.account = std::sync::Mutex::new(Account::default());
        place.history = History::new();
    } else {
        drop(place.lab.client().during(|| "starting".to_owned())?);
        scene.prepare(place, chance, tally)?;
    }
    Ok(())
}

/// One death, one restart, one check.
fn death(
    scene: Scene,
    place: &mut Place,
    plan: &Plan,
    chance: &mut Chance,
    tally: &mut Tally,
) -> Outcome<()> {
    begin(scene, place, chance, tally)?;
    let daemon = place.lab.daemon();
    place.lab.order(plan)?;
    scene.act(place, chance)?;
    let told = within(LATE, || place.lab.death());
    place.lab.order_nothing();
    if told.is_some() {
        if let Some(daemon) = daemon {
            Lab::await_death(daemon)?;
        }
        tally.kill("at a named step");
        tally.step(format!("{}: {plan}", scene.name()));
    } else {
        tally.missed += 1;
    }
    scene.mend(place)?;
    place.check(&[], tally)
}
