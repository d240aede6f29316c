//! `publish --patch`: a unified or git diff as a submission.
//!
//! Owns: applying a patch to the content of its base, and writing the result as changes that say
//! what they expect. Never: applies a part of a patch, or at a place that was guessed.
//!
//! Like `git apply`, a part that renames starts from the base, and a part that changes a file goes on
//! from what earlier parts of the same patch made of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use semaprax_protocol::documents::Receipt;
use semaprax_protocol::request::Resolve;
use semaprax_protocol::submission::{Change, Expect, FileMode as Mode};
use semaprax_protocol::{Code, Diagnostic, Refusal, Status};

use crate::cli::args::PublishArguments;
use crate::cli::commands::diff::mode_of;
use crate::cli::commands::submission;
use crate::cli::settings;
use crate::patch::{self, ApplyError, FileMode, FilePatch, FileSide, Operation};
use crate::{Client, NoticeSink, put, sha256_of};

/// How often a patch without a base is applied anew when ACTIVE moved under it.
const ATTEMPTS: usize = 3;

/// Reads a patch from a file, or from standard input for `-`.
pub(super) fn read(file: &Path) -> Result<Vec<FilePatch>, Refusal> {
    let bytes = submission::read_input(file)?;
    patch::parse(&bytes).map_err(|reason| {
        let mut bad = Diagnostic::new(Code::InvalidSubmission, reason.to_string())
            .hint("give a unified diff or a git diff (with --binary where files are binary)");
        bad.lines = vec![reason.line];
        bad.into()
    })
}

/// Publishes a patch on `--base`, or on whatever is ACTIVE.
pub(super) fn publish(
    client: &mut Client,
    arguments: &PublishArguments,
    files: &[FilePatch],
    notices: NoticeSink<'_>,
) -> Result<Receipt, Refusal> {
    let mut wanted = submission::empty();
    submission::override_with(&mut wanted, arguments);
    let id = *wanted.id.get_or_insert_with(crate::new_submission_id);
    let mut attempt = 1;
    loop {
        let base = client.call(Resolve {
            revision: arguments.base.clone().unwrap_or_else(|| "@".to_owned()),
        })?;
        let mut work = Work::new(client, base.revision.to_string(), files);
        let applied = work.apply(files);
        let changes = applied.map(|()| work.changes());
        let mut now = wanted.clone();
        now.id = Some(id);
        now.changes = changes?;
        let options = settings::publish_options(&arguments.carry_out);
        match client.publish(now, options, notices) {
            Err(refusal)
                if arguments.base.is_none()
                    && attempt < ATTEMPTS
                    && matches!(
                        refusal.code(),
                        Code::PreconditionFailed | Code::NotFound | Code::AlreadyExists
                    ) =>
            {
                let active = client.call(Resolve {
                    revision: "@".to_owned(),
                })?;
                if active.revision == base.revision {
                    return Err(refusal);
                }
                attempt += 1;
            }
            other => return other,
        }
    }
}

/// What a patch has made of the base so far.
struct Work<'client> {
    client: &'client mut Client,
    base: String,
    /// What the base has at a path, as far as it was looked at.
    old: BTreeMap<String, Option<FileSide>>,
    /// What is at a path now, where the patch touched it.
    new: BTreeMap<String, Option<FileSide>>,
    /// New path to old path, of parts that rename.
    renames: BTreeMap<String, String>,
    /// Paths that some part of the patch takes away: they are no obstacle to another part.
    leaving: BTreeSet<String>,
}

impl<'client> Work<'client> {
    fn new(client: &'client mut Client, base: String, files: &[FilePatch]) -> Self {
        let leaving = files
            .iter()
            .filter(|file| matches!(file.operation, Operation::Delete | Operation::Rename))
            .filter_map(|file| file.old_path.clone());
        Self {
            client,
            base,
            old: BTreeMap::new(),
            new: BTreeMap::new(),
            renames: BTreeMap::new(),
            leaving: leaving.collect(),
        }
    }

    /// Applies every part, or says of every part that does not fit why.
    fn apply(&mut self, files: &[FilePatch]) -> Result<(), Refusal> {
        let mut wrong = Vec::new();
        for file in files {
            if let Some(diagnostic) = self.apply_file(file)? {
                wrong.push(diagnostic);
            }
        }
        match Refusal::of(wrong) {
            // A missing path is judged as inside a submission.
            Some(refusal) => Err(refusal.in_submission()),
            None => Ok(()),
        }
    }

    fn apply_file(&mut self, file: &FilePatch) -> Result<Option<Diagnostic>, Refusal> {
        let path = file.path().to_owned();
        let source = file.old_path.clone().unwrap_or_else(|| path.clone());
        let from_base = matches!(file.operation, Operation::Rename | Operation::Copy);
        let before = if from_base {
            self.in_base(&source)?
        } else {
            self.current(&source)?
        };
        let moves = file.new_path.is_some() && source != path;
        if moves && self.is_taken(&path)? {
            return Ok(Some(wrong_of(&ApplyError::OldPresent, &path)));
        }
        let content = match patch::apply(file, before.as_ref().map(|side| side.content.as_slice()))
        {
            Ok(content) => content,
            Err(reason) => return Ok(Some(wrong_of(&reason, &path))),
        };
        let kept = before.map_or(FileMode::File, |side| side.mode);
        let after = FileSide {
            mode: file.new_mode.unwrap_or(kept),
            content,
        };
        match file.operation {
            Operation::Delete => {
                self.new.insert(source, None);
            }
            Operation::Rename => {
                // A path that another part has filled meanwhile stays filled.
                self.new.entry(source.clone()).or_insert(None);
                self.renames.insert(path.clone(), source);
                self.new.insert(path, Some(after));
            }
            Operation::Create | Operation::Modify | Operation::Copy => {
                self.new.insert(path, Some(after));
            }
        }
        Ok(None)
    }

    /// Whether something stays at `path` that this patch does not take away.
    fn is_taken(&mut self, path: &str) -> Result<bool, Refusal> {
        if let Some(now) = self.new.get(path) {
            return Ok(now.is_some());
        }
        Ok(!self.leaving.contains(path) && self.in_base(path)?.is_some())
    }

    fn current(&mut self, path: &str) -> Result<Option<FileSide>, Refusal> {
        match self.new.get(path) {
            Some(now) => Ok(now.clone()),
            None => self.in_base(path),
        }
    }

    fn in_base(&mut self, path: &str) -> Result<Option<FileSide>, Refusal> {
        if let Some(known) = self.old.get(path) {
            return Ok(known.clone());
        }
        let found = match self.client.content(Some(&self.base), path) {
            Ok(found) => Some(FileSide {
                mode: mode_of(found.kind),
                content: found.bytes,
            }),
            Err(refusal) if refusal.code() == Code::NotFound => None,
            Err(mut refusal) => {
                // A spelling that is refused is the patch's fault.
                if refusal.code() == Code::PathRefused {
                    refusal.status = Status::Failed;
                }
                return Err(refusal);
            }
        };
        self.old.insert(path.to_owned(), found.clone());
        Ok(found)
    }

    /// The changes from the base to what the patch made: what goes first, then moves, then the rest.
    fn changes(&self) -> Vec<Change> {
        let (mut gone, mut moved, mut set) = (Vec::new(), Vec::new(), Vec::new());
        let base = |path: &str| self.old.get(path).and_then(Option::as_ref);
        // A move needs a source that leaves and a target that was free.
        let is_move = |to: &str, from: &str| {
            base(to).is_none() && base(from).is_some() && self.new.get(from) == Some(&None)
        };
        let mut sources = BTreeSet::new();
        for (to, from) in &self.renames {
            if let (true, Some(before)) = (is_move(to, from), base(from))
                && sources.insert(from.as_str())
            {
                moved.push(Change::Move {
                    from: from.clone(),
                    to: to.clone(),
                    recursive: false,
                    expect: Some(has(before)),
                    reason: None,
                });
                if let Some(Some(after)) = self.new.get(to) {
                    set.extend(change_in_place(to, before, after, None));
                }
            }
        }
        let is_moved_to = |path: &str| {
            self.renames.get(path).is_some_and(|from| {
                moved.iter().any(|change| matches!(change, Change::Move { to, from: source, .. } if to == path && source == from))
            })
        };
        let mut rest = Vec::new();
        for (path, now) in &self.new {
            match (base(path), now) {
                (None, None) => {}
                (Some(before), None) => {
                    if !sources.contains(path.as_str()) {
                        gone.push(Change::Delete {
                            path: path.clone(),
                            recursive: false,
                            expect: Some(has(before)),
                            reason: None,
                        });
                    }
                }
                (None, Some(_)) if is_moved_to(path) => {}
                (None, Some(after)) => rest.push(set_whole(path, after, Some(absent()))),
                (Some(before), Some(after)) => {
                    rest.extend(change_in_place(path, before, after, Some(has(before))));
                }
            }
        }
        gone.into_iter()
            .chain(moved)
            .chain(set)
            .chain(rest)
            .collect()
    }
}

/// What turns `before` into `after` at the same path; nothing when they are equal.
fn change_in_place(
    path: &str,
    before: &FileSide,
    after: &FileSide,
    expect: Option<Expect>,
) -> Option<Change> {
    let was_link = before.mode == FileMode::Symlink;
    let is_link = after.mode == FileMode::Symlink;
    if before == after {
        None
    } else if before.content == after.content && was_link == is_link {
        Some(Change::Chmod {
            path: path.to_owned(),
            mode: file_mode(after.mode),
            expect,
            reason: None,
        })
    } else {
        Some(set_whole(path, after, expect))
    }
}

fn set_whole(path: &str, after: &FileSide, wanted: Option<Expect>) -> Change {
    if after.mode == FileMode::Symlink {
        return Change::Symlink {
            path: path.to_owned(),
            target: String::from_utf8_lossy(&after.content).into_owned(),
            expect: wanted,
            reason: None,
        };
    }
    let mut change = put(path, after.content.clone());
    if let Change::Put { mode, expect, .. } = &mut change {
        *mode = Some(file_mode(after.mode));
        *expect = wanted;
    }
    change
}

const fn file_mode(mode: FileMode) -> Mode {
    match mode {
        FileMode::Executable => Mode::Executable,
        FileMode::File | FileMode::Symlink => Mode::File,
    }
}

fn has(side: &FileSide) -> Expect {
    Expect {
        sha256: Some(sha256_of(&side.content)),
        absent: None,
    }
}

fn absent() -> Expect {
    Expect {
        sha256: None,
        absent: Some(true),
    }
}

/// Why a part of a patch does not fit, as a diagnostic.
fn wrong_of(reason: &ApplyError, path: &str) -> Diagnostic {
    let code = match reason {
        ApplyError::OldMissing => Code::NotFound,
        ApplyError::OldPresent => Code::AlreadyExists,
        ApplyError::NotUnique { .. } => Code::EditNotUnique,
        ApplyError::NotFound { .. }
        | ApplyError::NoAnchor { .. }
        | ApplyError::DeletionLeavesContent => Code::EditNotFound,
        ApplyError::WrongOld { .. } => Code::PreconditionFailed,
        ApplyError::NoOldId | ApplyError::WrongNew { .. } | ApplyError::Delta(_) => {
            Code::InvalidSubmission
        }
    };
    let mut diagnostic = Diagnostic::new(code, format!("`{path}`: {reason}")).at(path);
    match reason {
        ApplyError::NotUnique { count, lines, .. } => {
            diagnostic.count = Some(*count);
            diagnostic.lines.clone_from(lines);
        }
        ApplyError::WrongOld { expected, found } => {
            diagnostic.expected = Some(expected.clone());
            diagnostic.found = Some(found.clone());
        }
        _ => {}
    }
    diagnostic
}

#[cfg(test)]
mod tests;
