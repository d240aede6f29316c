//! What a merge answers, case by case, and what holds of every merge.

use proptest::prelude::*;

use super::super::{ConflictRange, three_way};
use super::any_text;

fn check(base: &str, ours: &str, theirs: &str, expect: &str) {
    let merged = three_way(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
    assert_eq!(
        merged.map(|bytes| String::from_utf8(bytes).unwrap()),
        Ok(expect.to_owned()),
        "{base:?} {ours:?} {theirs:?}"
    );
}

fn check_conflict(base: &str, ours: &str, theirs: &str, expect: &[[(u64, u64); 3]]) {
    let expect: Vec<ConflictRange> = expect
        .iter()
        .map(|&[base, ours, theirs]| ConflictRange { base, ours, theirs })
        .collect();
    let merged = three_way(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
    assert_eq!(merged, Err(expect), "{base:?} {ours:?} {theirs:?}");
}

#[test]
fn changes_apart_are_put_together() {
    check("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n");
    check("a\nb\nc\n", "x\na\nb\nc\n", "a\nb\n", "x\na\nb\n");
    check("a\nb\nc", "A\nb\nc", "a\nb\nc\n", "A\nb\nc\n");
    check(
        "a\r\nb\r\nc\r\n",
        "A\r\nb\r\nc\r\n",
        "a\r\nb\r\nc\n",
        "A\r\nb\r\nc\n",
    );
    check(
        "\u{feff}a\nb\nc\n",
        "\u{feff}a\nb\nC\n",
        "a\nb\nc\n",
        "a\nb\nC\n",
    );
}

#[test]
fn equal_changes_are_one() {
    check("a\nb\nc\n", "a\nX\nc\n", "a\nX\nc\n", "a\nX\nc\n");
    check(
        "a\nb\nc\nd\n",
        "a\nX\nc\nd\n",
        "a\nX\nc\nD\n",
        "a\nX\nc\nD\n",
    );
    check("a\n", "", "", "");
    check("", "x\n", "x\n", "x\n");
}

#[test]
fn what_overlaps_or_touches_conflicts() {
    let one = |range| [[range; 3]];
    check_conflict("a\nb\nc\n", "a\nX\nc\n", "a\nY\nc\n", &one((2, 2)));
    check_conflict("a\nb\nc\n", "A\nb\nc\n", "a\nB\nc\n", &one((1, 2)));
    check_conflict("", "x\n", "y\n", &[[(1, 0), (1, 1), (1, 1)]]);
    check_conflict("a\nb\n", "a\n", "a\nB\n", &[[(2, 2), (2, 1), (2, 2)]]);
    check_conflict("a\nb\n", "a\n", "", &[[(1, 2), (1, 1), (1, 0)]]);
    check_conflict("a", "a\n", "b", &one((1, 1)));
    check_conflict("a\n", "a\r\n", "b\n", &one((1, 1)));
    check_conflict(
        "a\nb\nc\nd\ne\n",
        "A\nb\nc\nd\nX\n",
        "Y\nb\nc\nd\nZ\n",
        &[[(1, 1); 3], [(5, 5); 3]],
    );
}

proptest! {
    #[test]
    fn a_merge_does_not_depend_on_who_is_ours(
        base in any_text(10), ours in any_text(10), theirs in any_text(10)
    ) {
        let there = three_way(&base, &ours, &theirs);
        let back = three_way(&base, &theirs, &ours).map_err(|conflicts| {
            let swap = |range: ConflictRange| ConflictRange {
                base: range.base, ours: range.theirs, theirs: range.ours,
            };
            conflicts.into_iter().map(swap).collect::<Vec<_>>()
        });
        prop_assert_eq!(&there, &back);
        if let Err(conflicts) = there {
            prop_assert!(!conflicts.is_empty());
        }
    }

    #[test]
    fn an_unchanged_side_takes_the_other(base in any_text(10), other in any_text(10)) {
        prop_assert_eq!(three_way(&base, &base, &other), Ok(other.clone()));
        prop_assert_eq!(three_way(&base, &other, &base), Ok(other.clone()));
        prop_assert_eq!(three_way(&base, &other, &other), Ok(other));
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(
        base in prop::collection::vec(any::<u8>(), 0..60),
        ours in prop::collection::vec(any::<u8>(), 0..60),
        theirs in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        drop(three_way(&base, &ours, &theirs));
    }
}
