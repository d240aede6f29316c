//! What is for the owner alone: modes, sockets, and content, which is nowhere but where content is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use base64::Engine as _;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use semaprax_tests::process::{Call, World, is_alive, submission, until_true};
use serde_json::{Value, json};

use crate::world;

/// `semaprax` under a umask.
fn under(world: &World, umask: &str, arguments: &[&str]) -> Call {
    let call = world.program("sh", format!("umask {umask}; semaprax {arguments:?}"));
    let script = format!("umask {umask}; exec \"$@\"");
    call.args(["-c", &script, "sh"])
        .arg(world.binary())
        .args(arguments)
}

/// Mode of everything below and at `top`, by path from it; symlinks have none of their own.
fn modes(top: &Path) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    let mut left = vec![top.to_owned()];
    while let Some(path) = left.pop() {
        // Spare trees come and go meanwhile.
        let Ok(entry) = fs::symlink_metadata(&path) else {
            continue;
        };
        if entry.is_dir() {
            let names = fs::read_dir(&path).into_iter().flatten().flatten();
            left.extend(names.map(|entry| entry.path()));
        }
        if !entry.is_symlink() {
            let name = path.strip_prefix(top).unwrap().to_string_lossy();
            found.insert(name.into_owned(), entry.mode() & 0o7777);
        }
    }
    found
}

/// A workspace with all that a state directory ever holds, made under a umask.
fn busy_world(umask: &str, init: &[&str]) -> World {
    let world = world();
    world.fill();
    world.write("ws/large", vec![7; 200_000]);
    under(&world, umask, init).run().ok();
    let large = world.write("large", vec![8; 200_000]);
    let put = format!("large={}", large.display());
    under(&world, umask, &["publish", "--put", &put]).run().ok();
    under(&world, umask, &["lease", "acquire"]).run().ok();
    under(&world, umask, &["verify", "--deep"]).run().ok();
    world
}

#[test]
fn everything_is_for_its_owner_alone_whatever_the_umask() {
    let mut seen = BTreeSet::new();
    for umask in ["000", "077"] {
        let world = busy_world(umask, &["init"]);
        let state = modes(&world.state());
        // The outermost directory closes all that is in it.
        for directory in ["", "objects", "generations", "staging", "trash"] {
            assert_eq!(state[directory], 0o700, "umask {umask}: {directory}");
        }
        for name in ["store.db", "store.db-wal", "store.db-shm", "LOCK"] {
            assert_eq!(state[name], 0o600, "umask {umask}: {name}");
        }
        for (name, mode) in &state {
            let written_by_others = mode & 0o022 != 0 || mode & 0o7000 != 0;
            assert!(
                !written_by_others,
                "umask {umask}: {name} has mode {mode:o}"
            );
        }
        let runtime = modes(&world.runtime());
        assert_eq!(runtime[""], 0o700, "umask {umask}");
        for (name, mode) in runtime.iter().filter(|(name, _)| !name.is_empty()) {
            assert_eq!(*mode, 0o600, "umask {umask}: {name}");
        }
        seen.insert(
            state
                .into_iter()
                .chain(runtime)
                // Names that are new for each workspace.
                .filter(|(name, _)| !name.contains("generations/") && !name.contains("staging/"))
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(seen.len(), 1, "the umask shows: {seen:#?}");
}

#[test]
fn shared_is_for_others_to_read_and_for_nobody_to_write_or_hold() {
    for umask in ["000", "077"] {
        let world = busy_world(umask, &["init", "--shared"]);
        let state = modes(&world.state());
        assert_eq!((state[""], state["generations"]), (0o755, 0o755));
        assert_eq!(state["store.db"], 0o644, "umask {umask}");
        assert_eq!(
            state["LOCK"], 0o600,
            "umask {umask}: who can open it can hold it"
        );
        for (name, mode) in &state {
            assert_eq!(mode & 0o7022, 0, "umask {umask}: {name} has mode {mode:o}");
        }
        assert_eq!(modes(&world.runtime())[""], 0o700, "umask {umask}");
    }
}

/// What strace saw of network calls, one a line.
fn traced(world: &World, name: &str) -> Vec<String> {
    let text = fs::read_to_string(world.directory().join(name)).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn strace(world: &World, name: &str, arguments: &[&str]) -> Call {
    let call = world.program("strace", format!("strace semaprax {arguments:?}"));
    call.args(["-f", "-qq", "-e", "trace=network", "-o"])
        .arg(world.directory().join(name))
        .arg(world.binary())
        .args(arguments)
}

/// The family of each socket that was asked for.
fn families(lines: &[String]) -> BTreeSet<String> {
    let asked = lines.iter().filter_map(|line| {
        let (_, rest) = line
            .split_once("socket(")
            .or_else(|| line.split_once("socketpair("))?;
        Some(rest.split([',', ')']).next()?.to_owned())
    });
    asked.collect()
}

#[test]
fn nothing_is_asked_of_the_network() {
    let world = world();
    world.fill();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let works = std::env::split_paths(&path).any(|place| place.join("strace").exists());
    if !works {
        assert!(std::env::var_os("CI").is_none(), "strace has to be there");
        println!("no strace here: not tried");
        return;
    }
    let runtime = world.runtime();
    let runtime = runtime.to_str().unwrap();
    let words = ["daemon", "run", "--runtime-dir", runtime];
    let mut daemon = strace(&world, "daemon.trace", &words).spawn();
    until_true("the daemon listens", || {
        world.daemon().is_some() || daemon.has_ended()
    });
    let pid = world.daemon().expect("a daemon");
    strace(&world, "client.trace", &["init"]).run().ok();
    world.put("n", "2\n");
    strace(&world, "publish.trace", &["publish", "--delete", "n"])
        .run()
        .ok();
    let watch = ["watch", "--since", "1", "--limit", "2"];
    strace(&world, "watch.trace", &watch).run().ok();
    world.ok(&["with", "--", "true"]);
    world.ok(&["verify", "--deep"]);
    // Nothing that is open now is of the network either.
    let mut sockets = 0;
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
        let target = fs::read_link(entry.unwrap().path()).unwrap_or_default();
        let target = target.to_string_lossy().into_owned();
        let Some(inode) = target.strip_prefix("socket:[") else {
            continue;
        };
        let inode = inode.trim_end_matches(']').to_owned();
        let table = fs::read_to_string(format!("/proc/{pid}/net/unix")).unwrap();
        let known = |line: &str| line.split_whitespace().any(|word| word == inode);
        assert!(table.lines().any(known), "{target} is no local socket");
        sockets += 1;
    }
    assert!(sockets > 0, "the daemon listens on nothing");
    world.ok(&["daemon", "stop"]);
    until_true("the daemon is gone", || !is_alive(pid));
    daemon.finish().ok();
    for name in [
        "daemon.trace",
        "client.trace",
        "publish.trace",
        "watch.trace",
    ] {
        let lines = traced(&world, name);
        let families = families(&lines);
        assert_eq!(
            families,
            BTreeSet::from(["AF_UNIX".to_owned()]),
            "{name}: {lines:#?}"
        );
    }
}

/// Where, outside of the tables of content, `marks` are found.
fn found_in_store(state: &Path, marks: &[Vec<u8>]) -> Vec<String> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let store = Connection::open_with_flags(state.join("store.db"), flags).unwrap();
    let names = |sql: &str| -> Vec<String> {
        let mut query = store.prepare(sql).unwrap();
        let rows = query.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let tables = names("SELECT name FROM sqlite_master WHERE type = 'table'");
    assert!(tables.contains(&"blobs".to_owned()), "{tables:?}");
    let mut found = Vec::new();
    for table in tables.iter().filter(|table| *table != "blobs") {
        let mut query = store.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = query.column_count();
        let mut rows = query.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                let (ValueRef::Text(bytes) | ValueRef::Blob(bytes)) = row.get_ref(column).unwrap()
                else {
                    continue;
                };
                if holds(bytes, marks) {
                    let shown = String::from_utf8_lossy(bytes).into_owned();
                    found.push(format!("{table}: {shown}"));
                }
            }
        }
    }
    found
}

fn holds(bytes: &[u8], marks: &[Vec<u8>]) -> bool {
    marks
        .iter()
        .any(|mark| bytes.windows(mark.len()).any(|part| part == mark))
}

/// A mark as it would show: itself, in base64, and as JSON writes bytes.
fn forms(mark: &str) -> Vec<Vec<u8>> {
    let base64 = base64::engine::general_purpose::STANDARD_NO_PAD.encode(mark);
    // The last character depends on what follows.
    vec![mark.into(), base64[..base64.len() - 2].into()]
}

/// One submission for each way content comes in, and for each way it is refused; none of it is told
/// anywhere but in the blobs.
#[test]
fn content_is_kept_where_content_is_kept() {
    const MARK: &str = "QZ7-secret-marker-4411";
    let world = world();
    world.fill();
    world.write("ws/secret", format!("{MARK} imported\nline\nlast\n"));
    world.ok(&["init"]);
    let marks = forms(MARK);
    let mut told: Vec<(String, Vec<u8>)> = Vec::new();
    let mut publish = |name: &str, wanted: Value, code: i32| {
        let outcome = world.publish(&wanted, &[]).run().exits(code);
        let mut all = outcome.out.clone();
        all.extend(outcome.err.as_bytes());
        told.push((name.to_owned(), all));
        outcome
    };
    let of = |changes: Value| submission(&changes);
    let base64 = base64::engine::general_purpose::STANDARD.encode(format!("{MARK} in base64"));
    publish(
        "put",
        of(json!([{"op": "put", "path": "a", "content": format!("{MARK}\none\ntwo\n")}])),
        0,
    );
    publish(
        "base64",
        of(json!([{"op": "put", "path": "b", "contentBase64": base64}])),
        0,
    );
    publish(
        "large",
        of(json!([{"op": "put", "path": "c", "content": MARK.repeat(9000)}])),
        0,
    );
    publish(
        "edit",
        of(
            json!([{"op": "edit", "path": "a", "edits": [{"old": MARK, "new": format!("{MARK}2")}]}]),
        ),
        0,
    );
    let base = world.json(&["status"])["active"]["revision"].clone();
    publish(
        "not found",
        of(
            json!([{"op": "edit", "path": "a", "edits": [{"old": format!("{MARK} is not there"), "new": "x"}]}]),
        ),
        1,
    );
    publish(
        "not unique",
        of(json!([
            {"op": "put", "path": "d", "content": format!("{MARK}\n{MARK}\n")},
            {"op": "edit", "path": "d", "edits": [{"old": MARK, "new": "x"}]},
        ])),
        1,
    );
    publish(
        "expect",
        of(json!([{"op": "put", "path": "a", "content": MARK, "expect": {"absent": true}}])),
        1,
    );
    publish(
        "exists",
        of(json!([
            {"op": "put", "path": "e", "content": MARK},
            {"op": "move", "from": "e", "to": "a"},
        ])),
        1,
    );
    publish(
        "invalid",
        of(json!([{"op": "put", "path": "a", "content": MARK, "contentBase64": base64}])),
        2,
    );
    publish(
        "malformed",
        of(json!([{"op": "put", "path": "a", "content": {"nested": MARK}}])),
        2,
    );
    publish(
        "unknown field",
        of(json!([{"op": "put", "path": "a", "content": "x", "colour": MARK}])),
        2,
    );
    publish(
        "ours",
        of(json!([{"op": "put", "path": "a", "content": format!("{MARK} ours\none\ntwo\n")}])),
        0,
    );
    let mut stale =
        of(json!([{"op": "put", "path": "a", "content": format!("{MARK} theirs\none\ntwo\n")}]));
    stale["base"] = base;
    publish("stale", stale.clone(), 1);
    stale["onStale"] = json!("merge");
    publish("conflict", stale, 1);
    let patch = world.write("p", format!("--- a/secret\n+++ b/secret\n@@ -1,3 +1,3 @@\n {MARK} imported\n-line\n+{MARK} patched\n last\n"));
    let patched = world
        .with_json(&["publish", "--patch"])
        .arg(&patch)
        .run()
        .ok();
    told.push(("patch".to_owned(), patched.out));
    let again = world.with_json(&["publish", "--patch"]).arg(&patch).run();
    assert_ne!(again.code, Some(0));
    world.ok(&["undo"]);
    world.ok(&["rollback", "@1"]);
    world.ok(&["gc", "--min-age", "0s", "--keep", "0"]);

    for words in [
        &["journal"][..],
        &["log"],
        &["show", "@"],
        &["show", "@2"],
        &["diff", "@1", "@2"],
        &["watch", "--since", "1", "--limit", "4"],
        &["status"],
        &["queue"],
    ] {
        told.push((format!("{words:?}"), world.with_json(words).run().ok().out));
    }
    let log = world.log();
    assert!(log.contains("refused"), "the log tells of refusals: {log}");
    told.push(("the log".to_owned(), log.into_bytes()));
    let loud: Vec<&String> = told
        .iter()
        .filter(|(_, said)| holds(said, &marks))
        .map(|(name, _)| name)
        .collect();
    assert!(loud.is_empty(), "content is told by {loud:?}");
    assert_eq!(found_in_store(&world.state(), &marks), Vec::<String>::new());
    // And the test would see it: it is there in the tree, and where content was put in a message.
    assert!(holds(&world.ok(&["cat", "@2:a"]).out, &marks));
    let mut loud = of(json!([{"op": "put", "path": "z", "content": "z"}]));
    loud["message"] = json!(MARK);
    world.publish(&loud, &[]).run().ok();
    assert!(!found_in_store(&world.state(), &marks).is_empty());
}
