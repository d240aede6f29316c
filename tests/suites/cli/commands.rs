//! What every command prints when all is well.

use semaprax_tests::process::{World, until};
use serde_json::json;

use crate::{both, check, shown, story, world};

/// Compares each command, as people and as programs see it, with the snapshot of its name.
#[track_caller]
fn commands(world: &World, list: &[(&str, &[&str])]) {
    for (name, words) in list {
        check(world, name, &both(world, words));
    }
}

#[test]
fn reading() {
    let world = story();
    commands(
        &world,
        &[
            ("status", &["status"]),
            ("status-limits", &["status", "--limits"]),
            ("log", &["log"]),
            (
                "log-limit",
                &["log", "-n", "1", "--path", "src", "--author", "suite"],
            ),
            ("show", &["show", "@2"]),
            ("show-first", &["show", "@1"]),
            ("diff", &["diff", "@1"]),
            ("diff-stat", &["diff", "@1", "@3", "--stat"]),
            ("diff-name-status", &["diff", "@1", "@3", "--name-status"]),
            ("diff-nothing", &["diff", "@"]),
            ("ls", &["ls"]),
            ("ls-prefix", &["ls", "@1", "src/"]),
            ("blame", &["blame", "src/a.rs"]),
            ("queue", &["queue"]),
            ("why", &["why", "@"]),
            ("why-old", &["why", "@1"]),
        ],
    );
    let cat = world.ok(&["cat", "@1:README.md"]);
    assert_eq!(cat.out, b"hello\r\nworld\r\n");
    assert_eq!(
        world.ok(&["--json", "cat", ":src/a.rs"]).out,
        b"pub fn bar() {}\n"
    );
}

#[test]
fn drift() {
    let world = story();
    world.write("ws/docs/new.md", "new\n");
    world.write("ws/untracked", "u");
    commands(&world, &[("status-drift", &["status", "--drift"])]);
}

#[test]
fn init() {
    let fresh = |name: &str, words: &[&str], code: i32| {
        let world = world();
        world.fill();
        std::fs::create_dir(world.workspace().join("void")).unwrap();
        check(&world, name, &shown(&world.run(words).exits(code), words));
    };
    fresh("init-human", &["init", "-m", "first"], 0);
    fresh("init-json", &["--json", "init", "--author", "me"], 0);
    fresh("init-strict", &["init", "--strict"], 1);
    fresh("init-native", &["init", "--names", "native"], 0);
}

#[test]
fn publishing() {
    let world = story();
    let file = world.write("file", "content\n");
    let put = format!("put.txt={}", file.display());
    let publish = [
        "publish",
        "--put",
        &put,
        "--delete",
        "docs/new.md",
        "--move",
        "src/=source/",
        "-m",
        "by flags",
    ];
    check(
        &world,
        "publish-dry-run",
        &both(&world, &[&publish[..], &["--dry-run"]].concat()),
    );
    check(
        &world,
        "publish-human",
        &shown(&world.run(&publish), &publish),
    );
    let again = ["--json", "publish", "--put", &put];
    check(
        &world,
        "publish-unchanged",
        &shown(&world.run(&again), &again),
    );
    let id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    let named = [
        "--json", "publish", "--delete", "put.txt", "--id", id, "-m", "named",
    ];
    check(&world, "publish-json", &shown(&world.run(&named), &named));
    let repeat = ["publish", "--delete", "put.txt", "--id", id, "-m", "named"];
    check(
        &world,
        "publish-replayed",
        &shown(&world.run(&repeat), &repeat),
    );
    for (name, words) in [
        ("rollback", &["rollback", "@1"][..]),
        ("revert", &["--json", "revert", "3", "--author", "me"]),
        ("undo", &["undo", "-m", "again"]),
    ] {
        check(&world, name, &shown(&world.run(words), words));
    }
}

#[test]
fn leases() {
    let world = story();
    let acquire = [
        "lease",
        "acquire",
        "--revision",
        "@1",
        "--ttl",
        "10m",
        "--owner",
        "me",
    ];
    check(&world, "lease-acquire", &both(&world, &acquire));
    check(&world, "lease-list", &both(&world, &["lease", "list"]));
    let leases = world.json(&["lease", "list"])["leases"].clone();
    let ids: Vec<&str> = leases
        .as_array()
        .unwrap()
        .iter()
        .map(|lease| lease["lease"].as_str().unwrap())
        .collect();
    check(
        &world,
        "lease-renew",
        &both(&world, &["lease", "renew", ids[0], "--ttl", "1h"]),
    );
    let mut released = shown(
        &world.run(&["lease", "release", ids[0]]),
        &["lease", "release", ids[0]],
    );
    released += &shown(
        &world.run(&["--json", "lease", "release", ids[1]]),
        &["--json", "lease", "release", ids[1]],
    );
    check(&world, "lease-release", &released);
}

#[test]
fn upkeep() {
    let world = story();
    commands(
        &world,
        &[
            ("pin", &["pin", "@1", "--reason", "released"]),
            (
                "gc-dry-run",
                &["gc", "--dry-run", "--min-age", "0s", "--keep", "1"],
            ),
            ("unpin", &["unpin", "@1"]),
            ("gc", &["gc", "--min-age", "0s", "--keep", "1"]),
            ("verify", &["verify"]),
            ("verify-deep", &["verify", "--deep"]),
        ],
    );
    let out = world.directory().join("out");
    let export = ["export", "@1", out.to_str().unwrap()];
    check(&world, "export", &shown(&world.run(&export), &export));
    let other = ["--json", "export", "../out2"];
    check(&world, "export-json", &shown(&world.run(&other), &other));
}

#[test]
fn a_damaged_tree() {
    use std::os::unix::fs::PermissionsExt;
    let world = world();
    let revision = world.seed()["revision"].as_str().unwrap().to_owned();
    let tree = world
        .state()
        .join("generations")
        .join(revision)
        .join("files");
    let opened = std::fs::Permissions::from_mode(0o755);
    for path in ["", "src", "src/a.rs"] {
        std::fs::set_permissions(tree.join(path), opened.clone()).unwrap();
    }
    std::fs::write(tree.join("src/a.rs"), "evil").unwrap();
    check(
        &world,
        "verify-damaged",
        &both(&world, &["verify", "--deep"]),
    );
    let repair = ["verify", "--deep", "--repair"];
    check(
        &world,
        "verify-repaired",
        &shown(&world.run(&repair), &repair),
    );
}

#[test]
fn streams() {
    let world = story();
    let watch = ["watch", "--since", "1", "--limit", "2"];
    let json = [&["--json"], &watch[..]].concat();
    let both = shown(&world.run(&watch), &watch) + &shown(&world.run(&json), &watch);
    check(&world, "watch", &both);
    let journal = ["journal", "--since", "1"];
    let json = [&["--json"], &journal[..]].concat();
    let both = shown(&world.run(&journal), &journal) + &shown(&world.run(&json), &journal);
    check(&world, "journal", &both);
    check(
        &world,
        "journal-head",
        &crate::both(&world, &["journal", "head"]),
    );
}

#[test]
fn the_daemon() {
    let world = world();
    let list: &[(&str, &[&str])] = &[
        ("daemon-status-absent", &["daemon", "status"]),
        ("daemon-stop-absent", &["daemon", "stop"]),
        ("daemon-start", &["daemon", "start"]),
        ("daemon-status", &["daemon", "status"]),
    ];
    commands(&world, list);
    let stop = ["daemon", "stop"];
    check(&world, "daemon-stop", &shown(&world.run(&stop), &stop));
    world.json(&["daemon", "start"]);
    let stop = ["--json", "daemon", "stop"];
    check(&world, "daemon-stop-json", &shown(&world.run(&stop), &stop));
}

#[test]
fn doctor_tells_each_check_with_a_status() {
    let world = story();
    let health = world.with_json(&["doctor"]).run();
    // What it finds depends on the machine; that it looks does not.
    assert!(matches!(health.code, Some(0 | 1)), "{}", health.told());
    let findings = health.json()["findings"].as_array().unwrap().clone();
    for finding in &findings {
        let status = finding["status"].as_str().unwrap();
        assert!(["ok", "warning", "problem"].contains(&status), "{finding}");
        assert!(!finding["detail"].as_str().unwrap().is_empty(), "{finding}");
        assert!(
            status == "ok" || finding["fix"].is_string(),
            "no way out: {finding}"
        );
    }
    let mut checks: Vec<&str> = findings
        .iter()
        .map(|finding| finding["check"].as_str().unwrap())
        .collect();
    checks.sort_unstable();
    checks.dedup();
    check(&world, "doctor-checks", &checks.join("\n"));
    let human = world.run(&["doctor"]);
    for name in checks {
        assert!(human.text().contains(name), "{name}: {}", human.told());
    }
}

#[test]
fn cancelling() {
    let world = story();
    let blocker = semaprax_tests::process::Blocker::new(&world.state());
    let change = json!([{"op": "put", "path": "n", "content": "n"}]);
    let submission = semaprax_tests::process::submission(&change);
    let first = world.publish(&submission, &[]).spawn();
    let counts = || world.json(&["queue"]);
    until("one runs", || {
        (counts()["running"].as_array()?.len() == 1).then_some(())
    });
    let second = world.publish(&submission, &[]).spawn();
    until("one waits", || {
        (counts()["waiting"].as_array()?.len() == 1).then_some(())
    });
    check(&world, "queue-busy", &both(&world, &["queue"]));
    let id = counts()["waiting"][0]["submission"]
        .as_str()
        .unwrap()
        .to_owned();
    let cancel = ["cancel", &id];
    check(&world, "cancel", &shown(&world.run(&cancel), &cancel));
    second.finish().refused("cancelled");
    drop(blocker);
    first.finish().ok();
}
