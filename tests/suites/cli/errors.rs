//! What is refused, as people and as programs are told, and with which exit code.

use semaprax_tests::process::{Call, World, submission};
use serde_json::{Value, json};

use crate::{check, shown, story, world};

/// Compares a refusal in both forms with the snapshot `error-CODE` (`error-NAME` where there are several
/// of one code), and checks its exit code.
#[track_caller]
fn refused(world: &World, name: &str, exit: i32, words: &[&str], input: &str) {
    refused_by(world, name, exit, words, &|words| {
        world.semaprax(words).input(input)
    });
}

#[track_caller]
fn refused_by(
    world: &World,
    name: &str,
    exit: i32,
    words: &[&str],
    call: &dyn Fn(&[&str]) -> Call,
) {
    let json: Vec<&str> = ["--json"]
        .into_iter()
        .chain(words.iter().copied())
        .collect();
    let document = call(&json).run().exits(exit);
    let human = call(words).run().exits(exit);
    assert_eq!(
        human.out,
        b"",
        "{name}: a refusal is no result: {}",
        human.told()
    );
    assert_eq!(document.err, "", "{name}: {}", document.told());
    let value = document.json();
    assert_eq!(value["schema"], "semaprax.error/1");
    assert_eq!(
        value["status"],
        ["", "rejected", "failed", "in-doubt"][usize::try_from(exit).unwrap()]
    );
    let code = value["diagnostics"][0]["code"].as_str().unwrap();
    assert!(
        human.err.contains(code),
        "{name}: people are told the code too: {}",
        human.told()
    );
    assert!(name.starts_with(code), "{name} is {code}");
    check(
        world,
        &format!("error-{name}"),
        &(shown(&human, words) + &shown(&document, &json)),
    );
}

/// The refusal of a submission.
#[track_caller]
fn submitted(world: &World, name: &str, exit: i32, fields: &Value) {
    let mut wanted = submission(&json!([]));
    for (key, value) in fields.as_object().unwrap() {
        wanted[key] = value.clone();
    }
    refused(
        world,
        name,
        exit,
        &["publish", "--from-json", "-"],
        &wanted.to_string(),
    );
}

#[test]
fn submissions() {
    let world = story();
    let put = |path: &str, content: &str| json!({"op": "put", "path": path, "content": content});
    let edit =
        |old: &str| json!({"op": "edit", "path": "src/b.rs", "edits": [{"old": old, "new": "x"}]});
    let check = |name: &str, exit: i32, fields: &Value| submitted(&world, name, exit, fields);
    check(
        "stale-base",
        1,
        &json!({"base": "@1", "changes": [put("n", "n")]}),
    );
    check(
        "stale-base-rebase",
        1,
        &json!({"base": "@1", "onStale": "rebase", "changes": [put("src/a.rs", "n")]}),
    );
    check(
        "merge-conflict",
        1,
        &json!({"base": "@1", "onStale": "merge", "changes": [put("src/a.rs", "pub fn other() {}\n")]}),
    );
    check(
        "precondition-failed",
        1,
        &json!({"changes": [
        {"op": "put", "path": "src/a.rs", "content": "n", "expect": {"absent": true}}]}),
    );
    check(
        "precondition-failed-reads",
        1,
        &json!({"changes": [put("n", "n")],
        "reads": [{"path": "src/a.rs", "sha256": "0".repeat(64)}]}),
    );
    check(
        "already-exists",
        1,
        &json!({"changes": [{"op": "move", "from": "src/a.rs", "to": "src/b.rs"}]}),
    );
    check("edit-not-found", 1, &json!({"changes": [edit("nowhere")]}));
    check("edit-not-unique", 1, &json!({"changes": [edit("bar")]}));
    check(
        "path-collision",
        1,
        &json!({"changes": [put("src/a.rs/n", "n")]}),
    );
    check(
        "path-collision-case",
        1,
        &json!({"changes": [put("SRC/n", "n")]}),
    );
    check(
        "path-collision-link",
        1,
        &json!({"changes": [put("link/n", "n")]}),
    );
    check(
        "not-found-in-submission",
        1,
        &json!({"changes": [{"op": "delete", "path": "missing"}]}),
    );
    check("path-refused", 2, &json!({"changes": [put("../n", "n")]}));
    check(
        "path-refused-portable",
        2,
        &json!({"changes": [put("a:b", "n")]}),
    );
    check(
        "path-refused-target",
        2,
        &json!({"changes": [{"op": "symlink", "path": "l", "target": "/etc"}]}),
    );
    check(
        "invalid-submission-field",
        2,
        &json!({"changes": [], "colour": 1}),
    );
    check(
        "invalid-submission-twice",
        2,
        &json!({"changes": [put("n", "n"), {"op": "delete", "path": "n"}]}),
    );
    check(
        "unknown-revision-base",
        2,
        &json!({"base": "@99", "changes": [put("n", "n")]}),
    );
    let message = "m".repeat(5000);
    check(
        "limit-exceeded",
        2,
        &json!({"message": message, "changes": [put("n", "n")]}),
    );
    refused(
        &world,
        "invalid-submission-json",
        2,
        &["publish", "--from-json", "-"],
        "{not json",
    );
    refused(
        &world,
        "invalid-submission-patch",
        2,
        &["publish", "--patch", "-"],
        "no patch\n",
    );
    let patch = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-never there\n+x\n";
    refused(
        &world,
        "edit-not-found-patch",
        1,
        &["publish", "--patch", "-"],
        patch,
    );
    assert_eq!(
        world.json(&["status"])["active"]["seq"],
        3,
        "nothing was published"
    );
}

#[test]
fn reads() {
    let world = story();
    let check = |name: &str, exit: i32, words: &[&str]| refused(&world, name, exit, words, "");
    check("not-found-cat", 2, &["cat", "missing"]);
    check("not-found-blame", 2, &["blame", "src"]);
    check("unknown-revision", 2, &["show", "ffffffff"]);
    check("unknown-revision-seq", 2, &["show", "@99"]);
    check(
        "lease-unknown",
        2,
        &["lease", "release", "00000000-0000-4000-8000-000000000000"],
    );
    check("already-a-workspace", 1, &["init"]);
    check(
        "not-found-cancel",
        2,
        &["cancel", "00000000-0000-4000-8000-000000000000"],
    );
    check("usage-cat", 1, &["cat", "@1"]);
    check("usage-publish", 1, &["publish", "-m", "nothing"]);
    check("usage-explain", 1, &["explain", "no-such-code"]);
    check("usage-schema", 1, &["schema", "no-such-document"]);
}

#[test]
fn workspaces() {
    let world = world();
    world.fill();
    refused(&world, "not-a-workspace", 2, &["status"], "");
    refused(
        &world,
        "not-found-directory",
        2,
        &["-C", "missing", "status"],
        "",
    );
    world.json(&["init"]);
    refused(&world, "not-found-undo", 2, &["undo"], "");
    world.stop();
    let off: &[&str] = &["--no-autostart", "gc"];
    refused(&world, "daemon-unreachable", 2, off, "");
    std::fs::write(world.state().join("ACTIVE"), "{}\n").unwrap();
    refused(&world, "workspace-damaged", 2, &["status"], "");
    let store = rusqlite::Connection::open(world.state().join("store.db")).unwrap();
    store.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(store);
    refused(&world, "store-version", 2, &["status"], "");
}

#[test]
fn a_locked_workspace() {
    let world = story();
    let other = world.directory().join("run2");
    refused_by(&world, "workspace-locked", 1, &["status"], &|words| {
        world.semaprax(words).env("SEMAPRAX_RUNTIME_DIR", &other)
    });
}

#[test]
fn collected_content() {
    let world = world();
    world.fill();
    world.configure(
        "[retention]\ncontent-publications = 1\ncontent-age = \"0s\"\ntrees = 1\nyoung = \"0s\"\n",
    );
    world.json(&["init"]);
    world.put("src/a.rs", "two\n");
    world.put("src/a.rs", "three\n");
    world.ok(&["gc", "--min-age", "0s", "--keep", "1"]);
    refused(&world, "content-collected", 2, &["cat", "@1:src/a.rs"], "");
    assert_eq!(world.json(&["log"])["entries"].as_array().unwrap().len(), 3);
}

#[test]
fn usage() {
    let world = world();
    for (name, words) in [
        ("unknown-command", &["frobnicate"][..]),
        ("unknown-flag", &["status", "--frobnicate"]),
        ("missing-value", &["show"]),
        ("bad-value", &["gc", "--min-age", "soon"]),
        ("bad-id", &["cancel", "x"]),
        ("conflict", &["publish", "--patch", "-", "--put", "a=b"]),
        ("bad-seq", &["revert", "0"]),
    ] {
        let human = world.run(words).exits(1);
        assert_eq!(human.out, b"", "{name}");
        let json: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        let document = world.run(&json).exits(1);
        document.clone().refused("usage");
        assert_eq!(document.err, "", "{name}");
        check(
            &world,
            &format!("usage-{name}"),
            &(shown(&human, words) + &shown(&document, &json)),
        );
    }
}
