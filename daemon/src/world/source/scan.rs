//! Walking a directory: what is content, and what is not and why.
//!
//! Owns: the ignore rules of `init`: `.gitignore` files of the tree only, hidden files are content, no
//! parent directories, no global excludes; what is in the index of a git work tree is always content.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use camino::Utf8Path;
use ignore::WalkBuilder;
use semaprax_protocol::documents::{SkipReason, Skipped};
use semaprax_protocol::{Code, Diagnostic, Refusal};

use super::git_index;

/// Names that are never content.
pub(super) fn is_reserved(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git") || name.eq_ignore_ascii_case(b".semaprax-workspace")
}

/// A file or symlink that is content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundFile {
    /// Its path in the directory.
    pub path: String,
    /// Whether it is a symlink.
    pub is_symlink: bool,
}

/// What a walk found.
#[derive(Debug, Default)]
pub struct Scan {
    /// What is content, in path order.
    pub found: Vec<FoundFile>,
    /// What is not, though it is neither ignored nor `.git`.
    pub skipped: Vec<Skipped>,
}

/// How often `progress` is asked, in entries.
const ASK_EVERY: usize = 512;

/// Walks `root`. `progress(entries so far)` is asked now and then; `false` abandons the walk with
/// `None`.
pub fn scan(
    root: &Utf8Path,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Scan>, Refusal> {
    let mut walk = Walk {
        root: root.as_std_path(),
        files: BTreeMap::new(),
        directories: BTreeSet::new(),
        skipped: Vec::new(),
    };
    let walker = WalkBuilder::new(root)
        .standard_filters(false)
        .git_ignore(true)
        .require_git(false)
        .follow_links(false)
        .filter_entry(|entry| entry.depth() == 0 || !is_reserved(entry.file_name().as_bytes()))
        .build();
    for (count, entry) in walker.enumerate() {
        if count % ASK_EVERY == 0 && !progress(count as u64) {
            return Ok(None);
        }
        walk.take(entry)?;
    }
    for path in git_index::tracked(root) {
        walk.take_tracked(&path);
    }
    Ok(Some(walk.finish()))
}

struct Walk<'root> {
    root: &'root Path,
    /// Path -> whether it is a symlink.
    files: BTreeMap<String, bool>,
    directories: BTreeSet<String>,
    skipped: Vec<Skipped>,
}

impl Walk<'_> {
    fn take(&mut self, entry: Result<ignore::DirEntry, ignore::Error>) -> Result<(), Refusal> {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return self.take_error(&error),
        };
        if entry.depth() == 0 {
            return Ok(());
        }
        let kind = entry.file_type();
        let relative = entry.path().strip_prefix(self.root).unwrap_or(entry.path());
        let Some(path) = relative.to_str() else {
            self.skip(relative, SkipReason::NameNotUtf8);
            return Ok(());
        };
        match kind {
            Some(kind) if kind.is_dir() => drop(self.directories.insert(path.to_owned())),
            Some(kind) if kind.is_file() => drop(self.files.insert(path.to_owned(), false)),
            Some(kind) if kind.is_symlink() => drop(self.files.insert(path.to_owned(), true)),
            _ => self.skip(relative, SkipReason::SpecialFile),
        }
        Ok(())
    }

    fn take_error(&mut self, error: &ignore::Error) -> Result<(), Refusal> {
        let (path, depth) = position(error);
        let gone = error
            .io_error()
            .is_some_and(|io| io.kind() == std::io::ErrorKind::NotFound);
        match path {
            Some(path) if depth > 0 => {
                if !gone {
                    let relative = path.strip_prefix(self.root).unwrap_or(path).to_owned();
                    self.skip(&relative, SkipReason::Unreadable);
                }
                Ok(())
            }
            _ => {
                let message = format!("cannot walk `{}`: {error}", self.root.display());
                Err(Diagnostic::new(Code::Io, message)
                    .at(self.root.display().to_string())
                    .into())
            }
        }
    }

    /// A path of a git index is content also where an ignore rule matches it.
    fn take_tracked(&mut self, path: &str) {
        if self.files.contains_key(path)
            || path
                .split('/')
                .any(|segment| is_reserved(segment.as_bytes()))
        {
            return;
        }
        // No parent may be a symlink: the index of another tree could be lying there.
        let parents = path
            .match_indices('/')
            .map(|(end, _)| path.get(..end).unwrap_or(path));
        let is_plain = |parent: &str| {
            fs::symlink_metadata(self.root.join(parent)).is_ok_and(|found| found.is_dir())
        };
        if !parents.into_iter().all(is_plain) {
            return;
        }
        if let Ok(found) = fs::symlink_metadata(self.root.join(path))
            && (found.is_file() || found.is_symlink())
        {
            self.files.insert(path.to_owned(), found.is_symlink());
        }
    }

    fn skip(&mut self, relative: &Path, reason: SkipReason) {
        self.skipped.push(Skipped {
            path: relative.to_string_lossy().into_owned(),
            reason,
        });
    }

    fn finish(mut self) -> Scan {
        let mut full: BTreeSet<&str> = BTreeSet::new();
        for path in self
            .files
            .keys()
            .map(String::as_str)
            .chain(self.directories.iter().map(String::as_str))
        {
            full.extend(path.rsplit_once('/').map(|(parent, _)| parent));
        }
        let empty = self.directories.iter().filter(|directory| {
            !full.contains(directory.as_str())
                // Ignored names, or `.git`, may be all that is in it.
                && fs::read_dir(self.root.join(directory)).is_ok_and(|mut names| names.next().is_none())
        });
        let empty: Vec<Skipped> = empty
            .map(|path| Skipped {
                path: path.clone(),
                reason: SkipReason::EmptyDirectory,
            })
            .collect();
        self.skipped.extend(empty);
        self.skipped.sort_by(|a, b| a.path.cmp(&b.path));
        let files = self.files.into_iter();
        let found = files
            .map(|(path, is_symlink)| FoundFile { path, is_symlink })
            .collect();
        Scan {
            found,
            skipped: self.skipped,
        }
    }
}

fn position(error: &ignore::Error) -> (Option<&Path>, usize) {
    match error {
        ignore::Error::WithPath { path, err } => {
            let (_, depth) = position(err);
            (Some(path), depth)
        }
        ignore::Error::WithDepth { depth, err } => (position(err).0, *depth),
        ignore::Error::WithLineNumber { err, .. } => position(err),
        ignore::Error::Partial(errors) => errors.first().map_or((None, 1), position),
        _ => (None, 0),
    }
}
