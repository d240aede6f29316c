//! The headers of a file in a patch.
//!
//! Owns: the extended header of git, the `---` and `+++` lines, and the checks that they tell one
//! story.
//!
//! Never: looks into hunks.

use super::model::{Body, FilePatch, Operation};
use super::names::DatedName;
use super::parse::{Limits, ParseError, ParseErrorKind};
use super::reader::{Reader, trimmed};
use super::{FileMode, binary, blob, hunk, names};

/// The longest `diff --git` line that is read: two paths of 4096 bytes, each byte escaped.
const HEADER_BYTES_MAX: usize = 2 * 4 * 4096 + 64;

/// What the header lines said so far.
#[derive(Debug, Default)]
struct Header {
    /// The names of the `diff --git` line, as they stand there.
    raw: Option<(Vec<u8>, Vec<u8>)>,
    moved: Option<Operation>,
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    created: bool,
    deleted: bool,
    old_mode: Option<FileMode>,
    new_mode: Option<FileMode>,
    ids: Option<(String, String)>,
    /// The names of the `---` and `+++` lines, if there are any; an inner `None` is "no file".
    dated: Option<Sides>,
}

/// Reads one file of a git diff; the reader stands at its `diff --git` line.
pub(super) fn parse_git(reader: &mut Reader<'_>, limits: Limits) -> Result<FilePatch, ParseError> {
    let line = reader.line();
    let mut header = Header::default();
    if let Some(text) = reader.next().map(trimmed) {
        if text.len() > HEADER_BYTES_MAX {
            return Err(ParseErrorKind::MalformedHeader.at(line));
        }
        header.raw = text
            .strip_prefix(b"diff --git ")
            .and_then(names::split_pair);
    }
    while let Some(text) = reader.peek().map(trimmed) {
        if !header.take(text).map_err(|kind| kind.at(reader.line()))? {
            break;
        }
        reader.next();
    }
    let next = reader.peek().unwrap_or_default();
    let body = if next.starts_with(b"--- ") {
        let (old, new) = take_dated(reader)?;
        let name = |side: DatedName| side.name.filter(|_| side.exists);
        header.dated = Some((name(old), name(new)));
        Body::Text(hunk::parse_all(reader)?)
    } else if trimmed(next) == b"GIT binary patch" {
        Body::Binary(binary::parse(reader, limits)?)
    } else if next.starts_with(b"Binary files ") {
        return Err(ParseErrorKind::BinaryWithoutContent.at(reader.line()));
    } else if next.starts_with(b"@@ -") {
        return Err(ParseErrorKind::HunkWithoutFile.at(reader.line()));
    } else {
        Body::Unchanged
    };
    header.finish(line, body).map_err(|kind| kind.at(line))
}

/// Reads one file of a plain unified diff; the reader stands at its `---` line.
pub(super) fn parse_plain(reader: &mut Reader<'_>) -> Result<FilePatch, ParseError> {
    let line = reader.line();
    let (old, new) = take_dated(reader)?;
    let path = names::plain_path(old.name.as_deref(), new.name.as_deref());
    let path = path.ok_or(ParseErrorKind::NoPath.at(line))?.to_vec();
    let path = text_path(path).map_err(|kind| kind.at(line))?;
    let file = FilePatch {
        line,
        operation: match (old.exists, new.exists) {
            (false, false) => return Err(ParseErrorKind::Contradiction.at(line)),
            (false, true) => Operation::Create,
            (true, false) => Operation::Delete,
            (true, true) => Operation::Modify,
        },
        old_path: old.exists.then(|| path.clone()),
        new_path: new.exists.then_some(path),
        old_mode: None,
        new_mode: None,
        old_id: None,
        new_id: None,
        body: Body::Text(hunk::parse_all(reader)?),
    };
    check_body(&file).map_err(|kind| kind.at(line))?;
    Ok(file)
}

/// The names on both sides; none where there is no file.
type Sides = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Goes past a `---` and a `+++` line.
fn take_dated(reader: &mut Reader<'_>) -> Result<(DatedName, DatedName), ParseError> {
    let mut take = |mark: &[u8]| {
        let at = reader.line();
        let text = reader
            .next()
            .map(trimmed)
            .and_then(|text| text.strip_prefix(mark));
        text.ok_or(ParseErrorKind::MalformedHeader)
            .and_then(names::dated_name)
            .map_err(|kind| kind.at(at))
    };
    Ok((take(b"--- ")?, take(b"+++ ")?))
}

impl Header {
    /// Takes one line; `false` says that the header ended before it.
    fn take(&mut self, text: &[u8]) -> Result<bool, ParseErrorKind> {
        if let Some(mode) = text.strip_prefix(b"old mode ") {
            self.old_mode = Some(mode_of(mode)?);
        } else if let Some(mode) = text.strip_prefix(b"new mode ") {
            self.new_mode = Some(mode_of(mode)?);
        } else if let Some(mode) = text.strip_prefix(b"new file mode ") {
            self.new_mode = Some(mode_of(mode)?);
            self.created = true;
        } else if let Some(mode) = text.strip_prefix(b"deleted file mode ") {
            self.old_mode = Some(mode_of(mode)?);
            self.deleted = true;
        } else if let Some(name) = text.strip_prefix(b"rename from ") {
            self.take_move(Operation::Rename, Some(name), None)?;
        } else if let Some(name) = text.strip_prefix(b"rename to ") {
            self.take_move(Operation::Rename, None, Some(name))?;
        } else if let Some(name) = text.strip_prefix(b"copy from ") {
            self.take_move(Operation::Copy, Some(name), None)?;
        } else if let Some(name) = text.strip_prefix(b"copy to ") {
            self.take_move(Operation::Copy, None, Some(name))?;
        } else if let Some(ids) = text.strip_prefix(b"index ") {
            self.take_index(ids)?;
        } else {
            return Ok(
                text.starts_with(b"similarity index ") || text.starts_with(b"dissimilarity index ")
            );
        }
        Ok(true)
    }

    fn take_move(
        &mut self,
        operation: Operation,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Result<(), ParseErrorKind> {
        if self.moved.is_some_and(|known| known != operation) {
            return Err(ParseErrorKind::Contradiction);
        }
        self.moved = Some(operation);
        let name = |text| names::whole_name(text).ok_or(ParseErrorKind::MalformedHeader);
        if let Some(from) = from {
            self.from = Some(name(from)?);
        }
        if let Some(to) = to {
            self.to = Some(name(to)?);
        }
        Ok(())
    }

    /// `OLD..NEW`, and the mode if it stays.
    fn take_index(&mut self, text: &[u8]) -> Result<(), ParseErrorKind> {
        let text = std::str::from_utf8(text).map_err(|_| ParseErrorKind::MalformedHeader)?;
        let (ids, mode) = text.split_once(' ').unwrap_or((text, ""));
        let (old, new) = ids
            .split_once("..")
            .ok_or(ParseErrorKind::MalformedHeader)?;
        let is_id = |id: &str| {
            (4..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        if !is_id(old) || !is_id(new) {
            return Err(ParseErrorKind::MalformedHeader);
        }
        self.ids = Some((old.to_ascii_lowercase(), new.to_ascii_lowercase()));
        if !mode.is_empty() {
            let mode = mode_of(mode.as_bytes())?;
            self.old_mode = self.old_mode.or(Some(mode));
            self.new_mode = self.new_mode.or(Some(mode));
        }
        Ok(())
    }

    fn finish(mut self, line: u64, body: Body) -> Result<FilePatch, ParseErrorKind> {
        if let Some((old, new)) = &self.dated {
            self.created |= old.is_none();
            self.deleted |= new.is_none();
            let has_one = (old.is_some() != self.created) && (new.is_some() != self.deleted);
            if !has_one {
                return Err(ParseErrorKind::Contradiction);
            }
        }
        let operation = match (self.created, self.deleted, self.moved) {
            (false, false, None) => Operation::Modify,
            (true, false, None) => Operation::Create,
            (false, true, None) => Operation::Delete,
            (false, false, Some(moved)) => moved,
            _ => return Err(ParseErrorKind::Contradiction),
        };
        let (old, new) = self.paths()?;
        self.check_names(&old, &new)?;
        let (old_id, new_id) = self.ids.unzip();
        let created = operation == Operation::Create;
        let deleted = operation == Operation::Delete;
        let patch = FilePatch {
            line,
            operation,
            old_path: (!created).then(|| text_path(old)).transpose()?,
            new_path: (!deleted).then(|| text_path(new)).transpose()?,
            old_mode: self.old_mode.filter(|_| !created),
            new_mode: self.new_mode.filter(|_| !deleted),
            old_id,
            new_id,
            body,
        };
        check_body(&patch)?;
        Ok(patch)
    }

    /// The paths: of the rename, else the one path of the `diff --git` line, else that of the
    /// `---` and `+++` lines.
    fn paths(&self) -> Result<(Vec<u8>, Vec<u8>), ParseErrorKind> {
        if self.moved.is_some() {
            let names = self.from.clone().zip(self.to.clone());
            return names.ok_or(ParseErrorKind::NoPath);
        }
        let raw = self.raw.as_ref();
        let common = raw.and_then(|(old, new)| names::common_path(old, new));
        let dated = self.dated.as_ref().and_then(|dated| match dated {
            (Some(old), Some(new)) => names::common_path(old, new),
            (Some(only), None) | (None, Some(only)) => names::stripped(only),
            (None, None) => None,
        });
        let path = common.or(dated.filter(|_| raw.is_none()));
        let path = path.ok_or(ParseErrorKind::NoPath)?;
        Ok((path.to_vec(), path.to_vec()))
    }

    /// Every name of the header must stand for the path that was found.
    fn check_names(&self, old: &[u8], new: &[u8]) -> Result<(), ParseErrorKind> {
        let raw = self.raw.as_ref();
        let dated = self.dated.as_ref();
        let stand = raw
            .is_none_or(|raw| names::stands_for(&raw.0, old) && names::stands_for(&raw.1, new))
            && dated.is_none_or(|dated| {
                let old = dated
                    .0
                    .as_ref()
                    .is_none_or(|raw| names::stands_for(raw, old));
                old && dated
                    .1
                    .as_ref()
                    .is_none_or(|raw| names::stands_for(raw, new))
            });
        if stand {
            Ok(())
        } else {
            Err(ParseErrorKind::Contradiction)
        }
    }
}

/// A file that is created has no old lines and one that is deleted no new ones; and where the
/// header names two contents, the change must be there.
fn check_body(patch: &FilePatch) -> Result<(), ParseErrorKind> {
    match &patch.body {
        Body::Text(hunks) => {
            let old: u64 = hunks
                .iter()
                .map(|hunk| hunk.old_count)
                .fold(0, u64::saturating_add);
            let new: u64 = hunks
                .iter()
                .map(|hunk| hunk.new_count)
                .fold(0, u64::saturating_add);
            let whole_file = hunks.len() == 1;
            match patch.operation {
                Operation::Create if old > 0 || !whole_file => Err(ParseErrorKind::Contradiction),
                Operation::Delete if new > 0 || !whole_file => Err(ParseErrorKind::Contradiction),
                _ => Ok(()),
            }
        }
        Body::Binary(_) => Ok(()),
        Body::Unchanged => {
            let (Some(old), Some(new)) = (&patch.old_id, &patch.new_id) else {
                return Ok(());
            };
            let is_nothing = |id: &str| blob::is_null_id(id) || blob::is_empty_id(id);
            if old == new || (is_nothing(old) && is_nothing(new)) {
                Ok(())
            } else {
                Err(ParseErrorKind::MissingBody)
            }
        }
    }
}

fn mode_of(text: &[u8]) -> Result<FileMode, ParseErrorKind> {
    let text = String::from_utf8_lossy(text);
    FileMode::from_octal(&text).ok_or_else(|| ParseErrorKind::UnsupportedMode {
        mode: text.chars().take(16).collect(),
    })
}

fn text_path(path: Vec<u8>) -> Result<String, ParseErrorKind> {
    if path.is_empty() {
        return Err(ParseErrorKind::NoPath);
    }
    String::from_utf8(path).map_err(|_| ParseErrorKind::PathNotUtf8)
}
