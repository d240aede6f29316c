//! Part of stage 1: single changes and reads, each checked on its own.
//!
//! Owns: turning the JSON form of a change into an operation on checked paths with content at hand.
//! Never: looks at a tree.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use semaprax_protocol::submission::{Change, Edit, EntryKind, Expect, FileMode, Read, Submission};
use semaprax_protocol::{Code, Diagnostic, LogicalPath, Refusal, Sha256};

use super::admit::Rules;
use crate::store::objects::Blob;

/// What must be true of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// It holds this content.
    Content(Sha256),
    /// Nothing is there.
    Absent,
}

/// One change, ready to be applied.
#[derive(Debug)]
pub struct PlannedChange {
    /// Its place in the list, from 0.
    pub index: u64,
    /// What it does.
    pub operation: Operation,
    /// What must be at its path.
    pub expect: Option<Expectation>,
}

/// What a change does.
#[derive(Debug)]
pub enum Operation {
    /// Sets content, and mode where given.
    Put(LogicalPath, Blob, Option<FileMode>),
    /// Replaces pieces of text.
    Edit(LogicalPath, Vec<Edit>),
    /// Takes away; a directory only when the flag says so.
    Delete(LogicalPath, bool),
    /// Gives another path; to a directory only when the flag says so.
    Move(LogicalPath, LogicalPath, bool),
    /// Makes a symlink; the blob is its target.
    Symlink(LogicalPath, Blob),
    /// Sets the mode.
    Chmod(LogicalPath, FileMode),
}

impl Operation {
    /// The path it is about; of a move, the old one.
    pub fn path(&self) -> &LogicalPath {
        match self {
            Self::Put(path, ..)
            | Self::Edit(path, _)
            | Self::Delete(path, _)
            | Self::Move(path, ..)
            | Self::Symlink(path, _)
            | Self::Chmod(path, _) => path,
        }
    }
}

/// A path the author relied on.
#[derive(Debug)]
pub struct PlannedRead {
    /// The path.
    pub path: LogicalPath,
    /// What was there.
    pub expect: Expectation,
}

/// Plans all changes and reads of a submission; every one that is not acceptable is named.
pub(super) fn plan(
    submission: &Submission,
    uploads: &BTreeMap<Sha256, Arc<Vec<u8>>>,
    rules: Rules<'_>,
) -> Result<(Vec<PlannedChange>, Vec<PlannedRead>), Refusal> {
    let mut planner = Planner {
        uploads,
        rules,
        bytes: 0,
        diagnostics: Vec::new(),
    };
    let changes = submission.changes.iter().enumerate();
    let changes: Vec<_> = changes
        .filter_map(|(index, change)| planner.plan(index, change))
        .collect();
    let reads = submission.reads.iter();
    let reads = reads.filter_map(|read| planner.plan_read(read)).collect();
    if let Some(refusal) = Refusal::of(planner.diagnostics) {
        return Err(refusal);
    }
    check_contradictions(&changes)?;
    Ok((changes, reads))
}

struct Planner<'plan> {
    uploads: &'plan BTreeMap<Sha256, Arc<Vec<u8>>>,
    rules: Rules<'plan>,
    bytes: u64,
    diagnostics: Vec<Diagnostic>,
}

impl Planner<'_> {
    fn plan(&mut self, index: usize, change: &Change) -> Option<PlannedChange> {
        let index = index as u64;
        let planned = self.operation(change).and_then(|operation| {
            let (path, expect) = stated(change);
            Ok(PlannedChange {
                index,
                operation,
                expect: expectation(path, expect)?,
            })
        });
        match planned {
            Ok(planned) => Some(planned),
            Err(mut diagnostic) => {
                diagnostic.change = Some(index);
                self.diagnostics.push(*diagnostic);
                None
            }
        }
    }

    fn plan_read(&mut self, read: &Read) -> Option<PlannedRead> {
        let expect = Expect {
            sha256: read.sha256,
            absent: read.absent,
        };
        let planned = self.path(&read.path).and_then(|path| {
            let expect = expectation(&read.path, Some(&expect))?;
            let missing = || invalid(&read.path, "a `reads` entry needs `sha256` or `absent`");
            Ok(PlannedRead {
                path,
                expect: expect.ok_or_else(missing)?,
            })
        });
        planned
            .map_err(|diagnostic| self.diagnostics.push(*diagnostic))
            .ok()
    }

    fn operation(&mut self, change: &Change) -> Result<Operation, Box<Diagnostic>> {
        Ok(match change {
            Change::Put {
                path,
                content,
                content_base64,
                content_blob,
                mode,
                ..
            } => {
                let checked = self.path(path)?;
                let (text, base64) = (content.as_deref(), content_base64.as_deref());
                let bytes = self.content(path, text, base64, *content_blob)?;
                Operation::Put(checked, Blob::new(bytes), *mode)
            }
            Change::Edit { path, edits, .. } => {
                let checked = self.path(path)?;
                if edits.is_empty() || edits.iter().any(|edit| edit.old.is_empty()) {
                    let message = "an edit needs at least one replacement, each with an `old` text";
                    return Err(invalid(path, message));
                }
                for edit in edits {
                    self.count(path, edit.new.len() as u64)?;
                }
                Operation::Edit(checked, edits.clone())
            }
            Change::Delete {
                path, recursive, ..
            } => Operation::Delete(self.path(path)?, *recursive),
            Change::Move {
                from,
                to,
                recursive,
                ..
            } => {
                let (old, new) = (self.path(from)?, self.path(to)?);
                if new.is_below(&old) {
                    return Err(invalid(to, "a directory cannot be moved into itself"));
                }
                Operation::Move(old, new, *recursive)
            }
            Change::Symlink { path, target, .. } => {
                let checked = self.path(path)?;
                if let Err(refusal) = semaprax_protocol::check_symlink_target(&checked, target) {
                    let message =
                        format!("the symlink `{path}` to `{target}` is refused: {refusal}");
                    let diagnostic = Diagnostic::new(Code::PathRefused, message);
                    return Err(Box::new(diagnostic.at(path.as_str())));
                }
                Operation::Symlink(checked, Blob::new(target.as_bytes().to_vec()))
            }
            Change::Chmod { path, mode, .. } => Operation::Chmod(self.path(path)?, *mode),
        })
    }

    fn path(&self, text: &str) -> Result<LogicalPath, Box<Diagnostic>> {
        let parsed = text.parse::<LogicalPath>();
        let checked = parsed.and_then(|path| path.check(self.rules.names).map(|()| path));
        checked.map_err(|refusal| {
            let shown: String = text
                .chars()
                .take(200)
                .flat_map(char::escape_debug)
                .collect();
            let message = format!("the path `{shown}` is refused: {refusal}");
            Box::new(Diagnostic::new(Code::PathRefused, message).at(text))
        })
    }

    fn content(
        &mut self,
        path: &str,
        text: Option<&str>,
        base64: Option<&str>,
        blob: Option<Sha256>,
    ) -> Result<Arc<Vec<u8>>, Box<Diagnostic>> {
        let content = match (text, base64, blob) {
            (Some(text), None, None) => Arc::new(text.as_bytes().to_vec()),
            (None, Some(base64), None) => {
                let decoded = base64::engine::general_purpose::STANDARD.decode(base64);
                Arc::new(decoded.map_err(|error| {
                    invalid(
                        path,
                        &format!("`contentBase64` is not standard base64: {error}"),
                    )
                })?)
            }
            (None, None, Some(blob)) => self.uploads.get(&blob).cloned().ok_or_else(|| {
                invalid(
                    path,
                    &format!("no content {blob} was sent with `blob.put` on this connection"),
                )
            })?,
            _ => {
                let message =
                    "a put needs exactly one of `content`, `contentBase64` and `contentBlob`";
                return Err(invalid(path, message));
            }
        };
        self.count(path, content.len() as u64)?;
        Ok(content)
    }

    fn count(&mut self, path: &str, bytes: u64) -> Result<(), Box<Diagnostic>> {
        let limits = self.rules.limits;
        self.bytes = self.bytes.saturating_add(bytes);
        let message = if bytes > limits.file_bytes {
            format!(
                "`{path}` has {bytes} bytes; {} are allowed in a file",
                limits.file_bytes
            )
        } else if self.bytes > limits.submission_bytes {
            format!(
                "the submission has more than {} bytes of content",
                limits.submission_bytes
            )
        } else {
            return Ok(());
        };
        Err(Box::new(
            Diagnostic::new(Code::LimitExceeded, message).at(path),
        ))
    }
}

/// The path whose state a change may state, and what it states.
fn stated(change: &Change) -> (&str, Option<&Expect>) {
    match change {
        Change::Put { path, expect, .. }
        | Change::Edit { path, expect, .. }
        | Change::Delete { path, expect, .. }
        | Change::Move {
            from: path, expect, ..
        }
        | Change::Symlink { path, expect, .. }
        | Change::Chmod { path, expect, .. } => (path, expect.as_ref()),
    }
}

fn invalid(path: &str, message: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Code::InvalidSubmission, message).at(path))
}

fn expectation(
    path: &str,
    expect: Option<&Expect>,
) -> Result<Option<Expectation>, Box<Diagnostic>> {
    match expect {
        None => Ok(None),
        Some(Expect {
            sha256: Some(sha256),
            absent: None | Some(false),
        }) => Ok(Some(Expectation::Content(*sha256))),
        Some(Expect {
            sha256: None,
            absent: Some(true),
        }) => Ok(Some(Expectation::Absent)),
        Some(_) => Err(invalid(
            path,
            "exactly one of `sha256` and `absent: true` says what is expected",
        )),
    }
}

/// Two of put, symlink and delete on one path exclude each other, unless the path was given another
/// life by a move in between.
fn check_contradictions(changes: &[PlannedChange]) -> Result<(), Refusal> {
    let mut settled = BTreeSet::new();
    for change in changes {
        match &change.operation {
            Operation::Put(path, ..) | Operation::Symlink(path, _) | Operation::Delete(path, _) => {
                if !settled.insert(path.clone()) {
                    let message = format!("`{path}` is put, linked or deleted twice");
                    let mut diagnostic =
                        Diagnostic::new(Code::InvalidSubmission, message).at(path.as_str());
                    diagnostic.change = Some(change.index);
                    return Err(diagnostic.into());
                }
            }
            Operation::Move(from, to, _) => {
                settled.remove(from);
                settled.remove(to);
            }
            Operation::Edit(..) | Operation::Chmod(..) => {}
        }
    }
    Ok(())
}

/// The kind that a put gives a path: its own mode, else that of what is there, else a plain file.
pub(super) fn put_kind(mode: Option<FileMode>, existing: Option<EntryKind>) -> EntryKind {
    match (mode, existing) {
        (Some(mode), _) => mode.into(),
        (None, Some(EntryKind::Executable)) => EntryKind::Executable,
        (None, _) => EntryKind::File,
    }
}
