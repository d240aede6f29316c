//! A submission id takes effect at most once; receipts.

use semaprax_protocol::documents::ReceiptStatus;
use semaprax_protocol::request::{Publish, PublishOptions};
use semaprax_protocol::submission::Change;
use semaprax_protocol::{Code, SubmissionId};
use semaprax_tests::fixture::{Fixture, check, id, put, sha256, submission};
use std::sync::Arc;

#[test]
fn a_repeated_submission_returns_its_first_outcome() {
    check(
        r"file a 1
          publish id=1 by=me
            put a 2
          publish
            put a 3
          publish id=1 by=me
            put a 2
          publish id=1 by=you
            put a 2
          publish id=1 by=me
            put a 4
          publish id=1 by=me base=@1
            put a 2
          publish id=1 by=me merge
            put a 2
          publish id=1 by=me message=m
            put a 2
          publish id=1 by=me
            put a 2
            read a 1
          tree
          reopen
          publish id=1 by=me
            put a 2
          log",
        "published @2: modified a
         published @3: modified a
         published @2 replayed: modified a
         failed invalid-submission
         failed invalid-submission
         failed invalid-submission
         failed invalid-submission
         failed invalid-submission
         failed invalid-submission
         a=3
         -
         published @2 replayed: modified a
         @3(1) @2(1) @1(1)",
    );
}

#[test]
fn unchanged_binds_for_thirty_days() {
    check(
        r"file a 1
          publish id=1
            put a 1
          publish
            put a 2
          publish id=1
            put a 1
          publish id=1
            put a 7
          clock 2591000
          publish id=1
            put a 1
          clock 1000
          publish id=1
            put a 1
          publish id=1
            put a 1",
        "unchanged @1
         published @2: modified a
         unchanged @1 replayed
         failed invalid-submission
         -
         unchanged @1 replayed
         -
         published @3: modified a
         published @3 replayed: modified a",
    );
    // A publication binds for ever, also past what the collector forgets.
    check(
        r"file a 1
          publish id=1
            put a 2
          publish id=2
            put a 2
          clock 99999999
          gc
          publish id=1
            put a 2
          publish id=1
            put a 3
          publish id=2
            put a 3",
        "published @2: modified a
         unchanged @2
         -
         removed
         published @2 replayed: modified a
         failed invalid-submission
         published @3: modified a",
    );
}

#[test]
fn refusals_and_dry_runs_do_not_bind() {
    check(
        r"file a 1
          publish id=1
            delete none
          publish id=1 dry
            put a 2
          publish id=1 dry
            put a 3
          publish id=1
            put a 4
          publish id=1 dry
            put a 5",
        "rejected not-found #0 none
         ready: modified a
         ready: modified a
         published @2: modified a
         ready: modified a",
    );
}

#[test]
fn the_other_requests_replay_too() {
    check(
        r"file a 1
          publish
            put a 2
          rollback @1 id=1
          rollback @1 id=1
          rollback @2 id=1
          undo id=2
          undo id=2
          revert 2 id=3
          revert 2 id=3
          revert 3 id=3
          revert 2 id=2
          tree",
        "published @2: modified a
         published @3: modified a
         published @3 replayed: modified a
         failed invalid-submission
         published @4: modified a
         published @4 replayed: modified a
         published @5: modified a
         published @5 replayed: modified a
         failed invalid-submission
         failed invalid-submission
         a=1",
    );
}

/// The answer was lost on the way, and the connection with it: what was sent ahead is gone, the
/// submission is the same.
#[test]
fn a_repeat_needs_nothing_that_the_first_one_needed() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let content = b"sent ahead".to_vec();
    let mut change = put("a", "");
    if let Change::Put {
        content: text,
        content_blob,
        ..
    } = &mut change
    {
        *text = None;
        *content_blob = Some(sha256(&content));
    }
    let request = |id: SubmissionId| Publish {
        submission: semaprax_protocol::submission::Submission {
            id: Some(id),
            ..submission(vec![change.clone()])
        },
        options: PublishOptions::default(),
    };
    let none = fixture
        .perform_as(request(id(1)), Some(id(1)), [].into())
        .unwrap_err();
    assert_eq!(none.code(), Code::InvalidSubmission);
    let uploads = [(sha256(&content), Arc::new(content.clone()))].into();
    let first = fixture
        .perform_as(request(id(1)), Some(id(1)), uploads)
        .unwrap();
    assert_eq!(fixture.content(None, "a").unwrap(), content);
    let again = fixture
        .perform_as(request(id(1)), Some(id(1)), [].into())
        .unwrap();
    assert!(again.replayed);
    assert_eq!(again.seq, first.seq);
}

#[test]
fn a_receipt_says_everything() {
    let mut fixture = Fixture::with_files(&[("a", "one"), ("b", "two")]);
    let (_, first) = fixture.active();
    fixture.tick();
    let mut sent = submission(vec![put("a", "three"), put("c", "four")]);
    sent.id = Some(id(9));
    sent.author = "agent".to_owned();
    sent.message = "why".to_owned();

    let ready = fixture.submit(sent.clone(), true).unwrap();
    assert_eq!(ready.status, ReceiptStatus::Ready);
    assert_eq!(
        (ready.seq, ready.revision, ready.record, ready.published_at),
        (None, None, None, None)
    );
    assert_eq!((ready.parent, ready.base), (Some(first), Some(first)));
    assert_eq!(fixture.active().1, first, "a dry run publishes nothing");

    let receipt = fixture.submit(sent.clone(), false).unwrap();
    assert_eq!(receipt.tree, ready.tree);
    assert_eq!(receipt.changes, ready.changes);
    let active = fixture.status().active;
    assert_eq!(receipt.status, ReceiptStatus::Published);
    assert_eq!(receipt.submission, id(9));
    assert_eq!(receipt.seq, Some(active.seq));
    assert_eq!(receipt.revision, Some(active.revision));
    assert_eq!(receipt.tree, active.tree);
    assert_eq!(receipt.published_at, Some(active.published_at));
    assert_eq!((receipt.parent, receipt.base), (Some(first), Some(first)));
    assert_eq!(
        (receipt.author.as_str(), receipt.message.as_str()),
        ("agent", "why")
    );
    assert_eq!(receipt.file_count, 3);
    assert!(receipt.gates.is_empty() && receipt.merged.is_empty());
    assert!(!receipt.rebased && !receipt.replayed && !receipt.truncated);
    let change = &receipt.changes[0];
    assert_eq!(change.before_sha256, Some(sha256(b"one")));
    assert_eq!(change.after_sha256, Some(sha256(b"three")));
    assert_eq!(change.bytes, Some(5));
    let created = &receipt.changes[1];
    assert_eq!(created.before_sha256, None);
    assert_eq!(created.after_sha256, Some(sha256(b"four")));
    let shown = fixture
        .ask(semaprax_protocol::request::Show {
            revision: "@".to_owned(),
        })
        .unwrap();
    assert_eq!(Some(shown.record), receipt.record);
    assert_eq!(shown.changes, receipt.changes);

    let mut again = fixture.submit(sent, false).unwrap();
    assert!(again.replayed);
    again.replayed = false;
    assert_eq!(again, receipt);

    let unchanged = fixture.publish(vec![put("a", "three")]).unwrap();
    assert_eq!(unchanged.status, ReceiptStatus::Unchanged);
    assert_eq!(unchanged.seq, receipt.seq);
    assert_eq!(unchanged.revision, receipt.revision);
    assert_eq!(unchanged.record, receipt.record);
    assert_eq!(unchanged.published_at, receipt.published_at);
    assert_ne!(unchanged.submission, receipt.submission);
    assert!(unchanged.changes.is_empty());
}

#[test]
fn a_dry_run_leaves_nothing() {
    let mut fixture = Fixture::with_files(&[("a", "one")]);
    let before = fixture.journal(0).len();
    fixture
        .submit(submission(vec![put("a", "two")]), true)
        .unwrap();
    fixture
        .submit(submission(vec![put("a", "one")]), true)
        .unwrap();
    assert_eq!(fixture.journal(0).len(), before);
    semaprax_tests::oracle::check_whole(&mut fixture);
    assert_eq!(
        fixture
            .state("generations")
            .read_dir_utf8()
            .unwrap()
            .count(),
        1
    );
}
