//! The commands, one file for each or for a close family.
//!
//! Owns: which command is which function. Never: what is shared between them (`settings.rs`).

mod daemon;
mod demo;
mod diff;
mod history;
mod lease;
mod patch;
mod program;
mod publish;
mod submission;
mod tree;
mod upkeep;
mod watch;
mod with;
mod workspace;

use clap::ArgMatches;

use super::args::Command;
use super::exit::CommandResult;
use super::settings::Settings;

/// Carries out a command.
pub(super) fn dispatch(
    settings: &Settings,
    command: Command,
    matches: &ArgMatches,
) -> CommandResult {
    match command {
        Command::Init(arguments) => workspace::init(settings, &arguments),
        Command::Status(arguments) => workspace::status(settings, &arguments),
        Command::Export(arguments) => workspace::export(settings, &arguments),
        Command::Queue => workspace::queue(settings),
        Command::Cancel(arguments) => workspace::cancel(settings, &arguments),
        Command::Publish(arguments) => {
            publish::publish(settings, &arguments, matches.subcommand_matches("publish"))
        }
        Command::Rollback(arguments) => publish::rollback(settings, arguments),
        Command::Revert(arguments) => publish::revert(settings, &arguments),
        Command::Undo(arguments) => publish::undo(settings, &arguments),
        Command::Log(arguments) => history::log(settings, arguments),
        Command::Show(arguments) => history::show(settings, arguments),
        Command::Diff(arguments) => history::diff(settings, arguments),
        Command::Journal(arguments) => history::journal(settings, &arguments),
        Command::Ls(arguments) => tree::ls(settings, &arguments),
        Command::Cat(arguments) => tree::cat(settings, &arguments),
        Command::Blame(arguments) => tree::blame(settings, &arguments),
        Command::Lease(command) => lease::lease(settings, command),
        Command::With(arguments) => with::with(settings, &arguments),
        Command::Enter(arguments) => with::enter(settings, &arguments),
        Command::Watch(arguments) => watch::watch(settings, arguments),
        Command::Pin(arguments) => upkeep::pin(settings, arguments),
        Command::Unpin(arguments) => upkeep::unpin(settings, arguments),
        Command::Gc(arguments) => upkeep::gc(settings, &arguments),
        Command::Why(arguments) => upkeep::why(settings, arguments),
        Command::Verify(arguments) => upkeep::verify(settings, &arguments),
        Command::Doctor(arguments) => upkeep::doctor(settings, &arguments),
        Command::Daemon(command) => daemon::daemon(settings, command),
        Command::Explain(arguments) => program::explain(settings, &arguments),
        Command::Schema(arguments) => program::schema(settings, &arguments),
        Command::Completions(arguments) => program::completions(settings, &arguments),
        Command::Demo(arguments) => demo::demo(settings, &arguments),
    }
}
