//! `semapraxd`: the daemon as a program of its own, the same as `semaprax daemon run`.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;
use semaprax_daemon::server::{self, Options};

/// The Semaprax daemon.
#[derive(Debug, Parser)]
#[command(name = "semapraxd", version)]
struct Arguments {
    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match server::run(&arguments.options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            let mut stderr = std::io::stderr().lock();
            for diagnostic in &refusal.diagnostics {
                let hint = diagnostic.hint.as_deref().unwrap_or_default();
                drop(writeln!(
                    stderr,
                    "semapraxd: {}: {}\n  {hint}",
                    diagnostic.code, diagnostic.message
                ));
            }
            ExitCode::from(refusal.status.exit_code())
        }
    }
}
