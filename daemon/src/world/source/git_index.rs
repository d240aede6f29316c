//! The paths in the index of a git work tree.
//!
//! Owns: reading `.git/index` (versions 2 to 4, SHA-1 and SHA-256, split or whole) by its documented
//! format. Running `git` here would run
//! whatever the configuration of a foreign repository names.
//! An index that cannot be read names nothing: then the ignore rules alone decide.

use std::fs;
use std::path::{Path, PathBuf};

use camino::Utf8Path;
use semaprax_protocol::limits::PATH_BYTES;

use super::read::read_apart;

/// More than any real index; a length beyond it is not one.
const INDEX_BYTES: u64 = 256 << 20;
/// The largest `.git` file.
const GIT_FILE_BYTES: u64 = 4096;

/// The paths below `root` that are in the index of the work tree around it.
pub(super) fn tracked(root: &Utf8Path) -> Vec<String> {
    let Some((top, git)) = root
        .as_std_path()
        .ancestors()
        .find_map(|directory| git_directory(directory).map(|git| (directory.to_owned(), git)))
    else {
        return Vec::new();
    };
    let read = |name: &str| read_apart(&git.join(name), INDEX_BYTES);
    let paths = read("index").and_then(|index| {
        paths_of_index(&index, &mut |shared| read(&format!("sharedindex.{shared}")))
    });
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

/// The paths that the bytes of an index name, those of the shared index it builds on included, whose
/// bytes are asked for by its digest. `None` for what is no index.
pub fn paths_of_index(
    bytes: &[u8],
    read_shared: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Option<Vec<String>> {
    let index = parse_any(bytes)?;
    let own = index.paths.into_iter().flatten();
    let Some(link) = index.link else {
        return Some(own.collect());
    };
    let shared = parse_any(&read_shared(&link.shared)?)?;
    let count = shared.paths.len();
    let deleted = if link.deleted.is_empty() {
        vec![false; count]
    } else {
        let mut bytes = Bytes {
            rest: &link.deleted,
        };
        bytes.bitmap(count)?
    };
    let kept = shared.paths.into_iter().zip(deleted);
    let mut paths: Vec<String> = kept
        .filter_map(|(path, is_deleted)| path.filter(|_| !is_deleted))
        .chain(own)
        .collect();
    paths.sort();
    Some(paths)
}

/// An index does not say which hash it uses; only with the right one it ends where it should.
fn parse_any(bytes: &[u8]) -> Option<Index> {
    [20, 32].into_iter().find_map(|hash| parse(bytes, hash))
}

/// The git directory of the work tree at `directory`: `.git`, or what a `.git` file names.
fn git_directory(directory: &Path) -> Option<PathBuf> {
    let git = directory.join(".git");
    let found = fs::symlink_metadata(&git).ok()?;
    if found.is_dir() {
        return Some(git);
    }
    let text = String::from_utf8(read_apart(&git, GIT_FILE_BYTES)?).ok()?;
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

    /// The first `count` bits of a compressed bitmap (EWAH).
    fn bitmap(&mut self, count: usize) -> Option<Vec<bool>> {
        self.word()?;
        let words = usize::try_from(self.word()?).ok()?;
        let mut words = self.take(words.checked_mul(8)?)?.chunks_exact(8);
        let mut next = || {
            let word = words.next()?;
            Some(u64::from_be_bytes(word.try_into().ok()?))
        };
        let mut bits = Vec::new();
        while let Some(marker) = next() {
            // What the run is of, its length in words, and how many plain words follow it.
            let run = usize::try_from(marker >> 1 & 0xffff_ffff).ok()?;
            let end = bits.len().saturating_add(run.saturating_mul(64));
            bits.resize(end.min(count), marker & 1 == 1);
            for _ in 0..marker >> 33 {
                let word = next()?;
                let room = count.saturating_sub(bits.len());
                bits.extend((0..64).map(|bit| word >> bit & 1 == 1).take(room));
            }
        }
        bits.resize(count, false);
        Some(bits)
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
/// Everything of an entry before its flags: times, device, inode, mode, owner, size, and then a hash.
const BEFORE_MODE: usize = 24;
const AFTER_MODE: usize = 12;

/// What one file of an index holds.
struct Index {
    /// The path of each entry; `None` for one that is no file, or has its path in the shared index.
    paths: Vec<Option<String>>,
    link: Option<Link>,
}

/// The shared index that a split one builds on.
struct Link {
    shared: String,
    /// The bitmap of its entries that are gone; empty for none.
    deleted: Vec<u8>,
}

fn parse(bytes: &[u8], hash: usize) -> Option<Index> {
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
        bytes.take(AFTER_MODE + hash)?;
        let mut header = BEFORE_MODE + 4 + AFTER_MODE + hash + 2;
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
        // Each entry of version 4 takes over what it likes of the path before it: a few bytes may name
        // a path of any length, and it is written out only when it can be one.
        let is_file = mode & 0o170_000 != GITLINK && (1..=PATH_BYTES).contains(&last.len());
        let path = is_file.then(|| std::str::from_utf8(&last).ok()).flatten();
        paths.push(path.map(str::to_owned));
    }
    let mut link = None;
    while bytes.rest.len() > hash {
        let name = bytes.take(4)?;
        let length = usize::try_from(bytes.word()?).ok()?;
        let extension = bytes.take(length)?;
        if name == b"link" {
            link = Some(parse_link(extension, hash)?);
        }
    }
    (bytes.rest.len() == hash).then_some(Index { paths, link })
}

fn parse_link(extension: &[u8], hash: usize) -> Option<Link> {
    let (shared, deleted) = extension.split_at_checked(hash)?;
    let hex = shared.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    Some(Link {
        shared: hex
            .filter_map(|digit| char::from_digit(u32::from(digit), 16))
            .collect(),
        deleted: deleted.to_vec(),
    })
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

    #[test]
    fn reads_a_split_index_and_one_of_sha256() {
        for format in ["sha1", "sha256"] {
            let directory = tempfile::tempdir().unwrap();
            let run = |arguments: &[&str]| {
                let status = Command::new("git")
                    .args(arguments)
                    .current_dir(directory.path())
                    .status();
                assert!(status.unwrap().success(), "{arguments:?}");
            };
            let root = Utf8Path::from_path(directory.path()).unwrap();
            run(&["init", "-q", "--object-format", format]);
            for name in ["a", "b", "c", "d"] {
                fs::write(directory.path().join(name), name).unwrap();
            }
            run(&["add", "a", "b", "c"]);
            assert_eq!(tracked(root), ["a", "b", "c"], "{format}");
            // Keeps all in one shared index, whatever changes later.
            run(&["config", "splitIndex.maxPercentChange", "100"]);
            run(&["update-index", "--split-index"]);
            assert_eq!(tracked(root), ["a", "b", "c"], "{format}");
            fs::write(directory.path().join("c"), "other").unwrap();
            run(&["rm", "-q", "--cached", "b"]);
            run(&["add", "c", "d"]);
            assert_eq!(tracked(root), ["a", "c", "d"], "{format}");
        }
    }

    /// Each entry of version 4 may take over all of a long path: a few bytes an entry, and the text of
    /// all of them is far more than the file.
    #[test]
    fn an_index_names_no_path_that_cannot_be_one() {
        let entry = |strip: u8, name: &[u8]| {
            let mut bytes = vec![0; BEFORE_MODE];
            bytes.extend(0o100_644_u32.to_be_bytes());
            bytes.extend([0; AFTER_MODE + 20 + 2]);
            bytes.push(strip);
            bytes.extend(name);
            bytes.push(0);
            bytes
        };
        let index = |first: usize, count: u32| {
            let mut bytes = b"DIRC\0\0\0\x04".to_vec();
            bytes.extend((count + 1).to_be_bytes());
            bytes.extend(entry(0, &vec![b'x'; first]));
            for _ in 0..count {
                bytes.extend(entry(0, b""));
            }
            bytes.extend([0; 20]);
            parse(&bytes, 20).unwrap()
        };
        let check = |first: usize, count: u32, named: usize| {
            let paths = index(first, count).paths;
            assert_eq!(paths.iter().flatten().count(), named, "{first}");
        };
        check(PATH_BYTES, 10, 11);
        check(PATH_BYTES + 1, 10, 0);
        // A hundred gigabytes, were they written out.
        check(10 << 20, 10_000, 0);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(tail in prop::collection::vec(any::<u8>(), 0..200), version in 2u8..5) {
            let mut bytes = b"DIRC\0\0\0".to_vec();
            bytes.push(version);
            bytes.extend(tail);
            drop(parse(&bytes, 20));
            drop(parse(&bytes, 32));
        }
    }
}
