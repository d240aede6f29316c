//! Applying a list of changes to a base, on paper.
//!
//! Owns: what each operation means, and what it refuses. The result is a tree of content; nothing is
//! written. Never: the tip; bringing the result onto it is `integrate.rs`.
//!
//! Keeps invariants 6 (what was relied on is true of the base) and 9 (bytes are kept exactly).

use std::collections::{BTreeMap, BTreeSet};

use semaprax_protocol::submission::{Edit, EntryKind, FileMode};
use semaprax_protocol::{Code, Diagnostic, LogicalPath, Refusal};

use super::plan::{Expectation, Operation, PlannedChange, PlannedRead, put_kind};
use crate::store::history::NamedMove;
use crate::store::objects::{Blob, FreshBlobs};
use crate::store::tree::{Draft, Found, Leaf, Tree, UNSTAMPED, for_each_leaf};
use crate::store::{Store, StoreError};

/// Places of a text that occurs too often that a diagnostic lists.
const PLACES: usize = 20;

/// A base with changes applied.
#[derive(Debug)]
pub struct Evaluated {
    /// The content.
    pub tree: Tree,
    /// Blobs that the store may not have.
    pub fresh: FreshBlobs,
    /// The moves that were named, from first to last path.
    pub moves: Vec<NamedMove>,
    /// Every path that a change names.
    pub touched: BTreeSet<LogicalPath>,
    /// Every path relied on without being changed.
    pub read: BTreeSet<LogicalPath>,
}

/// Applies `changes` in order to `base`.
pub fn evaluate(
    store: &Store,
    base: &Tree,
    changes: Vec<PlannedChange>,
    reads: &[PlannedRead],
) -> Result<Evaluated, Refusal> {
    check_preconditions(store, base, &changes, reads)?;
    let mut evaluation = Evaluation {
        store,
        draft: Draft::of(base, &store.database),
        fresh: FreshBlobs::default(),
        moves: BTreeMap::new(),
        touched: BTreeSet::new(),
    };
    for change in changes {
        let index = change.index;
        evaluation.apply(change).map_err(|mut refusal| {
            for diagnostic in &mut refusal.diagnostics {
                diagnostic.change = Some(index);
            }
            refusal.in_submission()
        })?;
    }
    let named = evaluation
        .moves
        .into_iter()
        .map(|(to, from)| NamedMove { from, to });
    Ok(Evaluated {
        tree: evaluation.draft.seal()?,
        fresh: evaluation.fresh,
        moves: named.filter(|named| named.from != named.to).collect(),
        touched: evaluation.touched,
        read: reads.iter().map(|read| read.path.clone()).collect(),
    })
}

/// Checks every `expect` and `reads` against the base. A path that a move in the same submission
/// filled is checked where it came from.
fn check_preconditions(
    store: &Store,
    base: &Tree,
    changes: &[PlannedChange],
    reads: &[PlannedRead],
) -> Result<(), Refusal> {
    let mut diagnostics = Vec::new();
    let mut origin: BTreeMap<&LogicalPath, LogicalPath> = BTreeMap::new();
    for change in changes {
        let path = change.operation.path();
        if let Some(expect) = change.expect {
            let place = came_from(path, &origin);
            if let Some(mut diagnostic) = unmet(store, base, &place, expect)? {
                diagnostic.change = Some(change.index);
                diagnostics.push(diagnostic);
            }
        }
        if let Operation::Move(from, to, _) = &change.operation {
            let start = came_from(from, &origin);
            origin.insert(to, start);
        }
    }
    for read in reads {
        diagnostics.extend(unmet(store, base, &read.path, read.expect)?);
    }
    Refusal::of(diagnostics).map_or(Ok(()), Err)
}

/// Where what is at `path` was in the base: a move of the path itself, or of a directory above it,
/// brought it there.
fn came_from(path: &LogicalPath, origin: &BTreeMap<&LogicalPath, LogicalPath>) -> LogicalPath {
    let mut moved = Some(path.clone());
    while let Some(above) = moved {
        if let Some(start) = origin.get(&above) {
            let below = path.as_str().get(above.as_str().len()..);
            let place = format!("{start}{}", below.unwrap_or_default());
            // One that is too long cannot be in the base, under its own name or another.
            return place.parse().unwrap_or_else(|_| path.clone());
        }
        moved = above.parent();
    }
    path.clone()
}

/// What is wrong when `path` of `base` is not as expected.
fn unmet(
    store: &Store,
    base: &Tree,
    path: &LogicalPath,
    expect: Expectation,
) -> Result<Option<Diagnostic>, StoreError> {
    let found = match base.find(path, &store.database)? {
        Found::Leaf(leaf) => {
            let info = store.database.known_blob(&leaf.blob)?;
            if expect == Expectation::Content(info.sha256) {
                return Ok(None);
            }
            info.sha256.to_string()
        }
        Found::Directory(_) => "directory".to_owned(),
        Found::Nothing | Found::Blocked(..) if expect == Expectation::Absent => return Ok(None),
        Found::Nothing | Found::Blocked(..) => "absent".to_owned(),
    };
    let expected = match expect {
        Expectation::Content(sha256) => sha256.to_string(),
        Expectation::Absent => "absent".to_owned(),
    };
    let message = format!("`{path}` of the base is not what was expected");
    let mut diagnostic = Diagnostic::new(Code::PreconditionFailed, message).at(path.as_str());
    diagnostic.expected = Some(expected);
    diagnostic.found = Some(found);
    Ok(Some(diagnostic))
}

struct Evaluation<'store> {
    store: &'store Store,
    draft: Draft<'store>,
    fresh: FreshBlobs,
    /// Where what is at a path came from by named moves.
    moves: BTreeMap<LogicalPath, LogicalPath>,
    touched: BTreeSet<LogicalPath>,
}

impl Evaluation<'_> {
    fn apply(&mut self, change: PlannedChange) -> Result<(), Refusal> {
        self.touched.insert(change.operation.path().clone());
        match change.operation {
            Operation::Put(path, blob, mode) => self.put(&path, blob, mode),
            Operation::Edit(path, edits) => self.edit(&path, &edits),
            Operation::Delete(path, recursive) => self.delete(&path, recursive),
            Operation::Move(from, to, recursive) => {
                self.touched.insert(to.clone());
                self.rename(from, to, recursive)
            }
            Operation::Symlink(path, blob) => self.put_leaf(&path, blob, |_| EntryKind::Symlink),
            Operation::Chmod(path, mode) => self.chmod(&path, mode),
        }
    }

    fn put(
        &mut self,
        path: &LogicalPath,
        blob: Blob,
        mode: Option<FileMode>,
    ) -> Result<(), Refusal> {
        self.put_leaf(path, blob, |existing| put_kind(mode, existing))
    }

    fn put_leaf(
        &mut self,
        path: &LogicalPath,
        blob: Blob,
        kind: impl Fn(Option<EntryKind>) -> EntryKind,
    ) -> Result<(), Refusal> {
        let existing = match self.draft.find(path)? {
            Found::Nothing => None,
            Found::Leaf(leaf) => Some(leaf.kind),
            Found::Directory(_) => return Err(collision(path, "is a directory")),
            Found::Blocked(above, kind) => return Err(below(path, &above, kind)),
        };
        self.set(path, &blob, kind(existing))?;
        self.fresh.add(blob);
        Ok(())
    }

    fn set(&mut self, path: &LogicalPath, blob: &Blob, kind: EntryKind) -> Result<(), Refusal> {
        let info = blob.info();
        let leaf = Leaf {
            kind,
            blob: info.digest,
            bytes: info.bytes,
            stamp: UNSTAMPED,
        };
        Ok(self.draft.set(path, leaf)?)
    }

    /// The leaf at `path`, which must be a regular file.
    fn file(&mut self, path: &LogicalPath) -> Result<Leaf, Refusal> {
        match self.draft.find(path)? {
            Found::Leaf(leaf) if leaf.kind == EntryKind::Symlink => {
                Err(collision(path, "is a symlink"))
            }
            Found::Leaf(leaf) => Ok(leaf),
            Found::Directory(_) => Err(collision(path, "is a directory")),
            Found::Nothing => Err(missing(path)),
            Found::Blocked(above, kind) => Err(below(path, &above, kind)),
        }
    }

    fn edit(&mut self, path: &LogicalPath, edits: &[Edit]) -> Result<(), Refusal> {
        let leaf = self.file(path)?;
        let mut content = self.fresh.content(self.store, &leaf.blob)?.to_vec();
        for (index, edit) in edits.iter().enumerate() {
            content = replace_once(path, &content, index + 1, edit)?;
        }
        let blob = Blob::new(content);
        self.set(path, &blob, leaf.kind)?;
        self.fresh.add(blob);
        Ok(())
    }

    fn delete(&mut self, path: &LogicalPath, recursive: bool) -> Result<(), Refusal> {
        match self.draft.find(path)? {
            Found::Leaf(_) => {}
            Found::Directory(_) if recursive => {}
            Found::Directory(_) => return Err(needs_recursive(path)),
            Found::Nothing => return Err(missing(path)),
            Found::Blocked(above, kind) => return Err(below(path, &above, kind)),
        }
        Ok(self.draft.remove(path)?)
    }

    fn rename(
        &mut self,
        from: LogicalPath,
        to: LogicalPath,
        recursive: bool,
    ) -> Result<(), Refusal> {
        let what = self.draft.find(&from)?;
        match self.draft.find(&to)? {
            Found::Nothing => {}
            Found::Leaf(_) | Found::Directory(_) => {
                let message = format!("`{to}` exists already");
                return Err(Diagnostic::new(Code::AlreadyExists, message)
                    .at(to.as_str())
                    .into());
            }
            Found::Blocked(above, kind) => return Err(below(&to, &above, kind)),
        }
        match what {
            Found::Leaf(leaf) => {
                self.draft.remove(&from)?;
                self.draft.set(
                    &to,
                    Leaf {
                        stamp: UNSTAMPED,
                        ..leaf
                    },
                )?;
                self.note_move(from, to);
            }
            Found::Directory(branch) if recursive => {
                self.draft.remove(&from)?;
                let mut leaves = Vec::new();
                for_each_leaf(&branch, "", &self.store.database, &mut |path, _| {
                    leaves.push(path);
                    Ok(true)
                })?;
                self.draft.set_directory(&to, branch)?;
                for leaf in leaves {
                    let join = |directory: &LogicalPath| {
                        directory
                            .join(leaf.as_str())
                            .map_err(|refusal| too_deep(directory, refusal))
                    };
                    let (old, new) = (join(&from)?, join(&to)?);
                    self.note_move(old, new);
                }
            }
            Found::Directory(_) => return Err(needs_recursive(&from)),
            Found::Nothing => return Err(missing(&from)),
            Found::Blocked(above, kind) => return Err(below(&from, &above, kind)),
        }
        Ok(())
    }

    fn note_move(&mut self, from: LogicalPath, to: LogicalPath) {
        let origin = self.moves.remove(&from).unwrap_or(from);
        self.moves.insert(to, origin);
    }

    fn chmod(&mut self, path: &LogicalPath, mode: FileMode) -> Result<(), Refusal> {
        let leaf = self.file(path)?;
        Ok(self.draft.set(
            path,
            Leaf {
                kind: mode.into(),
                stamp: UNSTAMPED,
                ..leaf
            },
        )?)
    }
}

/// `content` with the one occurrence of `edit.old` replaced. A refusal names the edit by its `number`
/// and not by its text: refusals go to the journal and the log, where no content is.
fn replace_once(
    path: &LogicalPath,
    content: &[u8],
    number: usize,
    edit: &Edit,
) -> Result<Vec<u8>, Refusal> {
    let old = edit.old.as_bytes();
    let finder = memchr::memmem::Finder::new(old);
    let mut places = Vec::new();
    let mut count = 0u64;
    let mut from = 0;
    // Overlapping occurrences count: each is a place that could be meant.
    while let Some(found) = content.get(from..).and_then(|rest| finder.find(rest)) {
        count += 1;
        if places.len() < PLACES {
            places.push(from + found);
            from += found + 1;
        } else {
            // Enough to be refused: counting every overlap of a long text takes for ever.
            from += found + old.len();
        }
    }
    let text = format!("the text of edit {number}");
    match (places.first(), count) {
        (Some(&place), 1) => {
            let mut out = content.get(..place).unwrap_or_default().to_vec();
            out.extend_from_slice(edit.new.as_bytes());
            out.extend_from_slice(content.get(place + old.len()..).unwrap_or_default());
            Ok(out)
        }
        (None, _) => {
            let message = format!("{text} does not occur in `{path}`");
            Err(Diagnostic::new(Code::EditNotFound, message)
                .at(path.as_str())
                .into())
        }
        (Some(_), _) => {
            let message = format!("{text} occurs {count} times in `{path}`");
            let mut diagnostic = Diagnostic::new(Code::EditNotUnique, message).at(path.as_str());
            diagnostic.count = Some(count);
            diagnostic.lines = line_numbers(content, &places);
            Err(diagnostic.into())
        }
    }
}

/// The line, from 1, of each of these ascending places.
fn line_numbers(content: &[u8], places: &[usize]) -> Vec<u64> {
    let (mut line, mut from) = (1u64, 0);
    let mut lines: Vec<u64> = Vec::new();
    for &place in places {
        let between = content.get(from..place).unwrap_or_default();
        line += memchr::memchr_iter(b'\n', between).count() as u64;
        from = place;
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    lines
}

fn collision(path: &LogicalPath, what: &str) -> Refusal {
    Diagnostic::new(Code::PathCollision, format!("`{path}` {what}"))
        .at(path.as_str())
        .into()
}

fn below(path: &LogicalPath, above: &LogicalPath, kind: EntryKind) -> Refusal {
    let kind = if kind == EntryKind::Symlink {
        "symlink"
    } else {
        "file"
    };
    let mut diagnostic = Diagnostic::new(
        Code::PathCollision,
        format!("`{path}` lies below the {kind} `{above}`"),
    )
    .at(path.as_str());
    diagnostic.found = Some(above.as_str().to_owned());
    diagnostic.into()
}

fn missing(path: &LogicalPath) -> Refusal {
    Diagnostic::new(Code::NotFound, format!("there is no `{path}`"))
        .at(path.as_str())
        .into()
}

fn needs_recursive(path: &LogicalPath) -> Refusal {
    let message = format!("`{path}` is a directory, and `recursive` was not asked for");
    let hint = "say `\"recursive\": true` where the whole directory is meant; on the command line, a `/` at its end";
    Diagnostic::new(Code::InvalidSubmission, message)
        .at(path.as_str())
        .hint(hint)
        .into()
}

fn too_deep(path: &LogicalPath, refusal: semaprax_protocol::PathRefusal) -> Refusal {
    let message = format!("a path below `{path}` is refused: {refusal}");
    Diagnostic::new(Code::PathRefused, message)
        .at(path.as_str())
        .into()
}
