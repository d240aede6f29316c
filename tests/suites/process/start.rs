//! How a daemon begins and ends: autostart, its surroundings, idle exit, signals, stopping.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use semaprax_tests::process::{Blocker, Call, World, is_alive, submission, until_true, within};
use serde_json::json;

use crate::{seeded, world};

#[test]
fn clients_that_start_at_once_get_one_daemon() {
    let world = seeded();
    world.stop();
    let pids: BTreeSet<u64> = thread::scope(|scope| {
        let clients: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| world.json(&["status"])["daemon"]["pid"].as_u64().unwrap()))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    assert_eq!(pids.len(), 1, "{pids:?}");
    assert_eq!(world.daemons().len(), 1);
}

#[test]
fn an_autostarted_daemon_has_surroundings_of_its_own() {
    let world = world();
    world.fill();
    // A descriptor that every started program inherits: only `sh` hands it on like this.
    let script = format!(
        "exec 7<inherited; exec '{}' init --json",
        world.binary().display()
    );
    let inherited = world.write("ws/inherited", "");
    let call = world.program("sh", "sh".to_owned()).arg("-c").arg(script);
    call.env("SECRET", "x").run().ok();
    let pid = world.daemon().unwrap();
    let proc = |name: &str| format!("/proc/{pid}/{name}");
    assert_eq!(fs::read_link(proc("cwd")).unwrap().to_str(), Some("/"));
    let environment = fs::read(proc("environ")).unwrap();
    let names: BTreeSet<String> = environment
        .split(|&byte| byte == 0)
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            String::from_utf8_lossy(entry)
                .split('=')
                .next()
                .unwrap()
                .to_owned()
        })
        .collect();
    let expected = ["HOME", "LANG", "PATH", "USER"].map(str::to_owned);
    assert_eq!(names, BTreeSet::from(expected));
    let stat = fs::read_to_string(proc("stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    assert_eq!(fields[3], pid.to_string(), "it leads a session of its own");
    for entry in fs::read_dir(proc("fd")).unwrap() {
        let target = fs::read_link(entry.unwrap().path()).unwrap_or_default();
        assert_ne!(target, inherited, "an inherited descriptor stayed open");
    }
    let log = world.runtime().join("daemon.log");
    for stream in ["fd/1", "fd/2"] {
        assert_eq!(fs::read_link(proc(stream)).unwrap(), log);
    }
    assert_eq!(
        fs::read_link(proc("fd/0")).unwrap().to_str(),
        Some("/dev/null")
    );
}

#[test]
fn a_caller_with_a_pipe_does_not_hang() {
    let world = seeded();
    world.stop();
    let script = format!("'{}' status | cat", world.binary().display());
    let piped = world
        .program("sh", "sh".to_owned())
        .arg("-c")
        .arg(script)
        .run()
        .ok();
    assert!(
        piped.text().contains("publication 1") || piped.text().contains("@1"),
        "{}",
        piped.told()
    );
    assert!(world.daemon().is_some(), "the daemon lives on");
}

#[test]
fn a_daemon_that_is_idle_leaves() {
    let world = world();
    world.fill();
    world.ok(&["daemon", "start", "--idle-timeout", "300ms"]);
    let pid = world.daemon().unwrap();
    until_true("the idle daemon leaves", || !is_alive(pid));
    assert!(!world.socket().exists(), "it takes its socket away");
    assert!(world.log().contains("idle"), "{}", world.log());
}

#[test]
fn clients_and_their_leases_keep_a_daemon() {
    let world = seeded();
    world.stop();
    world.ok(&["daemon", "start", "--idle-timeout", "300ms"]);
    let pid = world.daemon().unwrap();
    let mut held = world.spawn(&["lease", "acquire", "--hold"]);
    held.line();
    assert_eq!(
        within(Duration::from_secs(1), || (!is_alive(pid)).then_some(())),
        None
    );
    held.close_input();
    held.finish().ok();
    until_true("the daemon leaves after its client", || !is_alive(pid));
}

#[test]
fn daemon_commands_tell_what_runs() {
    let world = world();
    let absent = world.json(&["daemon", "status"]);
    assert_eq!(absent["running"], false);
    assert_eq!(absent["socket"], json!(world.socket()));
    world.ok(&["daemon", "stop"]);
    let started = world.json(&["daemon", "start"]);
    assert_eq!(started["running"], true);
    let again = world.json(&["daemon", "start"]);
    assert_eq!(
        again["daemon"], started["daemon"],
        "start is not a second start"
    );
    let status = world.json(&["daemon", "status"]);
    assert_eq!(status["daemon"]["pid"], json!(world.daemon().unwrap()));
    world.stop();
    assert_eq!(world.json(&["daemon", "status"])["running"], false);
    until_true("no process is left", || world.daemons().is_empty());
}

#[test]
fn a_daemon_that_is_asked_to_leave_finishes_what_runs() {
    for how in ["SIGTERM", "SIGINT", "daemon stop"] {
        let world = seeded();
        let pid = world.daemon().unwrap();
        let blocker = Blocker::new(&world.state());
        let changes = json!([{"op": "put", "path": "n", "content": "n"}]);
        let publishing = world.publish(&submission(&changes), &[]).spawn();
        let mut watcher = world.wire();
        until_true("the submission runs", || {
            let queue = watcher.call("queue", &json!({})).unwrap();
            queue["running"]
                .as_array()
                .is_some_and(|list| list.len() == 1)
        });
        let mut stopping = None;
        match how {
            "SIGTERM" => world.signal_daemon(pid, Signal::TERM),
            "SIGINT" => world.signal_daemon(pid, Signal::INT),
            _ => stopping = Some(world.spawn(&["daemon", "stop"])),
        }
        until_true("the daemon takes nobody in", || !world.socket().exists());
        assert!(is_alive(pid), "{how}: it left its work");
        drop(blocker);
        let receipt = publishing.finish().ok().json();
        assert_eq!(
            (&receipt["seq"], &receipt["replayed"]),
            (&json!(2), &json!(false)),
            "{how}"
        );
        until_true("the daemon leaves", || !is_alive(pid));
        if let Some(stopping) = stopping {
            stopping.finish().ok();
        }
        assert_eq!(world.json(&["log"])["entries"].as_array().unwrap().len(), 2);
        assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
    }
}

#[test]
fn a_daemon_that_leaves_folds_the_log_in() {
    let world = seeded();
    world.put("n", "2\n");
    world.json(&["log"]);
    assert!(world.state().join("store.db-wal").exists());
    world.stop();
    for name in ["store.db-wal", "store.db-shm"] {
        assert!(!world.state().join(name).exists(), "{name} is left");
    }
}

#[test]
fn a_stale_socket_is_in_nobodys_way() {
    let world = seeded();
    world.kill_daemon();
    assert!(world.socket().exists(), "a killed daemon leaves its socket");
    world.json(&["status"]);
    // The same with a socket that no daemon ever listened on.
    world.stop();
    drop(UnixListener::bind(world.socket()).unwrap());
    world.json(&["status"]);
}

#[test]
fn without_autostart_only_reads_are_answered() {
    let world = seeded();
    world.put("n", "2\n");
    world.stop();
    let readable: &[&[&str]] = &[
        &["status"],
        &["ls"],
        &["cat", "n"],
        &["show", "@"],
        &["diff", "@1"],
        &["log"],
        &["watch", "--since", "1", "--limit", "1"],
        &["with", "--", "cat", "n"],
        &["daemon", "status"],
        &["explain", "stale-base"],
        &["schema"],
        &["completions", "bash"],
    ];
    let refused: &[&[&str]] = &[
        &["publish", "--delete", "n"],
        &["rollback", "@1"],
        &["revert", "2"],
        &["undo"],
        &["blame", "n"],
        &["lease", "acquire"],
        &["lease", "list"],
        &["export", "out"],
        &["pin", "@1"],
        &["unpin", "@1"],
        &["gc"],
        &["why", "@1"],
        &["verify"],
        &["doctor"],
        &["journal"],
        &["journal", "head"],
        &["queue"],
        &["cancel", "00000000-0000-4000-8000-000000000000"],
        &["init", "."],
    ];
    for (name, value) in [("flag", None), ("variable", Some("1"))] {
        for command in readable {
            let call = off(&world, command, value);
            call.run().ok();
        }
        for command in refused {
            let refusal = off(&world, command, value)
                .run()
                .exits(2)
                .refused("daemon-unreachable");
            assert_eq!(refusal["status"], "failed", "{name} {command:?}");
        }
    }
    assert!(
        world.daemons().is_empty(),
        "something was started all the same"
    );
    // With a daemon there, the switch means nothing.
    world.ok(&["daemon", "start"]);
    world.ok(&["--no-autostart", "why", "@1"]);
}

fn off(world: &World, command: &[&str], variable: Option<&str>) -> Call {
    if let Some(value) = variable {
        return world.with_json(command).env("SEMAPRAX_NO_AUTOSTART", value);
    }
    let mut all = vec!["--no-autostart"];
    all.extend(command);
    world.with_json(&all)
}

#[test]
fn a_daemon_that_cannot_start_says_why() {
    let world = seeded();
    world.stop();
    world.configure("colour = 1\n");
    let refusal = world.refused(&["why", "@1"], "daemon-unreachable");
    let message = refusal["diagnostics"][0]["message"].as_str().unwrap();
    assert!(message.contains("colour"), "{message}");
    until_true("no daemon is left", || world.daemons().is_empty());
}
