//! Where a patch applies, and where it is refused.

use proptest::prelude::*;

use super::super::{ApplyError, apply, parse};

/// Applies the one file of `patch` to `old`.
fn applied(patch: &str, old: Option<&str>) -> Result<String, ApplyError> {
    let files = parse(patch.as_bytes()).unwrap();
    let [file] = files.as_slice() else {
        panic!("one file expected: {files:?}");
    };
    apply(file, old.map(str::as_bytes)).map(|new| String::from_utf8(new).unwrap())
}

/// A patch of the file `f` with these hunks.
fn patch(hunks: &str) -> String {
    format!("--- f\n+++ f\n{hunks}")
}

fn check(hunks: &str, old: &str, expect: &str) {
    assert_eq!(
        applied(&patch(hunks), Some(old)),
        Ok(expect.to_owned()),
        "{hunks}"
    );
}

fn check_refused(hunks: &str, old: &str, expect: &ApplyError) {
    assert_eq!(
        applied(&patch(hunks), Some(old)).as_ref(),
        Err(expect),
        "{hunks}"
    );
}

fn not_found(hunk: u64, stated: u64, patch_line: u64) -> ApplyError {
    ApplyError::NotFound {
        hunk,
        stated,
        patch_line,
    }
}

fn not_unique(hunk: u64, stated: u64, patch_line: u64, lines: &[u64]) -> ApplyError {
    let (count, lines) = (lines.len() as u64, lines.to_vec());
    ApplyError::NotUnique {
        hunk,
        stated,
        patch_line,
        count,
        lines,
    }
}

#[test]
fn a_hunk_that_matches_at_its_line_applies_there() {
    check("@@ -2 +2 @@\n-b\n+X\n", "a\nb\nb\n", "a\nX\nb\n");
    check("@@ -3 +3 @@\n-b\n+X\n", "a\nb\nb\n", "a\nb\nX\n");
    check("@@ -1,2 +1,3 @@\n a\n+x\n b\n", "a\nb\n", "a\nx\nb\n");
    check("@@ -0,0 +1 @@\n+x\n", "a\n", "x\na\n");
    check("@@ -1,0 +2 @@\n+x\n", "a\n", "a\nx\n");
    check("@@ -1 +0,0 @@\n-a\n", "a\n", "");
    check("@@ -0,0 +1 @@\n+x\n", "", "x\n");
    check("@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nb\n", "a\n\nc\n");
    check(
        "@@ -1 +1 @@\n-a\n+b\n@@ -3 +3 @@\n-a\n+c\n",
        "a\na\na\n",
        "b\na\nc\n",
    );
}

#[test]
fn a_hunk_elsewhere_must_be_there_exactly_once() {
    check("@@ -1 +1 @@\n-b\n+X\n", "a\nb\nc\n", "a\nX\nc\n");
    check("@@ -9,2 +9,2 @@\n b\n-c\n+X\n", "a\nb\nc\n", "a\nb\nX\n");
    check(
        "@@ -1 +1 @@\n-b\n+B\n@@ -2 +2 @@\n-c\n+C\n",
        "a\nb\nc\n",
        "a\nB\nC\n",
    );
    check_refused(
        "@@ -1 +1 @@\n-b\n+X\n",
        "a\nb\nb\n",
        &not_unique(1, 1, 3, &[2, 3]),
    );
    check_refused(
        "@@ -1,2 +1 @@\n-b\n-b\n+X\n",
        "a\nb\nb\nb\n",
        &not_unique(1, 1, 3, &[2, 3]),
    );
    check_refused("@@ -1 +1 @@\n-x\n+X\n", "a\nb\n", &not_found(1, 1, 3));
    check_refused("@@ -1 +1 @@\n-a\n+X\n", "", &not_found(1, 1, 3));
}

#[test]
fn a_hunk_that_ends_the_file_is_not_added_twice() {
    let hunks = "@@ -1 +1,2 @@\n a\n+b\n";
    check(hunks, "a\n", "a\nb\n");
    check_refused(hunks, "a\nb\n", &not_found(1, 1, 3));
    // With a line after the change it may stand anywhere, and without any it says nothing.
    check("@@ -1,2 +1,3 @@\n a\n+b\n c\n", "a\nc\nd\n", "a\nb\nc\nd\n");
    check("@@ -1 +1 @@\n-a\n+x\n", "a\nb\n", "x\nb\n");
}

#[test]
fn no_stated_line_is_believed_in_a_file_that_moved() {
    // The first hunk is right by chance only: the second one shows that lines came in above.
    let hunks = "@@ -1 +1 @@\n-a\n+A\n@@ -2 +2 @@\n-z\n+Z\n";
    check(hunks, "a\nz\n", "A\nZ\n");
    check(hunks, "a\nb\nz\n", "A\nb\nZ\n");
    check_refused(hunks, "a\na\nz\n", &not_unique(1, 1, 3, &[1, 2]));
    // The second one matches at its line by chance, after the first one moved.
    let hunks = "@@ -1 +1 @@\n-a\n+A\n@@ -3 +3 @@\n-x\n+X\n";
    check_refused(hunks, "n\na\nx\nx\n", &not_unique(2, 3, 6, &[3, 4]));
}

#[test]
fn hunks_are_in_order_and_apart() {
    check_refused(
        "@@ -2 +2 @@\n-b\n+B\n@@ -1 +1 @@\n-a\n+A\n",
        "a\nb\n",
        &not_found(2, 1, 6),
    );
    check_refused(
        "@@ -1 +1 @@\n-a\n+A\n@@ -1 +1 @@\n-a\n+B\n",
        "a\nb\n",
        &not_found(2, 1, 6),
    );
}

#[test]
fn added_lines_without_context_need_a_valid_line() {
    let anchor = |stated| ApplyError::NoAnchor {
        hunk: 1,
        stated,
        patch_line: 3,
    };
    check_refused("@@ -5,0 +6 @@\n+x\n", "a\n", &anchor(5));
    // It would join a line that has no end.
    check_refused("@@ -1,0 +2 @@\n+x\n", "a", &anchor(1));
    check("@@ -0,0 +1 @@\n+x\n", "a", "x\na");
}

#[test]
fn line_ends_are_exact() {
    let no_end = "\\ No newline at end of file\n";
    check(&format!("@@ -1 +1 @@\n-a\n{no_end}+b\n"), "a", "b\n");
    check(&format!("@@ -1 +1 @@\n-a\n+b\n{no_end}"), "a\n", "b");
    check(
        &format!("@@ -1,2 +1,2 @@\n-a\n+A\n b\n{no_end}"),
        "a\nb",
        "A\nb",
    );
    check_refused(
        &format!("@@ -1 +1 @@\n-a\n{no_end}+b\n"),
        "a\n",
        &not_found(1, 1, 3),
    );
    check_refused("@@ -1 +1 @@\n-a\n+b\n", "a", &not_found(1, 1, 3));
    check_refused(
        &format!("@@ -1 +1 @@\n-a\n+b\n{no_end}"),
        "a\nc\n",
        &not_found(1, 1, 3),
    );
    check("@@ -1 +1 @@\n-a\r\n+b\r\n", "a\r\n", "b\r\n");
    check_refused("@@ -1 +1 @@\n-a\n+b\n", "a\r\n", &not_found(1, 1, 3));
    check_refused("@@ -1 +1 @@\n-a\r\n+b\r\n", "a\n", &not_found(1, 1, 3));
}

#[test]
fn presence_must_fit_the_operation() {
    let create = "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n";
    let delete = "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
    let add = patch("@@ -0,0 +1 @@\n+x\n");
    let modify = patch("@@ -1 +1 @@\n-a\n+x\n");
    assert_eq!(applied(create, None).as_deref(), Ok("x\n"));
    assert_eq!(applied(create, Some("")), Err(ApplyError::OldPresent));
    assert_eq!(applied(delete, Some("x\n")).as_deref(), Ok(""));
    assert_eq!(
        applied(delete, Some("x\ny\n")),
        Err(ApplyError::DeletionLeavesContent)
    );
    assert_eq!(applied(delete, None), Err(ApplyError::OldMissing));
    assert_eq!(applied(&add, None).as_deref(), Ok("x\n"));
    assert_eq!(applied(&modify, None), Err(ApplyError::OldMissing));
}

#[test]
fn a_binary_patch_needs_its_own_content() {
    let ids = "0123456789012345678901234567890123456789..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
    let binary = |ids: &str| {
        format!(
            "diff --git a/f b/f\nindex {ids} 100644\nGIT binary patch\nliteral 0\nHcmV?d00001\n\n\
             literal 0\nHcmV?d00001\n\n"
        )
    };
    let old = "not that";
    assert!(matches!(
        applied(&binary(ids), Some(old)),
        Err(ApplyError::WrongOld { .. })
    ));
    assert_eq!(
        applied(&binary("0123456..e69de29"), Some(old)),
        Err(ApplyError::NoOldId)
    );
}

proptest! {
    #[test]
    fn a_hunk_lands_only_where_its_old_lines_are(
        file in prop::collection::vec(prop::sample::select(vec!["a\n", "b\n", "c\n"]), 0..12),
        old in prop::collection::vec(prop::sample::select(vec!["a\n", "b\n", "c\n"]), 1..3),
        stated in 1..14_usize,
    ) {
        let removed = format!("-{}", old.join("-"));
        let hunk = patch(&format!("@@ -{stated},{} +{stated} @@\n{removed}+X\n", old.len()));
        let at = |start: usize| file.get(start..start + old.len()) == Some(&old[..]);
        let places: Vec<usize> = (0..file.len()).filter(|&start| at(start)).collect();
        let expected = match places.as_slice() {
            _ if at(stated - 1) => Some(stated - 1),
            &[only] => Some(only),
            _ => None,
        };
        let result = applied(&hunk, Some(&file.concat()));
        match expected {
            Some(start) => {
                let (above, below) = (&file[..start], &file[start + old.len()..]);
                prop_assert_eq!(result, Ok(above.concat() + "X\n" + &below.concat()));
            }
            None if places.is_empty() => {
                prop_assert_eq!(result, Err(not_found(1, stated as u64, 3)));
            }
            None => {
                let lines: Vec<u64> = places.iter().map(|&start| start as u64 + 1).collect();
                prop_assert_eq!(result, Err(not_unique(1, stated as u64, 3, &lines)));
            }
        }
    }
}
