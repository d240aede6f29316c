//! What differs between two trees: one pure function, used everywhere.
//!
//! Owns: `differences`. Equal digests are skipped, so the cost follows what differs.

use std::collections::BTreeMap;
use std::sync::Arc;

use semaprax_protocol::LogicalPath;

use super::cursor::differing;
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
    let mut found = BTreeMap::new();
    compare(before.root(), after.root(), "", source, &mut found)?;
    Ok(found
        .into_iter()
        .map(|(path, (before, after))| Difference {
            path,
            before,
            after,
        })
        .collect())
}

type Sides = BTreeMap<LogicalPath, (Option<Leaf>, Option<Leaf>)>;

fn compare(
    before: &Arc<Branch>,
    after: &Arc<Branch>,
    prefix: &str,
    source: &dyn NodeSource,
    found: &mut Sides,
) -> StoreResult<()> {
    if before.content() == after.content() {
        return Ok(());
    }
    differing(Some(before), Some(after), source, &mut |name, old, new| {
        pair(old, new, &below(prefix, name), source, found)
    })
}

fn below(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.to_owned()
    } else {
        format!("{prefix}/{name}")
    }
}

fn pair(
    before: Option<&Entry>,
    after: Option<&Entry>,
    path: &str,
    source: &dyn NodeSource,
    found: &mut Sides,
) -> StoreResult<()> {
    match (before, after) {
        (Some(Entry::Branch(old)), Some(Entry::Branch(new))) => {
            compare(old, new, path, source, found)
        }
        (Some(Entry::Leaf(old)), Some(Entry::Leaf(new))) if old.same_content(new) => Ok(()),
        _ => {
            one_side(before, path, source, found, true)?;
            one_side(after, path, source, found, false)
        }
    }
}

fn one_side(
    entry: Option<&Entry>,
    path: &str,
    source: &dyn NodeSource,
    found: &mut Sides,
    is_before: bool,
) -> StoreResult<()> {
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
        Some(Entry::Branch(branch)) => for_each_leaf(branch, path, source, &mut put).map(drop),
    }
}
