//! What differs between two trees, as the documents say it.
//!
//! Owns: renames. `renamed` is deleted and created with equal bytes and kind, ties by path order; and
//! what the submission itself named as a move, also where it edited the content.
//! One pure function, used by receipts, show, diff and watch.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use semaprax_protocol::documents::{ChangeKind, PathChange};
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{BlobDigest, LogicalPath, Sha256};

use super::StoreResult;
use super::history::NamedMove;
use super::tree::{Difference, Leaf};

/// Bytes that the changes of one document may take, roughly: what is over is cut.
const DOCUMENT_BYTES: usize = 2 << 20;
/// Bytes of a change beside its paths, roughly.
const CHANGE_BYTES: usize = 400;

/// The changes that `differences` amount to. `sha256` gives the outside name of a blob.
pub fn path_changes(
    differences: &[Difference],
    moves: &[NamedMove],
    mut sha256: impl FnMut(&BlobDigest) -> StoreResult<Sha256>,
) -> StoreResult<Vec<PathChange>> {
    let renames = renames(differences, moves);
    let sources: BTreeSet<&LogicalPath> = renames.values().map(|(from, _)| *from).collect();
    let mut changes = Vec::new();
    for difference in differences {
        let path = &difference.path;
        if let (Some(after), Some((from, before))) = (difference.after, renames.get(path)) {
            let mut change = change(
                path,
                ChangeKind::Renamed,
                Some(*before),
                Some(after),
                &mut sha256,
            )?;
            change.from = Some((*from).clone());
            changes.push(change);
            // What was renamed onto is gone on its own: it had other content before.
            continue;
        }
        let kind = match (difference.before, difference.after) {
            (Some(_), None) if sources.contains(path) => continue,
            (Some(_), None) => ChangeKind::Deleted,
            (None, _) => ChangeKind::Created,
            (Some(before), Some(after)) if is_mode_only(before, after) => ChangeKind::Mode,
            (Some(_), Some(_)) => ChangeKind::Modified,
        };
        changes.push(change(
            path,
            kind,
            difference.before,
            difference.after,
            &mut sha256,
        )?);
    }
    Ok(changes)
}

fn is_mode_only(before: Leaf, after: Leaf) -> bool {
    before.blob == after.blob
        && before.kind != EntryKind::Symlink
        && after.kind != EntryKind::Symlink
}

fn change(
    path: &LogicalPath,
    kind: ChangeKind,
    before: Option<Leaf>,
    after: Option<Leaf>,
    sha256: &mut impl FnMut(&BlobDigest) -> StoreResult<Sha256>,
) -> StoreResult<PathChange> {
    Ok(PathChange {
        path: path.clone(),
        kind,
        from: None,
        before_sha256: before.map(|leaf| sha256(&leaf.blob)).transpose()?,
        after_sha256: after.map(|leaf| sha256(&leaf.blob)).transpose()?,
        before_kind: before.map(|leaf| leaf.kind),
        after_kind: after.map(|leaf| leaf.kind),
        bytes: after.map(|leaf| leaf.bytes),
    })
}

/// New path -> (old path, what was there), for every rename.
fn renames<'tree>(
    differences: &'tree [Difference],
    moves: &'tree [NamedMove],
) -> BTreeMap<&'tree LogicalPath, (&'tree LogicalPath, Leaf)> {
    let mut deleted: BTreeMap<&LogicalPath, Leaf> = BTreeMap::new();
    let mut created: BTreeMap<&LogicalPath, Leaf> = BTreeMap::new();
    for difference in differences {
        match (difference.before, difference.after) {
            (Some(before), None) => drop(deleted.insert(&difference.path, before)),
            (None, Some(after)) => drop(created.insert(&difference.path, after)),
            _ => {}
        }
    }
    let mut renames = BTreeMap::new();
    for named in moves {
        if created.contains_key(&named.to)
            && let Some((from, before)) = deleted.remove_entry(&named.from)
        {
            created.remove(&named.to);
            renames.insert(&named.to, (from, before));
        }
    }
    let mut by_content: BTreeMap<(EntryKind, BlobDigest), VecDeque<(&LogicalPath, Leaf)>> =
        BTreeMap::new();
    for (path, leaf) in deleted {
        by_content
            .entry((leaf.kind, leaf.blob))
            .or_default()
            .push_back((path, leaf));
    }
    for (path, leaf) in created {
        let origins = by_content.get_mut(&(leaf.kind, leaf.blob));
        if let Some((from, before)) = origins.and_then(VecDeque::pop_front) {
            renames.insert(path, (from, before));
        }
    }
    renames
}

/// The changes cut to what a document can hold, and whether any were cut.
pub fn fitting(mut changes: Vec<PathChange>) -> (Vec<PathChange>, bool) {
    let mut bytes = 0;
    let size = |change: &PathChange| {
        let from = change.from.as_ref().map_or(0, |from| from.as_str().len());
        CHANGE_BYTES + change.path.as_str().len() + from
    };
    let fits = changes.iter().take_while(|change| {
        bytes += size(change);
        bytes <= DOCUMENT_BYTES
    });
    let count = fits.count();
    let cut = count < changes.len();
    changes.truncate(count);
    (changes, cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(content: u8, kind: EntryKind) -> Leaf {
        Leaf {
            kind,
            blob: BlobDigest::from_bytes([content; 32]),
            bytes: 1,
            stamp: 1,
        }
    }

    fn check(
        differences: &[(&str, Option<u8>, Option<u8>)],
        moves: &[(&str, &str)],
        expect: &[&str],
    ) {
        let differences: Vec<Difference> = differences
            .iter()
            .map(|(path, before, after)| Difference {
                path: path.parse().unwrap(),
                before: before.map(|content| leaf(content, EntryKind::File)),
                after: after.map(|content| leaf(content, EntryKind::File)),
            })
            .collect();
        let moves: Vec<NamedMove> = moves
            .iter()
            .map(|(from, to)| NamedMove {
                from: from.parse().unwrap(),
                to: to.parse().unwrap(),
            })
            .collect();
        let changes = path_changes(&differences, &moves, |blob| {
            Ok(Sha256::from_bytes(*blob.as_bytes()))
        })
        .unwrap();
        let shown: Vec<String> = changes
            .iter()
            .map(|change| match &change.from {
                Some(from) => format!("{} {from} -> {}", change.kind.word(), change.path),
                None => format!("{} {}", change.kind.word(), change.path),
            })
            .collect();
        assert_eq!(shown, expect);
    }

    #[test]
    fn renames_are_equal_content_or_named() {
        check(
            &[("a", Some(1), None), ("b", None, Some(1))],
            &[],
            &["renamed a -> b"],
        );
        check(
            &[("a", Some(1), None), ("b", None, Some(2))],
            &[],
            &["deleted a", "created b"],
        );
        check(
            &[("a", Some(1), None), ("b", None, Some(2))],
            &[("a", "b")],
            &["renamed a -> b"],
        );
        check(&[("a", Some(1), Some(2))], &[], &["modified a"]);
        // Ties go by path order, and a named move goes first.
        let twins = [
            ("a", Some(1), None),
            ("b", Some(1), None),
            ("y", None, Some(1)),
            ("z", None, Some(1)),
        ];
        check(&twins, &[], &["renamed a -> y", "renamed b -> z"]);
        check(&twins, &[("b", "y")], &["renamed b -> y", "renamed a -> z"]);
        check(&twins[..3], &[], &["deleted b", "renamed a -> y"]);
        // A named move that did not come to pass in the end is nothing.
        check(&[("b", None, Some(2))], &[("a", "b")], &["created b"]);
    }
}
