//! Limits and name policies.

use semaprax_protocol::Code;
use semaprax_protocol::request::{Method as _, Publish, PublishOptions, Request};
use semaprax_protocol::submission::{Change, Edit, Read};
use semaprax_tests::fixture::{Fixture, check, put, refused, submission};

#[track_caller]
fn check_limit(set: impl Fn(&mut semaprax_protocol::Limits), changes: Vec<Change>, expect: &str) {
    let mut fixture = Fixture::new();
    set(&mut fixture.config.limits);
    fixture.write("a", "12345");
    fixture.init().unwrap();
    let said = match fixture.publish(changes) {
        Ok(_) => "published".to_owned(),
        Err(refusal) => refused(&refusal),
    };
    assert_eq!(said, expect);
}

#[test]
fn limits() {
    let file = |limits: &mut semaprax_protocol::Limits| limits.file_bytes = 6;
    check_limit(file, vec![put("b", "123456")], "published");
    check_limit(
        file,
        vec![put("b", "1234567")],
        "failed limit-exceeded #0 b",
    );
    let edit = |new: &str| Change::Edit {
        path: "a".to_owned(),
        edits: vec![Edit {
            old: "5".to_owned(),
            new: new.to_owned(),
        }],
        expect: None,
        reason: None,
    };
    check_limit(file, vec![edit("xx")], "published");
    check_limit(file, vec![edit("xxx")], "failed limit-exceeded a");
    let whole = |limits: &mut semaprax_protocol::Limits| limits.submission_bytes = 6;
    check_limit(whole, vec![put("b", "123"), put("c", "456")], "published");
    check_limit(
        whole,
        vec![put("b", "123"), put("c", "4567")],
        "failed limit-exceeded #1 c",
    );
    let count = |limits: &mut semaprax_protocol::Limits| limits.changes = 2;
    check_limit(count, vec![put("b", ""), put("c", "")], "published");
    check_limit(
        count,
        vec![put("b", ""), put("c", ""), put("d", "")],
        "failed limit-exceeded",
    );
}

#[test]
fn labels_are_bounded() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let mut check = |author: &str, message: &str, reads: usize, expect: Option<Code>| {
        let mut sent = submission(vec![put("a", "2")]);
        sent.author = author.to_owned();
        sent.message = message.to_owned();
        sent.reads = vec![
            Read {
                path: "n".to_owned(),
                sha256: None,
                absent: Some(true),
            };
            reads
        ];
        let outcome = fixture.submit(sent, true);
        assert_eq!(outcome.err().map(|refusal| refusal.code()), expect);
    };
    check(&"x".repeat(256), &"x".repeat(4096), 10_000, None);
    check("ok", "two\nlines", 0, None);
    check(&"x".repeat(257), "", 0, Some(Code::LimitExceeded));
    check("", &"x".repeat(4097), 0, Some(Code::LimitExceeded));
    check("", "", 10_001, Some(Code::LimitExceeded));
    check("a\nb", "", 0, Some(Code::InvalidSubmission));
}

#[test]
fn limits_are_shown() {
    let fixture = Fixture::with_files(&[("a", "1")]);
    let limits = fixture.status().limits.unwrap();
    assert_eq!(limits.file_bytes, 64 << 20);
    assert_eq!(limits.submission_bytes, 256 << 20);
    assert_eq!(
        (limits.changes, limits.queue, limits.message_bytes),
        (10_000, 1024, 4096)
    );
}

#[test]
fn a_submission_is_understood_or_refused() {
    let check = |text: &str, expect: Option<Code>| {
        let raw = serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
        let outcome = Request::parse("publish", Some(&raw)).map(drop);
        assert_eq!(
            outcome.err().map(|refusal| refusal.code()),
            expect,
            "{text}"
        );
    };
    let whole = |changes: &str| format!(r#"{{"submission":{{"changes":[{changes}]}}}}"#);
    check(&whole(""), None);
    check(&whole(r#"{"op":"put","path":"a","content":""}"#), None);
    for bad in [
        r#"{"op":"put","path":"a","content":"","colour":1}"#,
        r#"{"op":"put","content":""}"#,
        r#"{"op":"put","path":1,"content":""}"#,
        r#"{"op":"paint","path":"a"}"#,
        r#"{"path":"a"}"#,
        r#"{"op":"put","path":"a","content":"","mode":"0755"}"#,
        r#"{"op":"put","path":"a","content":"","expect":{"sha256":"xyz"}}"#,
        r#"{"op":"put","path":"a","content":"","expect":{"md5":"x"}}"#,
        r#"{"op":"edit","path":"a","edits":[{"old":"x"}]}"#,
        r#"{"op":"chmod","path":"a"}"#,
        "7",
    ] {
        check(&whole(bad), Some(Code::InvalidSubmission));
    }
    for bad in [
        r#"{"submission":{}}"#,
        r#"{"submission":{"changes":{}}}"#,
        r#"{"submission":{"changes":[],"schema":"semaprax.submission/2"}}"#,
        r#"{"submission":{"changes":[],"id":"x"}}"#,
        r#"{"submission":{"changes":[],"onStale":"force"}}"#,
        r#"{"submission":{"changes":[],"reads":[{"sha256":"x"}]}}"#,
        "{}",
        "[]",
    ] {
        check(bad, Some(Code::InvalidSubmission));
    }
    let params = Publish {
        submission: submission(vec![put("a", "1")]),
        options: PublishOptions::default(),
    };
    let again = Request::parse("publish", Some(&params.clone().request().params().unwrap()));
    assert_eq!(again.unwrap(), params.request());
}

#[test]
fn contradictory_contents_and_expectations() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let mut check = |text: &str| {
        let change: Change = serde_json::from_str(text).unwrap();
        let refusal = fixture.publish(vec![change]).unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidSubmission, "{text}");
        assert_eq!(refusal.diagnostics[0].change, Some(0), "{text}");
    };
    check(r#"{"op":"put","path":"b"}"#);
    check(r#"{"op":"put","path":"b","content":"","contentBase64":""}"#);
    check(r#"{"op":"put","path":"b","contentBase64":"%"}"#);
    check(r#"{"op":"put","path":"b","content":"","expect":{}}"#);
    check(r#"{"op":"put","path":"b","content":"","expect":{"absent":false}}"#);
    let both = format!(
        r#"{{"op":"put","path":"b","content":"","expect":{{"absent":true,"sha256":"{}"}}}}"#,
        "0".repeat(64)
    );
    check(&both);
    check(r#"{"op":"edit","path":"a","edits":[]}"#);
    check(r#"{"op":"edit","path":"a","edits":[{"old":"","new":"x"}]}"#);
}

#[test]
fn spellings_that_no_workspace_takes() {
    for policy in ["native", "portable"] {
        for path in [
            "/etc/x",
            "../x",
            "a/../b",
            "a/./b",
            "a//b",
            "a/",
            ".git/x",
            "d/.GIT",
            "d/.Git/x",
            ".semaprax-workspace/x",
            "a\\0b",
            "a\\nb",
        ] {
            let shown = semaprax_tests::fixture::unescape(path);
            check(
                &format!("names {policy}\nfile a 1\npublish\n  put {path} x"),
                &format!("failed path-refused #0 {}", shown.escape_debug()),
            );
        }
    }
    let long = format!("{}/x", "y".repeat(256));
    check(
        &format!("file a 1\npublish\n  put {long} x"),
        &format!("failed path-refused #0 {long}"),
    );
}

#[test]
fn portable_names() {
    for path in [
        "a:b", "con", "nul.txt", "x.", "b\\\\c", "e\u{301}", "d/COM1", "a*",
    ] {
        let shown = semaprax_tests::fixture::unescape(path);
        check(
            &format!("file a 1\npublish\n  put {path} x"),
            &format!("failed path-refused #0 {}", shown.escape_debug()),
        );
        check(
            &format!("names native\nfile a 1\npublish\n  put {path} x"),
            &format!("published @2: created {shown}"),
        );
    }
    // Every path of a submission is judged, also one that only goes away or is only read.
    check(
        "file a 1\npublish\n  move a a:b\npublish\n  put b x\n  read a:b -",
        "failed path-refused #0 a:b\nfailed path-refused a:b",
    );
}

#[test]
fn names_that_differ_in_case_only() {
    check(
        "file src/a 1
         file Read.md 1
         publish
           put READ.md 2
         publish
           put SRC/new 2
         publish
           put src/A 2
         publish
           move src/a src/A
         publish
           move Read.md t
           move t read.md
         publish
           move! src SRC
         publish
           put STRASSE 1
         publish
           put stra\u{df}e 1
         publish
           put n/a 1
           put N/b 1
         publish
           delete read.md
           put README.MD 1
         tree",
        "rejected path-collision READ.md found=Read.md
         rejected path-collision SRC/new found=src
         rejected path-collision src/A found=src/a
         published @2: renamed src/a -> src/A
         published @3: renamed Read.md -> read.md
         published @4: renamed src/A -> SRC/A
         published @5: created STRASSE
         rejected path-collision stra\u{df}e found=STRASSE
         rejected path-collision N/b found=n; path-collision n/a found=N
         published @6: renamed read.md -> README.MD
         README.MD=1 SRC/A=1 STRASSE=1",
    );
    check(
        "names native
         file a 1
         publish
           put A 2
           put d/x 1
           put D/x 1
         tree",
        "published @2: created A, created D/x, created d/x
         A=2 D/x=1 a=1 d/x=1",
    );
}

#[test]
fn the_policy_of_an_import() {
    use semaprax_protocol::NamePolicy;
    let policy = |names: Option<NamePolicy>, files: &[&str]| {
        let mut fixture = Fixture::new();
        fixture.names = names;
        for file in files {
            fixture.write(file, "x");
        }
        let made = fixture.init().unwrap();
        (made.names.to_string(), made.files, made.skipped_total)
    };
    assert_eq!(policy(None, &["a", "b"]), ("portable".to_owned(), 2, 0));
    assert_eq!(policy(None, &["a", "b:c"]), ("native".to_owned(), 2, 0));
    assert_eq!(policy(None, &["d/a", "D/b"]), ("native".to_owned(), 2, 0));
    let portable = Some(NamePolicy::Portable);
    assert_eq!(
        policy(portable, &["a", "b:c", "A"]),
        ("portable".to_owned(), 1, 2)
    );
    let native = Some(NamePolicy::Native);
    assert_eq!(policy(native, &["a"]), ("native".to_owned(), 1, 0));
}
