//! ACTIVE is lost: `verify --repair` goes back to the newest confirmed publication, and says what it
//! leaves out; interrupted, it can be done again.
//!
//! Owns: the cases of a lost ACTIVE at the moments of a script, and of crashes while it is restored.

use semaprax_protocol::Code;
use semaprax_protocol::documents::{JournalEntry, VerificationStatus};
use semaprax_protocol::request::{Journal, Log, Request, Response};
use semaprax_tests::sim::{Cut, Sim};

use crate::known::Known;
use crate::oracle::{Verdict, ensure, judge};
use crate::run::{Case, Golden, Scratch, in_order};
use crate::script::{Player, Script};

const ACTIVE: &str = ".semaprax-workspace/ACTIVE";

/// ACTIVE lost at every `stride`-th moment, and crashes while it is restored there.
pub fn cases(golden: &Golden, stride: usize) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    let points = golden.points.iter().enumerate();
    let points = points.filter(|(_, point)| point.note >= 2 && !point.is_torn);
    for (index, point) in points.step_by(stride) {
        let wreck = point.image.crash(Cut::Kept).without(ACTIVE);
        let known = &golden.notes[point.note];
        let script = &golden.script;
        let name = format!("{}/{index}/ACTIVE lost", script.name);
        let again = in_order(|| {
            let scratch = Scratch::new();
            let sim = wreck.start(&scratch.root("a", script));
            sim.record();
            Player::new(sim.clone(), known.clone(), &script.config)
                .restore()
                .unwrap();
            sim.points()
        });
        for (inner, point) in again.into_iter().enumerate() {
            let cuts = [Cut::Kill, Cut::Lost, Cut::Random(inner as u64)];
            let cuts = if point.is_torn { &cuts[..1] } else { &cuts[..] };
            for cut in cuts {
                let wreck = point.image.crash(*cut);
                let run = move |scratch: &Scratch| {
                    let sim = wreck.start(&scratch.root("a", script));
                    restored(sim, known, script)
                };
                cases.push(Case {
                    name: format!("{name} then {inner}/{cut:?} ({})", point.what),
                    wreck: None,
                    run: Box::new(run),
                });
            }
        }
        let run = move |scratch: &Scratch| {
            let sim = wreck.start(&scratch.root("a", script));
            restored(sim, known, script)
        };
        cases.push(Case {
            name,
            wreck: None,
            run: Box::new(run),
        });
    }
    cases
}

fn restored(sim: Sim, known: &Known, script: &Script) -> Verdict<Vec<String>> {
    let mut player = Player::new(sim, known.clone(), &script.config);
    match player.open() {
        Ok(()) => {}
        Err(refusal) if refusal.code() == Code::WorkspaceDamaged => {
            let found = player.restore().map_err(|refusal| refusal.to_string())?;
            ensure!(
                found.status == VerificationStatus::Repaired,
                "not repaired: {:?}",
                found.damage
            );
            player
                .open()
                .map_err(|refusal| format!("open after the repair: {refusal}"))?;
        }
        Err(refusal) => return Err(format!("open: {refusal}")),
    }
    forget_left_out(&mut player)?;
    journal_tells(&player)?;
    judge(&mut player)?;
    Ok(Vec::new())
}

/// Whoever brought it to its end told of it.
fn journal_tells(player: &Player) -> Verdict {
    let mut since = 0;
    loop {
        let request = Request::Journal(Journal {
            since,
            limit: None,
            wait_ms: None,
        });
        let page = match player.open.as_ref().unwrap().0.answer(&request) {
            Ok(Response::Journal(page)) => page,
            other => return Err(format!("no journal: {other:?}")),
        };
        let is_told = |entry: &JournalEntry| entry.kind == "active-restored";
        if page.entries.iter().any(is_told) {
            return Ok(());
        }
        ensure!(
            page.more,
            "the journal does not tell that ACTIVE was restored"
        );
        since = page.entries.last().map_or(since, |entry| entry.entry);
    }
}

/// Publications of one turn at most, in the scripts: they are confirmed together.
const TURN: usize = 3;

/// What was not confirmed is gone: the last turn at most, and with it what was under way.
fn forget_left_out(player: &mut Player) -> Verdict {
    let request = Request::Log(Log {
        limit: None,
        before: None,
        path: None,
        author: None,
    });
    let there = match player.open.as_ref().unwrap().0.answer(&request) {
        Ok(Response::Log(page)) => page.entries.len(),
        other => return Err(format!("no log: {other:?}")),
    };
    let history = &mut player.known.history;
    ensure!(
        there + TURN >= history.len(),
        "{} acknowledged, {there} left",
        history.len()
    );
    history.truncate(there);
    player.known.pending = None;
    Ok(())
}
