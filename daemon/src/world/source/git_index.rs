//! The paths in the index of a git work tree.
//!
//! Owns: reading `.git/index` (versions 2 to 4) by its documented format. Running `git` here would run
//! whatever the configuration of a foreign repository names.
//! An index that cannot be read names nothing: then the ignore rules alone decide.

use std::fs;
use std::path::{Path, PathBuf};

use camino::Utf8Path;

/// More than any real index; a length beyond it is not one.
const INDEX_BYTES: u64 = 1 << 30;

/// The paths below `root` that are in the index of the work tree around it.
pub(super) fn tracked(root: &Utf8Path) -> Vec<String> {
    let Some((top, git)) = root
        .as_std_path()
        .ancestors()
        .find_map(|directory| git_directory(directory).map(|git| (directory.to_owned(), git)))
    else {
        return Vec::new();
    };
    let index = git.join("index");
    let is_small =
        fs::metadata(&index).is_ok_and(|found| found.is_file() && found.len() <= INDEX_BYTES);
    let paths = if is_small {
        fs::read(&index).ok().and_then(|bytes| parse(&bytes))
    } else {
        None
    };
    let Ok(below) = root.as_std_path().strip_prefix(&top) else {
        return Vec::new();
    };
    let prefix = below.to_str().map(|below| {
        if below.is_empty() {
            String::new()
        } else {
            format!("{below}/")
        }
    });
    let (Some(paths), Some(prefix)) = (paths, prefix) else {
        return Vec::new();
    };
    paths
        .into_iter()
        .filter_map(|path| path.strip_prefix(prefix.as_str()).map(str::to_owned))
        .collect()
}

/// The git directory of the work tree at `directory`: `.git`, or what a `.git` file names.
fn git_directory(directory: &Path) -> Option<PathBuf> {
    let git = directory.join(".git");
    let found = fs::symlink_metadata(&git).ok()?;
    if found.is_dir() {
        return Some(git);
    }
    if !found.is_file() || found.len() > 4096 {
        return None;
    }
    let text = fs::read_to_string(&git).ok()?;
    let target = text.strip_prefix("gitdir:")?.trim();
    Some(directory.join(target))
}

struct Bytes<'index> {
    rest: &'index [u8],
}

impl<'index> Bytes<'index> {
    fn take(&mut self, count: usize) -> Option<&'index [u8]> {
        let (head, tail) = self.rest.split_at_checked(count)?;
        self.rest = tail;
        Some(head)
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn half(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn until_nul(&mut self) -> Option<&'index [u8]> {
        let end = self.rest.iter().position(|&byte| byte == 0)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(text)
    }

    /// The offset encoding of pack files, used by version 4.
    fn offset(&mut self) -> Option<usize> {
        let mut byte = *self.take(1)?.first()?;
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = *self.take(1)?.first()?;
            value = value.checked_add(1)?.checked_mul(128)? | usize::from(byte & 0x7f);
        }
        Some(value)
    }
}

/// Mode bits of a submodule: a directory of its own, not a file.
const GITLINK: u32 = 0o160_000;
const FLAG_EXTENDED: u16 = 0x4000;
/// Everything of an entry before its flags: times, device, inode, mode, owner, size, SHA-1.
const BEFORE_MODE: usize = 24;
const AFTER_MODE: usize = 12 + 20;

fn parse(bytes: &[u8]) -> Option<Vec<String>> {
    let mut bytes = Bytes { rest: bytes };
    if bytes.take(4)? != b"DIRC" {
        return None;
    }
    let version = bytes.word()?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let count = bytes.word()?;
    let mut paths = Vec::new();
    let mut last: Vec<u8> = Vec::new();
    for _ in 0..count {
        bytes.take(BEFORE_MODE)?;
        let mode = bytes.word()?;
        bytes.take(AFTER_MODE)?;
        let mut header = BEFORE_MODE + 4 + AFTER_MODE + 2;
        if bytes.half()? & FLAG_EXTENDED != 0 {
            bytes.take(2)?;
            header += 2;
        }
        if version == 4 {
            let keep = last.len().checked_sub(bytes.offset()?)?;
            last.truncate(keep);
            last.extend_from_slice(bytes.until_nul()?);
        } else {
            last = bytes.until_nul()?.to_vec();
            // Padded with NULs to a multiple of eight, the one after the name included.
            let used = header + last.len() + 1;
            bytes.take(used.next_multiple_of(8) - used)?;
        }
        if mode & 0o170_000 != GITLINK
            && let Ok(path) = std::str::from_utf8(&last)
        {
            paths.push(path.to_owned());
        }
    }
    Some(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    #[test]
    fn reads_what_git_writes() {
        for version in ["2", "4"] {
            let directory = tempfile::tempdir().unwrap();
            let run = |arguments: &[&str]| {
                let status = Command::new("git")
                    .args(arguments)
                    .current_dir(directory.path())
                    .status();
                assert!(status.unwrap().success(), "{arguments:?}");
            };
            run(&["init", "-q"]);
            for name in ["a.txt", "dir/b.txt", "dir/é", "long/name/that/is/deep.rs"] {
                let path = directory.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, name).unwrap();
            }
            run(&["add", "."]);
            run(&["update-index", "--index-version", version]);
            let root = Utf8Path::from_path(directory.path()).unwrap();
            let expect = ["a.txt", "dir/b.txt", "dir/é", "long/name/that/is/deep.rs"];
            assert_eq!(tracked(root), expect, "version {version}");
            assert_eq!(tracked(&root.join("dir")), ["b.txt", "é"]);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(tail in prop::collection::vec(any::<u8>(), 0..200), version in 2u8..5) {
            let mut bytes = b"DIRC\0\0\0".to_vec();
            bytes.push(version);
            bytes.extend(tail);
            drop(parse(&bytes));
        }
    }
}
