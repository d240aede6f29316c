//! Lines of a byte string and the difference of two of them.
//!
//! Owns: the split into lines (a line includes its `\n`; only the last may lack one), and hunks
//! that are proven to be a difference of the two inputs before anyone builds on them.
//!
//! Never: decides what a difference means.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput, sources::byte_lines};

/// The most lines the diff library takes; beyond it two texts count as wholly different.
const LINES_MAX: usize = i32::MAX as usize;

/// A place where two texts differ: the lines `before` of the one stand against `after` of the
/// other. Between hunks, and before the first and after the last, the lines are equal, and there
/// is at least one such line between two hunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hunk {
    pub(super) before: Range<usize>,
    pub(super) after: Range<usize>,
}

/// Which of several true differences of the same two texts to take.
///
/// Where lines repeat, a difference is a reading: which of two equal lines was deleted, say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// As `git merge-file` reads: fewest lines, and a hunk that may slide lies as low as it can.
    FewestLines,
    /// As `git merge` reads: rare lines are matched first, so that braces and blank lines inside
    /// a rewritten stretch do not cut it into pieces; hunks lie as low as they can.
    RareLines,
    /// As a person reads: by rare lines, and hunks begin and end where the indentation says.
    Shown,
}

/// The lines of `content`, each with its line end.
pub(super) fn split(content: &[u8]) -> Vec<&[u8]> {
    byte_lines(content).collect()
}

/// The hunks between two lists of lines, in order.
pub(super) fn hunks(reading: Reading, before: &[&[u8]], after: &[&[u8]]) -> Vec<Hunk> {
    if before.len() >= LINES_MAX || after.len() >= LINES_MAX {
        return whole(before, after);
    }
    let mut input = InternedInput::default();
    input.update_before(before.iter().copied());
    input.update_after(after.iter().copied());
    let algorithm = match reading {
        Reading::FewestLines => Algorithm::Myers,
        Reading::RareLines | Reading::Shown => Algorithm::Histogram,
    };
    let mut diff = Diff::compute(algorithm, &input);
    match reading {
        Reading::FewestLines | Reading::RareLines => diff.postprocess_no_heuristic(&input),
        Reading::Shown => diff.postprocess_lines(&input),
    }
    let hunks: Vec<Hunk> = diff
        .hunks()
        .map(|hunk| Hunk {
            before: widen(&hunk.before),
            after: widen(&hunk.after),
        })
        .collect();
    // A diff that is not one would turn into a wrong merge, so it is checked rather than trusted.
    if is_difference(&hunks, before, after) {
        hunks
    } else {
        whole(before, after)
    }
}

fn widen(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// The coarsest true difference: everything against everything.
fn whole(before: &[&[u8]], after: &[&[u8]]) -> Vec<Hunk> {
    if before == after {
        return Vec::new();
    }
    vec![Hunk {
        before: 0..before.len(),
        after: 0..after.len(),
    }]
}

/// Whether `hunks` are ordered, apart, and leave only equal lines outside.
fn is_difference(hunks: &[Hunk], before: &[&[u8]], after: &[&[u8]]) -> bool {
    let mut at = (0, 0);
    for (index, hunk) in hunks.iter().enumerate() {
        let gap = hunk.before.start.checked_sub(at.0);
        if gap != hunk.after.start.checked_sub(at.1) || (index > 0 && gap == Some(0)) {
            return false;
        }
        let equal = before.get(at.0..hunk.before.start) == after.get(at.1..hunk.after.start);
        if !equal || (hunk.before.is_empty() && hunk.after.is_empty()) {
            return false;
        }
        at = (hunk.before.end, hunk.after.end);
    }
    match (before.get(at.0..), after.get(at.1..)) {
        (Some(rest_before), Some(rest_after)) => rest_before == rest_after,
        _ => false,
    }
}
