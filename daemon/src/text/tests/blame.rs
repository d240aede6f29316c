//! Who wrote a line.

use proptest::prelude::*;

use super::super::{Blame, lines};
use super::any_text;

/// `versions` from the oldest to the newest; version N is owned by N, counted from 1.
fn blame(versions: &[&[u8]]) -> Vec<usize> {
    let Some((newest, older)) = versions.split_last() else {
        return Vec::new();
    };
    let mut blame = Blame::new(newest);
    for (index, content) in older.iter().enumerate().rev() {
        blame.step(content, index + 2);
    }
    blame.finish(1)
}

fn check(versions: &[&str], expect: &[usize]) {
    let versions: Vec<&[u8]> = versions.iter().map(|text| text.as_bytes()).collect();
    assert_eq!(blame(&versions), expect, "{versions:?}");
}

#[test]
fn each_line_belongs_to_who_brought_it() {
    check(&["a\nb\n"], &[1, 1]);
    check(&["a\nb\n", "a\nb\nc\n", "x\nb\nc\n"], &[3, 1, 2]);
    check(&["a\nb\nc\n", "c\n", "b\nc\n"], &[3, 1]);
    check(&["a\nb\n", "b\n", "a\nb\n"], &[3, 1]);
    check(&["a\nb", "a\nb\n"], &[1, 2]);
    check(&["a\n", "a\r\n"], &[2]);
    check(&["", "a\n", "a\n"], &[2]);
    check(&["a\n", ""], &[]);
    check(&["a\n", "", "a\n"], &[3]);
}

#[test]
fn a_walk_may_end_early() {
    let mut blame = Blame::new(b"a\nb\n");
    assert_eq!((blame.is_done(), blame.line_count()), (false, 2));
    blame.step(b"a\n", 3);
    assert!(!blame.is_done());
    blame.step(b"", 2);
    assert!(blame.is_done());
    blame.step(b"a\nb\n", 1);
    assert_eq!(blame.finish(0), vec![2, 3]);
}

proptest! {
    #[test]
    fn every_line_has_one_owner_that_has_the_line(
        versions in prop::collection::vec(any_text(8), 1..6)
    ) {
        let versions: Vec<&[u8]> = versions.iter().map(Vec::as_slice).collect();
        let newest = lines::split(versions[versions.len() - 1]);
        let owners = blame(&versions);
        prop_assert_eq!(owners.len(), newest.len());
        for (line, owner) in newest.iter().zip(owners) {
            // The line is in every version since its owner's.
            for version in &versions[owner - 1..] {
                prop_assert!(lines::split(version).contains(line));
            }
        }
    }
}
