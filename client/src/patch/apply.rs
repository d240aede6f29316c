//! Applying one file of a patch to one content.
//!
//! Owns: the rule "an exact match, or a refusal", and its errors.
//!
//! Never: knows where the content comes from or goes to, or applies a part of a patch.

use super::delta::{self, DeltaError};
use super::model::{BinaryChange, Body, FilePatch, Hunk, Operation};
use super::parse::Limits;
use super::{blob, lines, place};

/// Why a patch does not fit a content. Hunks and lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The patch changes a file, and there is none.
    #[error("the patch changes a file that is not there")]
    OldMissing,
    /// The patch creates a file, and there is one.
    #[error("the patch creates a file that is already there")]
    OldPresent,
    /// A hunk occurs nowhere after the one before it.
    #[error("hunk {hunk} (stated line {stated}) does not occur in the file")]
    NotFound {
        /// Which hunk.
        hunk: u64,
        /// The line of the file it states.
        stated: u64,
        /// The line of the patch it begins at.
        patch_line: u64,
    },
    /// The file is not the one the patch was made for, and a hunk occurs more than once in it.
    #[error("hunk {hunk} (stated line {stated}) occurs {count} times in the file")]
    NotUnique {
        /// Which hunk.
        hunk: u64,
        /// The line of the file it states.
        stated: u64,
        /// The line of the patch it begins at.
        patch_line: u64,
        /// How many places there are.
        count: u64,
        /// The first line of each place, at most [`super::PLACES_LISTED_MAX`] of them.
        lines: Vec<u64>,
    },
    /// The file is not the one the patch was made for, and a hunk that only adds lines, without
    /// context, does not say where.
    #[error("hunk {hunk} (stated line {stated}) has no lines to find its place by")]
    NoAnchor {
        /// Which hunk.
        hunk: u64,
        /// The line of the file it states.
        stated: u64,
        /// The line of the patch it begins at.
        patch_line: u64,
    },
    /// The patch deletes a file, and does not remove all that is in it.
    #[error("the patch deletes a file that has other content than it removes")]
    DeletionLeavesContent,
    /// A binary patch without the whole id of the content it was made for.
    #[error("the binary patch does not name the whole id of the old content")]
    NoOldId,
    /// A binary patch that was made for another content.
    #[error("the binary patch was made for content {expected}, not for {found}")]
    WrongOld {
        /// The id it was made for.
        expected: String,
        /// The id of the content there is.
        found: String,
    },
    /// A binary patch that makes another content than it names.
    #[error("the binary patch makes content {found}, and not {expected} as it says")]
    WrongNew {
        /// The id it says it makes.
        expected: String,
        /// The id of what it makes.
        found: String,
    },
    /// The delta of a binary patch does not fit.
    #[error("the binary patch does not fit: {0}")]
    Delta(#[from] DeltaError),
}

/// Applies `patch` to the content `old` of its old path, `None` if there is no such file. Gives
/// the new content; for a deletion that is empty.
///
/// A hunk is placed at its stated line if all hunks match there, else only where its old lines
/// occur exactly once. Nothing is ever matched but exact bytes.
///
/// # Errors
/// As [`ApplyError`] says; nothing is applied in part.
pub fn apply(patch: &FilePatch, old: Option<&[u8]>) -> Result<Vec<u8>, ApplyError> {
    let old = match (patch.operation, old) {
        (Operation::Create, Some(_)) => return Err(ApplyError::OldPresent),
        (_, Some(old)) => old,
        (_, None) if patch.may_create() => &[],
        (_, None) => return Err(ApplyError::OldMissing),
    };
    let new = match &patch.body {
        Body::Unchanged => old.to_vec(),
        Body::Text(hunks) => apply_hunks(hunks, old)?,
        Body::Binary(change) => apply_binary(patch, change, old)?,
    };
    if patch.operation == Operation::Delete && !new.is_empty() {
        return Err(ApplyError::DeletionLeavesContent);
    }
    Ok(new)
}

fn apply_hunks(hunks: &[Hunk], old: &[u8]) -> Result<Vec<u8>, ApplyError> {
    let file = lines::split(old);
    let mut new = Vec::with_capacity(old.len());
    let copy = |new: &mut Vec<u8>, lines: Option<&[&[u8]]>| {
        for line in lines.unwrap_or_default() {
            new.extend_from_slice(line);
        }
    };
    let mut at = 0;
    for placed in place::place(hunks, &file)? {
        copy(&mut new, file.get(at..placed.start));
        new.extend_from_slice(&placed.hunk.new);
        at = placed.end;
    }
    copy(&mut new, file.get(at..));
    Ok(new)
}

fn apply_binary(
    patch: &FilePatch,
    change: &BinaryChange,
    old: &[u8],
) -> Result<Vec<u8>, ApplyError> {
    if patch.operation != Operation::Create {
        let expected = whole_id(patch.old_id.as_ref()).ok_or(ApplyError::NoOldId)?;
        let found = blob::id_like(expected, old);
        if found != *expected {
            let expected = expected.clone();
            return Err(ApplyError::WrongOld { expected, found });
        }
    }
    let new = match change {
        BinaryChange::Literal(new) => new.clone(),
        BinaryChange::Delta(delta) => delta::apply(old, delta, Limits::default().binary_bytes)?,
    };
    let names_new = patch.operation != Operation::Delete;
    if let Some(expected) = whole_id(patch.new_id.as_ref()).filter(|_| names_new) {
        let found = blob::id_like(expected, &new);
        if found != *expected {
            let expected = expected.clone();
            return Err(ApplyError::WrongNew { expected, found });
        }
    }
    Ok(new)
}

fn whole_id(id: Option<&String>) -> Option<&String> {
    id.filter(|id| blob::is_whole(id))
}
