//! Reading a patch.
//!
//! Owns: finding the parts of a patch between other text (a commit message, a mail signature),
//! the bounds of what is read, and the errors, each with its line.
//!
//! Never: guesses at a broken part. What looks like a patch and is not one is an error.

use super::model::{BinaryChange, Body, FilePatch};
use super::reader::{Reader, trimmed};
use super::{header, hunk};

/// How much a patch may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files in the patch.
    pub files: usize,
    /// Bytes of one binary content or delta, inflated.
    pub binary_bytes: u64,
    /// Bytes of all binary contents and deltas, inflated.
    pub binary_bytes_total: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            files: 10_000,
            binary_bytes: 64 * 1024 * 1024,
            binary_bytes_total: 256 * 1024 * 1024,
        }
    }
}

/// Why a patch was not understood, and at which line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {kind}")]
pub struct ParseError {
    /// The line of the patch, from 1.
    pub line: u64,
    /// What is wrong there.
    pub kind: ParseErrorKind,
}

/// What is wrong at a line of a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseErrorKind {
    /// There is text, but no patch in it.
    #[error("no patch found")]
    NoPatch,
    /// More files than [`Limits::files`].
    #[error("more than {max} files")]
    TooManyFiles {
        /// The most allowed.
        max: usize,
    },
    /// More than [`Limits::binary_bytes`] or [`Limits::binary_bytes_total`].
    #[error("binary content of more than {max} bytes")]
    BinaryTooLarge {
        /// The most allowed.
        max: u64,
    },
    /// A combined diff of a merge, which has more than one old side.
    #[error("a combined diff of a merge cannot be applied")]
    Combined,
    /// `Binary files ... differ`: the content is not in the patch.
    #[error("the patch says that a binary file differs, without its content")]
    BinaryWithoutContent,
    /// The path or paths cannot be told from the header.
    #[error("the path of the file cannot be told from this header")]
    NoPath,
    /// A path that is not UTF-8.
    #[error("the path is not UTF-8")]
    PathNotUtf8,
    /// The header names different files for one side, or contradicts itself.
    #[error("this line contradicts the header before it")]
    Contradiction,
    /// A header line with an unreadable value.
    #[error("malformed header line")]
    MalformedHeader,
    /// A file kind a workspace does not hold, such as a submodule.
    #[error("mode `{mode}` is not that of a file, executable or symbolic link")]
    UnsupportedMode {
        /// The mode as it stands in the patch.
        mode: String,
    },
    /// The header says that the content changes, and no change follows.
    #[error("the header names two contents, but no change follows")]
    MissingBody,
    /// A hunk that belongs to no file.
    #[error("a hunk without a file header")]
    HunkWithoutFile,
    /// A `@@` line that is not a hunk header.
    #[error("malformed hunk header")]
    MalformedHunk,
    /// The hunk does not hold as many lines as its header says.
    #[error("the hunk does not have the line counts of its header")]
    WrongLineCount,
    /// The patch ends within a hunk or within a line.
    #[error("the patch ends within a hunk")]
    Truncated,
    /// `\ No newline at end of file` where it cannot be.
    #[error("`\\ No newline at end of file` where no last line is")]
    MisplacedNoNewline,
    /// A binary patch that cannot be decoded.
    #[error("malformed binary patch")]
    MalformedBinary,
}

impl ParseErrorKind {
    pub(super) fn at(self, line: u64) -> ParseError {
        ParseError { line, kind: self }
    }
}

/// Reads a patch within the default [`Limits`].
///
/// # Errors
/// The first line that is not understood. A blank input is an empty list.
pub fn parse(input: &[u8]) -> Result<Vec<FilePatch>, ParseError> {
    parse_within(input, Limits::default())
}

/// Reads a patch.
///
/// # Errors
/// As [`parse`].
pub fn parse_within(input: &[u8], limits: Limits) -> Result<Vec<FilePatch>, ParseError> {
    let mut reader = Reader::new(input);
    let mut files: Vec<FilePatch> = Vec::new();
    let mut limits_left = limits;
    while let Some(line) = reader.peek() {
        let at = reader.line();
        let file = if line.starts_with(b"diff --git ") {
            header::parse_git(&mut reader, limits_left)?
        } else if is_plain_header(&reader) {
            header::parse_plain(&mut reader)?
        } else {
            refuse_lost_parts(line, at)?;
            reader.next();
            continue;
        };
        if files.len() >= limits.files {
            return Err(ParseErrorKind::TooManyFiles { max: limits.files }.at(at));
        }
        if let Body::Binary(BinaryChange::Literal(bytes) | BinaryChange::Delta(bytes)) = &file.body
        {
            limits_left.binary_bytes_total = limits_left
                .binary_bytes_total
                .saturating_sub(bytes.len() as u64);
        }
        files.push(file);
    }
    let blank = input.iter().all(u8::is_ascii_whitespace);
    if files.is_empty() && !blank {
        return Err(ParseErrorKind::NoPatch.at(1));
    }
    Ok(files)
}

/// `---`, `+++` and a hunk, one after the other, outside a git diff.
pub(super) fn is_plain_header(reader: &Reader<'_>) -> bool {
    let starts = |ahead, mark: &[u8]| {
        reader
            .peek_ahead(ahead)
            .is_some_and(|line| line.starts_with(mark))
    };
    starts(0, b"--- ") && starts(1, b"+++ ") && starts(2, b"@@ -")
}

/// Other text is passed over, but not what says that a part of the patch is lost or not readable.
fn refuse_lost_parts(line: &[u8], at: u64) -> Result<(), ParseError> {
    let text = trimmed(line);
    if text.starts_with(b"diff --cc ") || text.starts_with(b"diff --combined ") {
        return Err(ParseErrorKind::Combined.at(at));
    }
    if text.starts_with(b"Binary files ") && text.ends_with(b" differ") {
        return Err(ParseErrorKind::BinaryWithoutContent.at(at));
    }
    if text.starts_with(b"@@ -") && hunk::is_header(text) {
        return Err(ParseErrorKind::HunkWithoutFile.at(at));
    }
    Ok(())
}
