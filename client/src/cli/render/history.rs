//! Publications, trees and what led to them, as text.

use std::io::{self, Write};

use semaprax_protocol::documents::{
    BlameLine, EventKind, JournalEntry, Listing, LogPage, PathChange, Publication, Receipt,
    ReceiptStatus, WatchEvent,
};
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{Revision, Seq};

use super::{Human, change_line, clean, message, moment, plural, style, styled};

/// The most changes that are listed after a publication; `show` and `diff` list them all.
const CHANGES_LISTED: usize = 50;

/// `@5 a1b2c3d4e5f6`.
fn name(seq: Seq, revision: Revision) -> String {
    styled(style::NAME, format_args!("@{seq} {}", revision.short()))
}

fn changes(out: &mut Vec<u8>, list: &[PathChange], truncated: bool) -> io::Result<()> {
    for change in list.iter().take(CHANGES_LISTED) {
        writeln!(out, "  {}", change_line(change))?;
    }
    let left = list.len().saturating_sub(CHANGES_LISTED);
    match (left, truncated) {
        (0, false) => Ok(()),
        (_, true) => writeln!(out, "  ... and more"),
        (left, false) => writeln!(out, "  ... and {left} more"),
    }
}

impl Human for Receipt {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let word = match self.status {
            ReceiptStatus::Published => styled(style::GOOD, "published"),
            ReceiptStatus::Unchanged => "unchanged".to_owned(),
            ReceiptStatus::Ready => styled(style::GOOD, "ready to be published"),
            ReceiptStatus::AwaitingApproval => styled(style::WARNING, "awaiting approval"),
        };
        let what = match (self.seq, self.revision) {
            (Some(seq), Some(revision)) => name(seq, revision),
            _ => format!("tree {}", self.tree.short()),
        };
        let mut notes = vec![plural(self.changes.len() as u64, "change")];
        if self.truncated {
            notes = vec![format!("more than {}", notes.concat())];
        }
        if self.rebased {
            notes.push("rebased".to_owned());
        }
        if !self.merged.is_empty() {
            notes.push(format!("{} merged", self.merged.len()));
        }
        if self.replayed {
            notes.push("the outcome of an earlier submission of this id".to_owned());
        }
        writeln!(out, "{word} {what}  ({})", notes.join(", "))?;
        changes(out, &self.changes, self.truncated)?;
        if self.status == ReceiptStatus::AwaitingApproval {
            writeln!(out, "submission {}", self.submission)?;
        }
        Ok(())
    }
}

impl Human for LogPage {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        for entry in &self.entries {
            writeln!(
                out,
                "{} {}  {}  ({})",
                name(entry.seq, entry.revision),
                clean(&entry.author),
                styled(style::FAINT, moment(entry.published_at)),
                plural(entry.changes, "change"),
            )?;
            message(out, &entry.message)?;
        }
        if self.truncated {
            writeln!(out, "{}", styled(style::FAINT, "... and older ones"))?;
        }
        Ok(())
    }
}

impl Human for Publication {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        writeln!(
            out,
            "{}",
            styled(
                style::NAME,
                format_args!("publication @{} {}", self.seq, self.revision)
            )
        )?;
        writeln!(out, "Tree:       {}", self.tree)?;
        if let Some(parent) = self.parent {
            writeln!(out, "Parent:     {parent}")?;
        }
        writeln!(out, "Submission: {}", self.submission)?;
        writeln!(out, "Author:     {}", clean(&self.author))?;
        writeln!(out, "Date:       {}", moment(self.published_at))?;
        if self.rebased {
            writeln!(
                out,
                "Rebased:    from {}",
                self.base.map_or_else(String::new, |base| base.short())
            )?;
        }
        for path in &self.merged {
            writeln!(out, "Merged:     {}", clean(path.as_str()))?;
        }
        if !self.message.is_empty() {
            writeln!(out)?;
            message(out, &self.message)?;
        }
        writeln!(out)
    }
}

impl Human for Listing {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        for entry in &self.entries {
            let path = clean(entry.path.as_str());
            match entry.kind {
                EntryKind::File => writeln!(out, "{path}")?,
                EntryKind::Executable => writeln!(out, "{}", styled(style::GOOD, path))?,
                EntryKind::Symlink => writeln!(out, "{}", styled(style::PLACE, path))?,
            }
        }
        Ok(())
    }
}

/// A line of a file, with where it comes from.
pub(in crate::cli) fn blame_line(blame: &BlameLine, author_width: usize, text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let seq = format!("@{}", blame.seq);
    format!(
        "{} {:author_width$} {:>4}) {}",
        styled(
            style::NAME,
            format_args!("{seq:>5} {}", blame.revision.short())
        ),
        clean(&blame.author),
        blame.line,
        text.split('\t')
            .map(|piece| clean(piece).into_owned())
            .collect::<Vec<_>>()
            .join("\t"),
    )
}

/// One event of `watch`.
pub(in crate::cli) fn event_line(out: &mut Vec<u8>, event: &WatchEvent) -> io::Result<()> {
    let what = name(event.seq, event.revision);
    match event.event {
        EventKind::Snapshot => writeln!(out, "from {what}"),
        EventKind::Fresh => writeln!(
            out,
            "{} {what}: what was there before must be read anew",
            styled(style::WARNING, "fresh")
        ),
        EventKind::Published => {
            writeln!(
                out,
                "{what} {}",
                clean(event.author.as_deref().unwrap_or_default())
            )?;
            message(out, event.message.as_deref().unwrap_or_default())?;
            changes(
                out,
                event.changes.as_deref().unwrap_or_default(),
                event.truncated,
            )
        }
    }
}

/// One entry of the journal.
pub(in crate::cli) fn journal_line(out: &mut Vec<u8>, entry: &JournalEntry) -> io::Result<()> {
    writeln!(
        out,
        "{} {}  {} {}",
        styled(style::NAME, entry.entry),
        styled(style::FAINT, moment(entry.at)),
        styled(style::STRONG, clean(&entry.kind)),
        clean(&entry.detail.to_string()),
    )
}
