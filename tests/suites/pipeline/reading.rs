//! What readers are answered: log, show, diff, ls, cat, blame, watch.

use semaprax_protocol::documents::EventKind;
use semaprax_protocol::request::{Content, List, Resolve, Show};
use semaprax_protocol::{Code, Seq};
use semaprax_tests::fixture::{Fixture, check, refused};

#[test]
fn log_is_newest_first_and_filtered() {
    check(
        r"file a 1
          file d/x 1
          publish by=me
            put a 2
          publish by=you
            put d/x 2
            put d/y 2
          publish by=me
            move! d e
          log
          log limit=2
          log before=3
          log by=me
          log path=a
          log path=d
          log path=d/x
          log path=e/y
          log path=none
          log by=me limit=1
          log by=nobody",
        "published @2: modified a
         published @3: modified d/x, created d/y
         published @4: renamed d/x -> e/x, renamed d/y -> e/y
         @4(2) @3(2) @2(1) @1(2)
         @4(2) @3(2) ...
         @2(1) @1(2)
         @4(2) @2(1)
         @2(1) @1(2)
         @4(2) @3(2) @1(2)
         @4(2) @3(2) @1(2)
         @4(2)
         @4(2) ...",
    );
}

#[test]
fn blame() {
    check(
        r"file t a\nb\nc\n
          file u x\n
          publish
            edit t b\n => B\n
          blame t
          publish
            edit t c\n => c\nd\n
          blame t
          rollback @1
          blame t
          blame t @3
          publish
            move t s
          blame s
          publish
            move s r
            edit r a\n => A\n
          blame r
          blame u
          publish
            put n \0
          blame n
          blame none",
        "published @2: modified t
         1 2 1
         published @3: modified t
         1 2 1 3
         published @4: modified t
         1 4 1
         1 2 1 3
         published @5: renamed t -> s
         1 4 1
         published @6: renamed s -> r
         6 4 1
         1
         published @7: created n
         failed invalid-request n
         failed not-found none",
    );
}

#[test]
fn paths_that_are_not_there() {
    check(
        r"file d/x 1
          cat d/x
          cat @1:d/x
          cat none
          cat d
          cat d/x/y
          cat ../x
          cat @2:d/x",
        "1
         1
         failed not-found none
         failed not-found d
         failed not-found d/x/y
         failed path-refused ../x
         failed unknown-revision",
    );
}

#[test]
fn content_comes_in_pieces() {
    let fixture = Fixture::with_files(&[("t", "0123456789"), ("big", &"x".repeat(3 << 20))]);
    let check = |offset: u64, length: Option<u64>, expect: &str| {
        use base64::Engine as _;
        let chunk = fixture.ask(Content {
            revision: None,
            path: "t".to_owned(),
            offset,
            length,
        });
        let data = base64::engine::general_purpose::STANDARD
            .decode(chunk.unwrap().data)
            .unwrap();
        assert_eq!(
            String::from_utf8(data).unwrap(),
            expect,
            "{offset} {length:?}"
        );
    };
    check(0, None, "0123456789");
    check(3, Some(4), "3456");
    check(8, Some(4), "89");
    check(10, None, "");
    check(99, Some(1), "");
    check(u64::MAX, Some(u64::MAX), "");
    assert_eq!(fixture.content(None, "big").unwrap().len(), 3 << 20);
}

#[test]
fn ls_lists_in_path_order_and_in_pages() {
    let fixture = Fixture::with_files(&[
        ("a/x", ""),
        ("a-b", ""),
        ("a.c", ""),
        ("b", ""),
        ("a/y/z", ""),
    ]);
    let list = |prefix: Option<&str>, after: Option<&str>, limit: Option<u64>| {
        let listing = fixture.ask(List {
            revision: None,
            prefix: prefix.map(str::to_owned),
            after: after.map(|after| after.parse().unwrap()),
            limit,
        });
        match listing {
            Ok(listing) => {
                let mut paths: Vec<String> = listing
                    .entries
                    .iter()
                    .map(|entry| entry.path.to_string())
                    .collect();
                if listing.truncated {
                    paths.push("...".to_owned());
                }
                paths.join(" ")
            }
            Err(refusal) => refused(&refusal),
        }
    };
    assert_eq!(list(None, None, None), "a-b a.c a/x a/y/z b");
    assert_eq!(list(Some("a"), None, None), "a/x a/y/z");
    assert_eq!(list(Some("a/"), None, None), "a/x a/y/z");
    assert_eq!(list(Some("a/x"), None, None), "a/x");
    assert_eq!(list(Some("."), None, Some(2)), "a-b a.c ...");
    assert_eq!(list(None, Some("a.c"), Some(2)), "a/x a/y/z ...");
    assert_eq!(list(None, Some("a/x"), Some(2)), "a/y/z b");
    assert_eq!(list(Some("a/x"), Some("a/x"), None), "");
    assert_eq!(list(Some("none"), None, None), "failed not-found none");
    assert_eq!(list(Some("b/x"), None, None), "failed not-found b/x");
}

#[test]
fn revisions_are_resolved() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    fixture.put("a", "2");
    fixture.put("a", "3");
    let whole = fixture.revision(2).to_string();
    let resolve = |text: &str| {
        let request = Resolve {
            revision: text.to_owned(),
        };
        match fixture.ask(request) {
            Ok(found) => found.seq.to_string(),
            Err(refusal) => refusal.code().word().to_owned(),
        }
    };
    for (text, expect) in [
        ("@", "3"),
        ("@1", "1"),
        ("@-1", "2"),
        ("@-0", "3"),
        ("@-2", "1"),
        ("@-3", "unknown-revision"),
        ("@0", "unknown-revision"),
        ("@4", "unknown-revision"),
        ("@99999999999999999999999", "unknown-revision"),
        ("@x", "unknown-revision"),
        ("@-", "unknown-revision"),
        ("", "unknown-revision"),
        ("2", "unknown-revision"),
        (&whole, "2"),
        (&whole[..6], "2"),
        (&whole[..5], "unknown-revision"),
        (&whole.to_uppercase(), "unknown-revision"),
        (&format!("{whole}0"), "unknown-revision"),
        ("é00000", "unknown-revision"),
    ] {
        assert_eq!(resolve(text), expect, "{text:?}");
    }
}

#[test]
fn a_subscriber_goes_on_from_its_token() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let start = fixture.workspace().watch_start(None).unwrap();
    assert_eq!((start.event, start.seq), (EventKind::Snapshot, Seq::FIRST));
    fixture.put("a", "2");
    fixture.put("b", "1");
    let check = |token: &str, event: EventKind, seq: u64| {
        let found = fixture.workspace().watch_start(Some(token)).unwrap();
        assert_eq!((found.event, found.seq.get()), (event, seq), "{token}");
    };
    check(&start.token, EventKind::Snapshot, 1);
    check("1", EventKind::Snapshot, 1);
    check("3", EventKind::Snapshot, 3);
    check("4", EventKind::Fresh, 3);
    // The same number with another record is another history.
    check(&format!("2:{}", "0".repeat(64)), EventKind::Fresh, 3);
    for token in ["", "x", "0", "1:", "1:xyz", ":"] {
        let refusal = fixture.workspace().watch_start(Some(token)).unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidRequest, "{token:?}");
    }
    let workspace = fixture.workspace();
    let events = workspace.events_after(Seq::FIRST, 100).unwrap();
    let seqs: Vec<u64> = events.iter().map(|event| event.seq.get()).collect();
    assert_eq!(seqs, [2, 3]);
    assert_eq!(workspace.events_after(Seq::FIRST, 1).unwrap(), events[..1]);
    for event in &events {
        assert_eq!(event.event, EventKind::Published);
        let shown = fixture
            .ask(Show {
                revision: event.revision.to_string(),
            })
            .unwrap();
        assert_eq!(event.changes.as_ref(), Some(&shown.changes));
        assert_eq!(event.parent, shown.parent);
        assert_eq!(event.token, format!("{}:{}", event.seq, shown.record));
    }
    // A token survives a restart.
    let token = events[0].token.clone();
    fixture.close();
    fixture.open().unwrap();
    let found = fixture.workspace().watch_start(Some(&token)).unwrap();
    assert_eq!((found.event, found.seq.get()), (EventKind::Snapshot, 2));
}

#[test]
fn rollback_revert_and_undo() {
    check(
        r"file a 1
          file t 1\n2\n3\n4\n5\n
          publish message=first
            put a 2
            edit t 1\n => one\n
          publish
            edit t 5\n => five\n
          revert 2
          tree
          undo
          tree
          undo
          undo
          tree
          rollback @1
          rollback @1
          show @1
          show @",
        r"published @2: modified a, modified t
          published @3: modified t
          published @4 merged=t: modified a, modified t
          a=1 t=1\n2\n3\n4\nfive\n
          published @5: modified a, modified t
          a=2 t=one\n2\n3\n4\nfive\n
          published @6: modified a, modified t
          published @7: modified a, modified t
          a=2 t=one\n2\n3\n4\nfive\n
          published @8: modified a, modified t
          unchanged @8
          @1 created a, created t
          @8 modified a, modified t",
    );
    check(
        r"file a 1
          undo
          revert 1
          revert 2
          publish
            put a 2
          publish
            put a 3
          revert 2
          revert 2 dry
          rollback @2 dry
          rollback @9
          undo dry
          log",
        "failed not-found
         failed not-found
         failed unknown-revision
         published @2: modified a
         published @3: modified a
         rejected merge-conflict a sides=xxx lines=1-1|1-1|1-1
         rejected merge-conflict a sides=xxx lines=1-1|1-1|1-1
         ready: modified a
         failed unknown-revision
         ready: modified a
         @3(1) @2(1) @1(1)",
    );
}

#[test]
fn messages_of_what_goes_back_say_so() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    fixture.run("publish message=first\n  put a 2\nundo\nrollback @2\nrevert 2 message=mine by=me");
    let message = |seq: u64| {
        let shown = fixture.ask(Show {
            revision: format!("@{seq}"),
        });
        shown.unwrap().message
    };
    assert_eq!(message(3), "undo @2: first");
    assert!(message(4).starts_with("rollback to @2 ("), "{}", message(4));
    assert_eq!(message(5), "mine");
}

/// Whoever wrote as much as is allowed does not keep the next one from going back.
#[test]
fn going_back_from_the_longest_message_is_possible() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let message = "é".repeat(2048);
    fixture.run(&format!(
        "publish message={message}\n  put a 2\nundo\nrevert 3"
    ));
    let message = |seq: u64| {
        let shown = fixture.ask(Show {
            revision: format!("@{seq}"),
        });
        shown.unwrap().message
    };
    assert_eq!(message(2).len(), 4096);
    assert!(message(3).starts_with("undo @2: éé"), "{}", message(3));
    assert!(
        message(4).starts_with("revert @3: undo @2: éé"),
        "{}",
        message(4)
    );
}
