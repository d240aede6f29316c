//! Where the hunks of a patch belong in a file.
//!
//! Owns: the rule of placing. If every hunk matches byte for byte at the line it states, the file
//! is the one the patch was made for. If one does not, no stated line is believed any more, and
//! every hunk must occur exactly once after the one before it: a hunk that matches at its line by
//! chance, in a file that moved, would otherwise change the wrong place without a word.
//!
//! Never: changes a file, or matches anything but exact bytes.

use super::apply::ApplyError;
use super::lines;
use super::model::Hunk;

/// The most places an error lists; it counts them all.
pub const PLACES_LISTED_MAX: usize = 64;

/// A hunk and the index of the first line it replaces.
pub(super) struct Placed<'a> {
    pub(super) hunk: &'a Hunk,
    pub(super) start: usize,
    /// One past the last line it replaces.
    pub(super) end: usize,
}

/// Finds the place of every hunk, in order and apart from each other.
pub(super) fn place<'a>(hunks: &'a [Hunk], file: &[&[u8]]) -> Result<Vec<Placed<'a>>, ApplyError> {
    match place_as_stated(hunks, file) {
        Some(placed) => Ok(placed),
        None => place_where_unique(hunks, file),
    }
}

fn place_as_stated<'a>(hunks: &'a [Hunk], file: &[&[u8]]) -> Option<Vec<Placed<'a>>> {
    let mut placed = Vec::with_capacity(hunks.len());
    let mut from = 0;
    for hunk in hunks {
        let old = lines::split(&hunk.old);
        let start = usize::try_from(hunk.old_start).ok()?;
        let start = if old.is_empty() {
            start
        } else {
            start.checked_sub(1)?
        };
        let end = start.checked_add(old.len())?;
        let matches = file.get(start..end) == Some(old.as_slice());
        if start < from || !matches || !fits(hunk, end, file) {
            return None;
        }
        from = end;
        placed.push(Placed { hunk, start, end });
    }
    Some(placed)
}

fn place_where_unique<'a>(
    hunks: &'a [Hunk],
    file: &[&[u8]],
) -> Result<Vec<Placed<'a>>, ApplyError> {
    let mut placed = Vec::with_capacity(hunks.len());
    let mut from = 0;
    for (index, hunk) in hunks.iter().enumerate() {
        let (number, stated) = (index as u64 + 1, hunk.old_start);
        let old = lines::split(&hunk.old);
        let rest = file.get(from..).unwrap_or_default();
        if old.is_empty() && !file.is_empty() {
            return Err(ApplyError::NoAnchor {
                hunk: number,
                stated,
                patch_line: hunk.line,
            });
        }
        let mut starts = occurrences(&old, rest);
        for start in &mut starts {
            *start += from;
        }
        starts.retain(|start| fits(hunk, start + old.len(), file));
        match starts.as_slice() {
            [] => {
                let patch_line = hunk.line;
                return Err(ApplyError::NotFound {
                    hunk: number,
                    stated,
                    patch_line,
                });
            }
            &[start] => {
                from = start + old.len();
                placed.push(Placed {
                    hunk,
                    start,
                    end: from,
                });
            }
            several => {
                return Err(ApplyError::NotUnique {
                    hunk: number,
                    stated,
                    patch_line: hunk.line,
                    count: several.len() as u64,
                    lines: several
                        .iter()
                        .take(PLACES_LISTED_MAX)
                        .map(|&start| start as u64 + 1)
                        .collect(),
                });
            }
        }
    }
    Ok(placed)
}

/// Whether the hunk may replace lines up to `end`: one that ends the file does so only at its end. So
/// a patch that adds lines at the end is not added a second time.
fn fits(hunk: &Hunk, end: usize, file: &[&[u8]]) -> bool {
    (!hunk.ends_file || end == file.len()) && keeps_lines_whole(hunk, end, file)
}

/// Whether the hunk, replacing lines up to `end`, leaves a line without its end only at the end of
/// the file.
fn keeps_lines_whole(hunk: &Hunk, end: usize, file: &[&[u8]]) -> bool {
    let unended = |text: &[u8]| !text.is_empty() && !text.ends_with(b"\n");
    if unended(&hunk.new) && end < file.len() {
        return false;
    }
    let joins_last_line =
        hunk.old.is_empty() && end == file.len() && file.last().is_some_and(|&last| unended(last));
    !joins_last_line
}

/// Every index at which `pattern` begins in `text`, overlapping ones too (Knuth, Morris, Pratt).
/// The empty pattern occurs once, at the start.
fn occurrences(pattern: &[&[u8]], text: &[&[u8]]) -> Vec<usize> {
    if pattern.is_empty() {
        return vec![0];
    }
    // For each prefix of the pattern: the length of its longest proper prefix that also ends it.
    let mut border = vec![0; pattern.len()];
    let shorter =
        |border: &[usize], length: usize| border.get(length.wrapping_sub(1)).copied().unwrap_or(0);
    let mut length = 0;
    for (index, line) in pattern.iter().enumerate().skip(1) {
        while length > 0 && pattern.get(length) != Some(line) {
            length = shorter(&border, length);
        }
        length += usize::from(pattern.get(length) == Some(line));
        if let Some(slot) = border.get_mut(index) {
            *slot = length;
        }
    }
    let mut starts = Vec::new();
    let mut length = 0;
    for (index, line) in text.iter().enumerate() {
        while length > 0 && pattern.get(length) != Some(line) {
            length = shorter(&border, length);
        }
        length += usize::from(pattern.get(length) == Some(line));
        if length == pattern.len() {
            starts.push(index + 1 - length);
            length = shorter(&border, length);
        }
    }
    starts
}
