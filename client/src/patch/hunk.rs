//! The hunks of a file in a patch.
//!
//! Owns: hunk headers, the lines of a hunk by the counts of its header, and where a line has no
//! line end.
//!
//! Never: looks at the file the hunk is for.

use super::model::Hunk;
use super::parse::{ParseError, ParseErrorKind, is_plain_header};
use super::reader::{Reader, trimmed};

/// Reads the hunks that follow; at least one.
pub(super) fn parse_all(reader: &mut Reader<'_>) -> Result<Vec<Hunk>, ParseError> {
    let mut hunks = Vec::new();
    while reader.peek().is_some_and(|line| line.starts_with(b"@@ -")) {
        hunks.push(parse_one(reader)?);
    }
    if hunks.is_empty() {
        return Err(ParseErrorKind::MissingBody.at(reader.line()));
    }
    refuse_surplus(reader)?;
    Ok(hunks)
}

/// Whether `text` reads as a hunk header.
pub(super) fn is_header(text: &[u8]) -> bool {
    ranges(text).is_some()
}

/// A line right after the last hunk that looks like one more of its lines: the counts in the
/// header are wrong, and passing over it would lose a change.
fn refuse_surplus(reader: &Reader<'_>) -> Result<(), ParseError> {
    let Some(line) = reader.peek() else {
        return Ok(());
    };
    let is_signature = matches!(trimmed(line), b"-- " | b"--");
    let is_change = matches!(line.first(), Some(b'+' | b'-' | b' '));
    if is_change && !is_signature && !is_plain_header(reader) {
        return Err(ParseErrorKind::WrongLineCount.at(reader.line()));
    }
    Ok(())
}

/// Which side a line of a hunk is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Both,
    Old,
    New,
}

/// A hunk being read: how many lines each side still gets, and whether it has had its last line
/// because that one has no line end.
struct Filling {
    hunk: Hunk,
    old_left: u64,
    new_left: u64,
    old_ended: bool,
    new_ended: bool,
    last: Option<Side>,
    /// Whether it has an unchanged line so far.
    has_context: bool,
}

fn parse_one(reader: &mut Reader<'_>) -> Result<Hunk, ParseError> {
    let at = reader.line();
    let header = reader.next().map(trimmed).unwrap_or_default();
    let (old, new) = ranges(header).ok_or(ParseErrorKind::MalformedHunk.at(at))?;
    let mut filling = Filling {
        hunk: Hunk {
            line: at,
            old_start: old.0,
            old_count: old.1,
            new_start: new.0,
            new_count: new.1,
            old: Vec::new(),
            new: Vec::new(),
            ends_file: false,
        },
        has_context: false,
        old_left: old.1,
        new_left: new.1,
        old_ended: false,
        new_ended: false,
        last: None,
    };
    loop {
        let at = reader.line();
        let complete = filling.old_left == 0 && filling.new_left == 0;
        let Some(line) = reader.peek() else {
            let end = if complete {
                Ok(())
            } else {
                Err(ParseErrorKind::Truncated.at(at))
            };
            return end.map(|()| filling.hunk);
        };
        if line.starts_with(b"\\ ") {
            filling.end_last_line().map_err(|kind| kind.at(at))?;
        } else if complete {
            return Ok(filling.hunk);
        } else {
            filling.take(line).map_err(|kind| kind.at(at))?;
        }
        reader.next();
    }
}

impl Filling {
    fn take(&mut self, line: &[u8]) -> Result<(), ParseErrorKind> {
        if !line.ends_with(b"\n") {
            return Err(ParseErrorKind::Truncated);
        }
        // An empty line is an unchanged empty line whose space an editor took away.
        let (side, text) = match line.split_first() {
            Some((b' ', text)) => (Side::Both, text),
            Some((b'-', text)) => (Side::Old, text),
            Some((b'+', text)) => (Side::New, text),
            Some((b'\n', _)) => (Side::Both, line),
            _ => return Err(ParseErrorKind::WrongLineCount),
        };
        if side != Side::New {
            put(text, &mut self.hunk.old, &mut self.old_left, self.old_ended)?;
        }
        if side != Side::Old {
            put(text, &mut self.hunk.new, &mut self.new_left, self.new_ended)?;
        }
        self.has_context |= side == Side::Both;
        self.hunk.ends_file = self.has_context && side != Side::Both;
        self.last = Some(side);
        Ok(())
    }

    /// The line just read has no line end; so it is the last of its side.
    fn end_last_line(&mut self) -> Result<(), ParseErrorKind> {
        let side = self.last.take().ok_or(ParseErrorKind::MisplacedNoNewline)?;
        if side != Side::New {
            end(&mut self.hunk.old, self.old_left, &mut self.old_ended)?;
        }
        if side != Side::Old {
            end(&mut self.hunk.new, self.new_left, &mut self.new_ended)?;
        }
        Ok(())
    }
}

fn put(text: &[u8], to: &mut Vec<u8>, left: &mut u64, ended: bool) -> Result<(), ParseErrorKind> {
    if ended {
        return Err(ParseErrorKind::MisplacedNoNewline);
    }
    *left = left.checked_sub(1).ok_or(ParseErrorKind::WrongLineCount)?;
    to.extend_from_slice(text);
    Ok(())
}

fn end(text: &mut Vec<u8>, left: u64, ended: &mut bool) -> Result<(), ParseErrorKind> {
    // A line that is nothing but its line end cannot lack it: there would be no line.
    let before_end = text.len().checked_sub(2).and_then(|place| text.get(place));
    let is_empty_line = before_end.is_none_or(|&byte| byte == b'\n');
    if left > 0 || is_empty_line || text.pop() != Some(b'\n') {
        return Err(ParseErrorKind::MisplacedNoNewline);
    }
    *ended = true;
    Ok(())
}

type Extent = (u64, u64);

/// The start and count of both sides of `@@ -S,C +S,C @@`.
fn ranges(header: &[u8]) -> Option<(Extent, Extent)> {
    let rest = header.strip_prefix(b"@@ -")?;
    let (old, rest) = extent(rest)?;
    let (new, rest) = extent(rest.strip_prefix(b" +")?)?;
    rest.strip_prefix(b" @@")?;
    let valid = |(start, count): Extent| start > 0 || count == 0;
    (valid(old) && valid(new) && (old.1 > 0 || new.1 > 0)).then_some((old, new))
}

fn extent(text: &[u8]) -> Option<(Extent, &[u8])> {
    let (start, rest) = number(text)?;
    match rest.strip_prefix(b",") {
        Some(rest) => number(rest).map(|(count, rest)| ((start, count), rest)),
        None => Some(((start, 1), rest)),
    }
}

fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    let value = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((value, rest))
}
