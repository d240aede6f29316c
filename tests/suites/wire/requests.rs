//! One representative of every request, each with all its fields.

use semaprax_protocol::NamePolicy;
use semaprax_protocol::request::{
    Attribution, BlameParams, BlobPut, Cancel, Collect, Content, DaemonStatusParams, DaemonStop,
    Diff, Doctor, Export, Hello, Init, Journal, JournalHead, LeaseAcquire, LeaseListParams,
    LeaseRelease, LeaseRenew, List, Log, Pin, Publish, PublishDirectory, PublishOptions,
    QueueParams, Request, Resolve, Revert, Rollback, Show, StatusParams, Undo, Unpin, Verify,
    Watch, WhyParams,
};
use semaprax_protocol::rpc;
use semaprax_protocol::submission::{Change, Edit, Expect, FileMode, OnStale, Read, Submission};
use semaprax_protocol::version::ProtocolRange;

use crate::corpus::Sample;
use crate::values::{lease_id, path, seq, sha256, submission_id, text};

pub(crate) fn samples() -> Vec<Sample> {
    all()
        .into_iter()
        .map(|request| Sample {
            name: format!("request-{}", request.method()),
            bytes: rpc::encode_request(7, &request).unwrap(),
        })
        .collect()
}

/// The representative of a method.
pub(crate) fn of_method(method: &str) -> Request {
    all()
        .into_iter()
        .find(|request| request.method() == method)
        .unwrap_or_else(|| panic!("no sample of `{method}`"))
}

/// A submission with every change there is.
pub(crate) fn submission() -> Submission {
    let absent = Some(Expect {
        sha256: None,
        absent: Some(true),
    });
    let content = Some(Expect {
        sha256: Some(sha256(1)),
        absent: None,
    });
    let put = |path: &str| Change::Put {
        path: path.to_owned(),
        content: None,
        content_base64: None,
        content_blob: None,
        mode: None,
        expect: None,
        reason: None,
    };
    let mut changes = vec![put("src/a.rs"), put("bin/tool"), put("large")];
    for (index, change) in changes.iter_mut().enumerate() {
        if let Change::Put {
            content: given,
            content_base64,
            content_blob,
            mode,
            expect,
            reason,
            ..
        } = change
        {
            match index {
                0 => {
                    *given = text("fn a() {}\n\u{e9}");
                    expect.clone_from(&content);
                    *reason = text("why");
                }
                1 => {
                    *content_base64 = text("AAEC");
                    *mode = Some(FileMode::Executable);
                    expect.clone_from(&absent);
                }
                _ => *content_blob = Some(sha256(2)),
            }
        }
    }
    changes.extend([
        Change::Edit {
            path: "src/b.rs".to_owned(),
            edits: vec![Edit {
                old: "foo(".to_owned(),
                new: "bar(".to_owned(),
            }],
            expect: None,
            reason: None,
        },
        Change::Delete {
            path: "old".to_owned(),
            recursive: true,
            expect: None,
            reason: None,
        },
        Change::Move {
            from: "x.rs".to_owned(),
            to: "y.rs".to_owned(),
            recursive: false,
            expect: content,
            reason: None,
        },
        Change::Symlink {
            path: "link".to_owned(),
            target: "src/a.rs".to_owned(),
            expect: None,
            reason: None,
        },
        Change::Chmod {
            path: "run.sh".to_owned(),
            mode: FileMode::File,
            expect: None,
            reason: None,
        },
    ]);
    Submission {
        schema: semaprax_protocol::SchemaTag::new(),
        id: Some(submission_id()),
        base: text("@3"),
        on_stale: OnStale::Merge,
        author: "agent-7".to_owned(),
        message: "rename foo".to_owned(),
        reads: vec![
            Read {
                path: "src/c.rs".to_owned(),
                sha256: Some(sha256(3)),
                absent: None,
            },
            Read {
                path: "src/d.rs".to_owned(),
                sha256: None,
                absent: Some(true),
            },
        ],
        changes,
    }
}

fn attribution() -> Attribution {
    Attribution {
        id: Some(submission_id()),
        author: "agent-7".to_owned(),
        message: "why".to_owned(),
    }
}

fn options() -> PublishOptions {
    PublishOptions {
        dry_run: true,
        detach: true,
        deadline_ms: Some(30_000),
    }
}

fn all() -> Vec<Request> {
    let mut all = publishing();
    all.extend(reading());
    all.extend(upkeep());
    all
}

fn publishing() -> Vec<Request> {
    vec![
        Request::BlobPut(BlobPut {
            sha256: sha256(2),
            bytes: 3,
            offset: 0,
            data: "AAEC".to_owned(),
        }),
        Request::Publish(Publish {
            submission: submission(),
            options: options(),
        }),
        Request::PublishDirectory(PublishDirectory {
            directory: "/home/me/work".into(),
            base: text("@"),
            on_stale: OnStale::Rebase,
            attribution: attribution(),
            options: options(),
        }),
        Request::Rollback(Rollback {
            revision: "@-1".to_owned(),
            attribution: attribution(),
            options: options(),
        }),
        Request::Revert(Revert {
            seq: seq(3),
            attribution: attribution(),
            options: options(),
        }),
        Request::Undo(Undo {
            attribution: attribution(),
            options: options(),
        }),
        Request::Queue(QueueParams {}),
        Request::Cancel(Cancel {
            submission: submission_id(),
        }),
    ]
}

fn reading() -> Vec<Request> {
    vec![
        Request::Status(StatusParams {
            drift: true,
            limits: true,
        }),
        Request::Resolve(Resolve {
            revision: "a1b2c3".to_owned(),
        }),
        Request::Log(Log {
            limit: Some(10),
            before: Some(seq(9)),
            path: text("src"),
            author: text("agent-7"),
        }),
        Request::Show(Show {
            revision: "@2".to_owned(),
        }),
        Request::Diff(Diff {
            from: "@1".to_owned(),
            to: text("@2"),
        }),
        Request::List(List {
            revision: text("@1"),
            prefix: text("src"),
            after: Some(path("src/a")),
            limit: Some(100),
        }),
        Request::Content(Content {
            revision: text("@1"),
            path: "src/a".to_owned(),
            offset: 1,
            length: Some(2),
        }),
        Request::Blame(BlameParams {
            path: "src/a".to_owned(),
            revision: text("@1"),
        }),
        Request::Watch(Watch { since: text("3") }),
        Request::Why(WhyParams {
            revision: "@1".to_owned(),
        }),
        Request::Journal(Journal {
            since: 4,
            limit: Some(5),
            wait_ms: Some(6),
        }),
        Request::JournalHead(JournalHead {}),
    ]
}

fn upkeep() -> Vec<Request> {
    vec![
        Request::Hello(Hello {
            protocol: ProtocolRange {
                oldest: 1,
                newest: 2,
            },
            client: "semaprax 0.1.0".to_owned(),
            workspace: Some("/home/me/work".into()),
        }),
        Request::DaemonStatus(DaemonStatusParams {}),
        Request::DaemonStop(DaemonStop { if_idle: true }),
        Request::Init(Init {
            directory: "/home/me/work".into(),
            names: Some(NamePolicy::Native),
            force: true,
            shared: true,
            author: "me".to_owned(),
            message: "import".to_owned(),
        }),
        Request::LeaseAcquire(LeaseAcquire {
            revision: text("@1"),
            ttl_ms: Some(600_000),
            owner: "editor".to_owned(),
        }),
        Request::LeaseRenew(LeaseRenew {
            lease: lease_id(),
            ttl_ms: Some(600_000),
        }),
        Request::LeaseRelease(LeaseRelease { lease: lease_id() }),
        Request::LeaseList(LeaseListParams {}),
        Request::Pin(Pin {
            revision: "@1".to_owned(),
            reason: "released".to_owned(),
        }),
        Request::Unpin(Unpin {
            revision: "@1".to_owned(),
        }),
        Request::Collect(Collect {
            dry_run: true,
            min_age_ms: Some(1000),
            keep: Some(2),
        }),
        Request::Verify(Verify {
            deep: true,
            repair: true,
            directory: Some("/home/me/work".into()),
        }),
        Request::Doctor(Doctor {
            directory: Some("/home/me/work".into()),
            repair: true,
        }),
        Request::Export(Export {
            revision: text("@1"),
            directory: "/home/me/copy".into(),
        }),
    ]
}

#[test]
fn requests_come_back() {
    for request in all() {
        let bytes = rpc::encode_request(7, &request).unwrap();
        let (id, back) = rpc::decode_request(&bytes).unwrap();
        assert_eq!((id, &back), (7, &request));
    }
}

/// Fields that a person may leave out have the meaning they always had.
#[test]
fn defaults() {
    let check = |method: &str, params: &str| {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        rpc::decode_request(line.as_bytes()).unwrap().1
    };
    let Request::Publish(publish) = check("publish", r#"{"submission":{"changes":[]}}"#) else {
        panic!("a publish");
    };
    assert_eq!(publish.submission.on_stale, OnStale::Reject);
    assert_eq!(publish.submission.base, None);
    assert_eq!(publish.options, PublishOptions::default());
    let Request::Collect(collect) = check("gc", "{}") else {
        panic!("a gc");
    };
    assert_eq!(
        collect,
        Collect {
            dry_run: false,
            min_age_ms: None,
            keep: None
        }
    );
    let Request::LeaseAcquire(lease) = check("lease.acquire", "{}") else {
        panic!("a lease.acquire");
    };
    assert_eq!((lease.revision, lease.ttl_ms), (None, None));
}
