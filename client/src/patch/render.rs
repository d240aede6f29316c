//! Writing the difference of two files as git does.
//!
//! Owns: the headers, hunks and binary patches that `git apply` and [`super::parse`] accept, for
//! every pair of files.
//!
//! Never: finds renames (the caller says which files belong together), or shortens what is needed
//! to apply the patch.

use std::io::{self, Write};
use std::ops::Range;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::lines::{self, Change};
use super::{FileMode, FileSide, base85, git_blob_id, is_text, quote::quote};

/// Unchanged lines shown around a change.
const CONTEXT_LINES: usize = 3;

/// Digits of a shortened id, where nothing depends on it.
const SHORT_ID_DIGITS: usize = 7;

/// The whole id that stands for "no file".
const NULL_ID: &str = "0000000000000000000000000000000000000000";

/// One file on both sides, with its paths.
struct Pair<'a> {
    old: Option<(&'a str, &'a FileSide)>,
    new: Option<(&'a str, &'a FileSide)>,
}

/// Writes the difference of one file, as a part of a git diff.
///
/// Without `old` the file is created, without `new` it is deleted, and with two paths it is
/// renamed. A file that turns into a symbolic link, or the reverse, is deleted and created, as git
/// shows it. Equal files write nothing.
///
/// # Errors
/// Only what `out` answers.
pub fn render_file(
    out: &mut impl Write,
    old: Option<(&str, &FileSide)>,
    new: Option<(&str, &FileSide)>,
) -> io::Result<()> {
    if let (Some((_, before)), Some((_, after))) = (old, new) {
        if (before.mode == FileMode::Symlink) != (after.mode == FileMode::Symlink) {
            render_file(out, old, None)?;
            return render_file(out, None, new);
        }
        if old == new {
            return Ok(());
        }
    }
    let pair = Pair { old, new };
    let Some((old_path, new_path)) = pair.paths() else {
        return Ok(());
    };
    let (old_name, new_name) = (format!("a/{old_path}"), format!("b/{new_path}"));
    writeln!(out, "diff --git {} {}", quote(&old_name), quote(&new_name))?;
    write_extended_header(out, &pair)?;
    if pair.before() == pair.after() {
        return Ok(());
    }
    if pair.is_binary() {
        writeln!(out, "GIT binary patch")?;
        write_literal(out, pair.after())?;
        return write_literal(out, pair.before());
    }
    write_name(out, "---", old.is_some().then_some(&old_name))?;
    write_name(out, "+++", new.is_some().then_some(&new_name))?;
    write_hunks(out, pair.before(), pair.after())
}

impl<'a> Pair<'a> {
    /// The old and the new path; a file that is only on one side has its path on both.
    fn paths(&self) -> Option<(&'a str, &'a str)> {
        let old = self.old.or(self.new)?.0;
        let new = self.new.or(self.old)?.0;
        Some((old, new))
    }

    fn before(&self) -> &'a [u8] {
        self.old.map_or(&[], |(_, side)| &side.content)
    }

    fn after(&self) -> &'a [u8] {
        self.new.map_or(&[], |(_, side)| &side.content)
    }

    fn is_binary(&self) -> bool {
        !is_text(self.before()) || !is_text(self.after())
    }
}

fn write_extended_header(out: &mut impl Write, pair: &Pair<'_>) -> io::Result<()> {
    let id = |side: Option<(&str, &FileSide)>| {
        let id = side.map_or_else(
            || NULL_ID.to_owned(),
            |(_, side)| git_blob_id(&side.content),
        );
        // `git apply` takes a binary patch only onto the content named in full.
        let digits = if pair.is_binary() {
            id.len()
        } else {
            SHORT_ID_DIGITS
        };
        id.chars().take(digits).collect::<String>()
    };
    let mut mode_suffix = String::new();
    match (pair.old, pair.new) {
        (None, Some((_, after))) => writeln!(out, "new file mode {}", after.mode.octal())?,
        (Some((_, before)), None) => writeln!(out, "deleted file mode {}", before.mode.octal())?,
        (Some((old_path, before)), Some((new_path, after))) => {
            if before.mode == after.mode {
                mode_suffix = format!(" {}", after.mode.octal());
            } else {
                writeln!(out, "old mode {}", before.mode.octal())?;
                writeln!(out, "new mode {}", after.mode.octal())?;
            }
            if old_path != new_path {
                let percent = similarity_percent(&before.content, &after.content);
                writeln!(out, "similarity index {percent}%")?;
                writeln!(out, "rename from {}", quote(old_path))?;
                writeln!(out, "rename to {}", quote(new_path))?;
            }
            if before.content == after.content {
                return Ok(());
            }
        }
        (None, None) => return Ok(()),
    }
    writeln!(out, "index {}..{}{mode_suffix}", id(pair.old), id(pair.new))
}

/// How much of the larger content is in both, in whole lines; 100 only for equal contents.
fn similarity_percent(before: &[u8], after: &[u8]) -> usize {
    if before == after {
        return 100;
    }
    if !is_text(before) || !is_text(after) {
        return 0;
    }
    let before_lines = lines::split(before);
    let removed: usize = lines::changes(&before_lines, &lines::split(after))
        .iter()
        .filter_map(|change| before_lines.get(change.before.clone()))
        .flatten()
        .map(|line| line.len())
        .sum();
    let kept = before.len().saturating_sub(removed);
    (kept.saturating_mul(100) / before.len().max(after.len()).max(1)).min(99)
}

/// A `---` or `+++` line. A name with a space ends in a tab, so that no reader takes a part of it
/// for a date.
fn write_name(out: &mut impl Write, mark: &str, name: Option<&String>) -> io::Result<()> {
    match name {
        None => writeln!(out, "{mark} /dev/null"),
        Some(name) => {
            let tab = if name.contains(' ') { "\t" } else { "" };
            writeln!(out, "{mark} {}{tab}", quote(name))
        }
    }
}

fn write_literal(out: &mut impl Write, content: &[u8]) -> io::Result<()> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content)?;
    let deflated = encoder.finish()?;
    writeln!(out, "literal {}", content.len())?;
    let mut line = Vec::with_capacity(base85::LINE_BYTES_MAX * 2);
    for bytes in deflated.chunks(base85::LINE_BYTES_MAX) {
        line.clear();
        base85::encode_line(bytes, &mut line);
        out.write_all(&line)?;
    }
    writeln!(out)
}

fn write_hunks(out: &mut impl Write, before: &[u8], after: &[u8]) -> io::Result<()> {
    let (before, after) = (lines::split(before), lines::split(after));
    let changes = lines::changes(&before, &after);
    // Changes whose contexts touch share a hunk.
    let near = |one: &Change, next: &Change| {
        next.before.start.saturating_sub(one.before.end) <= 2 * CONTEXT_LINES
    };
    for group in changes.chunk_by(near) {
        write_hunk(out, group, &before, &after)?;
    }
    Ok(())
}

fn write_hunk(
    out: &mut impl Write,
    changes: &[Change],
    before: &[&[u8]],
    after: &[&[u8]],
) -> io::Result<()> {
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
        return Ok(());
    };
    let above = first.before.start.min(CONTEXT_LINES);
    let below = before
        .len()
        .saturating_sub(last.before.end)
        .min(CONTEXT_LINES);
    let old = first.before.start - above..last.before.end + below;
    let new = first.after.start - above..last.after.end + below;
    writeln!(out, "@@ -{} +{} @@", extent(&old), extent(&new))?;
    let mut at = old.start;
    for change in changes {
        write_lines(out, b' ', before.get(at..change.before.start))?;
        write_lines(out, b'-', before.get(change.before.clone()))?;
        write_lines(out, b'+', after.get(change.after.clone()))?;
        at = change.before.end;
    }
    write_lines(out, b' ', before.get(at..old.end))
}

/// A range as a hunk header names it: from 1, the count left out if it is 1; an empty range is
/// named by the line before it.
fn extent(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        count => format!("{},{count}", range.start + 1),
    }
}

fn write_lines(out: &mut impl Write, mark: u8, lines: Option<&[&[u8]]>) -> io::Result<()> {
    for line in lines.unwrap_or_default() {
        out.write_all(&[mark])?;
        out.write_all(line)?;
        if !line.ends_with(b"\n") {
            out.write_all(b"\n\\ No newline at end of file\n")?;
        }
    }
    Ok(())
}
