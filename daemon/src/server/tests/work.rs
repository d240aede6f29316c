//! Workspaces behind the socket: publishing, watching, leases, and a writer that comes to grief.

use semaprax_protocol::documents::{EventKind, ReceiptStatus};
use semaprax_protocol::request::{
    BlobPut, Cancel, DaemonStop, Journal, JournalHead, LeaseAcquire, LeaseListParams, LeaseRelease,
    Method as _, StatusParams, Verify, Watch,
};
use semaprax_protocol::{Code, Seq, Sha256, SubmissionId};

use super::client::put;
use super::*;
use crate::engine::{Input, Lane};
use crate::server::registry::Registry;
use crate::server::writer::Work;

fn id(number: u64) -> SubmissionId {
    format!("00000000-0000-7000-8000-{number:012}")
        .parse()
        .unwrap()
}

fn acquire() -> LeaseAcquire {
    LeaseAcquire {
        revision: None,
        ttl_ms: None,
        owner: String::new(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_come_once_and_in_order() {
    let running = Running::start(Config::default()).await;
    let (root, mut author) = running.workspace().await;
    author.publish("a", "2").await.unwrap();
    let mut watchers = Vec::new();
    for since in [None, Some("1"), Some("2")] {
        let mut watcher = running.greeted(Some(&root)).await;
        let since = since.map(str::to_owned);
        let start = watcher.call(Watch { since }).await.unwrap();
        assert_eq!(start.event, EventKind::Snapshot);
        watchers.push((watcher, start.seq));
    }
    for number in 3..=20 {
        author.publish("a", &number.to_string()).await.unwrap();
    }
    for (watcher, start) in &mut watchers {
        for number in start.get() + 1..=20 {
            let event = watcher.event().await;
            assert_eq!(
                (event.event, event.seq.get()),
                (EventKind::Published, number)
            );
            assert!(event.token.starts_with(&format!("{number}:")));
            assert_eq!(event.changes.unwrap().len(), 1);
        }
    }
    // From the store and from the ring, an event is the same.
    let mut late = running.greeted(Some(&root)).await;
    late.call(Watch {
        since: Some("19".to_owned()),
    })
    .await
    .unwrap();
    let stored = late.event().await;
    author.publish("a", "x").await.unwrap();
    let lively = late.event().await;
    let mut again = running.greeted(Some(&root)).await;
    again
        .call(Watch {
            since: Some(stored.token.clone()),
        })
        .await
        .unwrap();
    assert_eq!(again.event().await, lively);
    assert_eq!(lively.seq, Seq::new(21).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_authors_are_served_and_repetitions_are_not_published_twice() {
    let running = Running::start(Config::default()).await;
    let (root, mut client) = running.workspace().await;
    let mut authors = Vec::new();
    for number in 0..8 {
        let mut author = running.greeted(Some(&root)).await;
        authors.push(tokio::spawn(async move {
            let alone = author.publish(&format!("f{number}"), "x").await.unwrap();
            let shared = author
                .call(put("shared", "same", Some(id(1))))
                .await
                .unwrap();
            (alone.status, shared.revision, shared.replayed)
        }));
    }
    let mut firsts = 0;
    let mut revisions = std::collections::BTreeSet::new();
    for author in authors {
        let (alone, revision, replayed) = author.await.unwrap();
        assert_eq!(alone, ReceiptStatus::Published);
        revisions.insert(revision);
        firsts += u64::from(!replayed);
    }
    assert_eq!((revisions.len(), firsts), (1, 1));
    let refusal = client
        .call(put("shared", "other", Some(id(1))))
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), Code::InvalidSubmission);
    let refusal = client.call(Cancel { submission: id(9) }).await.unwrap_err();
    assert_eq!(refusal.code(), Code::NotFound);
    let status = client
        .call(StatusParams {
            drift: false,
            limits: false,
        })
        .await
        .unwrap();
    assert_eq!((status.active.seq.get(), status.queue.waiting), (10, 0));
    assert_eq!(status.daemon.unwrap().pid, std::process::id());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_end_with_their_connection() {
    let running = Running::start(Config::default()).await;
    let (root, mut client) = running.workspace().await;
    client.publish("a", "2").await.unwrap();
    let mut holder = running.greeted(Some(&root)).await;
    let first = holder.call(acquire()).await.unwrap();
    assert!(first.expires.is_none() && first.path.join("a").exists());
    let old = LeaseAcquire {
        revision: Some("@1".to_owned()),
        ..acquire()
    };
    let old = holder.call(old).await.unwrap();
    assert!(old.path.join("b").exists());
    let detached = LeaseAcquire {
        ttl_ms: Some(60_000),
        ..acquire()
    };
    let detached = holder.call(detached).await.unwrap();
    assert_eq!(
        client.call(LeaseListParams {}).await.unwrap().leases.len(),
        3
    );
    let released = holder
        .call(LeaseRelease { lease: first.lease })
        .await
        .unwrap();
    assert_eq!(released.released, first.lease);
    drop(holder);
    let left = loop {
        let list = client.call(LeaseListParams {}).await.unwrap().leases;
        if list.len() < 2 {
            break list;
        }
    };
    assert_eq!(left[0].lease, detached.lease);
    client
        .call(LeaseRelease {
            lease: detached.lease,
        })
        .await
        .unwrap();
    let refusal = client
        .call(LeaseRelease {
            lease: detached.lease,
        })
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), Code::LeaseUnknown);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_sent_ahead_is_published_and_the_journal_tells() {
    let running = Running::start(Config::default()).await;
    let (root, mut client) = running.workspace().await;
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let sha256: Sha256 = empty.parse().unwrap();
    let piece = BlobPut {
        sha256,
        bytes: 0,
        offset: 0,
        data: String::new(),
    };
    assert!(client.call(piece).await.unwrap().complete);
    let head = client.call(JournalHead {}).await.unwrap().entry;
    let mut follower = running.greeted(Some(&root)).await;
    let follow = Journal {
        since: head,
        limit: None,
        wait_ms: Some(60_000),
    };
    let request = follow.request();
    follower.send(&request).await;
    let text = format!(r#"{{"changes":[{{"op":"put","path":"c","contentBlob":"{empty}"}}]}}"#);
    let mut publish = put("c", "", None);
    publish.submission = serde_json::from_str(&text).unwrap();
    client.call(publish).await.unwrap();
    match follower.answer(&request).await.unwrap() {
        semaprax_protocol::request::Response::Journal(page) => assert_eq!(page.entries.len(), 1),
        other => panic!("{other:?}"),
    }
    let briefly = Journal {
        since: head + 1,
        limit: None,
        wait_ms: Some(1),
    };
    assert!(follower.call(briefly).await.unwrap().entries.is_empty());
    let verified = client
        .call(Verify {
            deep: true,
            repair: false,
            directory: None,
        })
        .await
        .unwrap();
    assert!(verified.damage.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_of_the_writer_is_survived() {
    let running = Running::start(Config::default()).await;
    let (root, mut client) = running.workspace().await;
    client.publish("a", "2").await.unwrap();
    let hosted = Registry::open(&running.daemon, root.clone()).await.unwrap();
    let nobody = crate::engine::Caller {
        connection: crate::engine::ConnectionId::new(0),
        request: 0,
    };
    hosted.input(Input::Request(nobody, Lane::Upkeep, Work::Panic));
    assert!(
        client.is_closed().await,
        "its leases are gone, so it is told"
    );
    let mut client = running.greeted(Some(&root)).await;
    assert_eq!(client.publish("a", "3").await.unwrap().seq, Seq::new(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_that_was_replaced_is_opened_anew() {
    let running = Running::start(Config::default()).await;
    let (root, mut client) = running.workspace().await;
    client.publish("a", "2").await.unwrap();
    let disk = running.daemon.world.disk.clone();
    let state = root.join(".semaprax-workspace");
    disk.rename(&state, &root.join("away")).unwrap();
    let mut second = running.client().await;
    assert_eq!(
        second.hello(Some(&root)).await.unwrap_err().code(),
        Code::NotAWorkspace
    );
    assert!(client.is_closed().await);
    disk.rename(&root.join("away"), &state).unwrap();
    second.hello(Some(&root)).await.unwrap();
    assert_eq!(second.publish("a", "3").await.unwrap().seq, Seq::new(3));
    second.call(DaemonStop { if_idle: true }).await.unwrap();
    running.left().await.unwrap();
}
