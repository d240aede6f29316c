//! Trouble without a crash: one operation fails, or the disk is full or read-only from one on.
//!
//! Owns: the cases of faults in a step, and in the recovery of what a crash left; and crashes in that
//! recovery. Afterwards the daemon goes on, publishes, loses power or starts again.

use std::collections::{BTreeMap, BTreeSet};

use rustix::io::Errno;
use semaprax_protocol::Code;
use semaprax_protocol::submission::OnStale;
use semaprax_tests::sim::{Cut, Fault, Sim};

use crate::known::{Fate, Known, publish, put};
use crate::oracle::{Verdict, check_leases, check_tip, check_verify, restart};
use crate::run::{Blackouts, Case, Golden, Scratch, blackout, in_order, survive};
use crate::script::{Player, Script, Step};

const ADDS: [&str; 5] = ["create", "create_directory", "link", "symlink", "try_lock"];
const READS: [&str; 7] = [
    "read",
    "open",
    "read_link",
    "metadata",
    "read_directory",
    "filesystem",
    "free_space",
];

fn faults_of(operation: &str) -> &'static [Fault] {
    const EIO: Fault = Fault::Once(Errno::IO);
    let verb = operation.split(' ').next().unwrap_or_default();
    if READS.contains(&verb) {
        &[EIO]
    } else if ADDS.contains(&verb) {
        &[EIO, Fault::Once(Errno::NOSPC), Fault::Full, Fault::ReadOnly]
    } else {
        &[EIO, Fault::ReadOnly]
    }
}

/// Each fault of each operation of a trace; of operations of the same kind the first, and the
/// last unless they only read.
fn picked(trace: &[String]) -> Vec<(u64, &str, Fault)> {
    let mut kinds: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (index, operation) in trace.iter().enumerate() {
        kinds.entry(operation).or_default().push(index as u64 + 1);
    }
    let mut picked = Vec::new();
    for (operation, numbers) in kinds {
        let faults = faults_of(operation);
        let mut ends = vec![numbers[0]];
        if faults.len() > 1 && numbers.len() > 1 {
            ends.extend(numbers.last());
        }
        for number in ends {
            for fault in faults {
                picked.push((number, operation, *fault));
            }
        }
    }
    picked.sort_by_key(|(number, _, _)| *number);
    picked
}

/// A daemon on the machine as it was before step `index`.
fn before<'golden>(
    golden: &'golden Golden,
    index: usize,
    scratch: &Scratch,
) -> Verdict<(Player, &'golden Step)> {
    let (image, known, is_open) = &golden.starts[index];
    let root = scratch.root("a", &golden.script);
    let sim = image.crash(Cut::Kill).start(&root);
    let mut player = Player::new(sim, known.clone(), &golden.script.config);
    if *is_open {
        player.open().map_err(|refusal| refusal.to_string())?;
    }
    player.sim.take_trace();
    Ok((player, &golden.script.steps[index]))
}

/// Every fault in every step of a script. Unless it is to be `thorough`, a fault of a kind of operation
/// is tried in the first two steps of a kind that have it.
pub fn in_steps(golden: &Golden, thorough: bool) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    let mut tried: BTreeMap<(&str, String), BTreeSet<usize>> = BTreeMap::new();
    for (index, step) in golden.script.steps.iter().enumerate() {
        if matches!(step, Step::Damage(_)) || index == 0 && !golden.script.tries_init {
            continue;
        }
        let trace = in_order(|| {
            let scratch = Scratch::new();
            let (mut player, step) = before(golden, index, &scratch).unwrap();
            player.play(step, &golden.script.source).unwrap().unwrap();
            player.sim.take_trace()
        });
        for (number, operation, fault) in picked(&trace) {
            let kind = (step.phase(), format!("{operation} {fault:?}"));
            let steps = tried.entry(kind).or_default();
            steps.insert(index);
            if steps.len() > 2 && !thorough {
                continue;
            }
            let name = format!(
                "{}/step {index} {}/{number}/{fault:?} ({operation})",
                golden.script.name,
                step.phase()
            );
            let run = move |scratch: &Scratch| {
                let (player, step) = before(golden, index, scratch)?;
                fail(player, step, number, fault, &golden.script, scratch)
            };
            cases.push(Case {
                name,
                wreck: None,
                run: Box::new(run),
            });
        }
    }
    cases
}

fn fail(
    mut player: Player,
    step: &Step,
    number: u64,
    fault: Fault,
    script: &Script,
    scratch: &Scratch,
) -> Verdict<Vec<String>> {
    player.sim.fail(player.sim.operations() + number, fault);
    let outcome = player.play(step, &script.source)?;
    player.sim.mend();
    if player.open.is_some() {
        let is_full = matches!(fault, Fault::Full | Fault::Once(Errno::NOSPC));
        go_on(&mut player, is_full).map_err(|words| format!("{words}, after {outcome:?}"))?;
    }
    let image = player.sim.image();
    blackout(
        &image,
        Cut::Lost,
        &player.known,
        script,
        &scratch.root("e", script),
    )
    .map_err(|words| format!("then Lost: {words}, after {outcome:?}"))?;
    // The daemon leaves in good order, or dies: what is on disk must do in both cases.
    player.open = None;
    let known = player.known.clone();
    survive(player.sim.clone(), known, Blackouts::AtEnd, script, scratch)
        .map_err(|words| format!("then a restart: {words}, after {outcome:?}"))
}

/// The next submission to a daemon that had trouble.
fn go_on(player: &mut Player, is_full: bool) -> Verdict {
    let before = player.known.pending.take();
    let plan = publish(8_000_000, None, OnStale::Reject, vec![put("on.txt", "on")]);
    match player.publish(&plan)? {
        Ok(()) => {
            if let Some((publications, fate)) = before {
                if fate == Fate::Unknown {
                    return Err("published on top of what is in doubt".to_owned());
                }
                let plans = publications.into_iter().filter_map(|one| one.plan);
                player.known.given_up.extend(plans.map(|plan| plan.id));
            }
        }
        Err(refusal) => {
            if is_full {
                return Err(format!("there is room again, and yet: {refusal}"));
            }
            if refusal.code() == Code::InDoubt {
                return Err(format!("nothing fails any more, and yet: {refusal}"));
            }
            if before.is_some() {
                player.known.pending = before;
                player.known.given_up.push(plan.id);
            }
        }
    }
    Ok(())
}

/// What was tried already: the kinds of operations before, the one concerned, and the trouble.
type Tried = BTreeSet<(BTreeSet<String>, String)>;

/// Crashes and faults in the recovery from a crash.
fn in_recovery<'run>(
    script: &'run Script,
    first: &Case<'run>,
    tried: &mut Tried,
) -> Vec<Case<'run>> {
    let Some((wreck, known, blackouts)) = first.wreck.clone() else {
        return Vec::new();
    };
    let (points, trace) = in_order(|| {
        let scratch = Scratch::new();
        let sim = wreck.start(&scratch.root("a", script));
        sim.record();
        let mut player = Player::new(sim.clone(), known.clone(), &script.config);
        restart(&mut player).unwrap();
        (sim.points(), sim.take_trace())
    });
    let before = |number: u64| -> BTreeSet<String> {
        let count = usize::try_from(number).unwrap().min(trace.len());
        trace[..count].iter().cloned().collect()
    };
    let mut cases = Vec::new();
    for (index, point) in points.into_iter().enumerate() {
        let cuts = [Cut::Kill, Cut::Lost, Cut::Names, Cut::Random(index as u64)];
        let cuts = if point.is_torn { &cuts[..1] } else { &cuts[..] };
        for (kind, cut) in cuts.iter().enumerate() {
            let trouble = format!("{kind} {}", point.what);
            if !tried.insert((before(point.operation), trouble)) {
                continue;
            }
            let again = point.image.crash(*cut);
            let name = format!("{} then {index}/{cut:?} ({})", first.name, point.what);
            let run = move |scratch: &Scratch| {
                let sim = again.start(&scratch.root("a", script));
                let mut player = Player::new(sim, known.clone(), &script.config);
                restart(&mut player)?;
                check_tip(&mut player)?;
                check_leases(&mut player)?;
                check_verify(&mut player)?;
                Ok(Vec::new())
            };
            cases.push(Case {
                name,
                wreck: None,
                run: Box::new(run),
            });
        }
    }
    for (number, operation, fault) in picked(&trace) {
        if !tried.insert((before(number), format!("{fault:?} {operation}"))) {
            continue;
        }
        let name = format!("{} then {number}/{fault:?} ({operation})", first.name);
        let wreck = wreck.clone();
        let run = move |scratch: &Scratch| {
            let sim = wreck.start(&scratch.root("a", script));
            recover_in_trouble(&sim, known, number, fault, script)?;
            survive(sim, known.clone(), blackouts, script, scratch)
        };
        cases.push(Case {
            name,
            wreck: None,
            run: Box::new(run),
        });
    }
    cases
}

/// A start that may fail, but must not answer wrongly.
fn recover_in_trouble(
    sim: &Sim,
    known: &Known,
    number: u64,
    fault: Fault,
    script: &Script,
) -> Verdict {
    let mut player = Player::new(sim.clone(), known.clone(), &script.config);
    sim.fail(number, fault);
    let opened = player.open();
    sim.mend();
    if opened.is_ok() && !known.is_damaged {
        check_tip(&mut player).map_err(|words| format!("opened in trouble: {words}"))?;
        check_verify(&mut player)?;
    }
    Ok(())
}

/// What is tried of the wrecks that are the first to take their way: at most `bound` cases of all,
/// evenly chosen.
pub fn wrecks<'run>(
    script: &'run Script,
    cases: &[Case<'run>],
    firsts: &[usize],
    bound: usize,
) -> Vec<Case<'run>> {
    let mut firsts = firsts.to_vec();
    firsts.sort_unstable();
    let mut tried = Tried::new();
    let all: Vec<Case<'run>> = firsts
        .iter()
        .flat_map(|first| in_recovery(script, &cases[*first], &mut tried))
        .collect();
    let stride = all.len().div_ceil(bound).max(1);
    all.into_iter().step_by(stride).collect()
}
