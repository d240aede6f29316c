//! Stage 1: is this a submission at all?
//!
//! Owns: `Proposal`: paths well formed under the workspace's policy, limits held, contents present,
//! the list of changes free of contradictions. Never: looks at a tree.

use semaprax_protocol::limits::LABEL_BYTES;
use semaprax_protocol::submission::{
    Change, Edit, EntryKind, Expect, FileMode, OnStale, Read, Submission,
};
use semaprax_protocol::{
    Code, Diagnostic, Limits, LogicalPath, NamePolicy, Refusal, Sha256, SubmissionId,
};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;

use crate::store::history::{Binding, StoredRecord, submission_digest};
use crate::store::objects::Blob;
use crate::store::tree::Tree;

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

/// What is to become a candidate.
#[derive(Debug)]
pub enum Content {
    /// Changes on a base.
    Changes {
        /// The changes, in order.
        changes: Vec<PlannedChange>,
        /// The paths relied on.
        reads: Vec<PlannedRead>,
    },
    /// A whole tree, whatever is ACTIVE: a rollback.
    Whole(Tree),
    /// A whole tree made from a base, with its new blobs: a directory.
    Directory(Tree, Vec<Blob>),
    /// What leads from one tree to another, on top of ACTIVE: taking a publication out.
    Difference {
        /// Where it leads from.
        from: Tree,
        /// Where it leads to.
        to: Tree,
    },
}

/// A submission that may be built.
#[derive(Debug)]
#[must_use]
pub struct Proposal {
    id: SubmissionId,
    binding: Option<Binding>,
    base: Option<StoredRecord>,
    on_stale: OnStale,
    author: String,
    message: String,
    content: Content,
    dry_run: bool,
}

/// What every publishing request says of itself.
#[derive(Debug, Clone)]
pub struct Attributed {
    /// The submission's name.
    pub id: SubmissionId,
    /// Who.
    pub author: String,
    /// What and why.
    pub message: String,
    /// Everything but the publication.
    pub dry_run: bool,
}

/// The rules of a workspace that admission needs.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'rules> {
    /// Which names are accepted.
    pub names: NamePolicy,
    /// The bounds.
    pub limits: &'rules Limits,
}

impl Proposal {
    /// Admits a submission of changes. `base` is what its `base` names; `None` for ACTIVE at the time
    /// of the decision. Content named by `contentBlob` is taken from `uploads`.
    pub fn of_submission(
        submission: &Submission,
        id: SubmissionId,
        base: Option<StoredRecord>,
        uploads: &BTreeMap<Sha256, Arc<Vec<u8>>>,
        rules: Rules<'_>,
        dry_run: bool,
    ) -> Result<Self, Refusal> {
        check_labels(&submission.author, &submission.message, rules.limits)?;
        let count = submission.changes.len().max(submission.reads.len()) as u64;
        if count > rules.limits.changes {
            let message = format!(
                "the submission has {count} changes or reads; {} are allowed",
                rules.limits.changes
            );
            return Err(Diagnostic::new(Code::LimitExceeded, message).into());
        }
        let mut planner = Planner {
            uploads,
            rules,
            bytes: 0,
            diagnostics: Vec::new(),
        };
        let changes: Vec<_> = submission
            .changes
            .iter()
            .enumerate()
            .filter_map(|(index, change)| planner.plan(index, change))
            .collect();
        let reads: Vec<_> = submission
            .reads
            .iter()
            .filter_map(|read| planner.plan_read(read))
            .collect();
        if let Some(refusal) = Refusal::of(planner.diagnostics) {
            return Err(refusal);
        }
        check_contradictions(&changes)?;
        let digest = submission_digest(submission);
        Ok(Self {
            id,
            binding: (!dry_run).then_some(Binding { id, digest }),
            base,
            on_stale: submission.on_stale,
            author: submission.author.clone(),
            message: submission.message.clone(),
            content: Content::Changes { changes, reads },
            dry_run,
        })
    }

    /// Admits a whole tree or a difference of trees. `bound` is what the id binds: equal requests
    /// give equal bytes.
    pub fn of_tree(
        attributed: Attributed,
        bound: &[u8],
        base: Option<StoredRecord>,
        on_stale: OnStale,
        content: Content,
        limits: &Limits,
    ) -> Result<Self, Refusal> {
        check_labels(&attributed.author, &attributed.message, limits)?;
        let digest = blake3::derive_key("semaprax 1 submission of a tree", bound);
        let id = attributed.id;
        Ok(Self {
            id,
            binding: (!attributed.dry_run).then_some(Binding { id, digest }),
            base,
            on_stale,
            author: attributed.author,
            message: attributed.message,
            content,
            dry_run: attributed.dry_run,
        })
    }

    /// What its id binds; `None` for a dry run.
    pub fn binding(&self) -> Option<&Binding> {
        self.binding.as_ref()
    }

    pub(super) fn into_parts(self) -> (Head, Content) {
        let head = Head {
            id: self.id,
            binding: self.binding,
            base: self.base,
            on_stale: self.on_stale,
            author: self.author,
            message: self.message,
            dry_run: self.dry_run,
        };
        (head, self.content)
    }
}

/// What later stages carry along of a proposal.
#[derive(Debug)]
pub struct Head {
    pub(super) id: SubmissionId,
    pub(super) binding: Option<Binding>,
    pub(super) base: Option<StoredRecord>,
    pub(super) on_stale: OnStale,
    pub(super) author: String,
    pub(super) message: String,
    pub(super) dry_run: bool,
}

fn check_labels(author: &str, message: &str, limits: &Limits) -> Result<(), Refusal> {
    if author.len() > LABEL_BYTES {
        let message = format!(
            "the author has {} bytes; {LABEL_BYTES} are allowed",
            author.len()
        );
        return Err(Diagnostic::new(Code::LimitExceeded, message).into());
    }
    if author.chars().any(char::is_control) {
        return Err(Diagnostic::new(
            Code::InvalidSubmission,
            "the author has a control character",
        )
        .into());
    }
    if message.len() as u64 > limits.message_bytes {
        let text = format!(
            "the message has {} bytes; {} are allowed",
            message.len(),
            limits.message_bytes
        );
        return Err(Diagnostic::new(Code::LimitExceeded, text).into());
    }
    Ok(())
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
        match self.operation(change) {
            Ok((operation, expect)) => Some(PlannedChange {
                index,
                operation,
                expect,
            }),
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

    fn operation(
        &mut self,
        change: &Change,
    ) -> Result<(Operation, Option<Expectation>), Box<Diagnostic>> {
        Ok(match change {
            Change::Put {
                path,
                content,
                content_base64,
                content_blob,
                mode,
                expect,
                ..
            } => {
                let checked = self.path(path)?;
                let bytes = self.content(
                    path,
                    content.as_deref(),
                    content_base64.as_deref(),
                    *content_blob,
                )?;
                (
                    Operation::Put(checked, Blob::new(bytes), *mode),
                    expectation(path, expect.as_ref())?,
                )
            }
            Change::Edit {
                path,
                edits,
                expect,
                ..
            } => {
                let checked = self.path(path)?;
                if edits.is_empty() || edits.iter().any(|edit| edit.old.is_empty()) {
                    return Err(invalid(
                        path,
                        "an edit needs at least one replacement, each with an `old` text",
                    ));
                }
                for edit in edits {
                    self.count(path, edit.new.len() as u64)?;
                }
                (
                    Operation::Edit(checked, edits.clone()),
                    expectation(path, expect.as_ref())?,
                )
            }
            Change::Delete {
                path,
                recursive,
                expect,
                ..
            } => (
                Operation::Delete(self.path(path)?, *recursive),
                expectation(path, expect.as_ref())?,
            ),
            Change::Move {
                from,
                to,
                recursive,
                expect,
                ..
            } => {
                let (old, new) = (self.path(from)?, self.path(to)?);
                if new.is_below(&old) {
                    return Err(invalid(to, "a directory cannot be moved into itself"));
                }
                (
                    Operation::Move(old, new, *recursive),
                    expectation(from, expect.as_ref())?,
                )
            }
            Change::Symlink {
                path,
                target,
                expect,
                ..
            } => {
                let checked = self.path(path)?;
                if let Err(refusal) = semaprax_protocol::check_symlink_target(&checked, target) {
                    let message =
                        format!("the symlink `{path}` to `{target}` is refused: {refusal}");
                    return Err(Box::new(
                        Diagnostic::new(Code::PathRefused, message).at(path.as_str()),
                    ));
                }
                let blob = Blob::new(target.as_bytes().to_vec());
                (
                    Operation::Symlink(checked, blob),
                    expectation(path, expect.as_ref())?,
                )
            }
            Change::Chmod {
                path, mode, expect, ..
            } => (
                Operation::Chmod(self.path(path)?, *mode),
                expectation(path, expect.as_ref())?,
            ),
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
