//! Stamps: which publication last changed a path.
//!
//! Owns: `stamped`. What is equal to the parent keeps the parent's stamp, and its very node; the rest
//! gets the new number, also a directory from which something was only taken away. So a rolled-back
//! file is as new as the rollback, and the history of a path is read from stamp to stamp.
//!
//! Keeps invariant 10.

use std::sync::Arc;

use super::build::{Edit, changed};
use super::cursor::{Sameness, differing};
use super::{Branch, Entry, Leaf, NodeSource, Tree};
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
    let mut edits: Vec<Edit> = Vec::new();
    let directory = |branch: Arc<Branch>| Entry::Branch(Arc::new(branch.with_stamp(seq)));
    differing(
        parent,
        Some(candidate),
        Sameness::Content,
        source,
        &mut |name, old, new| {
            let entry = match (old, new) {
                (_, None) => None,
                (Some(Entry::Leaf(old)), Some(Entry::Leaf(new))) if old.same_content(new) => {
                    return Ok(());
                }
                (_, Some(Entry::Leaf(new))) => Some(Entry::Leaf(Leaf { stamp: seq, ..*new })),
                (Some(Entry::Branch(old)), Some(Entry::Branch(new))) => {
                    if old.content() == new.content() {
                        return Ok(());
                    }
                    Some(directory(restamp(Some(old), new, seq, source)?))
                }
                (_, Some(Entry::Branch(new))) => Some(directory(restamp(None, new, seq, source)?)),
            };
            edits.push((name.into(), entry));
            Ok(())
        },
    )?;
    let found = changed(parent, edits, source)?;
    Ok(found.unwrap_or_else(|| Arc::clone(candidate)))
}
