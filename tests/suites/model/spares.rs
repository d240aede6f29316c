//! A tree made of a spare against one made by links: the same requests on two workspaces, of which one
//! has an idle moment before each.
//!
//! Both must be the same on disk: names, kinds, modes, times, bytes.

use std::os::unix::fs::MetadataExt as _;

use camino::Utf8Path;
use proptest::prelude::*;
use semaprax_protocol::request::{Attribution, PublishOptions, Revert, Rollback, Undo};
use semaprax_tests::fixture::{Fixture, submission};
use semaprax_tests::oracle::{mtime, tree_on_disk};

use crate::step::{Step, lines, step};

/// A path with its mode, its time and its bytes.
type Line = (String, u32, i64, Vec<u8>);

fn listing(fixture: &Fixture) -> Vec<Line> {
    let files = fixture.files_of(&fixture.active().1);
    let tree = tree_on_disk(&files);
    let line = |(path, (_, bytes)): (String, (_, Vec<u8>))| {
        let place = files.join(&path);
        let mode = std::fs::symlink_metadata(&place).unwrap().mode();
        let time = mtime(&place);
        (path, mode, time, bytes)
    };
    tree.into_iter().map(line).collect()
}

fn inode(place: &Utf8Path) -> u64 {
    std::fs::metadata(place).unwrap().ino()
}

fn spares(fixture: &Fixture) -> Vec<u64> {
    let staging = fixture.state("staging").read_dir_utf8().unwrap();
    staging
        .map(|entry| inode(&entry.unwrap().path().join("files")))
        .collect()
}

/// Takes a step; whether something was published, and what was said.
fn take(fixture: &mut Fixture, step: &Step) -> (bool, String) {
    fixture.tick();
    let before = fixture.active();
    let back = |steps: usize| {
        let steps = u64::try_from(steps).unwrap();
        before.0.get().saturating_sub(steps).max(1)
    };
    let outcome = match step {
        Step::Submit {
            base,
            on_stale,
            changes,
            dry_run,
        } => {
            let mut sent = submission(changes.clone());
            sent.base = base.map(|steps| format!("@{}", back(steps)));
            sent.on_stale = *on_stale;
            fixture.submit(sent, *dry_run)
        }
        Step::Rollback(steps) => fixture.perform(Rollback {
            revision: format!("@{}", back(*steps)),
            attribution: Attribution::default(),
            options: PublishOptions::default(),
        }),
        Step::Revert(steps) => fixture.perform(Revert {
            seq: back(*steps).to_string().parse().unwrap(),
            attribution: Attribution::default(),
            options: PublishOptions::default(),
        }),
        _ => fixture.perform(Undo {
            attribution: Attribution::default(),
            options: PublishOptions::default(),
        }),
    };
    let said = match outcome {
        Ok(receipt) => format!("{:?} {:?}", receipt.status, receipt.revision),
        Err(refusal) => refusal.to_string(),
    };
    (fixture.active() != before, said)
}

pub fn publishes(step: &Step) -> bool {
    matches!(
        step,
        Step::Submit { .. } | Step::Rollback(_) | Step::Revert(_) | Step::Undo
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn a_tree_made_of_a_spare_is_the_one_made_by_links(
        steps in prop::collection::vec(step().prop_filter("publishes", publishes), 1..12),
        idles in prop::collection::vec(0..3u8, 12),
    ) {
        let whole = lines(None);
        let files = [("a", whole.as_str()), ("d/x", &whole), ("t", "t\n")];
        let (mut spared, mut linked) = (Fixture::with_files(&files), Fixture::with_files(&files));
        for (step, idle) in steps.iter().zip(idles) {
            // Also spares that lag behind, and none at all.
            if idle > 0 {
                spared.writer().idle();
            }
            let had = spares(&spared);
            let (published, said) = take(&mut spared, step);
            let (_, expect) = take(&mut linked, step);
            prop_assert_eq!(said, expect);
            prop_assert_eq!(listing(&spared), listing(&linked));
            let active = inode(&spared.files_of(&spared.active().1));
            prop_assert_eq!(published && !had.is_empty(), had.contains(&active));
        }
    }
}
