//! Diffs of the real git, read and applied.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::super::{FileMode, FileSide, Operation, apply, parse};

/// All files of a version, by path.
pub(super) type Tree = BTreeMap<String, FileSide>;

/// Names that need care; none is a directory of another.
const NAMES: [&str; 9] = [
    "a",
    "b c",
    "dir/q\"uote",
    "dir/t\tab",
    "é/ü",
    "sub/deep/x",
    "run b/run",
    "n\nl",
    "back\\slash",
];

/// Runs git in `dir` and gives what it printed.
pub(super) fn git(dir: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut child = Command::new("git")
        .args(arguments)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}\n{}",
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(input)
    );
    output.stdout
}

/// Writes `tree` into `dir`, which holds nothing but perhaps a `.git`.
#[expect(
    clippy::disallowed_methods,
    reason = "a test writes its own scratch files"
)]
pub(super) fn write_tree(dir: &Path, tree: &Tree) {
    for (path, side) in tree {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if side.mode == FileMode::Symlink {
            symlink(String::from_utf8(side.content.clone()).unwrap(), path).unwrap();
        } else {
            fs::write(&path, &side.content).unwrap();
            let bits = if side.mode == FileMode::Executable {
                0o755
            } else {
                0o644
            };
            fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
        }
    }
}

/// Removes all but `.git`.
#[expect(
    clippy::disallowed_methods,
    reason = "a test removes its own scratch files"
)]
fn clear(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_name() == ".git" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            fs::remove_dir_all(entry.path()).unwrap();
        } else {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

fn any_side() -> impl Strategy<Value = FileSide> {
    let lines = (
        prop::collection::vec(0..30_u8, 0..25),
        any::<bool>(),
        0..3_u8,
    )
        .prop_map(|(lines, ended, end)| {
            let end = if end == 0 { "\r\n" } else { "\n" };
            let mut text = lines
                .iter()
                .map(|line| format!("line {line}"))
                .collect::<Vec<_>>()
                .join(end);
            if ended && !lines.is_empty() {
                text.push_str(end);
            }
            text.into_bytes()
        });
    let binary = prop::collection::vec(any::<u8>(), 0..150).prop_map(|mut bytes| {
        bytes.push(0);
        bytes
    });
    let mode = prop_oneof![Just(FileMode::File), Just(FileMode::Executable)];
    let file = (
        mode,
        prop_oneof![4 => lines, 1 => binary, 1 => Just(Vec::new())],
    )
        .prop_map(|(mode, content)| FileSide { mode, content });
    let link = prop::sample::select(vec!["a", "sub/link", "../x y"]).prop_map(|target| FileSide {
        mode: FileMode::Symlink,
        content: target.into(),
    });
    prop_oneof![6 => file, 1 => link]
}

/// What becomes of one file in the second version.
#[derive(Debug, Clone)]
enum Change {
    Keep,
    Delete,
    Replace(FileSide),
    Edit(usize),
    Mode,
    Rename(usize),
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        1 => Just(Change::Keep),
        1 => Just(Change::Delete),
        1 => any_side().prop_map(Change::Replace),
        3 => any::<usize>().prop_map(Change::Edit),
        1 => Just(Change::Mode),
        3 => (0..NAMES.len()).prop_map(Change::Rename),
    ]
}

/// Two versions, and for each new path that came from another one that other one.
#[derive(Debug, Clone)]
pub(super) struct Versions {
    pub(super) old: Tree,
    pub(super) new: Tree,
    pub(super) renamed_from: BTreeMap<String, String>,
}

pub(super) fn any_versions() -> impl Strategy<Value = Versions> {
    let file = (prop::option::weighted(0.7, any_side()), any_change());
    prop::collection::vec(file, NAMES.len()).prop_map(|files| {
        let (mut old, mut new, mut renamed_from) = (Tree::new(), Tree::new(), BTreeMap::new());
        for (name, (side, _)) in NAMES.iter().zip(&files) {
            old.extend(side.clone().map(|side| ((*name).to_owned(), side)));
        }
        for (index, (side, change)) in files.iter().enumerate() {
            let name = NAMES[index].to_owned();
            let Some(side) = side else {
                if let Change::Replace(side) = change {
                    new.entry(name).or_insert_with(|| side.clone());
                }
                continue;
            };
            match change {
                Change::Keep => drop(new.insert(name, side.clone())),
                Change::Delete => {}
                Change::Replace(other) => drop(new.insert(name, other.clone())),
                Change::Edit(place) => drop(new.insert(name, edited(side, *place))),
                Change::Mode => drop(new.insert(name, with_other_mode(side))),
                Change::Rename(target) => {
                    let target = format!("{}{index}", NAMES[*target]);
                    let moved = if index % 2 == 0 {
                        side.clone()
                    } else {
                        edited(side, index)
                    };
                    renamed_from.insert(target.clone(), name);
                    new.insert(target, moved);
                }
            }
        }
        Versions {
            old,
            new,
            renamed_from,
        }
    })
}

fn edited(side: &FileSide, place: usize) -> FileSide {
    let mut side = side.clone();
    let place = place % (side.content.len() + 1);
    side.content.splice(place..place, *b"X");
    side
}

fn with_other_mode(side: &FileSide) -> FileSide {
    let mode = match side.mode {
        FileMode::File => FileMode::Executable,
        FileMode::Executable => FileMode::File,
        FileMode::Symlink => FileMode::Symlink,
    };
    FileSide {
        mode,
        content: side.content.clone(),
    }
}

/// Reads `patch` and applies it to `old`: first all is taken away, then all is put in.
pub(super) fn apply_to_tree(patch: &[u8], old: &Tree) -> Tree {
    let mut new = old.clone();
    let mut written = Vec::new();
    for file in parse(patch).unwrap() {
        let before = file.old_path.as_ref().map(|path| &old[path]);
        if let (Some(before), Some(mode)) = (before, file.old_mode) {
            assert_eq!(before.mode, mode);
        }
        let content = apply(&file, before.map(|side| side.content.as_slice())).unwrap();
        if matches!(file.operation, Operation::Delete | Operation::Rename) {
            new.remove(file.old_path.as_ref().unwrap());
        }
        let kept_mode = before.map_or(FileMode::File, |side| side.mode);
        let mode = file.new_mode.unwrap_or(kept_mode);
        written.extend(file.new_path.map(|path| (path, FileSide { mode, content })));
    }
    new.extend(written);
    new
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_diff_of_git_gives_exactly_the_new_tree(versions in any_versions()) {
        let dir = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str]| git(dir.path(), arguments, b"");
        run(&["init", "-q"]);
        let mut trees = Vec::new();
        for version in [&versions.old, &versions.new] {
            clear(dir.path());
            write_tree(dir.path(), version);
            run(&["add", "-A"]);
            trees.push(String::from_utf8(run(&["write-tree"])).unwrap().trim().to_owned());
        }
        let variants: [&[&str]; 5] = [
            &["-M"],
            &["-M", "-C", "--find-copies-harder", "-U1"],
            &["--no-renames", "-U0"],
            &["-M10%", "--no-prefix"],
            &["-B", "-M", "--src-prefix=i/", "--dst-prefix=w/"],
        ];
        for variant in variants {
            let mut arguments = vec!["diff", "--binary"];
            arguments.extend(variant);
            arguments.extend(trees.iter().map(String::as_str));
            let patch = run(&arguments);
            prop_assert_eq!(&apply_to_tree(&patch, &versions.old), &versions.new, "{:?}", variant);
        }
    }
}
