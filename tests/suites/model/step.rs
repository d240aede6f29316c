//! The steps a sequence is made of.

use proptest::prelude::*;
use semaprax_protocol::submission::{Change, Edit, FileMode, OnStale};

/// One request.
#[derive(Debug, Clone)]
pub enum Step {
    /// A submission on the publication this many before ACTIVE; `None` without a base.
    Submit {
        base: Option<usize>,
        on_stale: OnStale,
        changes: Vec<Change>,
        dry_run: bool,
    },
    /// The submission sent this many before, again.
    Repeat(usize),
    Rollback(usize),
    Revert(usize),
    Undo,
    Lease(usize),
    LeaseDetached(usize, u64),
    Release(usize),
    Pin(usize),
    Unpin(usize),
    Collect {
        keep: u64,
        min_age: u64,
    },
    Advance(u64),
    Idle,
    Reopen,
    Kill,
    Reboot,
}

// Few names, so that they meet: files and directories of the same name, one in another.
fn path() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "d", "d/x", "d/y", "d/e/z", "f/g", "t"])
        .prop_map(str::to_owned)
}

fn mode() -> impl Strategy<Value = FileMode> {
    prop::sample::select(vec![FileMode::File, FileMode::Executable])
}

/// Text of numbered lines, so that edits meet in lines; now and then something else.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..9usize, 0..3u8).prop_map(|(line, version)| lines(Some((line, version)))),
        1 => "[ab]{0,2}",
        1 => Just("\0binary".to_owned()),
    ]
}

/// Nine lines, one of them in another version.
pub fn lines(changed: Option<(usize, u8)>) -> String {
    (0..9)
        .map(|line| match changed {
            Some((other, version)) if other == line => format!("line {line} version {version}\n"),
            _ => format!("line {line}\n"),
        })
        .collect()
}

fn change() -> impl Strategy<Value = Change> {
    let none = (None, None);
    prop_oneof![
        4 => (path(), text(), prop::option::weighted(0.2, mode())).prop_map(move |(path, content, mode)| {
            let (expect, reason) = none.clone();
            Change::Put { path, content: Some(content), content_base64: None, content_blob: None, mode, expect, reason }
        }),
        3 => (path(), 0..9usize, 0..3u8).prop_map(|(path, line, version)| Change::Edit {
            path,
            edits: vec![Edit { old: format!("line {line}\n"), new: format!("line {line} edited {version}\n") }],
            expect: None,
            reason: None,
        }),
        2 => (path(), any::<bool>()).prop_map(|(path, recursive)| Change::Delete { path, recursive, expect: None, reason: None }),
        2 => (path(), path(), any::<bool>()).prop_map(|(from, to, recursive)| Change::Move { from, to, recursive, expect: None, reason: None }),
        1 => path().prop_map(|path| Change::Symlink { path, target: "a".to_owned(), expect: None, reason: None }),
        1 => (path(), mode()).prop_map(|(path, mode)| Change::Chmod { path, mode, expect: None, reason: None }),
    ]
}

fn submit() -> impl Strategy<Value = Step> {
    let on_stale = prop_oneof![
        1 => Just(OnStale::Reject),
        2 => Just(OnStale::Rebase),
        4 => Just(OnStale::Merge),
    ];
    (
        prop::option::weighted(0.7, 0..4usize),
        on_stale,
        prop::collection::vec(change(), 1..4),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(base, on_stale, changes, dry_run)| Step::Submit {
            base,
            on_stale,
            changes,
            dry_run,
        })
}

/// Any step; submissions are the most common ones.
pub fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => submit(),
        1 => (0..4usize).prop_map(Step::Repeat),
        1 => (0..4usize).prop_map(Step::Rollback),
        1 => (0..4usize).prop_map(Step::Revert),
        1 => Just(Step::Undo),
        1 => (0..4usize).prop_map(Step::Lease),
        1 => (0..4usize, 1..100u64).prop_map(|(back, ttl)| Step::LeaseDetached(back, ttl)),
        1 => (0..4usize).prop_map(Step::Release),
        1 => (0..4usize).prop_map(Step::Pin),
        1 => (0..4usize).prop_map(Step::Unpin),
        2 => (0..3u64, 0..50u64).prop_map(|(keep, min_age)| Step::Collect { keep, min_age }),
        1 => (1..200u64).prop_map(Step::Advance),
        1 => Just(Step::Idle),
        1 => Just(Step::Reopen),
        1 => Just(Step::Kill),
        1 => Just(Step::Reboot),
    ]
}
