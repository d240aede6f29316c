//! The scripts.

use std::time::Duration;

use semaprax_daemon::config::Config;
use semaprax_protocol::submission::{EntryKind, OnStale};
use semaprax_tests::sim::clock::Times;

use crate::known::{
    Content, delete, executable, large, move_to, publish, put, put_large, rollback, symlink,
};
use crate::script::{Script, Step};

fn source() -> Content {
    let file = |text: &str| (EntryKind::File, text.as_bytes().to_vec());
    Content::from([
        ("a.txt".to_owned(), file("one\ntwo\n")),
        ("dir/b.txt".to_owned(), file("b\r\n")),
        ("dir/empty.txt".to_owned(), file("")),
        ("large.bin".to_owned(), file(&large("source"))),
        (
            "run.sh".to_owned(),
            (EntryKind::Executable, b"#!/bin/sh\n".to_vec()),
        ),
        ("to-a".to_owned(), (EntryKind::Symlink, b"a.txt".to_vec())),
    ])
}

/// Publications of every kind.
pub fn publishing() -> Script {
    let first = publish(
        1,
        Some("@1"),
        OnStale::Reject,
        vec![
            put("a.txt", "one\ntwo and a half\n"),
            put_large("new/large.bin", "first"),
            symlink("new/link", "../a.txt"),
        ],
    );
    let second = publish(
        2,
        Some("@2"),
        OnStale::Reject,
        vec![
            delete("dir/b.txt"),
            move_to("new", "moved"),
            executable("a.txt"),
        ],
    );
    let late = publish(
        3,
        Some("@1"),
        OnStale::Reject,
        vec![put("a.txt", "too late\n")],
    );
    let rebased = publish(
        4,
        Some("@2"),
        OnStale::Rebase,
        vec![put("other.txt", "new\n"), put_large("other.bin", "big")],
    );
    Script {
        name: "publishing",
        source: source(),
        config: Config::default(),
        times: Times::default(),
        tries_init: true,
        steps: vec![
            Step::Init,
            Step::Open,
            Step::Publish(first.clone()),
            Step::Idle,
            Step::Publish(second),
            Step::Refused(late),
            Step::Repeat(first),
            Step::Idle,
            Step::Publish(rebased),
            Step::Together(vec![
                publish(6, None, OnStale::Reject, vec![put("a.txt", "at once\n")]),
                publish(
                    7,
                    None,
                    OnStale::Reject,
                    vec![put_large("too.bin", "at once")],
                ),
                publish(8, None, OnStale::Reject, vec![delete("a.txt")]),
            ]),
            Step::Publish(rollback(5, 1)),
            Step::Close,
            Step::Open,
        ],
    }
}

/// Leases, pins, and the collector.
pub fn upkeep() -> Script {
    let small = |number: u128, text: &str| {
        Step::Publish(publish(
            number,
            None,
            OnStale::Reject,
            vec![put("a.txt", text)],
        ))
    };
    Script {
        name: "upkeep",
        source: source(),
        config: Config::default(),
        times: Times::default(),
        tries_init: false,
        steps: vec![
            Step::Init,
            Step::Open,
            small(1, "1\n"),
            small(2, "2\n"),
            small(3, "3\n"),
            Step::Lease("first", 1),
            Step::ConnectionLease(2),
            Step::Pin(3),
            Step::Collect(1),
            Step::Close,
            Step::Open,
            Step::Lease("second", 2),
            Step::Release("first"),
            Step::Unpin(3),
            Step::Collect(1),
            Step::Idle,
            Step::Close,
        ],
    }
}

/// A damaged tree is mended; content is let go by the rules; nobody tells which boot it is.
pub fn mending() -> Script {
    let config = Config {
        retention: semaprax_daemon::config::Retention {
            content_publications: 2,
            content_age: Duration::ZERO,
            content_bytes: None,
            trees: 1,
            young: Duration::ZERO,
            young_trees: 0,
        },
        ..Config::default()
    };
    let step = |number: u128, text: &str| {
        Step::Publish(publish(
            number,
            None,
            OnStale::Reject,
            vec![put_large("large.bin", text), put("a.txt", text)],
        ))
    };
    Script {
        name: "mending",
        source: source(),
        config,
        times: Times::without_boot_id(),
        tries_init: false,
        steps: vec![
            Step::Init,
            Step::Open,
            step(1, "first"),
            Step::Damage("a.txt"),
            Step::Damage("large.bin"),
            Step::Repair,
            step(2, "second"),
            Step::Idle,
            step(3, "first"),
            Step::Collect(1),
            Step::Close,
        ],
    }
}
