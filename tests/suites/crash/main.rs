//! The crash suite: scripts on a simulated disk, interrupted at every operation in every way.
//!
//! Owns: the scripts, the cases and the oracle. See `run.rs` for how a failure is tried again:
//! `SEMAPRAX_CRASH_CASE=publishing/17/Lost cargo test -p semaprax-tests --test crash`;
//! `SEMAPRAX_CRASH_SEEDS=50` tries more chances at each point, and all that is left out here for time;
//! `SEMAPRAX_CRASH_RECOVERIES=10000` more troubles in recovery.

mod faults;
mod known;
mod mutations;
mod oracle;
mod restore;
mod run;
mod script;
mod scripts;
mod trees;

use std::collections::BTreeMap;

use run::{Failure, crashes, golden, in_order, recoveries, seeds, try_all};
use script::Script;

fn check(script: &Script) {
    let golden = in_order(|| golden(script, None));
    let crashes = crashes(&golden, seeds(), None);
    let (mut failures, firsts) = try_all(&crashes, usize::MAX);
    let in_recovery = faults::wrecks(script, &crashes, &firsts, recoveries());
    failures.extend(try_all(&in_recovery, usize::MAX).0);
    let in_steps = faults::in_steps(&golden, seeds() > 1);
    failures.extend(try_all(&in_steps, usize::MAX).0);
    println!(
        "{}: {} points, {} crashes, {} ways to recover, {} troubles in recovery, {} in steps",
        script.name,
        golden.points.len(),
        crashes.len(),
        firsts.len(),
        in_recovery.len(),
        in_steps.len()
    );
    let cases = crashes.len() + in_recovery.len() + in_steps.len();
    assert!(
        failures.is_empty(),
        "{} of {cases} cases failed:\n{}",
        failures.len(),
        grouped(&failures)
    );
}

/// Failures by what is wrong, each with how often and the first case of it.
fn grouped(failures: &[Failure]) -> String {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for Failure { case, fault } in failures {
        let mut kind = String::new();
        for word in fault.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric()) {
            let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
            let is_digest = word.len() > 30 && has_digit || word.starts_with("tmp");
            kind.push_str(if is_digest { "#" } else { word });
        }
        let kind: String = kind.chars().take(160).collect();
        groups.entry(kind).or_default().push(case);
    }
    let lines = groups.iter().map(|(fault, cases)| {
        let first: Vec<&str> = cases.iter().take(3).copied().collect();
        format!("{} x {fault}\n    {}", cases.len(), first.join("\n    "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn publishing_survives() {
    check(&scripts::publishing());
}

#[test]
fn upkeep_survives() {
    check(&scripts::upkeep());
}

#[test]
fn mending_survives() {
    check(&scripts::mending());
}

#[test]
fn a_lost_active_is_restored() {
    let golden = in_order(|| golden(&scripts::publishing(), None));
    let stride = if seeds() > 1 { 4 } else { 24 };
    let cases = restore::cases(&golden, stride);
    let (failures, _) = try_all(&cases, usize::MAX);
    println!("{} cases", cases.len());
    assert!(failures.is_empty(), "{}", grouped(&failures));
}

#[test]
fn every_sync_is_missed() {
    let script = scripts::publishing();
    let golden = in_order(|| golden(&script, None));
    assert_eq!(mutations::unknown(&golden), [""; 0], "not in the table");
    assert_eq!(mutations::not_missed(&script), [""; 0], "not missed");
}

/// What only spare trees and turns do is among the points.
#[test]
fn the_scripts_reach_spares_and_turns() {
    let reached = |script: Script, what: &str| {
        let golden = in_order(|| golden(&script, None));
        golden.points.iter().any(|point| point.what == what)
    };
    // A name goes in the tree of a spare: it is patched.
    let patched = "remove_file staging/*/files/**";
    assert!(reached(scripts::publishing(), patched));
    // A generation comes to `staging/`: it is recycled.
    assert!(reached(scripts::mending(), "rename staging/*"));
}
