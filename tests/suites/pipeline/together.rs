//! Submissions that share a turn: one transaction, one switch of ACTIVE, one tree; and all or none of them.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use semaprax_protocol::request::{Publish, PublishOptions, Request, Response};
use semaprax_protocol::submission::Change;
use semaprax_protocol::{Code, Refusal, SubmissionId};
use semaprax_tests::fixture::{Fixture, id, put, receipt, refused, submission};
use semaprax_tests::oracle::{check_whole, tree_on_disk};

fn submit(number: u64, base: Option<&str>, changes: Vec<Change>) -> (Request, SubmissionId) {
    let mut submission = submission(changes);
    submission.id = Some(id(number));
    submission.base = base.map(str::to_owned);
    let options = PublishOptions::default();
    let publish = Publish {
        submission,
        options,
    };
    (Request::Publish(publish), id(number))
}

fn files(count: u64) -> Vec<(Request, SubmissionId)> {
    (1..=count)
        .map(|number| submit(number, None, vec![put(&format!("f{number}"), "x")]))
        .collect()
}

fn said(answers: Vec<Result<Response, Refusal>>) -> Vec<String> {
    answers
        .into_iter()
        .map(|answer| match answer {
            Ok(Response::Publish(found)) => receipt(&found),
            Ok(other) => format!("{other:?}"),
            Err(refusal) => refused(&refusal),
        })
        .collect()
}

fn kinds(fixture: &Fixture) -> Vec<String> {
    let entries = fixture.journal(1).into_iter();
    entries.map(|entry| entry.kind).collect()
}

#[test]
fn many_publications_make_one_tree_and_one_switch() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let switches = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&switches);
    fixture.test.disk.fail_when(move |operation, path| {
        let is_switch = operation == "rename" && path.file_name() == Some("ACTIVE");
        count.fetch_add(u64::from(is_switch), Ordering::Relaxed);
        None
    });
    let answers = said(fixture.perform_together(files(5)));
    assert_eq!(
        answers,
        [
            "published @2: created f1",
            "published @3: created f2",
            "published @4: created f3",
            "published @5: created f4",
            "published @6: created f5",
        ]
    );
    assert_eq!(switches.load(Ordering::Relaxed), 1);
    assert_eq!(fixture.active().0.get(), 6);
    let is_there = |fixture: &Fixture, seq| fixture.files_of(&fixture.revision(seq)).exists();
    let there: Vec<u64> = (1..=6).filter(|&seq| is_there(&fixture, seq)).collect();
    assert_eq!(there, [1, 6]);
    assert_eq!(kinds(&fixture), ["published"; 5]);
    // Whoever leases one in between gets its tree.
    let grant = fixture.acquire(Some("@4")).unwrap();
    let held: Vec<String> = tree_on_disk(&grant.path).into_keys().collect();
    assert_eq!(held, ["a", "f1", "f2", "f3"]);
    assert_eq!(fixture.run("stamps @4"), "a@1 f1@2 f2@3 f3@4\n");
    assert_eq!(fixture.run("stamps"), "a@1 f1@2 f2@3 f3@4 f4@5 f5@6\n");
    check_whole(&mut fixture);
}

/// Each is judged on what the one before it made; what is no publication only on what is ACTIVE.
#[test]
fn each_is_judged_on_the_one_before() {
    let mut fixture = Fixture::with_files(&[("a", "1"), ("b", "1")]);
    let dry_run = {
        let (request, id) = submit(7, None, vec![put("dry", "1")]);
        let Request::Publish(mut publish) = request else {
            panic!("a publish");
        };
        publish.options.dry_run = true;
        (Request::Publish(publish), id)
    };
    let answers = fixture.perform_together(vec![
        submit(1, Some("@1"), vec![put("a", "2")]),
        submit(2, Some("@1"), vec![put("a", "3")]),
        submit(3, Some("@2"), vec![put("a", "4")]),
        submit(4, None, vec![put("a", "4")]),
        submit(5, None, vec![put("b", "2"), put("c", "1")]),
        submit(1, Some("@1"), vec![put("a", "2")]),
        dry_run,
        submit(6, None, vec![put("/", "")]),
    ]);
    assert_eq!(
        said(answers),
        [
            "published @2: modified a",
            "rejected stale-base a active=@2 moved=a",
            "published @3: modified a",
            "unchanged @3",
            "published @4: modified b, created c",
            "published @2 replayed: modified a",
            "ready: created dry",
            "failed path-refused #0 /",
        ]
    );
    let expect = [
        "published",
        "refused",
        "published",
        "unchanged",
        "published",
        "refused",
    ];
    assert_eq!(kinds(&fixture), expect);
    check_whole(&mut fixture);
}

#[test]
fn a_failed_flip_voids_all_of_its_turn() {
    for (operation, name, codes) in [
        ("create", "manifest.json", Code::NoSpace),
        ("create", "f3", Code::NoSpace),
        ("create", "ACTIVE.next", Code::NoSpace),
        ("rename", "ACTIVE", Code::NoSpace),
        ("sync_directory", ".semaprax-workspace", Code::InDoubt),
    ] {
        for is_spared in [false, true] {
            let mut fixture = Fixture::with_files(&[("a", "1")]);
            if is_spared {
                fixture.run("idle");
            }
            fixture.test.disk.fail_when(move |asked, path| {
                (asked == operation && path.file_name() == Some(name))
                    .then_some(ErrorKind::StorageFull)
            });
            let answers = fixture.perform_together(files(3));
            fixture.test.disk.mend();
            for answer in &answers {
                assert_eq!(
                    answer.as_ref().unwrap_err().code(),
                    codes,
                    "{operation} {name}"
                );
            }
            assert_eq!(answers.len(), 3);
            if codes == Code::InDoubt {
                // Recovery finds what stayed: all of them.
                fixture.kill();
                fixture.open().unwrap();
                assert_eq!(fixture.active().0.get(), 4);
                check_whole(&mut fixture);
                continue;
            }
            assert_eq!(fixture.active().0.get(), 1, "{operation} {name}");
            // The ids are free, and the workspace goes on.
            let answers = said(fixture.perform_together(files(3)));
            assert_eq!(answers[2], "published @4: created f3", "{operation} {name}");
            check_whole(&mut fixture);
        }
    }
}

/// Killed between the transaction and the switch: none of the turn was published.
#[test]
fn records_beyond_active_go_together() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let active = std::fs::read(fixture.state("ACTIVE")).unwrap();
    fixture.perform_together(files(3));
    fixture.kill();
    std::fs::write(fixture.state("ACTIVE"), &active).unwrap();
    fixture.open().unwrap();
    assert_eq!(fixture.active().0.get(), 1);
    let voided = ["publication-voided"; 3];
    assert_eq!(kinds(&fixture), [["published"; 3], voided].concat());
    let answers = said(fixture.perform_together(files(3)));
    assert_eq!(answers[0], "published @2: created f1");
    check_whole(&mut fixture);
}

/// A large blob that cannot be synced: the disk is not trusted any more, and nothing of the turn is
/// published, also what was decided before.
#[test]
fn a_failed_sync_takes_the_turn_along() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    fixture.test.disk.fail_when(|asked, path| {
        let is_object = path.as_str().contains("/object-");
        (asked == "sync_file" && is_object).then_some(ErrorKind::Other)
    });
    let mut requests = files(2);
    requests.push(submit(3, None, vec![put("large", &"x".repeat(100_000))]));
    requests.extend(files(4).into_iter().skip(3));
    let answers = fixture.perform_together(requests);
    fixture.test.disk.mend();
    let codes: Vec<Code> = answers
        .iter()
        .map(|answer| answer.as_ref().unwrap_err().code())
        .collect();
    assert_eq!(codes[..3], [Code::Io; 3]);
    assert_eq!(codes[3..], [Code::RecoveryNeeded]);
    assert_eq!(fixture.active().0.get(), 1);
    fixture.close();
    fixture.open().unwrap();
    let answers = said(fixture.perform_together(files(4)));
    assert_eq!(answers[3], "published @5: created f4");
    check_whole(&mut fixture);
}
