//! More connections than may be, and more than the system has files for.

use std::os::unix::net::UnixStream;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use semaprax_tests::process::{Running, Wire, World, status_field, submission, until, until_true};
use serde_json::json;

use crate::{code_of, reached, say, seeded, times, world};

/// What one connection that has said hello may take of the daemon's memory, in bytes: the buffer it reads
/// into (16 KiB), its task and its tables, and as much again.
const CONNECTION_BYTES: u64 = 48 << 10;

/// Takes what the system allows, and answers it: each connection is a file of this process too.
fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Starts a daemon in the foreground, by a program in front of it if one is given.
fn run_daemon(world: &World, before: &[&str], flags: &[&str]) -> Running {
    let binary = world.binary().to_str().unwrap().to_owned();
    let runtime = world.runtime().to_str().unwrap().to_owned();
    let mut words: Vec<&str> = before.to_vec();
    words.extend([binary.as_str(), "daemon", "run", "--runtime-dir", &runtime]);
    words.extend(flags);
    let call = world.program(words[0], words.join(" "));
    let running = call.args(&words[1..]).spawn();
    until("the daemon answers", || world.daemon());
    running
}

#[test]
fn the_flag_bounds_connections_and_wins_over_the_settings() {
    let world = seeded();
    world.stop();
    world.configure("[limits]\nconnections = 20\n");
    let mut daemon = run_daemon(&world, &[], &["--max-connections", "3"]);
    let wires: Vec<Wire> = (0..3).map(|_| world.wire()).collect();
    let told = Wire::connect(&world.socket()).unwrap().receive().unwrap();
    assert_eq!(code_of(&told["error"]["data"]), "limit-exceeded", "{told}");
    drop(wires);
    until_true("there is room again", || {
        world.run(&["status"]).code == Some(0)
    });
    assert_eq!(
        world.json(&["status", "--limits"])["limits"]["connections"],
        3
    );
    world.ok(&["daemon", "stop"]);
    until_true("it has left", || daemon.has_ended());
    world
        .run(&["daemon", "run", "--max-connections", "0"])
        .exits(1);
}

/// As many as may are served; of the rest each is told or closed; accepting goes on all the while.
#[test]
fn thousands_of_connections_beyond_the_bound() {
    let files = raise_open_files();
    // A tenth as many are turned away; the rest is for the programs that run, and other tests.
    let most = usize::try_from(files).unwrap() / 11 * 10;
    let wanted = times(1_000, 10_000);
    let bound = wanted.min(most.saturating_sub(500));
    say(&format!(
        "{files} open files may be: {bound} connections, {wanted} wanted"
    ));
    let world = world();
    world.fill();
    world.configure(&format!("[limits]\nconnections = {bound}\n"));
    world.json(&["init"]);
    let pid = world.daemon().unwrap();
    let memory = || status_field(pid, "VmRSS").unwrap() << 10;
    let before = memory();
    let mut wires: Vec<Wire> = (0..bound).map(|_| world.wire()).collect();
    let during = memory();
    let each = during.saturating_sub(before) / bound as u64;
    say(&format!(
        "memory: {before} bytes before, {during} with {bound} connections: {each} each"
    ));
    assert!(each < CONNECTION_BYTES, "{each} bytes for each connection");
    // One after the other: each is told.
    let (mut told, beyond) = (0, bound / 10);
    for _ in 0..beyond {
        let mut next = Wire::connect(&world.socket()).unwrap();
        let refusal = next.receive().unwrap();
        assert_eq!(code_of(&refusal["error"]["data"]), "limit-exceeded");
        assert!(next.receive().is_none(), "then it is closed");
        told += 1;
    }
    // All at once, and none reads: those who are in are served meanwhile.
    let mut flood = Vec::new();
    for place in 0..beyond {
        flood.push(UnixStream::connect(world.socket()).unwrap());
        if place % 10 == 0 {
            let change = json!([{"op": "put", "path": "n", "content": place.to_string()}]);
            let wire = &mut wires[place % bound];
            wire.call("publish", &json!({"submission": submission(&change)}))
                .unwrap();
        }
    }
    for wire in &mut wires {
        wire.call("resolve", &json!({"revision": "@"})).unwrap();
    }
    drop((flood, wires));
    until_true("all are forgotten", || {
        let status = world.with_json(&["daemon", "status"]).run();
        status.code == Some(0) && status.json()["connections"] == 1
    });
    let after = memory();
    say(&format!("memory: {after} bytes after"));
    assert!(
        after < during + (8 << 20),
        "{during} bytes before, {after} after"
    );
    assert_eq!(world.json(&["verify"])["status"], "ok");
    reached(
        "connections served at once",
        bound,
        1_000.min(most.saturating_sub(500)),
    );
    reached("connections turned away, each told", told, bound / 10);
}

/// A daemon that may open few files gives clients no more than half of them, says so when even those who
/// are turned away take the last one, waits between its tries, and goes on when there is room.
#[test]
fn without_open_files_the_daemon_waits_and_says_so() {
    let world = seeded();
    world.put("n", "0");
    world.stop();
    let mut daemon = run_daemon(&world, &["prlimit", "--nofile=64:64"], &[]);
    let pid = world.daemon().unwrap();
    let mut wires: Vec<Wire> = vec![world.wire()];
    // It bounds them by itself.
    let mut more = Wire::connect(&world.socket()).unwrap();
    while more.try_hello().is_some() {
        wires.push(more);
        more = Wire::connect(&world.socket()).unwrap();
        assert!(wires.len() <= 32, "more than half of the files are clients");
    }
    let limits = wires[0].call("status", &json!({"limits": true})).unwrap();
    assert_eq!(limits["limits"]["connections"], 32, "{limits}");
    // Those who are told that there is no room, and do not go, take the rest for a moment.
    let told = "a connection could not be accepted";
    let mut crowd = Vec::new();
    until_true("there is no file left", || {
        crowd.extend((0..32).map(|_| UnixStream::connect(world.socket()).unwrap()));
        world.log().contains(told)
    });
    // It does not spin: tries are few, and lines fewer.
    let trace = |line: &str| world.log().matches(line).count();
    let said = trace(told);
    let lines = world.log().lines().count();
    drop(crowd);
    until_true("it accepts again", || {
        trace("connections are accepted again") >= said
    });
    assert!(
        world.log().lines().count() < lines + 200,
        "a line for each try"
    );
    assert_eq!(
        wires[0].call("status", &json!({})).unwrap()["active"]["seq"],
        2
    );
    let change = json!([{"op": "put", "path": "n", "content": "1"}]);
    let publish = json!({"submission": submission(&change)});
    until("publishing goes on", || {
        wires[0].call("publish", &publish).ok()
    });
    drop(wires);
    until_true("new clients are served", || {
        world.run(&["status"]).code == Some(0)
    });
    assert_eq!(world.daemon(), Some(pid));
    let log = world.log();
    let failed: Vec<u64> = log
        .lines()
        .filter_map(|line| {
            line.split("failed=")
                .nth(1)?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .collect();
    let tries = failed.iter().sum::<u64>();
    reached(
        "tries to accept without a file",
        usize::try_from(tries).unwrap(),
        1,
    );
    // Ten milliseconds at first, twice as long each time, at most a second.
    assert!(tries < 400, "{tries} tries: it spins\n{log}");
    world.ok(&["daemon", "stop"]);
    until_true("it has left", || daemon.has_ended());
}
