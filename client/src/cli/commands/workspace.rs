//! `init`, `status`, `export`, `queue`, `cancel`.

use std::path::PathBuf;

use semaprax_protocol::request::{Cancel, Export, Init, QueueParams, StatusParams};

use crate::Client;
use crate::cli::args::{CancelArguments, ExportArguments, InitArguments, StatusArguments};
use crate::cli::exit::{CommandResult, Exit};
use crate::cli::progress::Progress;
use crate::cli::settings::{self, Settings};

pub(super) fn init(settings: &Settings, arguments: &InitArguments) -> CommandResult {
    let named = arguments
        .directory
        .clone()
        .unwrap_or_else(|| PathBuf::from("."));
    // Like `git -C DIR init NAME`: the name is meant from there.
    let directory = settings::absolute(&settings.directory().join(named))?;
    let mut client = Client::connect(settings.options(None)?)?;
    let params = Init {
        directory,
        names: arguments.names,
        force: arguments.force,
        shared: arguments.shared,
        author: settings::author(arguments.attribution.author.as_ref()),
        message: arguments.attribution.message.clone().unwrap_or_default(),
    };
    let progress = Progress::new(settings.output, "importing");
    let done = client.call_noticing(params, &mut |notice| progress.notice(notice));
    drop(progress);
    let done = done?;
    settings.output.show(&done)?;
    let incomplete = arguments.strict && done.skipped_total > 0;
    Ok(if incomplete {
        Exit::FINDINGS
    } else {
        Exit::DONE
    })
}

pub(super) fn status(settings: &Settings, arguments: &StatusArguments) -> CommandResult {
    let answer = settings.client()?.call(StatusParams {
        drift: arguments.drift,
        limits: arguments.limits,
    })?;
    settings.output.show(&answer)?;
    Ok(Exit::DONE)
}

pub(super) fn export(settings: &Settings, arguments: &ExportArguments) -> CommandResult {
    let (revision, directory) = match arguments.arguments.as_slice() {
        [revision, directory] => (Some(revision.clone()), directory.as_str()),
        [directory] => (None, directory.as_str()),
        _ => (None, "."),
    };
    let directory = settings::absolute_new(directory)?;
    let mut client = settings.client()?;
    let progress = Progress::new(settings.output, "exporting");
    let done = client.call_noticing(
        Export {
            revision,
            directory,
        },
        &mut |notice| {
            progress.notice(notice);
        },
    );
    drop(progress);
    settings.output.show(&done?)?;
    Ok(Exit::DONE)
}

pub(super) fn queue(settings: &Settings) -> CommandResult {
    let answer = settings.client()?.call(QueueParams {})?;
    settings.output.show(&answer)?;
    Ok(Exit::DONE)
}

pub(super) fn cancel(settings: &Settings, arguments: &CancelArguments) -> CommandResult {
    let answer = settings.client()?.call(Cancel {
        submission: arguments.submission,
    })?;
    settings.output.show(&answer)?;
    Ok(Exit::DONE)
}
