//! Kills at random, while a whole crew works.
//!
//! Owns: the rounds: a crew at work, one death or several, a restart that may die too, the check.
//! A workspace is used for some rounds, then a new one begins: a seed and the number of the workspace
//! replay the decisions of its rounds.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::account::Account;
use super::chance::Chance;
use super::check::{Check, look_from_disk};
use super::crew::Crew;
use super::history::History;
use super::lab::{Lab, pause};
use super::plan::{Plan, Side, Step};
use super::readers::Guard;
use super::tally::Tally;
use super::{During as _, Outcome, locked, violation};
use crate::process::{PATIENCE, is_alive, within};

/// Rounds in one workspace.
const ROUNDS: u64 = 30;
/// The longest time until a kill at a random instant.
const INSTANT: u64 = 60;
/// How long an order is waited for: it may name a step that does not come.
const ORDER: Duration = Duration::from_millis(400);
/// Publications whose content is kept where old content is let go of.
pub(crate) const KEPT: u64 = 8;
/// Kills in a round whose clients go on by themselves.
const KILLS: u64 = 3;

/// When to end.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// Not before this many kills.
    pub kills: u64,
    /// After this moment.
    pub at: Option<Instant>,
}

impl End {
    fn is_reached(self, tally: &Tally) -> bool {
        tally.killed() >= self.kills || self.at.is_some_and(|at| Instant::now() >= at)
    }
}

/// Rounds until the end, or until something is wrong.
pub fn run(program: &Path, seed: u64, first: u64, end: End, tally: &mut Tally) -> Outcome<()> {
    let mut workspace = first;
    while !end.is_reached(tally) {
        let mut chance = Chance::new(seed).part(workspace + 1);
        let mut place = Place::new(program)?;
        // Every other workspace lets go of old content, so that the sweep is under way when it dies.
        if workspace % 2 == 1 {
            place.forget()?;
        }
        let outcome = place.rounds(&mut chance, end, tally);
        let account = place.account.lock().unwrap_or_else(PoisonError::into_inner);
        tally.add(&account.counts);
        drop(account);
        tally.workspaces += 1;
        if let Err(error) = outcome {
            place.lab.keep = true;
            return Err(violation(format!(
                "seed {seed}, workspace {workspace}: {error}\n--- end of the daemon's log\n{}",
                end_of(&place.lab.log())
            )));
        }
        workspace += 1;
    }
    Ok(())
}

pub(crate) fn end_of(log: &str) -> &str {
    let mut start = log.len().saturating_sub(2000);
    while !log.is_char_boundary(start) {
        start += 1;
    }
    log.get(start..).unwrap_or(log)
}

/// A workspace with its account.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) lab: Lab,
    pub(crate) account: Mutex<Account>,
    pub(crate) history: History,
    /// Whether old content is let go of.
    pub(crate) forgets: bool,
}

impl Place {
    pub(super) fn new(program: &Path) -> Outcome<Self> {
        let mut lab = Lab::new(program)?;
        lab.fill("ws")?;
        lab.init().during(|| "init".to_owned())?;
        Ok(Self::of(lab))
    }

    /// A lab whose workspace is there, and nobody was promised anything yet.
    pub(crate) fn of(lab: Lab) -> Self {
        Self {
            lab,
            account: Mutex::default(),
            history: History::new(),
            forgets: false,
        }
    }

    /// From the next daemon on, old content is collected.
    pub(crate) fn forget(&mut self) -> Outcome<()> {
        self.forgets = true;
        self.lab.configure(&format!(
            "[retention]\ncontent-publications = {KEPT}\ncontent-age = \"0s\"\n"
        ))?;
        let daemon = self.running()?;
        Lab::kill(daemon)
    }

    fn rounds(&mut self, chance: &mut Chance, end: End, tally: &mut Tally) -> Outcome<()> {
        for round in 0..ROUNDS {
            if end.is_reached(tally) {
                break;
            }
            let mut chance = chance.part(round);
            self.round(&mut chance, tally)
                .during(|| format!("round {round}"))?;
        }
        Ok(())
    }

    fn round(&mut self, chance: &mut Chance, tally: &mut Tally) -> Outcome<()> {
        drop(self.lab.client().during(|| "starting".to_owned())?);
        let guards = if chance.percent(25) {
            self.several_deaths(chance, tally)?
        } else {
            self.one_death(chance, tally)?
        };
        if chance.percent(35) {
            self.die_while_starting(chance, tally)?;
        }
        self.check(&guards, tally)
    }

    /// The crew ends with its daemon.
    fn one_death(&self, chance: &mut Chance, tally: &mut Tally) -> Outcome<Vec<Guard>> {
        let daemon = self.running()?;
        let plan = chance.percent(60).then(|| random_plan(chance));
        let instant = Duration::from_micros(chance.below(INSTANT * 1000));
        let crew = Crew::new(self, false);
        let (outcome, guards) = crew.work(chance, |crew| {
            if let Some(plan) = &plan {
                self.lab.order(plan)?;
                let dies = || (!is_alive(daemon)).then_some(());
                within(ORDER, dies);
            } else {
                within(PATIENCE, || {
                    (crew.done.load(Ordering::Relaxed) > 0).then_some(())
                });
                pause(instant, || false);
            }
            Lab::kill(daemon)
        });
        outcome?;
        self.lab.order_nothing();
        match self.lab.death() {
            Some(step) => {
                tally.kill("at an operation");
                tally.step(step);
            }
            None => tally.kill("at an instant"),
        }
        Ok(guards)
    }

    /// The crew starts the next daemon itself, all at once, and goes on.
    fn several_deaths(&self, chance: &mut Chance, tally: &mut Tally) -> Outcome<Vec<Guard>> {
        let crew = Crew::new(self, true);
        let instants: Vec<_> = (0..KILLS)
            .map(|_| Duration::from_micros(chance.below(INSTANT * 1000)))
            .collect();
        let (outcome, guards) = crew.work(chance, |crew| {
            for instant in instants {
                let before = crew.done.load(Ordering::Relaxed);
                let works = || {
                    let more = crew.done.load(Ordering::Relaxed) > before;
                    more.then_some(())
                };
                if within(PATIENCE, works).is_none() {
                    return Err(violation("the crew does not go on after a kill"));
                }
                pause(instant, || false);
                let daemon = self.running()?;
                Lab::kill(daemon)?;
                tally.kill("under a crew that goes on");
            }
            Ok(())
        });
        outcome?;
        Ok(guards)
    }

    /// The daemon that is started next dies too, somewhere on its way.
    fn die_while_starting(&self, chance: &mut Chance, tally: &mut Tally) -> Outcome<()> {
        for _ in 0..=chance.below(2) {
            self.lab
                .order(&Plan::any(random_side(chance), 1 + chance.below(60)))?;
            let answer = self.lab.client();
            self.lab.order_nothing();
            match (answer, self.lab.death()) {
                (_, Some(step)) => {
                    tally.kill("while starting");
                    tally.step(step);
                }
                (Ok(_), None) => {}
                (Err(refusal), None) => {
                    return Err(violation(format!("a daemon does not start: {refusal}")));
                }
            }
        }
        Ok(())
    }

    /// The daemon that answers.
    pub(crate) fn running(&self) -> Outcome<u32> {
        within(PATIENCE, || self.lab.daemon()).ok_or_else(|| violation("no daemon answers"))
    }

    /// Restarts by a client's command, and asks everything.
    pub(super) fn check(&mut self, guards: &[Guard], tally: &mut Tally) -> Outcome<()> {
        let fresh = self.lab.daemon().is_none();
        let mut account = locked(&self.account);
        if fresh {
            look_from_disk(&self.lab, &mut account)?;
        }
        let mut answer = self.lab.client();
        // An order may have been carried out in the moment in which it was taken back.
        if answer.is_err() && self.lab.death().is_some() {
            answer = self.lab.client();
        }
        let client = answer.during(|| "restarting after a kill".to_owned())?;
        tally.checks += 1;
        Check {
            lab: &self.lab,
            account: &mut account,
            history: &mut self.history,
            client,
            known: 0,
            kept: self.forgets.then_some(KEPT),
        }
        .everything(fresh, guards)
    }
}

fn random_side(chance: &mut Chance) -> Side {
    if chance.percent(50) {
        Side::Before
    } else {
        Side::After
    }
}

/// Some operation among all, or one of those where it matters most.
fn random_plan(chance: &mut Chance) -> Plan {
    let side = random_side(chance);
    let named = [
        ("rename", "*"),
        ("rename", "ACTIVE.next>ACTIVE"),
        ("rename", "staging/U>generations/R"),
        ("rename", "generations/R>trash/U"),
        ("sync*", "*"),
        ("create", "*"),
        ("set*", "*"),
        ("remove*", "*"),
        ("lock", "generations/R/LEASE"),
    ];
    if chance.percent(50) {
        return Plan::any(side, 1 + chance.below(500));
    }
    let (kind, class) = chance.pick(&named).copied().unwrap_or(("*", "*"));
    let step = Step {
        kind: kind.to_owned(),
        class: class.to_owned(),
    };
    Plan {
        side,
        step,
        nth: 1 + chance.below(5),
    }
}
