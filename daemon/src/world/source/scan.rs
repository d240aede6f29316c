//! Walking a directory: what is content, and what is not and why.
//!
//! Owns: the ignore rules of `init`: `.gitignore` files of the tree only, hidden files are content, no
//! parent directories, no global excludes; what is in the index of a git work tree is always content.
//! Never: a path that the system resolves from the top: every name is looked at below the descriptor of
//! the directory, so what is put in the way of the walk cannot lead it out.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use rustix::fs::FileType;
use rustix::io::Errno;
use semaprax_protocol::Refusal;
use semaprax_protocol::documents::{SkipReason, Skipped};

use super::git_index;
use super::ignored::{RULES_FILE, Rules};
use super::read::{SourceDirectory, joined};

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
const ASK_EVERY: u64 = 512;

/// Walks a directory. `progress(entries so far)` is asked now and then; `false` abandons the walk with
/// `None`.
pub fn scan(
    source: &SourceDirectory,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Scan>, Refusal> {
    let mut walk = Walk {
        source,
        files: BTreeMap::new(),
        directories: BTreeSet::new(),
        skipped: Vec::new(),
        open: vec![Open {
            path: String::new(),
            rules: None,
        }],
    };
    let mut count = 0;
    while let Some(mut directory) = walk.open.pop() {
        let names = walk.list(&directory.path)?;
        directory.add_rules(source, &names)?;
        for name in names {
            if count % ASK_EVERY == 0 && !progress(count) {
                return Ok(None);
            }
            count += 1;
            walk.take(&directory, name);
        }
    }
    for path in git_index::tracked(source.path()) {
        walk.take_tracked(&path);
    }
    Ok(Some(walk.finish()))
}

/// A directory that is still to be listed.
struct Open {
    path: String,
    /// The rules in force in it, those of the directories above included.
    rules: Option<Rc<Chain>>,
}

impl Open {
    /// Takes the directory's own rules, if there are any. As git, rules behind a symlink are none.
    fn add_rules(
        &mut self,
        source: &SourceDirectory,
        names: &[(Vec<u8>, FileType)],
    ) -> Result<(), Refusal> {
        let is_rules = |(name, kind): &(Vec<u8>, FileType)| {
            name == RULES_FILE.as_bytes() && *kind == FileType::RegularFile
        };
        if names.iter().any(is_rules)
            && let Some(rules) = Rules::read(source, &self.path)?
        {
            let above = self.rules.take();
            self.rules = Some(Rc::new(Chain { rules, above }));
        }
        Ok(())
    }

    fn ignores(&self, path: &str, is_directory: bool) -> bool {
        let rules = self.rules.as_ref();
        rules.is_some_and(|rules| rules.ignores(path, is_directory))
    }
}

/// The rules of a directory, and those above it.
struct Chain {
    rules: Rules,
    above: Option<Rc<Self>>,
}

impl Chain {
    /// What the nearest rule says: deeper files go before those above them.
    fn ignores(&self, path: &str, is_directory: bool) -> bool {
        let mut next = Some(self);
        while let Some(chain) = next {
            if let Some(ignored) = chain.rules.says(path, is_directory) {
                return ignored;
            }
            next = chain.above.as_deref();
        }
        false
    }
}

struct Walk<'source> {
    source: &'source SourceDirectory,
    /// Path -> whether it is a symlink.
    files: BTreeMap<String, bool>,
    directories: BTreeSet<String>,
    skipped: Vec<Skipped>,
    open: Vec<Open>,
}

impl Walk<'_> {
    /// The names in a directory. One that is gone, or is none any more, has none.
    fn list(&mut self, path: &str) -> Result<Vec<(Vec<u8>, FileType)>, Refusal> {
        let error = match self.source.list(path) {
            Ok(names) => return Ok(names),
            Err(error) if path.is_empty() => return Err(self.source.failed("walk", path, error)),
            Err(error) => error,
        };
        match error {
            Errno::NOENT => {}
            Errno::ACCESS | Errno::PERM | Errno::NAMETOOLONG => {
                self.skip(path, SkipReason::Unreadable);
            }
            // Something else was put in its place.
            Errno::LOOP | Errno::XDEV | Errno::NOTDIR => self.skip(path, SkipReason::SpecialFile),
            error => return Err(self.source.failed("walk", path, error)),
        }
        Ok(Vec::new())
    }

    fn take(&mut self, directory: &Open, (name, kind): (Vec<u8>, FileType)) {
        if is_reserved(&name) {
            return;
        }
        let is_directory = kind == FileType::Directory;
        let name = match String::from_utf8(name) {
            Ok(name) => name,
            Err(error) => {
                let shown = String::from_utf8_lossy(error.as_bytes()).into_owned();
                let path = joined(&directory.path, &shown);
                if !directory.ignores(&path, is_directory) {
                    self.skip(&path, SkipReason::NameNotUtf8);
                }
                return;
            }
        };
        let path = joined(&directory.path, &name);
        if directory.ignores(&path, is_directory) {
            return;
        }
        match kind {
            FileType::Directory => {
                self.directories.insert(path.clone());
                self.open.push(Open {
                    path,
                    rules: directory.rules.clone(),
                });
            }
            FileType::RegularFile => drop(self.files.insert(path, false)),
            FileType::Symlink => drop(self.files.insert(path, true)),
            _ => self.skip(&path, SkipReason::SpecialFile),
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
        match self.source.kind(path) {
            Ok(FileType::RegularFile) => drop(self.files.insert(path.to_owned(), false)),
            Ok(FileType::Symlink) => drop(self.files.insert(path.to_owned(), true)),
            _ => {}
        }
    }

    fn skip(&mut self, path: &str, reason: SkipReason) {
        self.skipped.push(Skipped {
            path: path.to_owned(),
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
                && self.source.list(directory).is_ok_and(|names| names.is_empty())
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
