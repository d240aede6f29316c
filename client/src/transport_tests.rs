//! Lines against a made-up daemon on a real socket.

use std::os::unix::net::UnixListener;
use std::time::Duration;

use camino::Utf8PathBuf;
use semaprax_protocol::documents::{EventKind, WatchEvent};
use semaprax_protocol::limits::LINE_BYTES;
use semaprax_protocol::request::{
    BlobReceived, Method, PublishOptions, Request, Resolve, Resolved, Response,
};
use semaprax_protocol::rpc::{self, Notice};
use semaprax_protocol::{Code, Diagnostic, Refusal, Revision, SchemaTag, Seq};

use crate::connect::Start;
use crate::fake::{Fake, answer, greeting, refusal, welcome};
use crate::runtime::Runtime;
use crate::transport::{CallError, Connection};
use crate::{Client, Options};

fn revision() -> Revision {
    Revision::from_bytes([7; 32])
}

fn resolved() -> Response {
    Response::Resolve(Resolved {
        seq: Seq::FIRST,
        revision: revision(),
    })
}

fn resolve() -> Resolve {
    Resolve {
        revision: "@".to_owned(),
    }
}

#[test]
fn a_call_gets_its_own_answer_and_its_notices() {
    let fake = Fake::new(vec![greeting(|id, _| {
        let notice = Notice::Progress {
            request: id,
            done: 3,
            total: None,
        };
        let mut said = rpc::encode_notice(&notice).unwrap();
        // An answer to another request is passed over.
        said.extend(answer(id + 100, &resolved()));
        said.extend(answer(id, &resolved()));
        said
    })]);
    let mut client = Client::connect(fake.options()).unwrap();
    let mut seen = 0;
    let found = client
        .call_noticing(resolve(), &mut |notice| {
            if let Notice::Progress { done, .. } = notice {
                seen = *done;
            }
        })
        .unwrap();
    assert_eq!((found.revision, seen), (revision(), 3));
    drop(client);
    fake.served.join().unwrap();
}

#[test]
fn a_refusal_passes_through_unchanged() {
    let fake = Fake::new(vec![greeting(|id, _| refusal(id, Code::UnknownRevision))]);
    let mut client = Client::connect(fake.options()).unwrap();
    assert_eq!(
        client.call(resolve()).unwrap_err(),
        Refusal::from(Diagnostic::new(Code::UnknownRevision, "no"))
    );
}

#[test]
fn a_lost_connection_is_tried_again_once() {
    let fake = Fake::new(vec![
        greeting(|_, _| Vec::new()),
        greeting(|id, _| answer(id, &resolved())),
    ]);
    let mut client = Client::connect(fake.options()).unwrap();
    assert_eq!(client.call(resolve()).unwrap().revision, revision());
    drop(client);
    fake.served.join().unwrap();

    let fake = Fake::new(vec![
        greeting(|_, _| Vec::new()),
        greeting(|_, _| Vec::new()),
    ]);
    let mut client = Client::connect(fake.options()).unwrap();
    assert_eq!(
        client.call(resolve()).unwrap_err().code(),
        Code::DaemonUnreachable
    );
}

#[test]
fn a_submission_is_sent_again_under_the_same_name_with_its_content() {
    use std::sync::{Arc, Mutex};
    let seen = Arc::new(Mutex::new(Vec::new()));
    let script = |last: bool| {
        let seen = Arc::clone(&seen);
        greeting(move |id, request| match request {
            Request::BlobPut(piece) => answer(
                id,
                &Response::BlobPut(BlobReceived {
                    sha256: piece.sha256,
                    received: piece.bytes,
                    complete: true,
                }),
            ),
            Request::Publish(params) => {
                seen.lock().unwrap().push(params.submission.clone());
                if last {
                    refusal(id, Code::StaleBase)
                } else {
                    Vec::new()
                }
            }
            other => panic!("{other:?}"),
        })
    };
    let fake = Fake::new(vec![script(false), script(true)]);
    let mut client = Client::connect(fake.options()).unwrap();
    let mut submission: semaprax_protocol::submission::Submission =
        serde_json::from_str(r#"{"changes":[]}"#).unwrap();
    submission.changes = vec![crate::put("large", vec![b'x'; 100_000])];
    let refused = client
        .publish(submission, PublishOptions::default(), &mut |_| {})
        .unwrap_err();
    assert_eq!(refused.code(), Code::StaleBase);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0], seen[1]);
    assert!(seen[0].id.is_some());
}

#[test]
fn a_watch_goes_on_where_it_was() {
    let event = |event: EventKind, seq: u64| WatchEvent {
        schema: SchemaTag::new(),
        event,
        seq: Seq::new(seq).unwrap(),
        revision: revision(),
        token: format!("{seq}:x"),
        parent: None,
        author: None,
        message: None,
        changes: None,
        truncated: false,
    };
    let publish = move |id: u64, seq: u64| {
        rpc::encode_notice(&Notice::Event {
            request: id,
            event: Box::new(event(EventKind::Published, seq)),
        })
        .unwrap()
    };
    let mut first = true;
    let fake = Fake::new(vec![
        greeting(move |id, request| {
            if !std::mem::take(&mut first) {
                return Vec::new();
            }
            assert_eq!(request.method(), "watch");
            let mut said = answer(id, &Response::Watch(event(EventKind::Snapshot, 2)));
            said.extend(publish(id, 3));
            said
        }),
        greeting(move |id, request| {
            let Request::Watch(params) = request else {
                panic!("{request:?}");
            };
            assert_eq!(params.since.as_deref(), Some("3:x"));
            let mut said = answer(id, &Response::Watch(event(EventKind::Snapshot, 3)));
            said.extend(publish(id, 4));
            said
        }),
    ]);
    let client = Client::connect(fake.options()).unwrap();
    let mut watch = client.watch(Some("2".to_owned())).unwrap();
    let mut told = Vec::new();
    for _ in 0..2 {
        told.push(watch.next_event().unwrap().seq.get());
    }
    // The daemon goes away in the middle of the stream.
    watch.provoke();
    told.push(watch.next_event().unwrap().seq.get());
    assert_eq!(told, [2, 3, 4]);
}

#[test]
fn lines_that_are_none_and_lines_that_are_too_long() {
    let check = |said: Vec<u8>, expect: &str| {
        let fake = Fake::new(vec![Box::new(move |_, _| said.clone())]);
        let mut connection = Connection::open(&fake.runtime.socket()).unwrap();
        let wait = Some(Duration::from_secs(10));
        let failed = connection
            .exchange(&resolve().request(), wait, &mut |_| {})
            .unwrap_err();
        let message = failed.into_refusal().diagnostics[0].message.clone();
        assert!(message.contains(expect), "{message}");
    };
    check(b"nonsense\n".to_vec(), "cannot be read");
    check(vec![b'x'; LINE_BYTES + 1], "longer than");
    check(
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[]}\n".to_vec(),
        "cannot be read",
    );
}

#[test]
fn silence_is_told_from_an_end() {
    let fake = Fake::new(vec![
        Box::new(|_, _| b"\n".to_vec()),
        Box::new(|_, _| Vec::new()),
    ]);
    let short = Some(Duration::from_millis(20));
    let mut connection = Connection::open(&fake.runtime.socket()).unwrap();
    assert!(matches!(connection.notice(short), Ok(None)));
    drop(connection);
    let mut connection = Connection::open(&fake.runtime.socket()).unwrap();
    let ended = connection.exchange(&resolve().request(), None, &mut |_| {});
    assert!(matches!(ended, Err(CallError::Lost(_))));
}

#[test]
fn no_daemon_is_an_answer_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let directory = Utf8PathBuf::from_path_buf(place.path().join("run")).unwrap();
    let options = Options {
        workspace: None,
        start: Start::Never,
        runtime: Runtime::at(&directory).unwrap(),
        follow_lock: false,
        idle_timeout: None,
    };
    assert!(Client::find(options.clone()).unwrap().is_none());
    let refused = Client::connect(options.clone()).unwrap_err();
    assert_eq!(refused.code(), Code::DaemonUnreachable);
    // A socket that a killed daemon left behind is no daemon either.
    options.runtime.prepare().unwrap();
    drop(UnixListener::bind(options.runtime.socket()).unwrap());
    assert!(Client::find(options).unwrap().is_none());
}

/// The version of a daemon, whether it agrees to leave, and what becomes of the client's call.
fn meet(version: &'static str, leaves: bool) -> (Vec<&'static str>, Result<Resolved, Refusal>) {
    use std::sync::{Arc, Mutex};
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let fake = Fake::new(vec![Box::new(move |id, request| match request {
        Request::Hello(_) => answer(id, &welcome(version)),
        Request::DaemonStop(stop) => {
            assert!(stop.if_idle);
            seen.lock().unwrap().push("stop");
            if leaves {
                Vec::new()
            } else {
                refusal(id, Code::WorkspaceLocked)
            }
        }
        _ => {
            seen.lock().unwrap().push("call");
            answer(id, &resolved())
        }
    })]);
    let mut options = fake.options();
    // Stands for a daemon that does not come up.
    options.start = Start::Program("/bin/false".into());
    let found = Client::connect(options).and_then(|mut client| client.call(resolve()));
    let asked = asked.lock().unwrap().clone();
    (asked, found)
}

#[test]
fn an_older_daemon_gives_way_when_it_is_idle() {
    let (asked, found) = meet("0.0.1", true);
    assert_eq!(asked, ["stop"]);
    let refused = found.unwrap_err();
    assert_eq!(refused.code(), Code::DaemonUnreachable);
    let message = &refused.diagnostics[0].message;
    assert!(message.contains("ended (exit status: 1)"), "{message}");

    let (asked, found) = meet("0.0.1", false);
    assert_eq!(asked, ["stop", "call"]);
    assert_eq!(found.unwrap().revision, revision());

    let (asked, found) = meet("999.0.0", true);
    assert_eq!(asked, ["call"]);
    assert!(found.is_ok());
}
