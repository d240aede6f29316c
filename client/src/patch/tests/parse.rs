//! What is read from a patch, and what is refused.

use proptest::prelude::*;

use super::super::{
    Body, FileMode, FilePatch, FileSide, Limits, Operation, ParseErrorKind as Kind, apply, parse,
    parse_within, render_file,
};

/// Reads `patch` and shows each file as `operation old -> new`.
fn check(patch: &str, expect: &[&str]) {
    let files = parse(patch.as_bytes()).unwrap_or_else(|error| panic!("{error}: {patch}"));
    let shown: Vec<String> = files.iter().map(shown).collect();
    assert_eq!(shown, expect, "{patch}");
}

fn shown(file: &FilePatch) -> String {
    let path = |path: &Option<String>| path.clone().unwrap_or_else(|| "-".to_owned());
    format!(
        "{:?} {} -> {}",
        file.operation,
        path(&file.old_path),
        path(&file.new_path)
    )
}

fn check_refused(patch: &str, line: u64, kind: &Kind) {
    let error = parse(patch.as_bytes()).expect_err(patch);
    assert_eq!((error.line, &error.kind), (line, kind), "{patch}");
}

const HUNK: &str = "@@ -1 +1 @@\n-a\n+b\n";

#[test]
fn plain_diffs_name_one_path() {
    let plain = |old: &str, new: &str| format!("--- {old}\n+++ {new}\n{HUNK}");
    check(&plain("x", "x"), &["Modify x -> x"]);
    check(&plain("a/x", "b/x"), &["Modify x -> x"]);
    check(&plain("dir/x", "dir/x"), &["Modify dir/x -> dir/x"]);
    check(&plain("old/dir/x", "new/dir/x"), &["Modify dir/x -> dir/x"]);
    check(&plain("x.orig", "x"), &["Modify x -> x"]);
    check(
        &plain("x\t2026-01-01 10:00:00", "x\t2026-01-02 10:00:00"),
        &["Modify x -> x"],
    );
    check(&plain("a/x y", "b/x y"), &["Modify x y -> x y"]);
    check(
        &plain("\"a/\\303\\251\"", "\"b/\\303\\251\""),
        &["Modify é -> é"],
    );
    check_refused(&plain("x", "y"), 1, &Kind::NoPath);
    let create = "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n";
    check(create, &["Create - -> x"]);
    let epoch = "--- old/x\t1970-01-01 02:00:00.000000000 +0200\n+++ new/x\n@@ -0,0 +1 @@\n+a\n";
    check(epoch, &["Create - -> x"]);
    check(
        "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
        &["Delete x -> -"],
    );
}

#[test]
fn git_headers_name_their_paths() {
    let modify = |names: &str| format!("diff --git {names}\nold mode 100644\nnew mode 100755\n");
    check(&modify("a/x b/x"), &["Modify x -> x"]);
    check(&modify("a/x y b/x y"), &["Modify x y -> x y"]);
    check(&modify("a/x b/x b/x b/x"), &["Modify x b/x -> x b/x"]);
    check(&modify("i/x w/x"), &["Modify x -> x"]);
    check(&modify("dir/x dir/x"), &["Modify dir/x -> dir/x"]);
    check(&modify("long/x y s/x y"), &["Modify x y -> x y"]);
    check(&modify("\"a/\\tx\" \"b/\\tx\""), &["Modify \tx -> \tx"]);
    check(
        "diff --git a/x b/y z\nsimilarity index 100%\nrename from x\nrename to y z\n",
        &["Rename x -> y z"],
    );
    check(
        "diff --git a/x \"b/\\303\\251\"\ncopy from x\ncopy to \"\\303\\251\"\n",
        &["Copy x -> é"],
    );
    check_refused(&modify("a/x b/y"), 1, &Kind::NoPath);
    let contradiction = format!("diff --git a/x b/x\n--- a/y\n+++ b/x\n{HUNK}");
    check_refused(&contradiction, 1, &Kind::Contradiction);
    let submodule = "diff --git a/x b/x\nnew file mode 160000\n";
    check_refused(
        submodule,
        2,
        &Kind::UnsupportedMode {
            mode: "160000".to_owned(),
        },
    );
}

#[test]
fn other_text_around_is_passed_over() {
    let mail = format!(
        "From 0123 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\nA message.\n---\n x | 2 +-\n \
         1 file changed\n\ndiff --git a/x b/x\nindex 7898192..6178079 100644\n--- a/x\n+++ b/x\n\
         {HUNK}-- \n2.43.0\n\n"
    );
    check(&mail, &["Modify x -> x"]);
    check(&mail.repeat(2), &["Modify x -> x", "Modify x -> x"]);
    check(
        &format!("Index: x\n=====\n--- x\n+++ x\n{HUNK}"),
        &["Modify x -> x"],
    );
    check("", &[]);
    check(" \n\n", &[]);
    check_refused("hello\n", 1, &Kind::NoPatch);
}

#[test]
fn lost_parts_are_refused() {
    let header = "diff --git a/x b/x\nindex 7898192..6178079 100644\n";
    let binary = "Binary files a/x and b/x differ\n";
    check_refused(header, 1, &Kind::MissingBody);
    check_refused(&format!("{header}{binary}"), 3, &Kind::BinaryWithoutContent);
    check_refused(
        &format!("--- x\n+++ x\n{HUNK}{binary}"),
        6,
        &Kind::BinaryWithoutContent,
    );
    check_refused(HUNK, 1, &Kind::HunkWithoutFile);
    check_refused("diff --cc x\n", 1, &Kind::Combined);
}

#[test]
fn hunks_hold_what_their_header_says() {
    let plain = |hunk: &str| format!("--- x\n+++ x\n{hunk}");
    check_refused(&plain("@@ -1,2 +1 @@\n-a\n+b\n"), 6, &Kind::Truncated);
    check_refused(
        &plain("@@ -1 +1 @@\n-a\n+b\n+c\n"),
        6,
        &Kind::WrongLineCount,
    );
    check_refused(
        &plain("@@ -1 +1 @@\n-a\n+b\n c\n"),
        6,
        &Kind::WrongLineCount,
    );
    check_refused(&plain("@@ -1 +1 @@\n-a\n-b\n"), 5, &Kind::WrongLineCount);
    check_refused(&plain("@@ -1 +1 @@\n-a\nb\n"), 5, &Kind::WrongLineCount);
    check_refused(&plain("@@ -1 +1 @@\n-a\n+b"), 5, &Kind::Truncated);
    check_refused(&plain("@@ -1 +1\n-a\n+b\n"), 3, &Kind::MalformedHunk);
    check_refused(&plain("@@ -0 +1 @@\n-a\n+b\n"), 3, &Kind::MalformedHunk);
    check_refused(
        &plain("@@ -99999999999999999999 +1 @@\n"),
        3,
        &Kind::MalformedHunk,
    );
    let none = "\\ No newline at end of file\n";
    check_refused(
        &plain(&format!("@@ -1 +1 @@\n{none}")),
        4,
        &Kind::MisplacedNoNewline,
    );
    let early = format!("@@ -1,2 +1 @@\n-a\n{none}-b\n+c\n");
    check_refused(&plain(&early), 5, &Kind::MisplacedNoNewline);
    let empty = format!("@@ -1 +1 @@\n-a\n+\n{none}");
    check_refused(&plain(&empty), 6, &Kind::MisplacedNoNewline);
}

#[test]
fn creations_and_deletions_are_whole() {
    let create = "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n";
    check_refused(&format!("{create}{HUNK}"), 1, &Kind::Contradiction);
    let delete = "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n";
    check_refused(&format!("{delete}{HUNK}"), 1, &Kind::Contradiction);
    check_refused(&format!("{delete}{delete}"), 5, &Kind::MissingBody);
}

#[test]
fn limits_hold() {
    let create = "diff --git a/x b/x\nnew file mode 100644\nindex 0000000..e69de29\n";
    let limits = Limits {
        files: 1,
        ..Limits::default()
    };
    assert_eq!(
        parse_within(create.as_bytes(), limits).map(|files| files.len()),
        Ok(1)
    );
    let error = parse_within(create.repeat(2).as_bytes(), limits).unwrap_err();
    assert_eq!((error.line, error.kind), (4, Kind::TooManyFiles { max: 1 }));
    let mut patch = Vec::new();
    let side = FileSide {
        mode: FileMode::File,
        content: vec![0; 100],
    };
    render_file(&mut patch, None, Some(("x", &side))).unwrap();
    let limits = Limits {
        binary_bytes: 99,
        ..Limits::default()
    };
    let error = parse_within(&patch, limits).unwrap_err();
    assert_eq!(error.kind, Kind::BinaryTooLarge { max: 99 });
}

/// Parts of patches in any order: what a reader meets after a bad merge of two patches.
fn any_pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "diff --git a/x b/x\n",
        "diff --git \"a/\\303\\251\" b/y\n",
        "--- a/x\n",
        "+++ b/x\n",
        "--- /dev/null\n",
        "@@ -1 +1 @@\n",
        "@@ -0,0 +1,2 @@\n",
        "-a\n",
        "+b\n",
        " c\n",
        "\n",
        "\\ No newline at end of file\n",
        "new file mode 100644\n",
        "deleted file mode 100755\n",
        "rename from x\n",
        "rename to y\n",
        "index 7898192..6178079 100644\n",
        "GIT binary patch\n",
        "literal 3\n",
        "delta 9\n",
        "HcmV?d00001\n",
        "-- \n",
        "\0\u{e9}",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_input_panics(
        input in prop_oneof![any_pieces(), prop::collection::vec(any::<u8>(), 0..200)],
        old in prop::collection::vec(prop::sample::select(b"ab\n".to_vec()), 0..8),
    ) {
        for file in parse(&input).into_iter().flatten() {
            drop(apply(&file, Some(&old)));
            drop(apply(&file, None));
            prop_assert!(file.old_path.is_some() || file.new_path.is_some());
            prop_assert_eq!(file.operation == Operation::Create, file.old_path.is_none());
            if let Body::Text(hunks) = file.body {
                prop_assert!(!hunks.is_empty());
            }
        }
    }
}
