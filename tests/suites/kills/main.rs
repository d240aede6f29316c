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
const ROUNDS: Duration = Duration::from_secs(25);

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
}
