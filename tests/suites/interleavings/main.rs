//! Leases, collector and flip in every order that chance finds: the real code, its threads and
//! processes taking turns as a model checker (shuttle) says.
//!
//! Owns: the scene (`scene.rs`), who acts in it (`actors.rs`), and the checked runs: with the code as
//! it is, which must hold, and with one step of the protocol left out, which must not.
//! Never: a copy of the protocol. Every turn ends at a call of the disk, at the lock of the lease
//! table, or at a call of a reader's file rule. SQLite is one step. What is not in here: the queue and
//! the sockets of the server (pure machines with suites of their own), and the kernel's locks, which
//! are the real ones.
//!
//! ```text
//! cargo test -p semaprax-tests --features interleavings --test interleavings
//! SEMAPRAX_SEED=7 SEMAPRAX_SCHEDULES=100000 ...    another seed, more of them
//! SEMAPRAX_CAST=Recycled ...                       one scene of those with a step left out
//! ```
//!
//! A failure prints its schedule; `SEMAPRAX_SCHEDULE=<that text>` runs it again.

mod actors;
mod scene;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use semaprax_client::interleaving::trust_the_lock;
use semaprax_daemon::sync::{Step, leave_out};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use crate::scene::{Cast, play};

/// Schedules of each kind, for each scene.
const SCHEDULES: usize = 200;
/// Schedules after which a step left out must have shown.
const MUTATED: usize = 20_000;
/// Turns of one schedule: far more than any needs. Who waits for ever takes them all.
const TURNS: usize = 200_000;
/// Bytes of stack of each thread: SQLite and the digests are run on them.
const STACK: usize = 1 << 20;
/// How many changes of priority the second kind of schedules has.
const CHANGES: usize = 3;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

fn seed() -> u64 {
    let seed = number("SEMAPRAX_SEED").unwrap_or(1);
    println!("SEMAPRAX_SEED={seed}");
    seed
}

fn schedules(usual: usize) -> usize {
    number("SEMAPRAX_SCHEDULES").map_or(usual, |number| usize::try_from(number).unwrap())
}

fn config(tells: bool) -> Config {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.max_steps = MaxSteps::FailAfter(TURNS);
    config.failure_persistence = if tells {
        FailurePersistence::Print
    } else {
        FailurePersistence::None
    };
    config
}

/// A directory for the workspaces of a run, in memory where that is possible: a sync is no part of
/// this. It is removed at the end, whatever became of the threads that used it.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        let shared = PathBuf::from("/dev/shm");
        let base = if shared.is_dir() {
            shared
        } else {
            std::env::temp_dir()
        };
        let made = tempfile::Builder::new()
            .prefix("spx-turns-")
            .tempdir_in(base)
            .unwrap();
        Self(made.keep())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        semaprax_tests::process::make_writable(&self.0);
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn run(scheduler: impl Scheduler + 'static, cast: Cast, tells: bool) -> usize {
    let place = Place::new();
    let base = place.0.clone();
    Runner::new(scheduler, config(tells)).run(move || play(&base, cast))
}

#[test]
fn whoever_holds_a_tree_keeps_it_whole() {
    if let Ok(schedule) = std::env::var("SEMAPRAX_SCHEDULE") {
        for cast in Cast::EACH {
            println!("{cast:?}");
            run(
                shuttle::scheduler::ReplayScheduler::new_from_encoded(&schedule),
                cast,
                true,
            );
        }
        return;
    }
    let (seed, many) = (seed(), schedules(SCHEDULES));
    for cast in Cast::EACH {
        let random = run(RandomScheduler::new_from_seed(seed, many), cast, true);
        let pct = run(PctScheduler::new_from_seed(seed, CHANGES, many), cast, true);
        println!("{cast:?}: {random} random schedules, {pct} by priorities");
        assert_eq!((random, pct), (many, many));
    }
}

/// What is left out, and in which scene that shows.
enum LeftOut {
    OfTheDaemon(Step),
    ComparingTheLock,
}

#[test]
fn a_step_left_out_is_noticed() {
    let seed = seed();
    let only = std::env::var("SEMAPRAX_CAST").unwrap_or_default();
    let cases = [
        (LeftOut::ComparingTheLock, Cast::Files),
        (LeftOut::OfTheDaemon(Step::HoldLease), Cast::Files),
        (LeftOut::OfTheDaemon(Step::HoldTable), Cast::Sockets),
        (LeftOut::OfTheDaemon(Step::LookAgain), Cast::Sockets),
        (LeftOut::OfTheDaemon(Step::LeaseFirst), Cast::Sockets),
        (LeftOut::OfTheDaemon(Step::NeverLeased), Cast::Recycled),
    ];
    for (left_out, cast) in cases {
        if !format!("{cast:?}").contains(&only) {
            continue;
        }
        let name = match left_out {
            LeftOut::OfTheDaemon(step) => {
                leave_out(Some(step));
                format!("{step:?}")
            }
            LeftOut::ComparingTheLock => {
                trust_the_lock(true);
                "CompareTheLock".to_owned()
            }
        };
        let many = schedules(MUTATED);
        let tried = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = std::sync::Arc::clone(&tried);
        let place = Place::new();
        let base = place.0.clone();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let scheduler = PctScheduler::new_from_seed(seed, CHANGES, many);
            Runner::new(scheduler, config(false)).run(move || {
                count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                play(&base, cast);
            })
        }));
        leave_out(None);
        trust_the_lock(false);
        let tried = tried.load(std::sync::atomic::Ordering::Relaxed);
        let Err(panic) = outcome else {
            panic!("{name} was left out, and {tried} schedules did not show it");
        };
        let said = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
            .unwrap_or_default();
        println!("{cast:?} without {name}: noticed in schedule {tried}: {said}");
        assert!(
            said.contains(scene::VIOLATION),
            "without {name} something else went wrong: {said}"
        );
    }
}
