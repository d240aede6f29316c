//! Kills of the real daemon, in the form that fits into every run of the tests.
//!
//! `semaprax-torture` is the long form. Both print their seed; `SEMAPRAX_SEED` repeats one.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use semaprax_tests::torture::rounds::{self, End};
use semaprax_tests::torture::steps::{self, Depth};
use semaprax_tests::torture::tally::Tally;

const PROGRAM: &str = env!("CARGO_BIN_EXE_semaprax-torture");
const SEED: u64 = 20_260_727;
/// How long the random kills go on.
const ROUNDS: Duration = Duration::from_secs(30);
/// Fewer steps than this: something is not killed any more. There are about 300.
const LEAST_STEPS: usize = 240;
/// Fewer random kills than this: the harness stands still. A busy machine of two cores makes 60.
const LEAST_KILLS: u64 = 20;
/// Steps around which everything turns: without one of them the rest means little.
const TURNING_POINTS: [&str; 12] = [
    "publish: before:create:staging/U/BOOT:1",
    "publish: before:rename:staging/U>generations/R:1",
    "publish: after:rename:staging/U>generations/R:1",
    "publish: before:rename:ACTIVE.next>ACTIVE:1",
    "publish: after:rename:ACTIVE.next>ACTIVE:1",
    "publish: after:sync-directory:state:1",
    "publish a large file: after:rename:staging/object-U>objects/R/R:1",
    "collect: after:rename:generations/R>trash/U:1",
    "recover: after:rename:ACTIVE.next>ACTIVE:1",
    "recover: after:rename:generations/R>trash/U:1",
    "init: before:rename:staging/store.db>store.db:1",
    "init: after:rename:staging/store.db>store.db:1",
];

/// `SEMAPRAX_TORTURE_BIN` wins over the program that cargo built.
fn program() -> PathBuf {
    std::env::var_os("SEMAPRAX_TORTURE_BIN").map_or_else(|| PathBuf::from(PROGRAM), PathBuf::from)
}

fn seed() -> u64 {
    let given = std::env::var("SEMAPRAX_SEED").ok();
    let seed = given.and_then(|text| text.parse().ok()).unwrap_or(SEED);
    println!("seed {seed}");
    seed
}

#[test]
fn a_death_at_every_named_step_loses_nothing() {
    let mut tally = Tally::default();
    let outcome = steps::run(&program(), seed(), Depth::Ends, &mut tally);
    for step in tally.steps.keys() {
        println!("died {step}");
    }
    println!("{tally}");
    outcome.unwrap_or_else(|violation| panic!("{violation}"));
    for point in TURNING_POINTS {
        assert!(tally.steps.contains_key(point), "nothing died {point}");
    }
    let steps = tally.steps.len();
    assert!(steps >= LEAST_STEPS, "only {steps} steps");
}

#[test]
fn deaths_at_random_instants_lose_nothing() {
    let mut tally = Tally::default();
    let end = End {
        kills: u64::MAX,
        at: Some(Instant::now() + ROUNDS),
    };
    let outcome = rounds::run(&program(), seed(), 0, end, &mut tally);
    println!("{tally}");
    outcome.unwrap_or_else(|violation| panic!("{violation}"));
    let kills = tally.killed();
    assert!(kills >= LEAST_KILLS, "only {kills} kills in {ROUNDS:?}");
}
