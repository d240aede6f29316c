//! Stores of a released format, kept as they were written: making them, and saying all that must be
//! found in them for ever.
//!
//! Owns: what happens in a store of the corpus, and `observed`, which puts what a store says into one
//! document. `semaprax-corpus` writes archive and document when a format is released; the suite
//! `upgrades` opens the archive with today's code and compares.
//! Never: chance, or the machine's clock: made twice, the same digests come out.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use semaprax_protocol::request::{JournalHead, LeaseListParams, Log, Show, WhyParams};
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{Code, Refusal};
use serde_json::{Value, json};

use crate::fixture::{Fixture, sha256};

/// The stores of each format.
pub const STORES: [&str; 2] = ["whole", "crashed"];

/// All kinds of changes, refusals of all kinds, holds, and content that is not kept any more.
const STORY: &str = r"file src/a.rs one\ntwo\nthree\nfour\nfive\nsix\n
file src/b.rs use\sa;\n
file crlf a\r\nb\r\n
file empty
file bytes \0\0x
exec run.sh #!/bin/sh\n
link link src/a.rs
publish id=1 by=agent message=first
  put new one\n
  putx bin/tool tool\n
publish id=2 by=agent
  edit src/a.rs two => 2
publish id=3
  move src/b.rs src/c.rs
  move new sub/dir/new
  link sub/up ../crlf
  chmod sub/dir/new executable
publish id=4 base=@1
  put src/a.rs mine\n
publish id=5 base=@2 merge
  edit src/a.rs six => 6
publish id=6 base=@1 merge
  edit src/a.rs two => zwei
publish id=7
  edit src/a.rs nowhere => x
publish id=8
  put sub file
publish id=9
  delete! sub
  put gone 1\n
rollback @2 id=10 by=person
revert 3 id=11
undo id=12
publish id=13
  put src/a.rs for\sa\spin\n
pin @4
publish id=14
  put src/a.rs for\sa\slease\n
lease kept @9 ttl=2500000
publish id=15
  put LARGE
publish id=16 by=agent
  put src/a.rs last\n
publish id=16 by=agent
  put src/a.rs last\n
publish id=17
  put src/a.rs last\n
gc age=0 keep=2
idle
";

/// Text over 64 KiB that packs well.
fn large() -> String {
    "a\\sline\\sof\\sa\\slarge\\sfile\\n".repeat(4000)
}

/// Makes the store `name` below `place`; answers the directory that holds its workspace.
pub fn make(name: &str, place: &Path) -> Fixture {
    let mut fixture = Fixture::below(place);
    fixture.config.retention.content_publications = 6;
    fixture.config.retention.content_age = Duration::ZERO;
    let story = STORY.replace("put LARGE", &format!("put large {}", large()));
    let said = fixture.run(&story);
    println!("{said}");
    if name == "whole" {
        fixture.close();
        return fixture;
    }
    // So that the log holds the last of it only.
    fixture.run("reopen\npublish id=80\n  put in-the-log 1\\n\n");
    crash(&mut fixture, place)
}

/// A publication during which the machine stops, right before the commit point: what is on disk then,
/// log and all, is the store.
fn crash(fixture: &mut Fixture, place: &Path) -> Fixture {
    let crashed = Fixture::below(place);
    let (from, to) = (fixture.root.clone(), crashed.root.clone());
    let done = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&done);
    fixture.test.disk.fail_when(move |operation, path| {
        let is_the_moment = operation == "rename" && path.file_name() == Some("ACTIVE");
        if is_the_moment && !seen.swap(true, Ordering::Relaxed) {
            let copied = Command::new("cp")
                .args(["-a", from.join(".semaprax-workspace").as_str(), to.as_str()])
                .status();
            assert!(copied.unwrap().success());
            std::fs::remove_file(to.join(".semaprax-workspace/store.db-shm")).unwrap();
        }
        None
    });
    fixture.run("publish id=90\n  put never published\\n");
    assert!(done.load(Ordering::Relaxed));
    let log = std::fs::metadata(crashed.state("store.db-wal")).unwrap();
    assert!(log.len() > 0, "the crash left no log");
    crashed
}

/// Puts the workspace of a fixture into an archive, without the room kept back: it says nothing, does not
/// get smaller, and is made again.
pub fn pack(fixture: &Fixture, archive: &Path) {
    let packed = Command::new("tar")
        .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .args(["--use-compress-program=gzip -9n", "-cf"])
        .arg(archive)
        .arg("--exclude=.semaprax-workspace/reserve")
        .args(["-C", fixture.root.as_str(), ".semaprax-workspace"])
        .status();
    assert!(packed.unwrap().success());
}

/// A fixture with the workspace of an archive, not opened, on another boot than it was made in, a
/// quarter of an hour after its last word.
pub fn unpack(archive: &Path) -> Fixture {
    let fixture = Fixture::new();
    let unpacked = Command::new("tar")
        .args(["--no-same-owner", "--warning=no-timestamp", "-xpzf"])
        .arg(archive)
        .args(["-C", fixture.root.as_str()])
        .status();
    assert!(unpacked.unwrap().success());
    fixture.test.clock.advance(Duration::from_mins(15));
    fixture.test.clock.reboot(Some("boot-two"));
    fixture
}

/// All that an opened store says of itself: publications with every path and digest, holds, journal.
pub fn observed(fixture: &Fixture) -> Value {
    let log = fixture.ask(Log {
        limit: None,
        before: None,
        path: None,
        author: None,
    });
    let log = log.unwrap().entries;
    let publications: Vec<Value> = log
        .iter()
        .rev()
        .map(|entry| {
            let revision = entry.revision.to_string();
            let why = fixture.ask(WhyParams {
                revision: revision.clone(),
            });
            let reasons = why.unwrap().reasons;
            json!({
                "seq": entry.seq,
                "revision": revision,
                "tree": entry.tree,
                "parent": entry.parent,
                "author": entry.author,
                "message": entry.message,
                "publishedAt": entry.published_at,
                "submission": entry.submission,
                "changes": told(fixture.ask(Show { revision: revision.clone() }).map(|shown| json!(shown.changes))),
                "files": told(files(fixture, &revision)),
                "pinned": reasons.iter().any(|reason| reason.word() == "pinned"),
            })
        })
        .collect();
    let leases = fixture.ask(LeaseListParams {}).unwrap().leases;
    let leases: Vec<Value> = leases
        .iter()
        .map(|lease| json!({"lease": lease.lease, "seq": lease.seq, "owner": lease.owner, "expires": lease.expires}))
        .collect();
    let journal: Vec<Value> = fixture
        .journal(1)
        .iter()
        .map(|entry| json!([entry.entry, entry.kind, entry.digest]))
        .collect();
    let head = fixture.ask(JournalHead {}).unwrap();
    assert_eq!(json!(head.entry), journal.last().unwrap()[0]);
    json!({"publications": publications, "leases": leases, "journal": journal})
}

/// What was answered, or the code of the refusal: content that is gone is a fact, too.
fn told(answer: Result<Value, Refusal>) -> Value {
    answer.unwrap_or_else(|refusal| {
        assert!(refusal.code() == Code::ContentCollected, "{refusal}");
        json!(refusal.code().word())
    })
}

fn files(fixture: &Fixture, revision: &str) -> Result<Value, Refusal> {
    let mut files = serde_json::Map::new();
    for (path, (kind, bytes)) in fixture.stored(revision)? {
        let kind = match kind {
            EntryKind::File => "file",
            EntryKind::Executable => "executable",
            EntryKind::Symlink => "symlink",
        };
        files.insert(path, json!([kind, sha256(&bytes)]));
    }
    Ok(Value::Object(files))
}
