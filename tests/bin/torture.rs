//! `semaprax-torture`: the long form of the kills.
//!
//! ```text
//! semaprax-torture --minutes 30 [--seed S] [--kills N] [--workspace K]
//! ```
//!
//! Called with `daemon ...` it is the daemon under test itself.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use semaprax_tests::torture::rounds::{self, End};
use semaprax_tests::torture::steps::{self, Depth};
use semaprax_tests::torture::tally::Tally;
use semaprax_tests::torture::{Outcome, under_test};

/// Kills real daemons and asks whether anything was lost.
#[derive(Debug, Parser)]
#[command(name = "semaprax-torture")]
struct Arguments {
    /// End after this long
    #[arg(long)]
    minutes: Option<u64>,
    /// End after this many kills [default: 10000, when `--minutes` is not given]
    #[arg(long)]
    kills: Option<u64>,
    /// What decides; printed, so that a run can be repeated
    #[arg(long)]
    seed: Option<u64>,
    /// Only the random rounds, from this workspace on: to repeat a failure
    #[arg(long)]
    workspace: Option<u64>,
    /// Tell every step at which a daemon died
    #[arg(long)]
    steps: bool,
}

fn main() -> ExitCode {
    if under_test::is_asked_for() {
        return under_test::main();
    }
    let arguments = Arguments::parse();
    let seed = arguments.seed.unwrap_or_else(|| {
        let (high, low) = uuid::Uuid::now_v7().as_u64_pair();
        high ^ low
    });
    println!("seed {seed}");
    let mut tally = Tally::default();
    let start = Instant::now();
    let outcome = torture(&arguments, seed, start, &mut tally);
    if arguments.steps {
        for (step, times) in &tally.steps {
            println!("{times:6} {step}");
        }
    }
    println!("{tally}");
    println!("{} seconds", start.elapsed().as_secs());
    match outcome {
        Ok(()) => {
            println!("no violation");
            ExitCode::SUCCESS
        }
        Err(violation) => {
            println!("VIOLATION: {violation}");
            ExitCode::FAILURE
        }
    }
}

fn torture(arguments: &Arguments, seed: u64, start: Instant, tally: &mut Tally) -> Outcome<()> {
    let program = std::env::current_exe()
        .map_err(|error| semaprax_tests::torture::Violation(error.to_string()))?;
    let end = End {
        kills: match (arguments.kills, arguments.minutes) {
            (Some(kills), _) => kills,
            (None, Some(_)) => u64::MAX,
            (None, None) => 10_000,
        },
        at: arguments
            .minutes
            .map(|minutes| start + Duration::from_secs(60 * minutes)),
    };
    if arguments.workspace.is_none() {
        steps::run(&program, seed, Depth::First(6), tally)?;
        println!("every named step: {tally}");
    }
    rounds::run(&program, seed, arguments.workspace.unwrap_or(0), end, tally)
}
