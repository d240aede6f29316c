//! One representative of every answer, notice and error line.

use semaprax_protocol::diagnostic::{ActiveReference, Conflict, ConflictLines};
use semaprax_protocol::documents::Receipt;
use semaprax_protocol::request::{
    BlobReceived, ContentChunk, JournalPage, Request, Resolved, Response, Welcome,
};
use semaprax_protocol::rpc::{self, Incoming, Notice};
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{Code, Diagnostic, Refusal};

use crate::corpus::Sample;
use crate::documents;
use crate::requests;
use crate::values::{path, revision, seq, sha256, submission_id, workspace_id};

pub(crate) fn samples() -> Vec<Sample> {
    let mut samples: Vec<Sample> = Request::METHODS
        .iter()
        .map(|method| Sample {
            name: format!("answer-{method}"),
            bytes: rpc::encode_answer(7, Ok(&answer(&requests::of_method(method)))).unwrap(),
        })
        .collect();
    for (name, notice) in notices() {
        samples.push(Sample {
            name: format!("notice-{name}"),
            bytes: rpc::encode_notice(&notice).unwrap(),
        });
    }
    for (name, refusal) in refusals() {
        samples.push(Sample {
            name: format!("error-{name}"),
            bytes: rpc::encode_answer(7, Err(refusal)).unwrap(),
        });
    }
    for (name, line) in [
        ("not-json", "{"),
        ("no-request", "[]"),
        (
            "wrong-version",
            r#"{"jsonrpc":"1.0","id":7,"method":"queue"}"#,
        ),
        (
            "unknown-method",
            r#"{"jsonrpc":"2.0","id":7,"method":"paint"}"#,
        ),
        (
            "unknown-field",
            r#"{"jsonrpc":"2.0","id":7,"method":"status","params":{"colour":1}}"#,
        ),
    ] {
        let bad = rpc::decode_request(line.as_bytes()).unwrap_err();
        samples.push(Sample {
            name: format!("error-{name}"),
            bytes: rpc::encode_bad_request(bad).unwrap(),
        });
    }
    samples
}

fn receipt() -> Receipt {
    documents::receipt()
}

/// Written with no other arm: a new method needs its representative.
fn answer(request: &Request) -> Response {
    match request {
        Request::Hello(_) => Response::Hello(Welcome {
            protocol: 1,
            pid: 4242,
            version: "0.1.0".to_owned(),
            workspace: Some(workspace_id()),
            line_bytes: 4 << 20,
        }),
        Request::DaemonStatus(_) => Response::DaemonStatus(documents::daemon()),
        Request::DaemonStop(_) => Response::DaemonStop(documents::daemon()),
        Request::Init(_) => Response::Init(documents::init()),
        Request::Status(_) => Response::Status(documents::status()),
        Request::Resolve(_) => Response::Resolve(Resolved {
            seq: seq(2),
            revision: revision(2),
        }),
        Request::Log(_) => Response::Log(documents::log()),
        Request::Show(_) => Response::Show(documents::publication()),
        Request::Diff(_) => Response::Diff(documents::diff()),
        Request::List(_) => Response::List(documents::listing()),
        Request::Content(_) => Response::Content(ContentChunk {
            revision: revision(2),
            kind: EntryKind::File,
            bytes: 3,
            sha256: sha256(1),
            offset: 0,
            data: "AAEC".to_owned(),
        }),
        Request::Blame(_) => Response::Blame(documents::blame()),
        Request::BlobPut(_) => Response::BlobPut(BlobReceived {
            sha256: sha256(2),
            received: 3,
            complete: true,
        }),
        Request::Publish(_) => Response::Publish(receipt()),
        Request::PublishDirectory(_) => Response::PublishDirectory(receipt()),
        Request::Rollback(_) => Response::Rollback(receipt()),
        Request::Revert(_) => Response::Revert(receipt()),
        Request::Undo(_) => Response::Undo(receipt()),
        Request::Queue(_) => Response::Queue(documents::queue()),
        Request::Cancel(_) => Response::Cancel(documents::cancelled()),
        Request::LeaseAcquire(_) => Response::LeaseAcquire(documents::lease()),
        Request::LeaseRenew(_) => Response::LeaseRenew(documents::lease()),
        Request::LeaseRelease(_) => Response::LeaseRelease(documents::lease_released()),
        Request::LeaseList(_) => Response::LeaseList(documents::leases()),
        Request::Watch(_) => Response::Watch(documents::snapshot()),
        Request::Pin(_) => Response::Pin(documents::pin()),
        Request::Unpin(_) => Response::Unpin(documents::pin()),
        Request::Collect(_) => Response::Collect(documents::collection()),
        Request::Why(_) => Response::Why(documents::why()),
        Request::Verify(_) => Response::Verify(documents::verification()),
        Request::Doctor(_) => Response::Doctor(documents::health()),
        Request::Journal(_) => Response::Journal(JournalPage {
            entries: vec![documents::journal_entry()],
            more: true,
        }),
        Request::JournalHead(_) => Response::JournalHead(documents::journal_entry()),
        Request::Export(_) => Response::Export(documents::exported()),
    }
}

fn notices() -> Vec<(&'static str, Notice)> {
    vec![
        (
            "progress",
            Notice::Progress {
                request: 7,
                done: 5,
                total: Some(10),
            },
        ),
        (
            "progress-of-unknown",
            Notice::Progress {
                request: 7,
                done: 5,
                total: None,
            },
        ),
        (
            "queued",
            Notice::Queued {
                request: 7,
                submission: submission_id(),
                position: 2,
            },
        ),
        (
            "event",
            Notice::Event {
                request: 7,
                event: Box::new(documents::event()),
            },
        ),
    ]
}

/// A refusal with every field there is.
pub(crate) fn whole_refusal() -> Refusal {
    let mut first = Diagnostic::new(Code::MergeConflict, "`src/a`: the same lines")
        .at("src/a")
        .hint("read it again");
    first.change = Some(1);
    first.count = Some(2);
    first.lines = vec![3, 4];
    first.expected = Some("absent".to_owned());
    first.found = Some("directory".to_owned());
    first.active = Some(ActiveReference {
        seq: seq(4),
        revision: revision(4),
    });
    first.paths = vec![path("src/a"), path("src/b")];
    first.conflict = Some(Conflict {
        base: Some(sha256(1)),
        ours: Some(sha256(2)),
        theirs: None,
        ranges: vec![ConflictLines {
            base: (1, 2),
            ours: (1, 0),
            theirs: (1, 3),
        }],
    });
    let second = Diagnostic::new(Code::PathCollision, "`b` lies below the file `a`").at("b");
    Refusal::of(vec![first, second]).unwrap()
}

fn refusals() -> Vec<(String, Refusal)> {
    let mut refusals = vec![
        ("whole".to_owned(), whole_refusal()),
        (
            "not-found-in-submission".to_owned(),
            Refusal::new(Diagnostic::new(Code::NotFound, "there is no `x`").at("x"))
                .in_submission(),
        ),
    ];
    for code in Code::ALL {
        // Without the hint: its words may be bettered at any time.
        let mut diagnostic = Diagnostic::new(*code, "a message");
        diagnostic.hint = None;
        refusals.push((format!("code-{code}"), diagnostic.into()));
    }
    refusals
}

#[test]
fn answers_come_back() {
    for method in Request::METHODS {
        let request = requests::of_method(method);
        let response = answer(&request);
        let bytes = rpc::encode_answer(7, Ok(&response)).unwrap();
        let Incoming::Answer { id, result } = rpc::decode_incoming(&bytes).unwrap() else {
            panic!("{method}: an answer");
        };
        assert_eq!(id, Some(7));
        assert_eq!(
            request.parse_reply(&result.unwrap()).unwrap(),
            response,
            "{method}"
        );
    }
}

#[test]
fn notices_and_refusals_come_back() {
    for (name, notice) in notices() {
        let bytes = rpc::encode_notice(&notice).unwrap();
        let Incoming::Notice(back) = rpc::decode_incoming(&bytes).unwrap() else {
            panic!("{name}: a notice");
        };
        assert_eq!(back, notice);
    }
    for (name, refusal) in refusals() {
        let bytes = rpc::encode_answer(7, Err(refusal.clone())).unwrap();
        let Incoming::Answer { result, .. } = rpc::decode_incoming(&bytes).unwrap() else {
            panic!("{name}: an answer");
        };
        assert_eq!(result.unwrap_err(), refusal, "{name}");
    }
}

/// An older client passes over what a newer daemon adds.
#[test]
fn an_answer_may_gain_fields() {
    for method in Request::METHODS {
        let request = requests::of_method(method);
        let result = answer(&request).result().unwrap();
        let mut value: serde_json::Value = serde_json::from_str(result.get()).unwrap();
        let fields = value.as_object_mut().unwrap();
        fields.insert("addedLater".to_owned(), serde_json::json!({"x": [1]}));
        let raw = serde_json::value::to_raw_value(&value).unwrap();
        let back = request.parse_reply(&raw);
        assert_eq!(back.unwrap(), answer(&request), "{method}");
    }
}

#[test]
fn an_unknown_code_is_an_error_of_its_own() {
    let line = br#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"m","data":{"status":"failed","diagnostics":[{"code":"of-the-future","message":"m"}]}}}"#;
    let Incoming::Answer { result, .. } = rpc::decode_incoming(line).unwrap() else {
        panic!("an answer");
    };
    assert_eq!(result.unwrap_err().code(), Code::Internal);
}
