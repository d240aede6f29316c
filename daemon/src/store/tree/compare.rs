//! What differs between two trees: one pure function, used everywhere.
//!
//! Owns: `differences` of content, and `restamped`, which sees stamps too. Equal digests are skipped, so
//! the cost follows what differs.

use std::collections::BTreeMap;
use std::sync::Arc;

use semaprax_protocol::LogicalPath;

use super::cursor::{Sameness, differing};
use super::walk::{for_each_leaf, joined};
use super::{Branch, Entry, Leaf, NodeSource, Tree};
use crate::store::StoreResult;

/// One path that differs; at least one side is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The path.
    pub path: LogicalPath,
    /// What it was.
    pub before: Option<Leaf>,
    /// What it is.
    pub after: Option<Leaf>,
}

/// The paths whose content or kind differ between `before` and `after`, in path order.
pub fn differences(
    before: &Tree,
    after: &Tree,
    source: &dyn NodeSource,
) -> StoreResult<Vec<Difference>> {
    found(before, after, source, Sameness::Content)
}

/// The paths whose content, kind or stamp differ, in path order: what a tree on disk of `before` lacks to
/// be one of `after`.
pub fn restamped(
    before: &Tree,
    after: &Tree,
    source: &dyn NodeSource,
) -> StoreResult<Vec<Difference>> {
    found(before, after, source, Sameness::Stamps)
}

fn found(
    before: &Tree,
    after: &Tree,
    source: &dyn NodeSource,
    sameness: Sameness,
) -> StoreResult<Vec<Difference>> {
    let mut comparison = Comparison {
        source,
        sameness,
        found: BTreeMap::new(),
    };
    comparison.branches(before.root(), after.root(), "")?;
    Ok(comparison
        .found
        .into_iter()
        .map(|(path, (before, after))| Difference {
            path,
            before,
            after,
        })
        .collect())
}

type Sides = BTreeMap<LogicalPath, (Option<Leaf>, Option<Leaf>)>;

struct Comparison<'source> {
    source: &'source dyn NodeSource,
    sameness: Sameness,
    found: Sides,
}

impl Comparison<'_> {
    fn branches(
        &mut self,
        before: &Arc<Branch>,
        after: &Arc<Branch>,
        prefix: &str,
    ) -> StoreResult<()> {
        if self.sameness.of_branches(before, after) {
            return Ok(());
        }
        let (source, sameness) = (self.source, self.sameness);
        differing(
            Some(before),
            Some(after),
            sameness,
            source,
            &mut |name, old, new| self.pair(old, new, &below(prefix, name)),
        )
    }

    fn pair(
        &mut self,
        before: Option<&Entry>,
        after: Option<&Entry>,
        path: &str,
    ) -> StoreResult<()> {
        match (before, after) {
            (Some(Entry::Branch(old)), Some(Entry::Branch(new))) => self.branches(old, new, path),
            (Some(Entry::Leaf(old)), Some(Entry::Leaf(new)))
                if self.sameness.of_leaves(old, new) =>
            {
                Ok(())
            }
            _ => {
                self.one_side(before, path, true)?;
                self.one_side(after, path, false)
            }
        }
    }

    fn one_side(&mut self, entry: Option<&Entry>, path: &str, is_before: bool) -> StoreResult<()> {
        let found = &mut self.found;
        let mut put = |path: LogicalPath, leaf: Leaf| {
            let sides = found.entry(path).or_default();
            let side = if is_before {
                &mut sides.0
            } else {
                &mut sides.1
            };
            *side = Some(leaf);
            Ok(true)
        };
        match entry {
            None => Ok(()),
            Some(Entry::Leaf(leaf)) => put(joined(path)?, *leaf).map(drop),
            Some(Entry::Branch(branch)) => {
                for_each_leaf(branch, path, self.source, &mut put).map(drop)
            }
        }
    }
}

fn below(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.to_owned()
    } else {
        format!("{prefix}/{name}")
    }
}
