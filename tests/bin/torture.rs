//! `semaprax-torture`: the long form of the kills, and that of the power cuts.
//!
//! ```text
//! semaprax-torture --minutes 30 [--seed S] [--kills N] [--workspace K]
//! semaprax-torture --cuts 1000 [--seed S] [--workspace K] [--kind xfs]
//! ```
//!
//! Called with `daemon ...` it is the daemon under test itself.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use semaprax_tests::cuts;
use semaprax_tests::images::{self, Kind};
use semaprax_tests::torture::rounds::{self, End};
use semaprax_tests::torture::steps::{self, Depth};
use semaprax_tests::torture::tally::Tally;
use semaprax_tests::torture::{Outcome, under_test};

/// Kills real daemons, or cuts the power of their disks, and asks whether anything was lost.
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
    /// Cuts the power instead, this many times; needs root, loop devices and the programs that make the file systems
    #[arg(long)]
    cuts: Option<u64>,
    /// Cuts on this kind of file system only: ext4, ext4-without-journal, xfs or btrfs
    #[arg(long, value_parser = kind)]
    kind: Option<Kind>,
    /// With `--cuts`: leaves out each sync in turn instead, and tells which file system misses it
    #[arg(long)]
    omissions: bool,
    /// Tell every step at which a daemon died
    #[arg(long)]
    steps: bool,
}

fn kind(text: &str) -> Result<Kind, String> {
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == text);
    found.ok_or_else(|| format!("no kind of file system is called `{text}`"))
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
    let start = Instant::now();
    if let Some(number) = arguments.cuts {
        let outcome = cut(&arguments, seed, start, number);
        return ended(start, outcome);
    }
    let mut tally = Tally::default();
    let outcome = torture(&arguments, seed, start, &mut tally);
    if arguments.steps {
        for (step, times) in &tally.steps {
            println!("{times:6} {step}");
        }
    }
    println!("{tally}");
    ended(start, outcome)
}

fn ended(start: Instant, outcome: Outcome<()>) -> ExitCode {
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

fn program() -> Outcome<PathBuf> {
    std::env::current_exe().map_err(|error| semaprax_tests::torture::Violation(error.to_string()))
}

fn cut(arguments: &Arguments, seed: u64, start: Instant, number: u64) -> Outcome<()> {
    let kinds = arguments.kind.map_or(Kind::ALL.to_vec(), |kind| vec![kind]);
    if let Some(why) = images::missing(&kinds) {
        return Err(semaprax_tests::torture::Violation(why));
    }
    let end = cuts::rounds::End {
        cuts: number,
        at: arguments
            .minutes
            .map(|minutes| start + Duration::from_secs(60 * minutes)),
        workspaces: 0,
    };
    if arguments.omissions {
        let bench = cuts::Bench::new(&program()?, &kinds)?;
        let noticed = cuts::omissions::run(&bench, &cuts::omissions::OMISSIONS)?;
        println!("{noticed} noticed");
        return Ok(());
    }
    let first = arguments.workspace.unwrap_or(0);
    let mut tally = cuts::tally::Tally::default();
    let mut steps = || -> Outcome<()> {
        if arguments.workspace.is_some() {
            return Ok(());
        }
        let bench = cuts::Bench::new(&program()?, &kinds)?;
        for &kind in &kinds {
            for moment in cuts::moments::ALL {
                moment(&bench, kind, seed, &mut tally)?;
            }
            for scene in cuts::steps::Scene::ALL {
                cuts::steps::run(&bench, kind, seed, scene, &mut tally)?;
            }
        }
        println!("every named step: {tally}");
        Ok(())
    };
    let outcome =
        steps().and_then(|()| cuts::rounds::run(&program()?, &kinds, seed, first, end, &mut tally));
    println!("{tally}");
    outcome
}

fn torture(arguments: &Arguments, seed: u64, start: Instant, tally: &mut Tally) -> Outcome<()> {
    let program = program()?;
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
