//! Stage 3: the candidate is what it says it is.
//!
//! Owns: `Verified`. Counts, limits, the name policy over the whole tree, symlink targets at their final
//! place. Changed files are read back from disk and digested again: of a dry run here, else in the turn;
//! unchanged ones are covered by the tree digest and by the check of the tree they are linked from.
//!
//! Keeps invariants 1 and 9.

use std::collections::{BTreeMap, BTreeSet};

use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{Code, Diagnostic, LogicalPath, NamePolicy, Refusal};

use super::build::Candidate;
use super::ledger::Ledger;
use crate::store::check::check_made;
use crate::store::tree::{Branch, Difference, Found, Tree};
use crate::store::{Store, StoreResult};

/// A candidate that was read back and found right.
#[derive(Debug)]
#[must_use]
pub struct Verified {
    pub(super) candidate: Candidate,
}

impl Verified {
    /// Whether it is to be published at all.
    pub fn is_dry_run(&self) -> bool {
        self.candidate.head.dry_run
    }

    /// The candidate is not published: its directory may serve another one.
    pub fn discard(self, ledger: &Ledger) {
        self.candidate.give_back(ledger);
    }
}

/// Verifies the whole candidate. The directory of one that is to be published is read back in the turn.
pub fn verify(ledger: &Ledger, mut candidate: Candidate) -> Result<Verified, Refusal> {
    check_paths(ledger, &candidate)?;
    if !candidate.head.dry_run {
        return Ok(Verified { candidate });
    }
    match check_directory(ledger, &mut candidate) {
        Ok(()) => Ok(Verified { candidate }),
        Err(error) => {
            candidate.discard(ledger);
            Err(error.into())
        }
    }
}

fn check_directory(ledger: &Ledger, candidate: &mut Candidate) -> StoreResult<()> {
    let tree = candidate.tree.clone();
    let staged = candidate.make_directory(ledger)?;
    check_made(&ledger.store, &tree, &staged.made, &staged.place.files())
}

fn check_paths(ledger: &Ledger, candidate: &Candidate) -> Result<(), Refusal> {
    let mut diagnostics = Vec::new();
    let longest = ledger.store.layout.longest_path();
    for difference in &candidate.differences {
        let Some(after) = difference.after else {
            continue;
        };
        let path = &difference.path;
        if after.bytes > ledger.limits.file_bytes {
            let message = format!(
                "`{path}` has {} bytes; {} are allowed in a file",
                after.bytes, ledger.limits.file_bytes
            );
            diagnostics.push(Diagnostic::new(Code::LimitExceeded, message).at(path.as_str()));
        }
        if path.as_str().len() > longest {
            let generations = ledger.store.layout.generations();
            let message = format!(
                "`{path}` is too long for where the workspace lies: trees below `{generations}` leave room for {longest} bytes"
            );
            diagnostics.push(Diagnostic::new(Code::PathRefused, message).at(path.as_str()));
        }
        if difference.before.is_none()
            && let Err(refusal) = path.check(ledger.names)
        {
            let message = format!("the path `{path}` is refused: {refusal}");
            diagnostics.push(Diagnostic::new(Code::PathRefused, message).at(path.as_str()));
        }
        if after.kind == EntryKind::Symlink {
            let target = candidate.fresh.content(&ledger.store, &after.blob)?;
            let target = String::from_utf8_lossy(&target);
            if let Err(refusal) = semaprax_protocol::check_symlink_target(path, &target) {
                let message = format!("the symlink `{path}` to `{target}` is refused: {refusal}");
                diagnostics.push(Diagnostic::new(Code::PathRefused, message).at(path.as_str()));
            }
        }
    }
    if ledger.names == NamePolicy::Portable {
        diagnostics.extend(folding_clashes(
            &ledger.store,
            &ledger.tip.tree,
            &candidate.tree,
            &candidate.differences,
        )?);
    }
    Refusal::of(diagnostics).map_or(Ok(()), Err)
}

/// New paths whose spelling equals another one after case folding, at every level that `before` does
/// not have: what it has clashed with nothing in it, and whatever is new beside it is looked at itself.
fn folding_clashes(
    store: &Store,
    before: &Tree,
    tree: &Tree,
    differences: &[Difference],
) -> StoreResult<Vec<Diagnostic>> {
    let mut names: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    let mut diagnostics = Vec::new();
    for difference in differences
        .iter()
        .filter(|difference| difference.before.is_none())
    {
        let mut here = Some(difference.path.clone());
        while let Some(path) = here {
            if matches!(before.find(&path, &store.database)?, Found::Directory(_)) {
                break;
            }
            let parent = path.parent();
            let key = parent.as_ref().map_or("", LogicalPath::as_str).to_owned();
            if !names.contains_key(&key) {
                names.insert(key.clone(), folded_names(store, tree, parent.as_ref())?);
            }
            let same = names
                .get(&key)
                .and_then(|names| names.get(&LogicalPath::fold_segment(path.name())));
            if let Some(other) =
                same.and_then(|same| same.iter().find(|other| **other != path.name()))
            {
                let other = parent
                    .as_ref()
                    .map_or(other.clone(), |parent| format!("{parent}/{other}"));
                let message = format!(
                    "`{path}` and `{other}` are equal after case folding (policy `portable`)"
                );
                let mut diagnostic =
                    Diagnostic::new(Code::PathCollision, message).at(difference.path.as_str());
                diagnostic.found = Some(other);
                diagnostics.push(diagnostic);
                break;
            }
            here = parent;
        }
    }
    Ok(diagnostics)
}

/// The names of a directory by what they fold to.
fn folded_names(
    store: &Store,
    tree: &Tree,
    directory: Option<&LogicalPath>,
) -> StoreResult<BTreeMap<String, BTreeSet<String>>> {
    let mut folded: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut collect = |branch: &Branch| -> StoreResult<()> {
        for (name, _) in branch.entries(&store.database)? {
            folded
                .entry(LogicalPath::fold_segment(name))
                .or_default()
                .insert(name.to_string());
        }
        Ok(())
    };
    match directory {
        None => collect(tree.root())?,
        Some(path) => {
            if let Found::Directory(branch) = tree.find(path, &store.database)? {
                collect(&branch)?;
            }
        }
    }
    Ok(folded)
}
