//! Bytes in, actions out.

use super::*;
use proptest::prelude::*;

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":{"oldest":1,"newest":1},"client":"t"}}"#;

/// Names an action: `greet 1`, `serve 2 queue`, `ok 3`, `not-found 3`, the code of a sent refusal, `end`.
fn word(action: Action) -> String {
    match action {
        Action::Greet { request, .. } => format!("greet {request}"),
        Action::Serve(call) => format!("serve {} {}", call.id, call.request.method()),
        Action::Answer(id, Ok(_)) => format!("ok {id}"),
        Action::Answer(id, Err(refusal)) => format!("{} {id}", refusal.code()),
        Action::Send(line) => match rpc::decode_incoming(&line).unwrap() {
            rpc::Incoming::Answer { id, result } => {
                format!("{} {id:?}", result.unwrap_err().code())
            }
            rpc::Incoming::Notice(notice) => format!("{notice:?}"),
        },
        Action::End => "end".to_owned(),
    }
}

fn drain(session: &mut Session) -> String {
    let words: Vec<String> = std::iter::from_fn(|| session.next_action())
        .map(word)
        .collect();
    words.join(", ")
}

fn request(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

fn greeted(workspace: bool) -> Session {
    let mut session = Session::new(Limits::default());
    session.receive(format!("{HELLO}\n").as_bytes());
    assert_eq!(drain(&mut session), "greet 1");
    assert!(session.answered(1));
    session.greeted(Ok(workspace.then(Limits::default)));
    session
}

/// Sends lines to a session with a workspace.
fn check(lines: &[String], expected: &str) {
    let mut session = greeted(true);
    session.receive(format!("{}\n", lines.join("\n")).as_bytes());
    assert_eq!(drain(&mut session), expected);
}

#[test]
fn hello_comes_first_and_once() {
    let mut session = Session::new(Limits::default());
    session.receive(format!("{}\n", request(1, "queue", "{}")).as_bytes());
    assert_eq!(drain(&mut session), "invalid-request 1");
    let other = request(
        2,
        "hello",
        r#"{"protocol":{"oldest":7,"newest":9},"client":"t"}"#,
    );
    session.receive(format!("{other}\n").as_bytes());
    assert_eq!(drain(&mut session), "protocol-version 2");
    session.receive(format!("{HELLO}\n{}\n", request(3, "daemon.status", "{}")).as_bytes());
    assert_eq!(drain(&mut session), "greet 1", "what follows waits");
    session.answered(1);
    session.greeted(Err(()));
    assert_eq!(drain(&mut session), "invalid-request 3");
    session.receive(format!("{HELLO}\n{HELLO}\n").as_bytes());
    assert_eq!(drain(&mut session), "greet 1");
    session.answered(1);
    session.greeted(Ok(None));
    assert_eq!(drain(&mut session), "invalid-request 1");
}

#[test]
fn lines_are_served_or_answered() {
    let blob = r#"{"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","bytes":0,"offset":0,"data":""}"#;
    check(&[request(2, "queue", "{}")], "serve 2 queue");
    check(
        &[String::new(), "  ".to_owned(), request(2, "queue", "{}")],
        "serve 2 queue",
    );
    check(
        &[request(2, "queue", "{}"), request(2, "queue", "{}")],
        "serve 2 queue, invalid-request 2",
    );
    check(
        &["{".to_owned(), "[]".to_owned()],
        "invalid-request None, invalid-request None",
    );
    check(&[request(2, "no", "{}")], "invalid-request Some(2)");
    check(
        &[request(2, "publish", r#"{"submission":{"x":1}}"#)],
        "invalid-submission Some(2)",
    );
    check(&[request(2, "blob.put", blob)], "ok 2");
}

#[test]
fn without_a_workspace_little_is_possible() {
    let mut session = greeted(false);
    for (id, method) in ["daemon.status", "daemon.stop", "queue", "status"]
        .iter()
        .enumerate()
    {
        session.receive(format!("{}\n", request(id as u64, method, "{}")).as_bytes());
    }
    assert_eq!(
        drain(&mut session),
        "serve 0 daemon.status, serve 1 daemon.stop, not-a-workspace 2, not-a-workspace 3"
    );
    for (id, method) in ["doctor", "verify"].iter().enumerate() {
        let elsewhere = request(10 + id as u64, method, r#"{"directory":"/x"}"#);
        let here = request(20 + id as u64, method, "{}");
        session.receive(format!("{elsewhere}\n{here}\n").as_bytes());
    }
    assert_eq!(
        drain(&mut session),
        "serve 10 doctor, not-a-workspace 20, serve 11 verify, not-a-workspace 21"
    );
}

#[test]
fn a_long_line_ends_the_connection_after_what_came_before() {
    let mut session = greeted(true);
    session.receive(format!("{}\n", request(2, "queue", "{}")).as_bytes());
    session.receive(&vec![b'x'; LINE_BYTES + 1]);
    assert!(!session.wants_bytes());
    assert_eq!(
        drain(&mut session),
        "serve 2 queue, limit-exceeded None, end"
    );
    assert_eq!(drain(&mut session), "");
}

#[test]
fn when_there_is_no_room_those_go_who_hold_much() {
    // A small client goes on whatever the others hold.
    let mut small = greeted(true);
    small.receive(&vec![b'x'; CONNECTION_BYTES]);
    small.no_room();
    assert!(small.wants_bytes());
    assert_eq!(drain(&mut small), "");
    small.receive(format!("\n{}\n", request(2, "queue", "{}")).as_bytes());
    assert_eq!(drain(&mut small), "invalid-request None, serve 2 queue");
    // A long line, many requests, content sent ahead: each is held, and given back.
    let long = vec![b'x'; CONNECTION_BYTES + 1];
    let blob = r#"{"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","bytes":300000,"offset":0,"data":"DATA"}"#;
    let blob = blob.replace("DATA", &"AAAA".repeat(CONNECTION_BYTES / 3 + 1));
    let owner = format!(r#"{{"owner":"{}"}}"#, "x".repeat(CONNECTION_BYTES));
    let check = |bytes: Vec<u8>, served: &str| {
        let mut session = greeted(true);
        session.receive(&bytes);
        assert_eq!(drain(&mut session), served);
        assert!(session.held() > CONNECTION_BYTES, "{}", session.held());
        session.no_room();
        assert!(!session.wants_bytes());
        assert_eq!(drain(&mut session), "limit-exceeded None, end");
        session.end();
        assert_eq!(session.held(), 0);
    };
    check(long, "");
    check(
        format!("{}\n", request(2, "blob.put", &blob)).into_bytes(),
        "ok 2",
    );
    check(
        format!("{}\n", request(2, "lease.acquire", &owner)).into_bytes(),
        "serve 2 lease.acquire",
    );
}

#[test]
fn requests_under_way_are_bounded() {
    let mut session = greeted(true);
    let many = CONNECTION_REQUESTS as u64 + 2;
    for id in 0..many {
        session.receive(format!("{}\n", request(id, "queue", "{}")).as_bytes());
    }
    assert_eq!(drain(&mut session).split(", ").count(), CONNECTION_REQUESTS);
    assert!(
        session.wants_bytes(),
        "a little is read, to see the client go"
    );
    session.receive(&vec![b' '; BYTES_AHEAD]);
    assert!(!session.wants_bytes());
    assert!(session.answered(5) && !session.answered(5));
    assert_eq!(drain(&mut session), format!("serve {} queue", many - 2));
}

#[test]
fn leases_end_with_the_connection() {
    let mut session = greeted(true);
    let lease = |number: u64| -> LeaseId {
        format!("00000000-0000-7000-8000-{number:012}")
            .parse()
            .unwrap()
    };
    assert!(session.hold(lease(1)) && session.hold(lease(2)));
    session.let_go(lease(1));
    assert_eq!(session.end(), BTreeSet::from([lease(2)]));
    assert!(!session.hold(lease(3)), "too late");
}

#[test]
fn an_answer_that_is_too_long_is_refused() {
    let data = "x".repeat(LINE_BYTES);
    let text = format!(
        r#"{{"revision":"{0}","kind":"file","bytes":1,"sha256":"{0}","offset":0,"data":"{data}"}}"#,
        "0".repeat(64)
    );
    let answer = Response::Content(serde_json::from_str(&text).unwrap());
    let line = answer_line(1, &Ok(answer));
    assert!(line.len() < 1000 && String::from_utf8(line).unwrap().contains("limit-exceeded"));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20)) {
        let mut session = greeted(true);
        for piece in pieces {
            session.receive(&piece);
            while session.next_action().is_some() {}
        }
    }
}
