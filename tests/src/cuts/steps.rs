//! Cuts at named steps: the daemon dies there, and the power is cut before anyone starts another.
//!
//! Owns: going through the syncs and renames of publishing, of opening and of `init`, on both sides of each.
//! A step that has no effect on what is durable has no cut of its own: it is the same as the next one.

use std::collections::BTreeSet;

use super::bench::Bench;
use super::moments::Stage;
use super::tally::Tally;
use super::wreck::judge_all;
use crate::images::Kind;
use crate::torture::deeds::Deed;
use crate::torture::lab::Lab;
use crate::torture::plan::{Plan, Side, Step};
use crate::torture::{During as _, Outcome, violation};

/// What is gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scene {
    /// A rename across files.
    Publish,
    /// A file too large for the database.
    Large,
    /// A daemon starts.
    Open,
    /// A directory is imported.
    Init,
}

impl Scene {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Publish, Self::Large, Self::Open, Self::Init];

    const fn moment(self) -> &'static str {
        match self {
            Self::Publish => "at a step of a publication",
            Self::Large => "at a step of a large publication",
            Self::Open => "at a step of opening",
            Self::Init => "at a step of init",
        }
    }
}

/// Cuts at every step of a scene.
pub fn run(bench: &Bench, kind: Kind, seed: u64, scene: Scene, tally: &mut Tally) -> Outcome<()> {
    let name = || format!("seed {seed}, {}, {}", kind.name(), scene.moment());
    let wrecks = if scene == Scene::Init {
        init(bench, kind, seed)
    } else {
        at_work(bench, kind, seed, scene)
    };
    judge_all(bench, wrecks.during(name)?, tally).during(name)
}

type Wrecks = Vec<super::wreck::Wreck>;

fn at_work(bench: &Bench, kind: Kind, seed: u64, scene: Scene) -> Outcome<Wrecks> {
    let mut stage = Stage::new(bench, kind, seed, &[])?;
    stage.lab().order_trace()?;
    act(&mut stage, scene)?;
    let plans = plans(stage.lab());
    stage.lab().order_nothing();
    let mut wrecks = Vec::new();
    for plan in plans {
        // Something that is not durable by chance.
        stage.perform(Deed::Rename)?;
        die(&mut stage, scene, &plan)?;
        let mut wreck = stage.cut(scene.moment())?;
        wreck.name = plan.to_string();
        wrecks.push(wreck);
        // What the kill left in the page cache is acknowledged now, and the power goes out after all.
        stage.repeat()?;
        let mut wreck = stage.cut("after a kill at a step and a restart")?;
        wreck.name = format!("{plan}, restarted");
        wrecks.push(wreck);
    }
    stage.clear()?;
    Ok(wrecks)
}

fn act(stage: &mut Stage<'_>, scene: Scene) -> Outcome<()> {
    match scene {
        Scene::Publish => stage.perform(Deed::Rename),
        Scene::Large => stage.perform(Deed::Enlarge),
        Scene::Open => stage.restart(&[]),
        Scene::Init => Ok(()),
    }
}

fn die(stage: &mut Stage<'_>, scene: Scene, plan: &Plan) -> Outcome<()> {
    let daemon = stage.running()?;
    if scene == Scene::Open {
        Lab::kill(daemon)?;
        stage.lab().order(plan)?;
        // The client is told that it ended, or that another one answers by now.
        drop(stage.lab().client());
    } else {
        stage.lab().order(plan)?;
        act(stage, scene)?;
        Lab::await_death(daemon)?;
    }
    died(stage.lab(), plan)
}

fn died(lab: &Lab, plan: &Plan) -> Outcome<()> {
    let died = lab.death();
    lab.order_nothing();
    died.map(drop)
        .ok_or_else(|| violation(format!("it did not die {plan}")))
}

fn init(bench: &Bench, kind: Kind, seed: u64) -> Outcome<Wrecks> {
    let mut stage = Stage::new(bench, kind, seed, &[])?;
    stage.lab().order_trace()?;
    stage.import_another()?;
    let plans = plans(stage.lab());
    stage.clear()?;
    let mut wrecks = Vec::new();
    for plan in plans {
        let stage = Stage::unmade(bench, kind, seed)?;
        stage.lab().order(&plan)?;
        let made = stage.lab().init();
        died(stage.lab(), &plan)?;
        let mut wreck = stage.cut(Scene::Init.moment())?;
        wreck.name = plan.to_string();
        wreck.is_workspace = made.is_ok();
        wrecks.push(wreck);
        stage.clear()?;
    }
    Ok(wrecks)
}

/// A death on both sides of each sync and each rename that was written down, at its first time.
fn plans(lab: &Lab) -> Vec<Plan> {
    let trace = lab.trace();
    let mut seen = BTreeSet::new();
    let steps = trace
        .iter()
        .filter(|line| line.starts_with("sync-") || line.starts_with("rename"))
        .filter(|line| seen.insert(line.as_str()))
        .filter_map(|line| line.split_once(' '));
    steps
        .flat_map(|(kind, class)| {
            [Side::Before, Side::After].map(|side| {
                let step = Step {
                    kind: kind.to_owned(),
                    class: class.to_owned(),
                };
                Plan { side, step, nth: 1 }
            })
        })
        .collect()
}
