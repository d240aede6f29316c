//! Readers with several writers: each sees one whole generation, and it stays while it is held.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use semaprax_tests::process::{Blocker, World, submission, until_true};
use serde_json::json;

use crate::seeded;

const FILES: usize = 12;
const WRITERS: usize = 3;
const READERS: usize = 2;
/// How many generations readers must have seen between them, so that the race was run.
const SEEN: usize = 6;

/// The one word that all files of a tree hold; several when it is mixed.
fn words(tree: &Path) -> BTreeSet<String> {
    (0..FILES)
        .map(|n| fs::read_to_string(tree.join(format!("d{}/f{n}", n % 3))).unwrap())
        .collect()
}

fn publish_word(world: &World, text: &str) {
    let changes: Vec<_> = (0..FILES)
        .map(|n| json!({"op": "put", "path": format!("d{}/f{n}", n % 3), "content": text}))
        .collect();
    world.publish(&submission(&json!(changes)), &[]).run().ok();
}

#[test]
fn no_reader_sees_a_mix_and_no_held_tree_goes() {
    let world = seeded();
    publish_word(&world, "start");
    let (stop, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    let seen = Mutex::new(BTreeSet::new());
    thread::scope(|scope| {
        let stopping = Stop(&stop);
        for writer in 0..WRITERS {
            let (world, stop) = (&world, &stop);
            scope.spawn(move || {
                for count in 0.. {
                    if stop.load(Ordering::Acquire) {
                        break;
                    }
                    publish_word(world, &format!("{writer}:{count}"));
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                world.ok(&["gc", "--min-age", "0s", "--keep", "1"]);
            }
        });
        // Through `with`: slow readers, in two steps.
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                let script = "cat d0/* d1/*; sleep 0.02; cat d2/*";
                let read = world.ok(&["with", "--", "sh", "-c", script]).text();
                let text = &read[..read.len() / FILES];
                assert_eq!(read, text.repeat(FILES), "a mixed tree");
                seen.lock().unwrap().insert(text.to_owned());
                reads.fetch_add(1, Ordering::AcqRel);
            }
        });
        // Over the socket: leases of a connection that are taken and left.
        for _ in 0..READERS {
            scope.spawn(|| {
                let mut wire = world.wire();
                while !stop.load(Ordering::Acquire) {
                    let grant = wire
                        .call("lease.acquire", &json!({"owner": "reader"}))
                        .unwrap();
                    let tree = grant["path"].as_str().unwrap();
                    let found = words(Path::new(tree));
                    assert_eq!(found.len(), 1, "a mixed tree: {found:?}");
                    assert_eq!(words(Path::new(tree)), found, "a held tree changed");
                    seen.lock().unwrap().extend(found);
                    reads.fetch_add(1, Ordering::AcqRel);
                    wire.call("lease.release", &json!({"lease": grant["lease"]}))
                        .unwrap();
                }
            });
        }
        until_true("the race was run", || {
            seen.lock().unwrap().len() >= SEEN && reads.load(Ordering::Acquire) >= 20
        });
        drop(stopping);
    });
    assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
    until_true("no lease is left", || {
        world.json(&["lease", "list"])["leases"]
            .as_array()
            .unwrap()
            .is_empty()
    });
}

/// Ends the loops, also when the test fails.
struct Stop<'flag>(&'flag AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn detached_leases_are_renewed_released_and_expire() {
    let world = seeded();
    let grant = world.json(&["lease", "acquire", "--ttl", "10m", "--owner", "me"]);
    let id = grant["lease"].as_str().unwrap();
    let listed = world.json(&["lease", "list"]);
    assert_eq!(listed["leases"][0]["owner"], "me");
    let renewed = world.json(&["lease", "renew", id, "--ttl", "2h"]);
    assert!(
        renewed["expires"].as_str() > grant["expires"].as_str(),
        "{renewed}"
    );
    let released = world.json(&["lease", "release", id]);
    assert_eq!(released["revision"], grant["revision"]);
    world.refused(&["lease", "release", id], "lease-unknown");
    world.refused(&["lease", "renew", id], "lease-unknown");
    // One that runs out, and one that runs out while no daemon runs.
    world.json(&["lease", "acquire", "--ttl", "150ms"]);
    until_true("it runs out", || {
        world.json(&["lease", "list"])["leases"]
            .as_array()
            .unwrap()
            .is_empty()
    });
    world.json(&["lease", "acquire", "--ttl", "150ms"]);
    world.kill_daemon();
    until_true("it runs out without a daemon", || {
        world.json(&["lease", "list"])["leases"]
            .as_array()
            .unwrap()
            .is_empty()
    });
}

#[test]
fn a_held_lease_ends_with_its_input() {
    let world = seeded();
    let mut held = world.spawn(&["--json", "lease", "acquire", "--hold", "--revision", "@1"]);
    let grant = held.json_line();
    assert!(fs::exists(grant["path"].as_str().unwrap()).unwrap());
    let leases = || {
        world.json(&["lease", "list"])["leases"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(leases(), 1);
    held.close_input();
    held.finish().ok();
    until_true("it ends", || leases() == 0);
}

/// A reader that stays in the directory of a tree after its lease ran out may find it gone, file by file. It
/// never finds another tree there, and what it has open stays what it was.
#[test]
fn a_tree_whose_lease_ran_out_never_becomes_another() {
    let world = seeded();
    publish_word(&world, "held");
    let grant = world.json(&["lease", "acquire", "--ttl", "150ms"]);
    let tree = fs::File::open(grant["path"].as_str().unwrap()).unwrap();
    let inside = Path::new("/proc/self/fd").join(tree.as_raw_fd().to_string());
    let mut open = fs::File::open(inside.join("d1/f1")).unwrap();
    until_true("it runs out", || {
        world.json(&["lease", "list"])["leases"] == json!([])
    });
    let mut gone = 0;
    for round in 0..12 {
        publish_word(&world, &format!("word {round}"));
        world.ok(&["gc", "--min-age", "0s", "--keep", "1"]);
        for n in 0..FILES {
            match fs::read_to_string(inside.join(format!("d{}/f{n}", n % 3))) {
                Ok(word) => assert_eq!(word, "held", "round {round}"),
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
                    gone += 1;
                }
            }
        }
        let mut word = String::new();
        open.seek(SeekFrom::Start(0)).unwrap();
        open.read_to_string(&mut word).unwrap();
        assert_eq!(word, "held", "round {round}");
    }
    assert!(gone > 0, "the tree was never collected");
}

/// A detached lease is known by the name in its grant: when nobody is there to be told, it is given back.
#[test]
fn a_detached_lease_that_nobody_was_told_of_is_given_back() {
    let world = seeded();
    let mut leaver = world.wire();
    let blocker = Blocker::new(&world.state());
    leaver.send(
        "lease.acquire",
        &json!({"ttlMs": 600_000, "owner": "leaver"}),
    );
    // Answered beside the writer, and after the line before it was taken in: the writer has it.
    leaver.call("status", &json!({})).unwrap();
    drop(leaver);
    until_true("the daemon sees that the client is gone", || {
        world.json(&["daemon", "status"])["connections"] == 1
    });
    drop(blocker);
    until_true("the lease was taken and is given back", || {
        let journal = world.ok(&["--json", "journal"]).text();
        journal.contains("lease-acquired") && journal.contains("lease-released")
    });
    assert_eq!(world.json(&["lease", "list"])["leases"], json!([]));
}
