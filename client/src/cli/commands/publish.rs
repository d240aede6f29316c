//! `publish`, `rollback`, `revert`, `undo`.
//!
//! Owns: choosing the form of what is published, and printing the receipt.
//! Never: makes a submission itself: that is in `submission.rs` and `patch.rs`.

use clap::ArgMatches;
use semaprax_protocol::documents::Receipt;
use semaprax_protocol::request::{Method, PublishDirectory, Revert, Rollback, Undo};
use semaprax_protocol::{Code, Diagnostic, Refusal};

use super::{patch, submission};
use crate::Client;
use crate::cli::args::{PublishArguments, RevertArguments, RollbackArguments, UndoArguments};
use crate::cli::exit::{CommandResult, Exit, Failure};
use crate::cli::progress::Progress;
use crate::cli::settings::{self, Settings};

pub(super) fn publish(
    settings: &Settings,
    arguments: &PublishArguments,
    matches: Option<&ArgMatches>,
) -> CommandResult {
    if let Some(directory) = &arguments.from_dir {
        let params = PublishDirectory {
            directory: settings::absolute(directory)?,
            base: arguments.base.clone(),
            on_stale: arguments.on_stale.unwrap_or_default(),
            attribution: settings::attribution(&arguments.attribution, &arguments.carry_out),
            options: settings::publish_options(&arguments.carry_out),
        };
        return ask(settings, params);
    }
    let receipt = if let Some(file) = &arguments.patch {
        // Read before a daemon is looked for: a patch that is none needs no daemon to say so.
        let files = patch::read(file)?;
        let mut client = settings.client()?;
        let progress = Progress::new(settings.output, "publishing");
        patch::publish(&mut client, arguments, &files, &mut |notice| {
            progress.notice(notice);
        })?
    } else {
        let mut wanted = match &arguments.from_json {
            Some(file) => submission::from_json(file)?,
            None => submission::from_flags(arguments, matches)?,
        };
        if arguments.from_json.is_none() && wanted.changes.is_empty() {
            return Err(nothing_to_publish());
        }
        submission::override_with(&mut wanted, arguments);
        let mut client = settings.client()?;
        let progress = Progress::new(settings.output, "publishing");
        let options = settings::publish_options(&arguments.carry_out);
        client.publish(wanted, options, &mut |notice| progress.notice(notice))?
    };
    settings.output.show(&receipt)?;
    Ok(Exit::DONE)
}

pub(super) fn rollback(settings: &Settings, arguments: RollbackArguments) -> CommandResult {
    let params = Rollback {
        attribution: settings::attribution(&arguments.attribution, &arguments.carry_out),
        options: settings::publish_options(&arguments.carry_out),
        revision: arguments.revision,
    };
    ask(settings, params)
}

pub(super) fn revert(settings: &Settings, arguments: &RevertArguments) -> CommandResult {
    let params = Revert {
        seq: arguments.seq.0,
        attribution: settings::attribution(&arguments.attribution, &arguments.carry_out),
        options: settings::publish_options(&arguments.carry_out),
    };
    ask(settings, params)
}

pub(super) fn undo(settings: &Settings, arguments: &UndoArguments) -> CommandResult {
    let params = Undo {
        attribution: settings::attribution(&arguments.attribution, &arguments.carry_out),
        options: settings::publish_options(&arguments.carry_out),
    };
    ask(settings, params)
}

fn ask(settings: &Settings, params: impl Method<Reply = Receipt>) -> CommandResult {
    let mut client: Client = settings.client()?;
    let progress = Progress::new(settings.output, "publishing");
    let receipt = client.call_noticing(params, &mut |notice| progress.notice(notice));
    drop(progress);
    settings.output.show(&receipt?)?;
    Ok(Exit::DONE)
}

fn nothing_to_publish() -> Failure {
    let usage = Diagnostic::new(Code::Usage, "there is nothing to publish")
        .hint("give --from-json, --patch, --from-dir, or any of --put, --delete and --move");
    Refusal::from(usage).into()
}
