//! Clients that mean harm, and directories that change while they are read: nothing is taken down, memory
//! stays bounded, and others are served meanwhile.
//!
//! Owns: malformed requests by the thousand, connections beyond the bound, floods, clients that die at each
//! step of each request, swapped files. What single bad clients are told is in the suite `process`.
//! Never: waits for time to pass. Each test prints how many cases it reached and fails below a floor.
//! `SEMAPRAX_HOSTILE=long` does more of each: ten thousand connections, ten times the rounds.

mod connections;
mod directory;
mod dying;
mod memory;
mod requests;

use std::io::Write as _;

use semaprax_tests::process::World;
use serde_json::Value;

/// A world with an empty workspace directory.
fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_semaprax-under-test"))
}

/// A world with a workspace of a few files, and its daemon.
fn seeded() -> World {
    let world = world();
    world.seed();
    world
}

/// Whether the long form was asked for.
fn is_long() -> bool {
    std::env::var("SEMAPRAX_HOSTILE").is_ok_and(|form| form == "long")
}

/// `bounded` in CI, `long` on request.
fn times(bounded: usize, long: usize) -> usize {
    if is_long() { long } else { bounded }
}

/// Says what was reached, also where the output of tests is not shown, and fails below the floor.
#[track_caller]
fn reached(what: &str, count: usize, floor: usize) {
    say(&format!("{what}: {count} (floor {floor})"));
    assert!(count >= floor, "{what}: only {count} of {floor}");
}

fn say(line: &str) {
    // A test's own output is shown only when it fails.
    drop(std::io::stderr().write_all(format!("hostile: {line}\n").as_bytes()));
}

/// The code of a refusal.
fn code_of(refusal: &Value) -> &str {
    let code = &refusal["diagnostics"][0]["code"];
    code.as_str().unwrap_or_default()
}
