//! Turning a directory into a tree of content.
//!
//! Owns: which names are taken under which policy, reading and digesting in parallel, and the list of
//! what was left out. Never: where the blobs go; the caller's sink takes them in batches.

use std::collections::BTreeMap;

use rayon::prelude::*;
use semaprax_protocol::documents::{SkipReason, Skipped};
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{
    Code, Diagnostic, LogicalPath, NamePolicy, PathRefusal, Refusal, StampedDigest,
};

use crate::store::objects::Blob;
use crate::store::tree::{Draft, Leaf, NodeSource, Tree, UNSTAMPED};
use crate::store::{StoreError, StoreResult};
use crate::world::source::{FoundFile, ReadOutcome, Scan, SourceDirectory};

/// Files read at once: bounds the memory an import takes.
const FILES_AT_ONCE: usize = 256;

/// A source of nodes that has none: for trees made in memory from nothing.
#[derive(Debug)]
pub struct NoNodes;

impl NodeSource for NoNodes {
    fn node(&self, digest: &StampedDigest) -> StoreResult<Vec<u8>> {
        Err(StoreError::damaged(format!(
            "node {digest} is not in memory"
        )))
    }
}

/// What became of a directory.
#[derive(Debug)]
pub struct Imported {
    /// The content, unstamped.
    pub tree: Tree,
    /// The policy its names keep.
    pub names: NamePolicy,
    /// What was left out.
    pub skipped: Vec<Skipped>,
}

/// Asked with (files done, files in all); `false` abandons the import.
pub type Progress<'progress> = dyn FnMut(u64, Option<u64>) -> bool + 'progress;

/// What an import needs beside the scan.
pub struct Importer<'import> {
    /// The directory.
    pub source: &'import SourceDirectory,
    /// The policy asked for; without it the strictest that no name offends.
    pub names: Option<NamePolicy>,
    /// Bytes of the longest path taken.
    pub path_bytes: usize,
    /// Bytes of the largest file taken.
    pub file_bytes: u64,
    /// Takes the blobs of a batch.
    pub sink: &'import mut dyn FnMut(Vec<Blob>) -> Result<(), Refusal>,
    /// Told how far it is.
    pub progress: &'import mut Progress<'import>,
}

/// Imports what `scan` found; `None` when it was abandoned.
pub fn import(
    scan: Scan,
    nodes: &dyn NodeSource,
    importer: &mut Importer<'_>,
) -> Result<Option<Imported>, Refusal> {
    let (names, taken, mut skipped) = judge(scan.found, importer.names, importer.path_bytes);
    skipped.extend(scan.skipped);
    let empty = Tree::empty();
    let mut draft = Draft::of(&empty, nodes);
    let total = taken.len() as u64;
    let mut done = 0;
    for chunk in taken.chunks(FILES_AT_ONCE) {
        if !(importer.progress)(done, Some(total)) {
            return Ok(None);
        }
        let read: Result<Vec<_>, Refusal> = chunk
            .par_iter()
            .map(|path| read_one(importer.source, path, importer.file_bytes))
            .collect();
        let mut blobs = Vec::with_capacity(chunk.len());
        for (path, outcome) in chunk.iter().zip(read?) {
            match outcome {
                Ok(Some((kind, blob))) => {
                    let info = blob.info();
                    draft.set(
                        path,
                        Leaf {
                            kind,
                            blob: info.digest,
                            bytes: info.bytes,
                            stamp: UNSTAMPED,
                        },
                    )?;
                    blobs.push(blob);
                }
                Ok(None) => {}
                Err(reason) => skipped.push(Skipped {
                    path: path.as_str().to_owned(),
                    reason,
                }),
            }
        }
        (importer.sink)(blobs)?;
        done += chunk.len() as u64;
    }
    (importer.progress)(done, Some(total));
    skipped.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Some(Imported {
        tree: draft.seal()?,
        names,
        skipped,
    }))
}

/// What reading one file came to: content, nothing any more, or a reason to leave it out.
type ReadOne = Result<Option<(EntryKind, Blob)>, SkipReason>;

fn read_one(source: &SourceDirectory, path: &LogicalPath, limit: u64) -> Result<ReadOne, Refusal> {
    Ok(match source.read(path.as_str(), limit)? {
        ReadOutcome::Content(EntryKind::Symlink, target) => match std::str::from_utf8(&target) {
            Err(_) => Err(SkipReason::NameNotUtf8),
            Ok(text) => match semaprax_protocol::check_symlink_target(path, text) {
                Ok(()) => Ok(Some((EntryKind::Symlink, Blob::new(target)))),
                Err(PathRefusal::TargetAbsolute) => Err(SkipReason::AbsoluteSymlink),
                Err(PathRefusal::TargetReserved) => Err(SkipReason::ReservedSymlink),
                Err(_) => Err(SkipReason::EscapingSymlink),
            },
        },
        ReadOutcome::Content(kind, content) => Ok(Some((kind, Blob::new(content)))),
        ReadOutcome::TooLarge => Err(SkipReason::TooLarge),
        ReadOutcome::Special => Err(SkipReason::SpecialFile),
        ReadOutcome::Unreadable => Err(SkipReason::Unreadable),
        ReadOutcome::Gone => Ok(None),
        ReadOutcome::Changing => {
            let message = format!("`{path}` kept changing while it was read");
            return Err(Diagnostic::new(Code::ChangedDuringImport, message)
                .at(path.as_str())
                .into());
        }
    })
}

/// Decides the policy and which names are taken under it.
fn judge(
    found: Vec<FoundFile>,
    asked: Option<NamePolicy>,
    path_bytes: usize,
) -> (NamePolicy, Vec<LogicalPath>, Vec<Skipped>) {
    let mut native = Vec::new();
    let mut skipped = Vec::new();
    for file in found {
        match file.path.parse::<LogicalPath>() {
            Ok(path) if path.as_str().len() <= path_bytes => native.push(path),
            _ => skipped.push(Skipped {
                path: file.path,
                reason: SkipReason::NameRefused,
            }),
        }
    }
    let offending = offending(&native);
    let policy = asked.unwrap_or(if offending.is_empty() {
        NamePolicy::Portable
    } else {
        NamePolicy::Native
    });
    if policy == NamePolicy::Native {
        return (policy, native, skipped);
    }
    let mut taken = Vec::new();
    for (index, path) in native.into_iter().enumerate() {
        match offending.get(&index) {
            None => taken.push(path),
            Some(reason) => skipped.push(Skipped {
                path: path.as_str().to_owned(),
                reason: *reason,
            }),
        }
    }
    (policy, taken, skipped)
}

/// The paths, by place in the list, that `portable` does not take. Of several spellings that are equal
/// after case folding, the first in path order is taken.
fn offending(paths: &[LogicalPath]) -> BTreeMap<usize, SkipReason> {
    let mut offending = BTreeMap::new();
    let mut spelled: BTreeMap<String, &str> = BTreeMap::new();
    for (index, path) in paths.iter().enumerate() {
        if path.check(NamePolicy::Portable).is_err() {
            offending.insert(index, SkipReason::NameRefused);
            continue;
        }
        let text = path.as_str();
        let ends: Vec<usize> = text
            .match_indices('/')
            .map(|(end, _)| end)
            .chain([text.len()])
            .collect();
        let parts = ends.iter().filter_map(|&end| text.get(..end));
        let clash = parts.clone().any(|part| {
            spelled
                .get(&LogicalPath::fold_segment(part))
                .is_some_and(|other| *other != part)
        });
        if clash {
            offending.insert(index, SkipReason::NameCollision);
        } else {
            for part in parts {
                spelled.insert(LogicalPath::fold_segment(part), part);
            }
        }
    }
    offending
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_the_strictest_that_no_name_offends() {
        let check =
            |names: &[&str], asked: Option<NamePolicy>, policy: NamePolicy, left_out: &[&str]| {
                let found = names.iter().map(|name| FoundFile {
                    path: (*name).to_owned(),
                    is_symlink: false,
                });
                let (got, _, skipped) = judge(found.collect(), asked, 20);
                assert_eq!(got, policy, "{names:?}");
                let skipped: Vec<String> =
                    skipped.into_iter().map(|skipped| skipped.path).collect();
                assert_eq!(skipped, left_out, "{names:?}");
            };
        check(&["a", "b/c"], None, NamePolicy::Portable, &[]);
        check(
            &["a", "twenty-one bytes long"],
            None,
            NamePolicy::Portable,
            &["twenty-one bytes long"],
        );
        check(&["a:b", "c"], None, NamePolicy::Native, &[]);
        check(&["A/x", "a/y"], None, NamePolicy::Native, &[]);
        check(
            &["A/x", "a/y"],
            Some(NamePolicy::Portable),
            NamePolicy::Portable,
            &["a/y"],
        );
        check(
            &["a:b", "c"],
            Some(NamePolicy::Portable),
            NamePolicy::Portable,
            &["a:b"],
        );
        check(
            &["bad\u{1}", "c"],
            None,
            NamePolicy::Portable,
            &["bad\u{1}"],
        );
    }
}
