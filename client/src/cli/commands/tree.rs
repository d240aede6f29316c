//! `ls`, `cat`, `blame`.

use semaprax_protocol::request::BlameParams;
use semaprax_protocol::{Code, Diagnostic, Refusal};

use crate::cli::args::{BlameArguments, CatArguments, LsArguments};
use crate::cli::exit::{CommandResult, Exit, Failure};
use crate::cli::render::blame_line;
use crate::cli::settings::{self, Settings};
use crate::{Client, ContentReader};

pub(super) fn ls(settings: &Settings, arguments: &LsArguments) -> CommandResult {
    let mut client = settings.client()?;
    let (revision, prefix) = match (&arguments.first, &arguments.second) {
        (Some(revision), Some(prefix)) => (Some(revision.clone()), Some(prefix.clone())),
        (Some(first), None) => {
            let target = settings::target(&mut client, first)?;
            (target.revision, target.path)
        }
        (None, _) => (None, None),
    };
    let prefix = prefix.as_deref().map(trim_slash);
    let listing = client.listing(revision, prefix)?;
    settings.output.show(&listing)?;
    Ok(Exit::DONE)
}

/// `src/` is the directory `src`, as a shell completes it.
fn trim_slash(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

pub(super) fn cat(settings: &Settings, arguments: &CatArguments) -> CommandResult {
    let mut client = settings.client()?;
    let (revision, path) = named(&mut client, &arguments.target)?;
    let mut reader = ContentReader::new(revision, path);
    while let Some(piece) = reader.next_piece(&mut client)? {
        settings.output.raw(&piece)?;
    }
    Ok(Exit::DONE)
}

pub(super) fn blame(settings: &Settings, arguments: &BlameArguments) -> CommandResult {
    let mut client = settings.client()?;
    let (revision, path) = named(&mut client, &arguments.target)?;
    let blame = client.call(BlameParams { path, revision })?;
    if settings.output.is_json() {
        settings.output.json(&blame)?;
        return Ok(Exit::DONE);
    }
    let content = client.content(Some(&blame.revision.to_string()), blame.path.as_str())?;
    let authors = blame.lines.iter().map(|line| line.author.chars().count());
    let width = authors.max().unwrap_or(0);
    let mut texts = content.bytes.split(|&byte| byte == b'\n');
    for line in &blame.lines {
        let text = texts.next().unwrap_or_default();
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let line = blame_line(line, width, text);
        settings.output.text(|out| {
            out.extend_from_slice(line.as_bytes());
            out.push(b'\n');
            Ok(())
        })?;
    }
    if blame.truncated {
        let more = texts.next().is_some_and(|text| !text.is_empty());
        settings.output.remark(if more {
            "too long for one answer: only the first lines are shown"
        } else {
            "older history was collected: lines of the oldest publication may be older"
        });
    }
    Ok(Exit::DONE)
}

/// The revision and the path that an argument names; a path must be there.
fn named(client: &mut Client, text: &str) -> Result<(Option<String>, String), Failure> {
    let target = settings::target(client, text)?;
    let Some(path) = target.path else {
        let message = format!("`{text}` names a revision and no path");
        let usage = Diagnostic::new(Code::Usage, message).hint(format!(
            "write `{text}:PATH`, or `:{text}` for a path of that name"
        ));
        return Err(Refusal::from(usage).into());
    };
    Ok((target.revision, path))
}
