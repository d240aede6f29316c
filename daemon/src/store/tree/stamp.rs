//! Stamps: which publication last changed a path.
//!
//! Owns: `stamped`. What is equal to the parent keeps the parent's stamp, and its very node; the rest
//! gets the new number. So a rolled-back file is as new as the rollback.
//!
//! Keeps invariant 10.

use std::sync::Arc;

use super::{Branch, Directory, Entry, Leaf, NodeSource, Tree};
use crate::store::StoreResult;

/// The content of `candidate` with the stamps it has as publication `seq` on top of `parent`.
pub fn stamped(
    parent: &Tree,
    candidate: &Tree,
    seq: u64,
    source: &dyn NodeSource,
) -> StoreResult<Tree> {
    restamp(Some(parent.root()), candidate.root(), seq, source).map(Tree::of)
}

fn restamp(
    parent: Option<&Arc<Branch>>,
    candidate: &Arc<Branch>,
    seq: u64,
    source: &dyn NodeSource,
) -> StoreResult<Arc<Branch>> {
    if let Some(parent) = parent.filter(|parent| parent.content() == candidate.content()) {
        return Ok(Arc::clone(parent));
    }
    let old = parent.map(|parent| parent.open(source)).transpose()?;
    let mut entries = Vec::new();
    for (name, entry) in candidate.open(source)?.entries() {
        let before = old.and_then(|old| old.get(name));
        let entry = match (before, entry) {
            (Some(Entry::Leaf(old)), Entry::Leaf(new)) if old.same_content(new) => {
                Entry::Leaf(*old)
            }
            (_, Entry::Leaf(new)) => Entry::Leaf(Leaf { stamp: seq, ..*new }),
            (Some(Entry::Branch(old)), Entry::Branch(new)) => {
                Entry::Branch(restamp(Some(old), new, seq, source)?)
            }
            (_, Entry::Branch(new)) => Entry::Branch(restamp(None, new, seq, source)?),
        };
        entries.push((name.clone(), entry));
    }
    Ok(Arc::new(Branch::of(Directory::from_sorted(entries))))
}
