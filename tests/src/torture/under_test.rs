//! The daemon under test: the same program as `semaprax`, on a disk that dies when it is told to.
//!
//! Owns: what stands in for `semaprax daemon run`. Every other command is the client's own.
//!
//! An autostarted daemon gets no environment, so its orders lie in files beside its runtime directory;
//! one that is started by hand may be given `SEMAPRAX_TEST_KILL=before:KIND:CLASS:N`.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use semaprax_daemon::server::{self, Options};
use semaprax_daemon::world::{Clock, RealWorld, World};
use semaprax_protocol::Timestamp;

use super::disk::{Control, KillingDisk};

/// The variable with a plan.
const KILL: &str = "SEMAPRAX_TEST_KILL";

#[derive(Debug, Parser)]
#[command(name = "semaprax")]
struct Run {
    #[command(flatten)]
    options: Options,
}

/// The real clock, in a boot by another name: after a power cut the machine has a new one.
#[derive(Debug)]
struct BootClock {
    boot: String,
}

impl Clock for BootClock {
    fn now(&self) -> Timestamp {
        RealWorld.now()
    }

    fn since_boot(&self) -> Duration {
        RealWorld.since_boot()
    }

    fn pause(&self, time: Duration) {
        RealWorld.pause(time);
    }

    fn boot_id(&self) -> Option<String> {
        Some(self.boot.clone())
    }
}

/// Whether this process was asked to be `semaprax`: its first argument is one of `semaprax daemon`.
pub fn is_asked_for() -> bool {
    std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == "daemon")
}

/// Runs the command line, `daemon run` on the killing disk.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let is_run = arguments.get(1).is_some_and(|word| word == "daemon")
        && arguments.get(2).is_some_and(|word| word == "run");
    if !is_run {
        return semaprax_client::cli::main();
    }
    let own = [OsString::from("semaprax")];
    let Run { options } = Run::parse_from(own.into_iter().chain(arguments.into_iter().skip(3)));
    let uid = rustix::process::geteuid().as_raw();
    let runtime = options.runtime_directory(uid);
    let beside = runtime.parent().unwrap_or(&runtime);
    let plan = std::env::var(KILL).ok().map(|text| match text.parse() {
        Ok(plan) => plan,
        Err(error) => panic!("{KILL}: {error}"),
    });
    let control = Control::at(beside.as_std_path().to_owned());
    let mut world = World::real();
    if let Ok(boot) = std::fs::read_to_string(control.boot()) {
        world.clock = Arc::new(BootClock { boot });
    }
    world.disk = Arc::new(KillingDisk::new(control, plan));
    match server::run_in(world, &options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            eprintln!("{refusal}");
            ExitCode::from(refusal.status.exit_code())
        }
    }
}
