//! Bringing an evaluated submission from its base onto the tip: reject, rebase, merge.
//!
//! Owns: what "moved" means, and the three-way merge of trees. Silence is never an answer: what cannot
//! be put together is named.
//!
//! Keeps invariant 6: nobody publishes onto a base that moved under the paths they touched or read.

use semaprax_protocol::diagnostic::{ActiveReference, Conflict, ConflictLines};
use semaprax_protocol::submission::{EntryKind, OnStale};
use semaprax_protocol::{Code, Diagnostic, LogicalPath, Refusal, Sha256};

use super::evaluate::Evaluated;
use super::ledger::Tip;
use crate::store::objects::{Blob, FreshBlobs};
use crate::store::tree::{Difference, Draft, Found, Leaf, Tree, UNSTAMPED, differences};
use crate::store::{Store, StoreError, StoreResult};
use crate::text;

/// Paths that a `stale-base` names at most.
const PATHS_NAMED: usize = 100;

/// A submission on the tip.
#[derive(Debug)]
pub struct Integrated {
    /// The content.
    pub tree: Tree,
    /// The paths merged from two sides.
    pub merged: Vec<LogicalPath>,
    /// Whether the tip is not the base it was evaluated on.
    pub rebased: bool,
}

/// Brings `evaluated` from `base` onto `tip`.
pub fn integrate(
    store: &Store,
    base: &Tree,
    evaluated: &mut Evaluated,
    tip: &Tip,
    on_stale: OnStale,
) -> Result<Integrated, Refusal> {
    if base.content() == tip.tree.content() {
        return Ok(Integrated {
            tree: evaluated.tree.clone(),
            merged: Vec::new(),
            rebased: false,
        });
    }
    match on_stale {
        OnStale::Reject => {
            let moved = differences(base, &tip.tree, &store.database)?;
            let paths = moved.into_iter().map(|difference| difference.path);
            Err(stale(tip, paths.collect(), on_stale))
        }
        OnStale::Rebase => {
            let named = evaluated.touched.union(&evaluated.read);
            let moved = moved_paths(store, base, &tip.tree, named)?;
            if !moved.is_empty() {
                return Err(stale(tip, moved, on_stale));
            }
            let changes = differences(base, &evaluated.tree, &store.database)?;
            let tree = transplant(store, &tip.tree, &changes)?;
            Ok(Integrated {
                tree,
                merged: Vec::new(),
                rebased: true,
            })
        }
        OnStale::Merge => {
            let only_read = evaluated.read.difference(&evaluated.touched);
            let moved = moved_paths(store, base, &tip.tree, only_read)?;
            if !moved.is_empty() {
                return Err(stale(tip, moved, on_stale));
            }
            check_swept(store, base, evaluated, &tip.tree)?;
            let sides = Sides {
                base,
                ours: &tip.tree,
                theirs: &evaluated.tree,
            };
            let (tree, merged) = merge_trees(store, sides, &mut evaluated.fresh)?;
            Ok(Integrated {
                tree,
                merged,
                rebased: true,
            })
        }
    }
}

fn moved_paths<'path>(
    store: &Store,
    base: &Tree,
    tip: &Tree,
    paths: impl Iterator<Item = &'path LogicalPath>,
) -> StoreResult<Vec<LogicalPath>> {
    let mut moved = Vec::new();
    for path in paths {
        if !base
            .find(path, &store.database)?
            .same(&tip.find(path, &store.database)?)
        {
            moved.push(path.clone());
        }
    }
    Ok(moved)
}

/// What is stale depends on what was asked for, and so does what would help.
fn stale(tip: &Tip, mut paths: Vec<LogicalPath>, on_stale: OnStale) -> Refusal {
    let (message, hint) = match on_stale {
        OnStale::Reject => ("ACTIVE is no longer the base of the submission", None),
        OnStale::Rebase => (
            "paths of the submission moved since its base",
            Some(
                "read the named paths again and submit on the new base, or pass `--on-stale merge`",
            ),
        ),
        OnStale::Merge => (
            "paths the submission read moved since its base",
            Some("read the named paths again and submit on the new base"),
        ),
    };
    let record = &tip.stored.record;
    let shown: Vec<String> = paths
        .iter()
        .take(3)
        .map(|path| format!("`{path}`"))
        .collect();
    let more = if paths.len() > 3 {
        format!(" and {} more", paths.len() - 3)
    } else {
        String::new()
    };
    let message = format!(
        "{message}: @{} is ACTIVE; moved: {}{more}",
        record.seq,
        shown.join(", ")
    );
    let mut diagnostic = Diagnostic::new(Code::StaleBase, message);
    if let Some(hint) = hint {
        diagnostic = diagnostic.hint(hint);
    }
    diagnostic.path = paths.first().map(|path| path.as_str().to_owned());
    diagnostic.active = Some(ActiveReference {
        seq: record.seq,
        revision: record.revision,
    });
    diagnostic.count = Some(paths.len() as u64);
    paths.truncate(PATHS_NAMED);
    diagnostic.paths = paths;
    diagnostic.into()
}

/// Applies differences to a tree on which their paths are as they were on their own.
fn transplant(store: &Store, onto: &Tree, changes: &[Difference]) -> Result<Tree, Refusal> {
    let mut draft = Draft::of(onto, &store.database);
    apply(
        &mut draft,
        changes.iter().map(|change| (&change.path, change.after)),
    )?;
    Ok(draft.seal()?)
}

/// Puts paths into a draft: what goes away first, so that a directory can take the place of a file.
fn apply<'path>(
    draft: &mut Draft<'_>,
    changes: impl Iterator<Item = (&'path LogicalPath, Option<Leaf>)> + Clone,
) -> Result<(), Refusal> {
    for (path, after) in changes.clone() {
        if after.is_none() {
            draft.remove(path)?;
        }
    }
    for (path, after) in changes {
        let Some(leaf) = after else { continue };
        match draft.find(path)? {
            Found::Nothing | Found::Leaf(_) => draft.set(
                path,
                Leaf {
                    stamp: UNSTAMPED,
                    ..leaf
                },
            )?,
            Found::Directory(_) => {
                let message = format!("`{path}` is a directory on ACTIVE");
                return Err(Diagnostic::new(Code::PathCollision, message)
                    .at(path.as_str())
                    .into());
            }
            Found::Blocked(above, _) => {
                let message =
                    format!("`{path}` lies below `{above}` on ACTIVE, which is no directory");
                return Err(Diagnostic::new(Code::PathCollision, message)
                    .at(path.as_str())
                    .into());
            }
        }
    }
    Ok(())
}

/// A directory that the submission deletes or moves as a whole must not have changed on the other
/// side: what came into it would be lost or left behind without a word.
fn check_swept(
    store: &Store,
    base: &Tree,
    evaluated: &Evaluated,
    tip: &Tree,
) -> Result<(), Refusal> {
    let mut diagnostics = Vec::new();
    for path in &evaluated.touched {
        let was = base.find(path, &store.database)?;
        let is = tip.find(path, &store.database)?;
        if !matches!(
            (&was, &is),
            (Found::Directory(_), _) | (_, Found::Directory(_))
        ) || was.same(&is)
        {
            continue;
        }
        let result = evaluated.tree.find(path, &store.database)?;
        if !result.same(&is) {
            let message = format!("the directory `{path}` changed on both sides");
            let mut diagnostic = Diagnostic::new(Code::MergeConflict, message).at(path.as_str());
            diagnostic.conflict = Some(Conflict::default());
            diagnostics.push(diagnostic);
        }
    }
    Refusal::of(diagnostics).map_or(Ok(()), Err)
}

/// The three sides of a merge: what both started from, what is ACTIVE, what was submitted.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'tree> {
    /// What both sides started from.
    pub base: &'tree Tree,
    /// What is ACTIVE.
    pub ours: &'tree Tree,
    /// What was submitted.
    pub theirs: &'tree Tree,
}

/// Puts what `theirs` changed on top of `ours`; answers the tree and the paths merged line by line.
pub fn merge_trees(
    store: &Store,
    sides: Sides<'_>,
    fresh: &mut FreshBlobs,
) -> Result<(Tree, Vec<LogicalPath>), Refusal> {
    let changes = differences(sides.base, sides.theirs, &store.database)?;
    let mut results: Vec<(LogicalPath, Option<Leaf>)> = Vec::new();
    let mut merged = Vec::new();
    let mut diagnostics = Vec::new();
    for change in &changes {
        let ours = sides.ours.find(&change.path, &store.database)?;
        let was = sides.base.find(&change.path, &store.database)?;
        let merge = PathMerge {
            store,
            change,
            was: &was,
            ours: &ours,
        };
        match merge.decide(fresh)? {
            Decision::Theirs => results.push((change.path.clone(), change.after)),
            Decision::Ours => {}
            Decision::Merged(leaf) => {
                results.push((change.path.clone(), Some(leaf)));
                merged.push(change.path.clone());
            }
            Decision::Conflict(diagnostic) => diagnostics.push(*diagnostic),
        }
    }
    if let Some(refusal) = Refusal::of(diagnostics) {
        return Err(refusal);
    }
    let mut draft = Draft::of(sides.ours, &store.database);
    apply(&mut draft, results.iter().map(|(path, leaf)| (path, *leaf)))?;
    Ok((draft.seal()?, merged))
}

enum Decision {
    Theirs,
    Ours,
    Merged(Leaf),
    Conflict(Box<Diagnostic>),
}

struct PathMerge<'merge> {
    store: &'merge Store,
    change: &'merge Difference,
    /// What the path was in the base: more than the change says where a directory or a file above it
    /// gives way.
    was: &'merge Found,
    ours: &'merge Found,
}

impl PathMerge<'_> {
    fn decide(&self, fresh: &mut FreshBlobs) -> Result<Decision, StoreError> {
        let (base, theirs) = (self.change.before, self.change.after);
        let ours = match self.ours {
            Found::Leaf(leaf) => Some(*leaf),
            Found::Nothing => None,
            // Untouched by the other side: what stands here goes with the same submission.
            Found::Directory(_) | Found::Blocked(..) if self.ours.same(self.was) => {
                return Ok(Decision::Theirs);
            }
            Found::Directory(_) | Found::Blocked(..) => {
                return self.conflict(
                    fresh,
                    None,
                    "another kind of thing is there now",
                    Vec::new(),
                );
            }
        };
        let same = |a: Option<Leaf>, b: Option<Leaf>| match (a, b) {
            (Some(a), Some(b)) => a.same_content(&b),
            (None, None) => true,
            _ => false,
        };
        if same(ours, base) {
            return Ok(Decision::Theirs);
        }
        if same(ours, theirs) {
            return Ok(Decision::Ours);
        }
        match (base, ours, theirs) {
            (Some(base), Some(ours), Some(theirs)) => self.merge_leaves(fresh, base, ours, theirs),
            (Some(_), None, Some(_)) => self.conflict(
                fresh,
                ours,
                "deleted or moved away on ACTIVE, changed by the submission",
                Vec::new(),
            ),
            (Some(_), Some(_), None) => self.conflict(
                fresh,
                ours,
                "changed on ACTIVE, deleted or moved away by the submission",
                Vec::new(),
            ),
            _ => self.conflict(
                fresh,
                ours,
                "created on both sides with different content",
                Vec::new(),
            ),
        }
    }

    fn merge_leaves(
        &self,
        fresh: &mut FreshBlobs,
        base: Leaf,
        ours: Leaf,
        theirs: Leaf,
    ) -> Result<Decision, StoreError> {
        // A target is no text: bytes of a file must never become one, nor the other way round.
        if [base.kind, ours.kind, theirs.kind].contains(&EntryKind::Symlink) {
            return self.conflict(
                fresh,
                Some(ours),
                "a symlink was changed on both sides",
                Vec::new(),
            );
        }
        // Of two kinds, the one that a side changed to.
        let kind = if ours.kind == base.kind {
            theirs.kind
        } else {
            ours.kind
        };
        let leaf_of = |blob: Leaf| Leaf {
            kind,
            stamp: UNSTAMPED,
            ..blob
        };
        if ours.blob == theirs.blob || theirs.blob == base.blob {
            return Ok(Decision::Merged(leaf_of(ours)));
        }
        if ours.blob == base.blob {
            return Ok(Decision::Merged(leaf_of(theirs)));
        }
        let content = |leaf: Leaf| fresh.content(self.store, &leaf.blob);
        let (was, mine, other) = (content(base)?, content(ours)?, content(theirs)?);
        if ![&was, &mine, &other]
            .iter()
            .all(|content| text::is_text(content))
        {
            return self.conflict(
                fresh,
                Some(ours),
                "binary content was changed on both sides",
                Vec::new(),
            );
        }
        match text::merge::three_way(&was, &mine, &other) {
            Ok(content) => {
                let blob = Blob::new(content);
                let info = blob.info();
                fresh.add(blob);
                Ok(Decision::Merged(Leaf {
                    kind,
                    blob: info.digest,
                    bytes: info.bytes,
                    stamp: UNSTAMPED,
                }))
            }
            Err(ranges) => {
                let lines = ranges.into_iter().map(|range| ConflictLines {
                    base: range.base,
                    ours: range.ours,
                    theirs: range.theirs,
                });
                self.conflict(
                    fresh,
                    Some(ours),
                    "the same lines were changed on both sides",
                    lines.collect(),
                )
            }
        }
    }

    fn conflict(
        &self,
        fresh: &FreshBlobs,
        ours: Option<Leaf>,
        why: &str,
        ranges: Vec<ConflictLines>,
    ) -> Result<Decision, StoreError> {
        let sha256 = |leaf: Option<Leaf>| -> StoreResult<Option<Sha256>> {
            leaf.map(|leaf| fresh.sha256(self.store, &leaf.blob))
                .transpose()
        };
        let path = &self.change.path;
        let mut diagnostic =
            Diagnostic::new(Code::MergeConflict, format!("`{path}`: {why}")).at(path.as_str());
        diagnostic.conflict = Some(Conflict {
            base: sha256(self.change.before)?,
            ours: sha256(ours)?,
            theirs: sha256(self.change.after)?,
            ranges,
        });
        Ok(Decision::Conflict(Box::new(diagnostic)))
    }
}
