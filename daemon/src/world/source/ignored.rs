//! Whether a path that is not on disk would be ignored.
//!
//! Owns: asking the `.gitignore` files of a directory about single paths, for `--from-dir`: an ignored
//! path is neither added nor deleted.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The ignore rules of a directory, read as they are needed.
#[derive(Debug)]
pub struct IgnoreRules {
    root: Utf8PathBuf,
    files: BTreeMap<String, Gitignore>,
}

impl IgnoreRules {
    /// The rules of `root`.
    pub fn of(root: &Utf8Path) -> Self {
        Self {
            root: root.to_owned(),
            files: BTreeMap::new(),
        }
    }

    /// Whether the file at `path` would be ignored: by a rule on it, or on a directory above it.
    pub fn is_ignored(&mut self, path: &str) -> bool {
        let ends = path
            .match_indices('/')
            .map(|(end, _)| end)
            .chain([path.len()]);
        for end in ends {
            let part = path.get(..end).unwrap_or(path);
            if self.matches(part, end < path.len()) {
                return true;
            }
        }
        false
    }

    /// What the nearest rule says of one name: deeper files go before those above them.
    fn matches(&mut self, path: &str, is_directory: bool) -> bool {
        let mut directory = path.rsplit_once('/').map(|(parent, _)| parent);
        loop {
            let here = directory.unwrap_or("");
            let place = self.root.join(path);
            match self.rules(here).matched(&place, is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
            match directory {
                None => return false,
                Some(deeper) => directory = deeper.rsplit_once('/').map(|(parent, _)| parent),
            }
        }
    }

    fn rules(&mut self, directory: &str) -> &Gitignore {
        let root = &self.root;
        self.files.entry(directory.to_owned()).or_insert_with(|| {
            let place = if directory.is_empty() {
                root.clone()
            } else {
                root.join(directory)
            };
            let mut builder = GitignoreBuilder::new(&place);
            // Nothing there, or a rule that cannot be read, ignores nothing.
            drop(builder.add(place.join(".gitignore")));
            builder.build().unwrap_or_else(|_| Gitignore::empty())
        })
    }
}
