//! Our diffs, applied by the real git.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use proptest::prelude::*;

use super::super::{FileMode, FileSide, render_file};
use super::git::{Tree, Versions, any_versions, apply_to_tree, git, write_tree};

/// Renders all that differs between two versions.
pub(super) fn rendered(versions: &Versions) -> Vec<u8> {
    let Versions {
        old,
        new,
        renamed_from,
    } = versions;
    let mut out = Vec::new();
    let gone = |path: &String| !renamed_from.values().any(|from| from == path);
    for (path, side) in old
        .iter()
        .filter(|&(path, _)| !new.contains_key(path) && gone(path))
    {
        render_file(&mut out, Some((path, side)), None).unwrap();
    }
    for (path, side) in new {
        let from = renamed_from.get(path).unwrap_or(path);
        let before = old.get(from).map(|side| (from.as_str(), side));
        render_file(&mut out, before, Some((path, side))).unwrap();
    }
    out
}

/// All files under `dir`.
#[expect(
    clippy::disallowed_methods,
    reason = "a test reads its own scratch files"
)]
fn read_tree(root: &Path, dir: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            read_tree(root, &path, tree);
            continue;
        }
        let side = if kind.is_symlink() {
            let target = fs::read_link(&path)
                .unwrap()
                .into_os_string()
                .into_string()
                .unwrap();
            FileSide {
                mode: FileMode::Symlink,
                content: target.into_bytes(),
            }
        } else {
            let executable = entry.metadata().unwrap().permissions().mode() & 0o100 != 0;
            let mode = if executable {
                FileMode::Executable
            } else {
                FileMode::File
            };
            FileSide {
                mode,
                content: fs::read(&path).unwrap(),
            }
        };
        let name = path
            .strip_prefix(root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        tree.insert(name, side);
    }
}

/// `git apply -R` brings a deleted executable or link back as a plain file, from git's own diffs
/// too; so on the way back modes are not compared.
fn without_modes(tree: &Tree) -> Tree {
    let mut tree = tree.clone();
    for side in tree.values_mut() {
        side.mode = FileMode::File;
    }
    tree
}

/// What `git apply` with `arguments` makes of the files in `dir`.
fn after_git(dir: &Path, arguments: &[&str], patch: &[u8]) -> Tree {
    git(dir, arguments, patch);
    let mut found = Tree::new();
    read_tree(dir, dir, &mut found);
    found
}

/// Two trees must be equal; the failure names the paths that are not.
fn assert_equal(found: &Tree, expect: &Tree, patch: &[u8]) {
    let paths = found.keys().chain(expect.keys());
    let wrong: Vec<&String> = paths
        .filter(|path| found.get(*path) != expect.get(*path))
        .collect();
    assert!(
        wrong.is_empty(),
        "{wrong:?} differ after\n{}",
        String::from_utf8_lossy(patch)
    );
}

fn check_applies(versions: &Versions) {
    let patch = rendered(versions);
    assert_eq!(apply_to_tree(&patch, &versions.old), versions.new);
    if versions.old == versions.new {
        assert_eq!(patch, b"");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    write_tree(dir.path(), &versions.old);
    let forth = after_git(dir.path(), &["apply"], &patch);
    assert_equal(&forth, &versions.new, &patch);
    let back = after_git(dir.path(), &["apply", "-R"], &patch);
    let old = without_modes(&versions.old);
    assert_equal(&without_modes(&back), &old, &patch);
}

#[test]
fn text_may_hold_a_late_nul_and_long_files_many_hunks() {
    let file = |content: Vec<u8>| {
        let side = FileSide {
            mode: FileMode::File,
            content,
        };
        Tree::from([("f".to_owned(), side)])
    };
    let lines: Vec<String> = (0..3_000).map(|line| format!("line {line}\n")).collect();
    let text = lines.concat().into_bytes();
    let mut late_nul = text.clone();
    late_nul[20_000] = 0;
    late_nul[100] = b'!';
    let check = |old: &[u8], new: &[u8]| {
        check_applies(&Versions {
            old: file(old.to_vec()),
            new: file(new.to_vec()),
            renamed_from: std::collections::BTreeMap::new(),
        });
    };
    check(&text, &late_nul);
    check(&late_nul, &text);
    check(&vec![0; 70_000], &vec![1; 70_000]);
    check(b"a\rb\rc\n", b"a\rb\r");
    check(b"\xef\xbb\xbfa\n\xff\n", b"a\n\xfe");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn git_applies_our_diff_forth_and_back(versions in any_versions()) {
        check_applies(&versions);
    }
}
