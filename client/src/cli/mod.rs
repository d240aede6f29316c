//! The `semaprax` command line.
//!
//! Owns: arguments (`args.rs`, as written) -> settings (`settings.rs`, as meant) -> one command each
//! (`commands/`) -> text or JSON (`render/`, `output.rs`) -> the exit code (`exit.rs`).
//! Never: reaches a daemon other than through [`crate::Client`], or prints other than through
//! `output.rs`.

mod args;
mod commands;
mod exit;
mod output;
mod parse;
mod progress;
mod render;
mod settings;
mod target;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use semaprax_protocol::{Code, Diagnostic, Refusal};

use args::Arguments;
use exit::{Exit, Failure};
use output::Output;
use settings::Settings;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let raw: Vec<OsString> = std::env::args_os().collect();
    let parsed = Arguments::command()
        .try_get_matches_from(&raw)
        .and_then(|matches| Ok((Arguments::from_arg_matches(&matches)?, matches)));
    let exit = match parsed {
        Ok((arguments, matches)) => run(arguments, &matches),
        Err(error) => refuse_usage(&error, wants_json(&raw)),
    };
    ExitCode::from(exit.code())
}

fn run(arguments: Arguments, matches: &ArgMatches) -> Exit {
    let output = Output::new(arguments.global.json, arguments.global.color);
    let settings = Settings::new(&arguments.global, output);
    let done = commands::dispatch(&settings, arguments.command, matches);
    match done {
        Ok(exit) => exit,
        Err(failure) => failure.report(output),
    }
}

/// What the command line would have said, had it been understood.
fn wants_json(raw: &[OsString]) -> bool {
    raw.iter()
        .skip(1)
        .take_while(|argument| *argument != "--")
        .any(|argument| argument == "--json")
}

fn refuse_usage(error: &clap::Error, json: bool) -> Exit {
    let asked_for = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    if asked_for || !json {
        // It goes to standard output when it was asked for, else to standard error.
        return match error.print() {
            Ok(()) if asked_for => Exit::DONE,
            Err(failed) if asked_for => {
                Failure::Output(failed).report(Output::new(false, args::ColorWhen::Auto))
            }
            _ => Exit::of(semaprax_protocol::Status::Rejected),
        };
    }
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or(&text);
    let message = first.trim().trim_start_matches("error: ").to_owned();
    let refusal = Refusal::from(Diagnostic::new(Code::Usage, message));
    Failure::Refused(refusal).report(Output::new(true, args::ColorWhen::Never))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn json_is_seen_even_when_the_rest_is_not_understood() {
        let check = |line: &str, expect: bool| {
            let raw: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(wants_json(&raw), expect, "{line}");
        };
        check("semaprax --json nonsense", true);
        check("semaprax status --json --what", true);
        check("semaprax status", false);
        check("semaprax with -- tool --json", false);
    }
}
