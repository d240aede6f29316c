//! Which of a chain of versions brought each line of the newest one.
//!
//! Owns: the attribution of every line to exactly one owner, walking from the newest version to
//! the oldest, so that a walk may end as soon as no line is open.
//!
//! Never: knows what an owner is, or where older versions come from.

use super::lines::{self, Reading};

/// An attribution under way.
///
/// ```
/// use semaprax_daemon::text::Blame;
/// // seq 1: "a b", seq 2: "a b c", seq 3: "x b c"
/// let mut blame = Blame::new(b"x\nb\nc\n");
/// blame.step(b"a\nb\nc\n", 3);
/// blame.step(b"a\nb\n", 2);
/// assert_eq!(blame.finish(1), vec![3, 1, 2]);
/// ```
#[derive(Debug, Clone)]
pub struct Blame<T> {
    /// The version the open lines were last found in.
    current: Vec<u8>,
    /// The open lines, in order: their index in the newest version and in `current`.
    open: Vec<OpenLine>,
    owners: Vec<Option<T>>,
}

#[derive(Debug, Clone, Copy)]
struct OpenLine {
    newest: usize,
    current: usize,
}

impl<T: Clone> Blame<T> {
    /// Starts with the newest version; all its lines are open.
    pub fn new(newest: &[u8]) -> Self {
        let count = lines::split(newest).len();
        Self {
            current: newest.to_vec(),
            open: (0..count)
                .map(|line| OpenLine {
                    newest: line,
                    current: line,
                })
                .collect(),
            owners: vec![None; count],
        }
    }

    /// How many lines the newest version has.
    pub fn line_count(&self) -> usize {
        self.owners.len()
    }

    /// Whether every line has its owner, so that older versions need not be read.
    pub fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    /// Goes one version back: open lines that `older` does not have belong to `owner`, who made
    /// the version after it. A version in which the file does not exist is `b""`.
    pub fn step(&mut self, older: &[u8], owner: T) {
        if self.is_done() || older == self.current {
            return;
        }
        let hunks = lines::hunks(
            Reading::Shown,
            &lines::split(older),
            &lines::split(&self.current),
        );
        let mut hunks = hunks.into_iter().peekable();
        // The end of the last hunk passed, in the older and in the current version: a line after
        // it, up to the next hunk, is found in the older version at the same distance.
        let mut passed = (0, 0);
        let mut open = Vec::with_capacity(self.open.len());
        for line in self.open.drain(..) {
            while let Some(hunk) = hunks.next_if(|hunk| hunk.after.end <= line.current) {
                passed = (hunk.before.end, hunk.after.end);
            }
            if hunks
                .peek()
                .is_some_and(|hunk| hunk.after.start <= line.current)
            {
                if let Some(slot) = self.owners.get_mut(line.newest) {
                    *slot = Some(owner.clone());
                }
            } else {
                open.push(OpenLine {
                    newest: line.newest,
                    current: line.current - passed.1 + passed.0,
                });
            }
        }
        self.open = open;
        self.current.clear();
        self.current.extend_from_slice(older);
    }

    /// Gives what is still open to `owner`, who made the oldest version, and ends: one owner for
    /// each line of the newest version, in order.
    pub fn finish(self, owner: T) -> Vec<T> {
        self.owners
            .into_iter()
            .map(|found| found.unwrap_or_else(|| owner.clone()))
            .collect()
    }
}
