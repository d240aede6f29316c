//! Lines of a content and where two contents differ.
//!
//! Owns: the rule what is text, the split into lines (a line includes its `\n`), and the changes
//! between two contents, proven to be a difference of them.
//!
//! Never: formats anything.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput, sources::byte_lines};

/// How many bytes at the start of a content decide whether it is text.
const TEXT_PROBE_BYTES: usize = 8 * 1024;

/// The most lines the diff library takes; beyond it two contents count as wholly different.
const LINES_MAX: usize = i32::MAX as usize;

/// Whether `content` is text: no NUL among its first 8 KiB, the rule of git.
pub fn is_text(content: &[u8]) -> bool {
    !content.iter().take(TEXT_PROBE_BYTES).any(|&byte| byte == 0)
}

/// A place where two contents differ, in lines from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) before: Range<usize>,
    pub(super) after: Range<usize>,
}

/// The lines of `content`, each with its line end; only the last may lack one.
pub(super) fn split(content: &[u8]) -> Vec<&[u8]> {
    byte_lines(content).collect()
}

/// The changes from `before` to `after`, in order, apart from each other.
pub(super) fn changes(before: &[&[u8]], after: &[&[u8]]) -> Vec<Change> {
    if before.len() >= LINES_MAX || after.len() >= LINES_MAX {
        return whole(before, after);
    }
    let mut input = InternedInput::default();
    input.update_before(before.iter().copied());
    input.update_after(after.iter().copied());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let changes: Vec<Change> = diff
        .hunks()
        .map(|hunk| Change {
            before: hunk.before.start as usize..hunk.before.end as usize,
            after: hunk.after.start as usize..hunk.after.end as usize,
        })
        .collect();
    // A patch that does not lead to the new content would be a lie; a coarse one is only long.
    if is_difference(&changes, before, after) {
        changes
    } else {
        whole(before, after)
    }
}

/// The coarsest true difference: everything against everything.
fn whole(before: &[&[u8]], after: &[&[u8]]) -> Vec<Change> {
    if before == after {
        return Vec::new();
    }
    vec![Change {
        before: 0..before.len(),
        after: 0..after.len(),
    }]
}

/// Whether `changes` are in order and leave only equal lines outside.
fn is_difference(changes: &[Change], before: &[&[u8]], after: &[&[u8]]) -> bool {
    let mut at = (0, 0);
    for change in changes {
        let equal = before.get(at.0..change.before.start);
        if equal.is_none() || equal != after.get(at.1..change.after.start) {
            return false;
        }
        at = (change.before.end, change.after.end);
    }
    let rest = before.get(at.0..);
    rest.is_some() && rest == after.get(at.1..)
}
