//! Submissions that share turns against the same ones, one after the other, on another workspace.
//!
//! Every answer must be the same to the last digit, every generation the same on disk, every entry of the
//! journal the same: nobody can tell whether a turn was shared.

use proptest::prelude::*;
use semaprax_protocol::request::{
    Attribution, Publish, PublishOptions, Request, Revert, Rollback, Undo,
};
use semaprax_protocol::{LeaseId, SubmissionId};
use semaprax_tests::fixture::{Fixture, id, submission};
use semaprax_tests::oracle::{check_whole, mtime, tree_on_disk};

use crate::spares::publishes;
use crate::step::{Step, lines, step};

/// The request that a step is, while `seq` is ACTIVE.
fn request(step: &Step, seq: u64, id: SubmissionId) -> Request {
    let back = |steps: usize| seq.saturating_sub(steps as u64).max(1);
    let (attribution, options) = (Attribution::default(), PublishOptions::default());
    match step {
        Step::Submit {
            base,
            on_stale,
            changes,
            dry_run,
        } => {
            let mut submission = submission(changes.clone());
            submission.id = Some(id);
            submission.base = base.map(|steps| format!("@{}", back(steps)));
            submission.on_stale = *on_stale;
            let options = PublishOptions {
                dry_run: *dry_run,
                ..options
            };
            Request::Publish(Publish {
                submission,
                options,
            })
        }
        Step::Rollback(steps) => Request::Rollback(Rollback {
            revision: format!("@{}", back(*steps)),
            attribution,
            options,
        }),
        Step::Revert(steps) => Request::Revert(Revert {
            seq: back(*steps).to_string().parse().unwrap(),
            attribution,
            options,
        }),
        _ => Request::Undo(Undo {
            attribution,
            options,
        }),
    }
}

/// Everything of a generation on disk, by a lease of it.
fn generation(fixture: &mut Fixture, seq: u64) -> Vec<String> {
    let grant = fixture.acquire(Some(&format!("@{seq}"))).unwrap();
    let tree = tree_on_disk(&grant.path);
    let line = |(path, (kind, bytes)): (String, (_, Vec<u8>))| {
        let time = mtime(&grant.path.join(&path));
        format!("{path} {kind:?} {time} {bytes:?}")
    };
    let lines = tree.into_iter().map(line).collect();
    let lease: LeaseId = grant.lease;
    fixture.release(lease).unwrap();
    lines
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn a_shared_turn_is_as_good_as_turns_of_ones_own(
        batches in prop::collection::vec(
            (prop::collection::vec(step().prop_filter("publishes", publishes), 1..6), any::<bool>()),
            1..4,
        ),
    ) {
        let whole = lines(None);
        let files = [("a", whole.as_str()), ("d/x", &whole), ("t", "t\n")];
        let (mut shared, mut own) = (Fixture::with_files(&files), Fixture::with_files(&files));
        let mut number = 0;
        for (batch, idles) in batches {
            shared.tick();
            own.tick();
            if idles {
                shared.writer().idle();
            }
            let seq = own.active().0.get();
            let requests: Vec<_> = batch
                .iter()
                .map(|step| {
                    number += 1;
                    (request(step, seq, id(number)), id(number))
                })
                .collect();
            let expect: Vec<_> = requests
                .iter()
                .flat_map(|one| own.perform_together(vec![one.clone()]))
                .collect();
            let got = shared.perform_together(requests);
            prop_assert_eq!(format!("{got:#?}"), format!("{expect:#?}"));
        }
        for seq in 1..=own.active().0.get() {
            prop_assert_eq!(generation(&mut shared, seq), generation(&mut own, seq), "@{}", seq);
        }
        let journal = |fixture: &Fixture| -> Vec<String> {
            let entries = fixture.journal(0).into_iter();
            let entries = entries.filter(|entry| !entry.kind.starts_with("lease"));
            entries.map(|entry| format!("{} {}", entry.kind, entry.detail)).collect()
        };
        // The identifier of the workspace and its import differ.
        prop_assert_eq!(&journal(&shared)[1..], &journal(&own)[1..]);
        check_whole(&mut shared);
    }
}
