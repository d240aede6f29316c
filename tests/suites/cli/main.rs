//! The command line as people and programs see it.
//!
//! Owns: snapshots of what every command prints (`snapshots/`, with everything that differs from run to
//! run filtered out), exit codes, and that what is printed can be used: by `git apply`, by `jq`, by a
//! pipe that closes early. Review changed snapshots with `cargo insta review`, or run the suite with
//! `INSTA_UPDATE=always` and read the difference.
//! Never: what a command does to a workspace; that is for the other suites.

mod commands;
mod errors;
mod patches;
mod program;
mod streams;

use std::fmt::Write;

use semaprax_tests::process::{Outcome, World};
use serde_json::Value;

/// A world with an empty workspace directory.
fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_semaprax-under-test"))
}

/// A world with a workspace that has three publications.
fn story() -> World {
    let world = world();
    world.seed();
    world.change(&serde_json::json!([
        {"op": "edit", "path": "src/a.rs", "edits": [{"old": "foo", "new": "bar"}]},
        {"op": "put", "path": "src/b.rs", "content": "use a::bar;\nfn main() { bar() }\n"},
        {"op": "put", "path": "docs/new.md", "content": "new\n"},
    ]));
    world.change(&serde_json::json!([
        {"op": "move", "from": "README.md", "to": "docs/README.md"},
        {"op": "chmod", "path": "run.sh", "mode": "file"},
        {"op": "delete", "path": "empty"},
        {"op": "symlink", "path": "link", "target": "src/b.rs"},
    ]));
    world
}

/// What differs from run to run, and what stands for it.
const FILTERS: &[(&str, &str)] = &[
    (
        r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
        "[UUID]",
    ),
    (r"\b[0-9a-f]{64}\b", "[DIGEST]"),
    (r"\b[0-9a-f]{12}\b", "[DIGITS]"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[TIME]"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( UTC|Z)?", "[TIME]"),
    (
        r#""(pid|age|sinceMs|durationMs|uptimeMs)": \d+"#,
        r#""$1": [NUMBER]"#,
    ),
    (r#"(\\"pid\\":)\d+"#, "$1[NUMBER]"),
    (r"\bprocess \d+", "process [PID]"),
    (r"\bfor( +)\d+(\.\d+)?(ms|s)\b", "for$1[DURATION]"),
    (r#""version": "\d+\.\d+\.\d+""#, r#""version": "[VERSION]""#),
    (r#"(\\"version\\":\\")\d+\.\d+\.\d+"#, "$1[VERSION]"),
    (r"\bversion \d+\.\d+\.\d+", "version [VERSION]"),
    (r#""freedBytes": \d+"#, r#""freedBytes": [BYTES]"#),
    (r"freed \d+(\.\d+)? \w+", "freed [BYTES]"),
    (r"\(os error \d+\)", "(os error)"),
];

/// Compares with the snapshot of this name.
#[track_caller]
fn check(world: &World, name: &str, text: &str) {
    let text = text.replace(world.directory().to_str().unwrap(), "[WORLD]");
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (pattern, replacement) in FILTERS {
        settings.add_filter(pattern, *replacement);
    }
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// How a run is shown in a snapshot. JSON is laid out for people.
fn shown(outcome: &Outcome, words: &[&str]) -> String {
    let text = String::from_utf8_lossy(&outcome.out);
    let document: Option<Value> = serde_json::from_str(&text).ok();
    let out = match document {
        Some(document) if words.contains(&"--json") => {
            format!("{}\n", serde_json::to_string_pretty(&document).unwrap())
        }
        _ => text.into_owned(),
    };
    let code = outcome.code.unwrap();
    let mut shown = format!("$ semaprax {}\n{out}", words.join(" "));
    if !outcome.err.is_empty() {
        shown.push_str("-- standard error\n");
        shown.push_str(&outcome.err);
    }
    if code != 0 {
        writeln!(shown, "-- exit code {code}").unwrap();
    }
    shown.push('\n');
    shown
}

/// Runs a command as people and as programs do, and shows both.
#[track_caller]
fn both(world: &World, words: &[&str]) -> String {
    let human = shown(&world.run(words), words);
    let json: Vec<&str> = ["--json"]
        .into_iter()
        .chain(words.iter().copied())
        .collect();
    let outcome = world.run(&json);
    outcome.json();
    human + &shown(&outcome, &json)
}
