//! One representative of every document that `--json` prints, each with all its fields.

use semaprax_protocol::documents::{
    ActiveGeneration, Blame, BlameLine, Cancelled, ChangeKind, Collection, DaemonIdentity,
    DaemonStatus, Damage, DemoReport, DemoStatus, EventKind, Explanation, Exported, Finding,
    FindingStatus, GateOutcome, GateStatus, GenerationCounts, Health, InitStatus, Initialized,
    JournalEntry, KeptGeneration, KeptReason, LeaseEntry, LeaseGrant, LeaseList, LeaseReleased,
    Listing, ListingEntry, LogEntry, LogPage, PathChange, Pinned, Publication, Queue, QueueCounts,
    QueuedSubmission, Receipt, ReceiptStatus, SkipReason, Skipped, TreeDiff, TreeReference,
    Verification, VerificationCounts, VerificationStatus, WatchEvent, Why, WorkspaceStatus,
};
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{Code, Limits, NamePolicy, SchemaTag, Status};

use crate::values::{
    event_digest, lease_id, moment, path, record, revision, seq, sha256, submission_id, text, tree,
    workspace_id,
};

pub(crate) fn explanation() -> Explanation {
    Explanation {
        schema: SchemaTag::new(),
        code: Code::StaleBase,
        status: Status::Rejected,
        exit_code: 1,
        meaning: "what it means".to_owned(),
        hint: text("what to do"),
    }
}

pub(crate) fn demo() -> DemoReport {
    DemoReport {
        schema: SchemaTag::new(),
        status: DemoStatus::Failed,
        problems: vec!["what is wrong".to_owned()],
        workspace: "/tmp/demo/workspace".into(),
        source: "/home/me/project".to_owned(),
        files: 1,
        bytes: 2,
        writers: 3,
        readers: 4,
        publications: 5,
        reads: 6,
        spanned: 7,
        stale: 8,
        conflicts: 9,
        rebases: 10,
        merges: 11,
        mixes: 0,
        watched: 12,
        collected: 13,
        verified: VerificationStatus::Ok,
        median_publish_us: 14,
        slow_publish_us: 15,
        duration_ms: 16,
        log: "/tmp/demo/run/daemon.log".into(),
        daemon: None,
        inspect: vec!["semaprax log".to_owned()],
    }
}

fn changes() -> Vec<PathChange> {
    vec![PathChange {
        path: path("src/b"),
        kind: ChangeKind::Renamed,
        from: Some(path("src/a")),
        before_sha256: Some(sha256(1)),
        after_sha256: Some(sha256(2)),
        before_kind: Some(EntryKind::File),
        after_kind: Some(EntryKind::Executable),
        bytes: Some(3),
    }]
}

pub(crate) fn receipt() -> Receipt {
    Receipt {
        schema: SchemaTag::new(),
        status: ReceiptStatus::Published,
        replayed: true,
        submission: submission_id(),
        seq: Some(seq(2)),
        revision: Some(revision(2)),
        tree: tree(3),
        parent: Some(revision(1)),
        base: Some(revision(1)),
        rebased: true,
        merged: vec![path("src/b")],
        changes: changes(),
        truncated: true,
        gates: vec![GateOutcome {
            name: "test".to_owned(),
            status: GateStatus::TimedOut,
            duration_ms: 1500,
            cached: false,
        }],
        author: "agent-7".to_owned(),
        message: "rename".to_owned(),
        published_at: Some(moment()),
        record: Some(record(4)),
        file_count: 5,
    }
}

pub(crate) fn init() -> Initialized {
    Initialized {
        schema: SchemaTag::new(),
        status: InitStatus::Initialized,
        workspace: "/home/me/work".into(),
        id: workspace_id(),
        seq: seq(1),
        revision: revision(1),
        tree: tree(1),
        files: 2,
        bytes: 3,
        names: NamePolicy::Portable,
        skipped: vec![Skipped {
            path: "pipe".to_owned(),
            reason: SkipReason::SpecialFile,
        }],
        skipped_total: 1,
        truncated: true,
    }
}

pub(crate) fn status() -> WorkspaceStatus {
    WorkspaceStatus {
        schema: SchemaTag::new(),
        workspace: "/home/me/work".into(),
        id: workspace_id(),
        names: NamePolicy::Native,
        active: ActiveGeneration {
            seq: seq(2),
            revision: revision(2),
            tree: tree(3),
            files: 4,
            bytes: 5,
            author: "me".to_owned(),
            message: "why".to_owned(),
            published_at: moment(),
        },
        generations: GenerationCounts {
            total: 2,
            materialized: 1,
        },
        leases: 1,
        queue: QueueCounts {
            waiting: 1,
            running: 2,
        },
        daemon: Some(DaemonIdentity {
            pid: 4242,
            version: "0.1.0".to_owned(),
        }),
        drift: Some(changes()),
        limits: Some(Limits::default()),
        truncated: true,
    }
}

pub(crate) fn log() -> LogPage {
    LogPage {
        schema: SchemaTag::new(),
        entries: vec![LogEntry {
            seq: seq(2),
            revision: revision(2),
            tree: tree(3),
            parent: Some(revision(1)),
            base: None,
            submission: submission_id(),
            author: "me".to_owned(),
            message: "why".to_owned(),
            published_at: moment(),
            changes: 6,
        }],
        truncated: true,
    }
}

pub(crate) fn publication() -> Publication {
    Publication {
        schema: SchemaTag::new(),
        seq: seq(2),
        revision: revision(2),
        tree: tree(3),
        parent: None,
        base: Some(revision(1)),
        submission: submission_id(),
        record: record(4),
        rebased: true,
        merged: vec![path("src/b")],
        author: "me".to_owned(),
        message: "why".to_owned(),
        published_at: moment(),
        files: 7,
        bytes: 8,
        changes: changes(),
        truncated: true,
    }
}

pub(crate) fn diff() -> TreeDiff {
    let side = |number: u8| TreeReference {
        seq: seq(number.into()),
        revision: revision(number),
        tree: tree(number),
    };
    TreeDiff {
        schema: SchemaTag::new(),
        from: side(1),
        to: side(2),
        changes: changes(),
        truncated: true,
    }
}

pub(crate) fn listing() -> Listing {
    Listing {
        schema: SchemaTag::new(),
        revision: revision(2),
        seq: seq(2),
        entries: vec![ListingEntry {
            path: path("link"),
            kind: EntryKind::Symlink,
            bytes: 3,
            sha256: sha256(5),
            seq: seq(1),
        }],
        truncated: true,
    }
}

pub(crate) fn blame() -> Blame {
    Blame {
        schema: SchemaTag::new(),
        path: path("src/b"),
        revision: revision(2),
        lines: vec![BlameLine {
            line: 1,
            seq: seq(2),
            revision: revision(2),
            author: "me".to_owned(),
        }],
        truncated: true,
    }
}

pub(crate) fn lease() -> LeaseGrant {
    LeaseGrant {
        schema: SchemaTag::new(),
        lease: lease_id(),
        seq: seq(2),
        revision: revision(2),
        path: "/home/me/work/.semaprax-workspace/generations/x/files".into(),
        expires: Some(moment()),
    }
}

pub(crate) fn leases() -> LeaseList {
    LeaseList {
        schema: SchemaTag::new(),
        leases: vec![LeaseEntry {
            lease: lease_id(),
            seq: seq(2),
            revision: revision(2),
            owner: "editor".to_owned(),
            pid: Some(4242),
            age: 6,
            expires: None,
        }],
    }
}

pub(crate) fn lease_released() -> LeaseReleased {
    LeaseReleased {
        schema: SchemaTag::new(),
        released: lease_id(),
        revision: revision(2),
    }
}

pub(crate) fn exported() -> Exported {
    Exported {
        schema: SchemaTag::new(),
        revision: revision(2),
        seq: seq(2),
        files: 3,
        path: "/home/me/copy".into(),
    }
}

pub(crate) fn event() -> WatchEvent {
    WatchEvent {
        event: EventKind::Published,
        parent: Some(revision(1)),
        author: text("me"),
        message: text("why"),
        changes: Some(changes()),
        truncated: true,
        ..snapshot()
    }
}

pub(crate) fn snapshot() -> WatchEvent {
    WatchEvent {
        schema: SchemaTag::new(),
        event: EventKind::Snapshot,
        seq: seq(2),
        revision: revision(2),
        token: format!("2:{}", record(4)),
        parent: None,
        author: None,
        message: None,
        changes: None,
        truncated: false,
    }
}

pub(crate) fn pin() -> Pinned {
    Pinned {
        schema: SchemaTag::new(),
        revision: revision(2),
        pinned: true,
    }
}

pub(crate) fn collection() -> Collection {
    Collection {
        schema: SchemaTag::new(),
        removed: vec![revision(1)],
        kept: vec![KeptGeneration {
            revision: revision(2),
            reasons: vec![
                KeptReason::Active,
                KeptReason::Leased,
                KeptReason::Pinned,
                KeptReason::InFlight,
                KeptReason::Young,
                KeptReason::Retention,
            ],
        }],
        freed_bytes: 4096,
        dry_run: true,
        content_collected: 1,
    }
}

pub(crate) fn why() -> Why {
    Why {
        schema: SchemaTag::new(),
        revision: revision(2),
        materialized: true,
        reasons: vec![KeptReason::Active],
    }
}

pub(crate) fn verification() -> Verification {
    Verification {
        schema: SchemaTag::new(),
        status: VerificationStatus::Repaired,
        checked: VerificationCounts {
            records: 1,
            events: 2,
            nodes: 3,
            blobs: 4,
            generations: 5,
            files: 6,
        },
        damage: vec![Damage {
            kind: "tree".to_owned(),
            revision: Some(revision(2)),
            path: text("src/b"),
            detail: "it is missing".to_owned(),
            repaired: true,
        }],
    }
}

pub(crate) fn health() -> Health {
    Health {
        schema: SchemaTag::new(),
        findings: vec![Finding {
            check: "file-system".to_owned(),
            status: FindingStatus::Warning,
            detail: "an overlay".to_owned(),
            code: Some(Code::UnsupportedFilesystem),
            fix: text("use a volume"),
            repaired: true,
        }],
    }
}

pub(crate) fn journal_entry() -> JournalEntry {
    JournalEntry {
        schema: SchemaTag::new(),
        entry: 3,
        at: moment(),
        kind: "refused".to_owned(),
        prev: Some(event_digest(1)),
        digest: event_digest(2),
        detail: serde_json::json!({"author": "me", "diagnostics": []}),
    }
}

pub(crate) fn queue() -> Queue {
    let queued = |position: u64, state: &str| QueuedSubmission {
        submission: submission_id(),
        position,
        author: "me".to_owned(),
        since_ms: 10,
        state: state.to_owned(),
    };
    Queue {
        schema: SchemaTag::new(),
        waiting: vec![queued(1, "waiting")],
        running: vec![queued(0, "running")],
    }
}

pub(crate) fn cancelled() -> Cancelled {
    Cancelled {
        schema: SchemaTag::new(),
        cancelled: submission_id(),
    }
}

pub(crate) fn daemon() -> DaemonStatus {
    DaemonStatus {
        schema: SchemaTag::new(),
        running: true,
        daemon: Some(DaemonIdentity {
            pid: 4242,
            version: "0.1.0".to_owned(),
        }),
        socket: "/run/user/1000/semaprax/socket".into(),
        log: Some("/run/user/1000/semaprax/log".into()),
        uptime_ms: Some(1),
        workspaces: vec!["/home/me/work".into()],
        connections: 2,
    }
}
