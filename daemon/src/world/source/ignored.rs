//! The `.gitignore` files of a foreign directory.
//!
//! Owns: reading one (a file of bounded size, never a link, never waited for), and whether a path that
//! is not on disk would be ignored, for `--from-dir`: an ignored path is neither added nor deleted.

use std::collections::BTreeMap;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{Code, Diagnostic, Refusal};

use super::read::{ReadOutcome, SourceDirectory, joined};

/// The name of the file with the rules of a directory.
pub(super) const RULES_FILE: &str = ".gitignore";
/// The largest such file. A larger one is refused: to pass over it would import what it ignores.
const RULES_BYTES: u64 = 1 << 20;

/// The rules of one directory.
#[derive(Debug)]
pub(super) struct Rules(Gitignore);

impl Rules {
    /// Reads the rules of a directory; `None` when it has none. A line that is no rule is passed over,
    /// as git does.
    pub(super) fn read(source: &SourceDirectory, directory: &str) -> Result<Option<Self>, Refusal> {
        let path = joined(directory, RULES_FILE);
        let bytes = match source.read(&path, RULES_BYTES)? {
            ReadOutcome::Content(EntryKind::File | EntryKind::Executable, bytes) => bytes,
            ReadOutcome::TooLarge => return Err(too_much(&path)),
            ReadOutcome::Changing => {
                let message = format!("`{path}` kept changing while it was read");
                return Err(Diagnostic::new(Code::ChangedDuringImport, message)
                    .at(path)
                    .into());
            }
            // Not a rule can be read, so there is none; the file itself is told as skipped.
            ReadOutcome::Content(EntryKind::Symlink, _)
            | ReadOutcome::Special
            | ReadOutcome::Unreadable
            | ReadOutcome::Gone => return Ok(None),
        };
        let rules = Self::parse(directory, &bytes).ok_or_else(|| too_much(&path))?;
        Ok((!rules.0.is_empty()).then_some(rules))
    }

    /// The rules in the text of such a file; `None` when they are too much to be matched against.
    fn parse(directory: &str, bytes: &[u8]) -> Option<Self> {
        let mut builder = GitignoreBuilder::new(directory);
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        for line in bytes.split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Ok(line) = str::from_utf8(line) {
                drop(builder.add_line(None, line));
            }
        }
        builder.build().ok().map(Self)
    }

    /// Whether they ignore a path, or keep it; `None` when they do not speak of it.
    pub(super) fn says(&self, path: &str, is_directory: bool) -> Option<bool> {
        match self.0.matched(path, is_directory) {
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
            Match::None => None,
        }
    }
}

/// What the text of a rules file at the top says of a path; `None` for rules that are refused.
pub fn rules_ignore(rules: &[u8], path: &str, is_directory: bool) -> Option<Option<bool>> {
    Some(Rules::parse("", rules)?.says(path, is_directory))
}

fn too_much(path: &str) -> Refusal {
    let message = format!("the ignore rules in `{path}` are too much: at most {RULES_BYTES} bytes");
    Diagnostic::new(Code::LimitExceeded, message)
        .at(path)
        .hint("shorten the file: without its rules, what it ignores would be taken")
        .into()
}

/// The ignore rules of a directory, read as they are needed.
#[derive(Debug)]
pub struct IgnoreRules<'source> {
    source: &'source SourceDirectory,
    files: BTreeMap<String, Option<Rules>>,
}

impl<'source> IgnoreRules<'source> {
    /// The rules of a directory.
    pub fn of(source: &'source SourceDirectory) -> Self {
        Self {
            source,
            files: BTreeMap::new(),
        }
    }

    /// Whether the file at `path` would be ignored: by a rule on it, or on a directory above it.
    pub fn is_ignored(&mut self, path: &str) -> Result<bool, Refusal> {
        let ends = path
            .match_indices('/')
            .map(|(end, _)| end)
            .chain([path.len()]);
        for end in ends {
            let part = path.get(..end).unwrap_or(path);
            if self.matches(part, end < path.len())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What the nearest rule says of one name: deeper files go before those above them.
    fn matches(&mut self, path: &str, is_directory: bool) -> Result<bool, Refusal> {
        let mut directory = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        loop {
            if let Some(rules) = self.rules(directory)?
                && let Some(ignored) = rules.says(path, is_directory)
            {
                return Ok(ignored);
            }
            if directory.is_empty() {
                return Ok(false);
            }
            directory = directory.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
    }

    fn rules(&mut self, directory: &str) -> Result<Option<&Rules>, Refusal> {
        if !self.files.contains_key(directory) {
            let rules = Rules::read(self.source, directory)?;
            self.files.insert(directory.to_owned(), rules);
        }
        Ok(self.files.get(directory).and_then(Option::as_ref))
    }
}
