//! Merging two changes of one text.
//!
//! Owns: the three-way merge by lines. Changes are put together only when at least one line that
//! neither side touched lies between them; equal changes are one.
//!
//! Where lines repeat, more than one difference is true, and each may merge otherwise. So both
//! readings of git are taken, that of `git merge-file` and that of `git merge`, and a merge stands
//! only if both are clean and come to the same bytes. A text without repeated lines has one
//! reading, and there the answer is that of git; elsewhere it may be a refusal where git is sure.
//!
//! Never: guesses. What overlaps, touches or is doubtful is a conflict, with its place on all
//! three sides.

use std::ops::Range;

use super::lines::{self, Hunk, Reading};

/// A place the two sides changed differently, as first and last line, counted from 1.
///
/// A side that has no lines there (it deleted them, or only the others inserted) has a last line
/// one less than its first: `(5, 4)` is the place before line 5, and `(1, 0)` the start of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConflictRange {
    /// Where in the common ancestor.
    pub base: (u64, u64),
    /// Where in our version.
    pub ours: (u64, u64),
    /// Where in their version.
    pub theirs: (u64, u64),
}

/// Puts the change from `base` to `theirs` on top of the change from `base` to `ours`.
///
/// # Errors
/// Every place where the two changes overlap or touch and do not come to the same lines, in order;
/// if the readings of the change are clean but differ, the one stretch that holds all changes.
/// Never an empty list.
pub fn three_way(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, Vec<ConflictRange>> {
    if ours == theirs || base == theirs {
        return Ok(ours.to_vec());
    }
    if base == ours {
        return Ok(theirs.to_vec());
    }
    let sides = Sides {
        base: lines::split(base),
        ours: lines::split(ours),
        theirs: lines::split(theirs),
    };
    let regions = regions(Reading::FewestLines, &sides);
    let merged = put_together(&regions, &sides)?;
    if merged == put_together(&self::regions(Reading::RareLines, &sides), &sides)? {
        Ok(merged)
    } else {
        Err(all_changes(&regions).into_iter().collect())
    }
}

/// The text the regions make, or the regions both sides changed to different lines.
fn put_together(regions: &[Region], sides: &Sides<'_>) -> Result<Vec<u8>, Vec<ConflictRange>> {
    let mut merged = Vec::new();
    let mut conflicts = Vec::new();
    let mut at = 0;
    for region in regions {
        push(&mut merged, sides.base.get(at..region.base.start));
        at = region.base.end;
        let ours = sides.ours.get(region.ours.clone());
        let theirs = sides.theirs.get(region.theirs.clone());
        match region.changed_by {
            ChangedBy::Ours => push(&mut merged, ours),
            ChangedBy::Theirs => push(&mut merged, theirs),
            ChangedBy::Both if ours == theirs => push(&mut merged, ours),
            ChangedBy::Both => conflicts.push(ConflictRange {
                base: numbered(&region.base),
                ours: numbered(&region.ours),
                theirs: numbered(&region.theirs),
            }),
        }
    }
    push(&mut merged, sides.base.get(at..));
    if conflicts.is_empty() {
        Ok(merged)
    } else {
        Err(conflicts)
    }
}

/// The stretch from the first change to the last.
fn all_changes(regions: &[Region]) -> Option<ConflictRange> {
    let (first, last) = (regions.first()?, regions.last()?);
    Some(ConflictRange {
        base: numbered(&(first.base.start..last.base.end)),
        ours: numbered(&(first.ours.start..last.ours.end)),
        theirs: numbered(&(first.theirs.start..last.theirs.end)),
    })
}

struct Sides<'a> {
    base: Vec<&'a [u8]>,
    ours: Vec<&'a [u8]>,
    theirs: Vec<&'a [u8]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangedBy {
    Ours,
    Theirs,
    Both,
}

/// A stretch of the base that changed, with the same stretch on both sides. Between two regions
/// lies at least one line equal on all three.
#[derive(Debug)]
struct Region {
    changed_by: ChangedBy,
    base: Range<usize>,
    ours: Range<usize>,
    theirs: Range<usize>,
}

/// Gathers the hunks of both sides into regions: hunks that overlap or touch share one.
fn regions(reading: Reading, sides: &Sides<'_>) -> Vec<Region> {
    let mut ours = Cursor::new(lines::hunks(reading, &sides.base, &sides.ours));
    let mut theirs = Cursor::new(lines::hunks(reading, &sides.base, &sides.theirs));
    let mut regions = Vec::new();
    while let Some(start) = first(ours.next_start(), theirs.next_start()) {
        let starts = (ours.to_side(start), theirs.to_side(start));
        let mut end = start;
        let mut changed = (false, false);
        loop {
            if let Some(hunk) = ours.take_touching(end) {
                end = end.max(hunk.before.end);
                changed.0 = true;
            } else if let Some(hunk) = theirs.take_touching(end) {
                end = end.max(hunk.before.end);
                changed.1 = true;
            } else {
                break;
            }
        }
        regions.push(Region {
            changed_by: match changed {
                (true, true) => ChangedBy::Both,
                (true, false) => ChangedBy::Ours,
                (false, _) => ChangedBy::Theirs,
            },
            base: start..end,
            ours: starts.0..ours.to_side(end),
            theirs: starts.1..theirs.to_side(end),
        });
    }
    regions
}

fn first(one: Option<usize>, other: Option<usize>) -> Option<usize> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The hunks of one side, and where the side stands after the hunks taken so far.
struct Cursor {
    hunks: std::iter::Peekable<std::vec::IntoIter<Hunk>>,
    /// Ends of the last hunk taken, in the base and in the side.
    taken: (usize, usize),
}

impl Cursor {
    fn new(hunks: Vec<Hunk>) -> Self {
        Self {
            hunks: hunks.into_iter().peekable(),
            taken: (0, 0),
        }
    }

    fn next_start(&mut self) -> Option<usize> {
        self.hunks.peek().map(|hunk| hunk.before.start)
    }

    /// Takes the next hunk if it begins at or before `end`.
    fn take_touching(&mut self, end: usize) -> Option<Hunk> {
        let hunk = self.hunks.next_if(|hunk| hunk.before.start <= end)?;
        self.taken = (hunk.before.end, hunk.after.end);
        Some(hunk)
    }

    /// The line of the side that stands for line `base`, which is not before the last hunk taken.
    fn to_side(&self, base: usize) -> usize {
        self.taken.1 + base.saturating_sub(self.taken.0)
    }
}

fn push(merged: &mut Vec<u8>, lines: Option<&[&[u8]]>) {
    for line in lines.unwrap_or_default() {
        merged.extend_from_slice(line);
    }
}

fn numbered(range: &Range<usize>) -> (u64, u64) {
    (range.start as u64 + 1, range.end as u64)
}
