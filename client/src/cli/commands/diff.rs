//! Differences of two trees as people and `git apply` read them.
//!
//! Owns: fetching the contents that a list of changes names, and the three forms.
//! Never: decides what differs: the list of changes says so.

use semaprax_protocol::documents::{ChangeKind, PathChange};
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{LogicalPath, Refusal};

use crate::Client;
use crate::cli::exit::Failure;
use crate::cli::render::{clean, style, styled};
use crate::cli::settings::Settings;
use crate::patch::{self, FileMode, FileSide, StatLine};

/// How a difference is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A git diff.
    Patch,
    /// Counts of lines.
    Stat,
    /// A letter and a path for each change.
    NameStatus,
}

/// The two revisions; the first publication has nothing before it.
pub(super) struct Sides {
    pub(super) from: Option<String>,
    pub(super) to: String,
}

/// A path and what is there, on one side.
type Side<'change> = Option<(&'change LogicalPath, FileSide)>;

/// Prints the changes between two revisions.
pub(super) fn print(
    settings: &Settings,
    client: &mut Client,
    sides: &Sides,
    changes: &[PathChange],
    form: Form,
) -> Result<(), Failure> {
    match form {
        Form::NameStatus => changes.iter().try_for_each(|change| {
            let line = match &change.from {
                Some(from) => format!(
                    "{}\t{}\t{}\n",
                    change.kind.letter(),
                    clean(from.as_str()),
                    clean(change.path.as_str())
                ),
                None => format!(
                    "{}\t{}\n",
                    change.kind.letter(),
                    clean(change.path.as_str())
                ),
            };
            settings.output.raw(line.as_bytes()).map_err(Failure::from)
        }),
        Form::Stat => {
            let mut rows = Vec::new();
            for change in changes {
                let (old, new) = contents(client, sides, change)?;
                rows.push(StatLine {
                    counts: patch::count(
                        old.as_ref().map(|(_, side)| side),
                        new.as_ref().map(|(_, side)| side),
                    ),
                    old: old.map(|(path, _)| path.to_string()),
                    new: new.map(|(path, _)| path.to_string()),
                });
            }
            let table = patch::render_stat(&rows, settings.output.width());
            settings.output.raw(table.as_bytes()).map_err(Failure::from)
        }
        Form::Patch => changes.iter().try_for_each(|change| {
            let (old, new) = contents(client, sides, change)?;
            let mut text = Vec::new();
            let name = |(path, side)| {
                let path: &LogicalPath = path;
                (path.as_str(), side)
            };
            patch::render_file(
                &mut text,
                old.as_ref().map(|(path, side)| name((path, side))),
                new.as_ref().map(|(path, side)| name((path, side))),
            )?;
            print_patch(settings, &text)
        }),
    }
}

/// Says so when the list of changes was only the start of a longer one.
pub(super) fn remark_if_cut(settings: &Settings, truncated: bool) {
    if truncated {
        settings.output.remark(
            "more paths differ than one answer holds; compare nearer revisions to see them",
        );
    }
}

/// What is on both sides of a change.
fn contents<'change>(
    client: &mut Client,
    sides: &Sides,
    change: &'change PathChange,
) -> Result<(Side<'change>, Side<'change>), Refusal> {
    let old_path = change.from.as_ref().unwrap_or(&change.path);
    let old = match &sides.from {
        Some(from) if change.kind != ChangeKind::Created => {
            Some((old_path, fetch(client, from, old_path)?))
        }
        _ => None,
    };
    let new = if change.kind == ChangeKind::Deleted {
        None
    } else {
        Some((&change.path, fetch(client, &sides.to, &change.path)?))
    };
    Ok((old, new))
}

fn fetch(client: &mut Client, revision: &str, path: &LogicalPath) -> Result<FileSide, Refusal> {
    let found = client.content(Some(revision), path.as_str())?;
    Ok(FileSide {
        mode: mode_of(found.kind),
        content: found.bytes,
    })
}

/// The mode of a patch for a kind of entry.
pub(super) const fn mode_of(kind: EntryKind) -> FileMode {
    match kind {
        EntryKind::File => FileMode::File,
        EntryKind::Executable => FileMode::Executable,
        EntryKind::Symlink => FileMode::Symlink,
    }
}

/// Prints a patch byte for byte; only where colour is wanted, its lines are coloured.
fn print_patch(settings: &Settings, text: &[u8]) -> Result<(), Failure> {
    if !settings.output.is_colored() {
        return settings.output.raw(text).map_err(Failure::from);
    }
    let mut colored = Vec::with_capacity(text.len() * 2);
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let (content, end) = line
            .strip_suffix(b"\n")
            .map_or((line, &b""[..]), |rest| (rest, b"\n"));
        let style = match content.first() {
            Some(b'+') => style::GOOD,
            Some(b'-') => style::BAD,
            Some(b'@') => style::PLACE,
            Some(b' ') | None => anstyle::Style::new(),
            Some(_) => style::STRONG,
        };
        colored.extend_from_slice(styled(style, String::from_utf8_lossy(content)).as_bytes());
        colored.extend_from_slice(end);
    }
    settings.output.raw(&colored).map_err(Failure::from)
}
