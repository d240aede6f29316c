//! `log`, `show`, `diff`, `journal`.

use semaprax_protocol::documents::JournalEntry;
use semaprax_protocol::request::{Diff, Journal, JournalHead, Log, Show};

use super::diff::{self, Form, Sides};
use crate::cli::args::{DiffArguments, JournalArguments, LogArguments, RevisionArguments};
use crate::cli::exit::{CommandResult, Exit, Failure};
use crate::cli::output::Output;
use crate::cli::render::journal_line;
use crate::cli::settings::Settings;

/// How long one request of `journal --follow` waits for something new.
const FOLLOW_WAIT_MS: u64 = 30_000;

pub(super) fn log(settings: &Settings, arguments: LogArguments) -> CommandResult {
    let page = settings.client()?.history(&Log {
        limit: arguments.limit,
        before: None,
        path: arguments.path,
        author: arguments.author,
    })?;
    settings.output.show(&page)?;
    Ok(Exit::DONE)
}

pub(super) fn show(settings: &Settings, arguments: RevisionArguments) -> CommandResult {
    let mut client = settings.client()?;
    let publication = client.call(Show {
        revision: arguments.revision,
    })?;
    settings.output.show(&publication)?;
    if !settings.output.is_json() {
        let sides = Sides {
            from: publication.parent.map(|parent| parent.to_string()),
            to: publication.revision.to_string(),
        };
        diff::print(
            settings,
            &mut client,
            &sides,
            &publication.changes,
            Form::Patch,
        )?;
        diff::remark_if_cut(settings, publication.truncated);
    }
    Ok(Exit::DONE)
}

pub(super) fn diff(settings: &Settings, arguments: DiffArguments) -> CommandResult {
    let mut client = settings.client()?;
    let found = client.call(Diff {
        from: arguments.from,
        to: arguments.to,
    })?;
    if settings.output.is_json() {
        settings.output.json(&found)?;
        return Ok(Exit::DONE);
    }
    let form = match (arguments.stat, arguments.name_status) {
        (true, _) => Form::Stat,
        (_, true) => Form::NameStatus,
        _ => Form::Patch,
    };
    let sides = Sides {
        from: Some(found.from.revision.to_string()),
        to: found.to.revision.to_string(),
    };
    diff::print(settings, &mut client, &sides, &found.changes, form)?;
    diff::remark_if_cut(settings, found.truncated);
    Ok(Exit::DONE)
}

pub(super) fn journal(settings: &Settings, arguments: &JournalArguments) -> CommandResult {
    let mut client = settings.client()?;
    if arguments.command.is_some() {
        let head = client.call(JournalHead {})?;
        print_entry(settings.output, &head)?;
        return Ok(Exit::DONE);
    }
    let mut since = arguments.since;
    loop {
        let page = client.call(Journal {
            since,
            limit: None,
            wait_ms: arguments.follow.then_some(FOLLOW_WAIT_MS),
        })?;
        for entry in &page.entries {
            print_entry(settings.output, entry)?;
            since = since.max(entry.entry);
        }
        if !arguments.follow && (!page.more || page.entries.is_empty()) {
            return Ok(Exit::DONE);
        }
    }
}

fn print_entry(output: Output, entry: &JournalEntry) -> Result<(), Failure> {
    if output.is_json() {
        output.json(entry)?;
    } else {
        output.text(|out| journal_line(out, entry))?;
    }
    Ok(())
}
