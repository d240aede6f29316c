//! Two of everything: daemons, runtime directories, users, at one workspace; and a store that a crash
//! left where nobody may write.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;

use semaprax_tests::process::{Call, Outcome, World, sha256, submission, until_true};
use serde_json::{Value, json};

use crate::{is_root, seeded, world};

/// `semaprax --json` with another runtime directory.
fn from(world: &World, runtime: &str, arguments: &[&str]) -> Call {
    let call = world.with_json(arguments);
    call.env("SEMAPRAX_RUNTIME_DIR", world.directory().join(runtime))
}

/// The socket that LOCK names.
fn holder(world: &World) -> String {
    let text = fs::read_to_string(world.state().join("LOCK")).unwrap();
    let lock: Value = serde_json::from_str(&text).unwrap();
    lock["socket"].as_str().unwrap().to_owned()
}

/// Clients of two sessions that know nothing of each other publish at once, and no daemon runs: one of
/// the two daemons gets the workspace, everything is published by it, and whoever asked the other is
/// told who holds it.
#[test]
fn daemons_that_start_at_once_for_two_sessions_are_one_too_many() {
    for round in 0..4 {
        let world = seeded();
        world.stop();
        let outcomes: Vec<(usize, Outcome)> = thread::scope(|scope| {
            let clients: Vec<_> = (0..8)
                .map(|client| {
                    let runtime = ["run", "run2"][(client + round) % 2];
                    let path = format!("by-{client}");
                    let wanted =
                        submission(&json!([{"op": "put", "path": path, "content": runtime}]));
                    let arguments = ["publish", "--from-json", "-"];
                    let call = from(&world, runtime, &arguments).input(wanted.to_string());
                    let which = (client + round) % 2;
                    scope.spawn(move || (which, call.run()))
                })
                .collect();
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .collect()
        });
        let mut winners = BTreeSet::new();
        let mut seqs = BTreeSet::new();
        for (which, outcome) in outcomes {
            if outcome.code == Some(0) {
                winners.insert(which);
                let receipt = outcome.json();
                assert!(seqs.insert(receipt["seq"].as_u64().unwrap()), "{receipt}");
            } else {
                let refusal = outcome.exits(1).refused("workspace-locked");
                let message = refusal["diagnostics"][0]["message"].as_str().unwrap();
                assert!(message.contains(&holder(&world)), "{message}");
            }
        }
        assert_eq!(winners.len(), 1, "both sessions published: {winners:?}");
        let winner = ["run", "run2"][winners.into_iter().next().unwrap()];
        let socket = world.directory().join(winner).join("daemon.sock");
        assert_eq!(holder(&world), socket.to_str().unwrap());
        let log = from(&world, winner, &["log"]).run().ok().json();
        let listed: BTreeSet<u64> = log["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["seq"].as_u64().unwrap())
            .collect();
        seqs.insert(1);
        assert_eq!(listed, seqs);
        assert_eq!(
            from(&world, winner, &["verify", "--deep"])
                .run()
                .ok()
                .json()["status"],
            "ok"
        );
    }
}

#[test]
fn inits_of_two_sessions_make_one_workspace() {
    let world = world();
    world.fill();
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let inits: Vec<_> = ["run", "run2"]
            .map(|runtime| from(&world, runtime, &["init"]))
            .into_iter()
            .map(|call| scope.spawn(move || call.run()))
            .collect();
        inits.into_iter().map(|init| init.join().unwrap()).collect()
    });
    let made = outcomes
        .iter()
        .filter(|outcome| outcome.code == Some(0))
        .count();
    assert_eq!(made, 1, "{outcomes:?}");
    for outcome in outcomes
        .into_iter()
        .filter(|outcome| outcome.code != Some(0))
    {
        let told = outcome.told();
        let code = outcome.exits(1).json()["diagnostics"][0]["code"].clone();
        let expected = [json!("already-a-workspace"), json!("workspace-locked")];
        assert!(expected.contains(&code), "{told}");
    }
}

/// `semaprax --json` as another user, with a home and a runtime directory of its own.
fn as_other(world: &World, binary: &Path, arguments: &[&str]) -> Call {
    let home = world.directory().join("other");
    let call = world.program("setpriv", format!("other user: {arguments:?}"));
    call.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(binary)
        .arg("--json")
        .args(arguments)
        .env("HOME", &home)
        .env("TMPDIR", &home)
        .env("SEMAPRAX_RUNTIME_DIR", home.join("run"))
}

/// A place for another user in this world, and the binary where that user finds it.
fn let_in(world: &World) -> PathBuf {
    fs::set_permissions(world.directory(), fs::Permissions::from_mode(0o755)).unwrap();
    let binary = world.directory().join("semaprax");
    fs::copy(world.binary(), &binary).unwrap();
    let home = world.directory().join("other");
    fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(65534), Some(65534)).unwrap();
    binary
}

#[test]
fn another_user_reads_what_is_shared_and_nothing_else() {
    if !is_root() {
        println!("only root can act as another user: not tried");
        return;
    }
    for shared in [true, false] {
        let world = world();
        let binary = let_in(&world);
        world.fill();
        let init: &[&str] = if shared {
            &["init", "--shared"]
        } else {
            &["init"]
        };
        world.ok(init);
        world.put("n", "2\n");
        for how in ["running", "stopped", "killed"] {
            match how {
                "stopped" => world.stop(),
                "killed" => {
                    world.put("n", "3\n");
                    world.kill_daemon();
                }
                _ => {}
            }
            let reads: [&[&str]; 4] = [
                &["status"],
                &["ls"],
                &["cat", "n"],
                &["with", "--", "cat", "n"],
            ];
            for words in reads {
                let outcome = as_other(&world, &binary, words).run();
                if shared {
                    outcome.ok();
                } else {
                    outcome.exits(if words[0] == "with" { 125 } else { 2 });
                }
            }
            let code = if shared {
                "daemon-unreachable"
            } else {
                "not-a-workspace"
            };
            let publish = ["publish", "--delete", "n"];
            as_other(&world, &binary, &publish)
                .run()
                .exits(2)
                .refused(code);
        }
        // Nor can it hold the owner off.
        let lock = world.state().join("LOCK");
        let flock = world.program("setpriv", "flock as another user".to_owned());
        let held = flock
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .args(["flock", "--nonblock"])
            .arg(&lock)
            .arg("true");
        assert_ne!(held.run().code, Some(0));
        world.json(&["status"]);
        // Each user's own workspace goes to that user's own daemon.
        let own = world.directory().join("other/ws");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("a"), "a").unwrap();
        std::os::unix::fs::chown(&own, Some(65534), Some(65534)).unwrap();
        let init = ["-C", own.to_str().unwrap(), "init"];
        as_other(&world, &binary, &init).run().ok();
        assert_eq!(world.daemons().len(), 2);
        // Root is not another user to a daemon's eyes only where it says so.
        let foreign = world.directory().join("other/run");
        let call = world.with_json(&["-C", own.to_str().unwrap(), "status"]);
        let call = call.env("SEMAPRAX_RUNTIME_DIR", foreign);
        call.run().refused("permission-denied");
    }
}

/// A crash leaves a write-ahead log, and a copy or a new boot leaves no index of it: where nobody may
/// write, neither can be folded in or made, so the database is read from a copy.
#[test]
fn a_store_left_by_a_crash_is_read_where_nobody_may_write() {
    for with_index in [true, false] {
        let world = seeded();
        world.put("n", "2\n");
        world.kill_daemon();
        let state = world.state();
        assert!(fs::metadata(state.join("store.db-wal")).unwrap().len() > 0);
        if !with_index {
            fs::remove_file(state.join("store.db-shm")).unwrap();
        }
        let before = listing(&state);
        let closed = !is_root();
        if closed {
            fs::set_permissions(&state, fs::Permissions::from_mode(0o500)).unwrap();
        }
        let read = |words: &[&str]| crate::workspace::read_only(&world, words);
        if read(&["status"]).is_none() {
            return;
        }
        let status = read(&["status"]).unwrap().run().ok().json();
        assert_eq!(status["active"]["seq"], 2, "the log was not read");
        let cat = read(&["cat", "n"]).unwrap().run().ok();
        assert_eq!(cat.text(), "2\n");
        let log = read(&["log"]).unwrap().run().ok().json();
        assert_eq!(log["entries"].as_array().unwrap().len(), 2);
        read(&["diff", "@1", "@2"]).unwrap().run().ok();
        read(&["with", "--", "true"]).unwrap().run().ok();
        if closed {
            fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
        }
        assert_eq!(listing(&state), before, "something was written");
        let left: Vec<_> = fs::read_dir(world.directory().join("tmp"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(left.is_empty(), "copies are left: {left:?}");
        // The next daemon folds the log in and goes on.
        assert_eq!(world.put("n", "3\n")["seq"], 3);
        until_true("nothing was lost", || {
            world.json(&["verify", "--deep"])["status"] == "ok"
        });
    }
}

/// Names and digests of the files in a directory. The index of the log is left out: its pages are the
/// reader's shared memory, and its owner may write to it in a directory that takes no new names.
fn listing(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file() && !path.ends_with("store.db-shm"))
        .map(|path| (path.clone(), sha256(fs::read(&path).unwrap())))
        .collect();
    found.sort();
    found
}
