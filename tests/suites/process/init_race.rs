//! `init` several times at once, and interrupted at any moment.

use std::fs;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use semaprax_tests::process::{World, is_alive, until, until_true, within};
use serde_json::json;

use crate::world;

#[test]
fn inits_at_once_make_one_workspace() {
    let world = world();
    world.fill();
    let outcomes: Vec<_> = thread::scope(|scope| {
        let inits: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| world.with_json(&["init"]).run()))
            .collect();
        inits.into_iter().map(|init| init.join().unwrap()).collect()
    });
    let (done, refused): (Vec<_>, Vec<_>) = outcomes
        .into_iter()
        .partition(|outcome| outcome.code == Some(0));
    assert_eq!(done.len(), 1, "{done:#?}");
    for outcome in refused {
        let document = outcome.json();
        let code = &document["diagnostics"][0]["code"];
        assert!(
            ["already-a-workspace", "workspace-locked"]
                .iter()
                .any(|word| code == word),
            "{document}"
        );
    }
    assert_eq!(
        world.json(&["status"])["active"]["revision"],
        done[0].json()["revision"]
    );
    assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
}

/// A tree that takes a moment to import.
fn fill_much(world: &World) {
    for n in 0..1500 {
        world.write(format!("ws/d{}/f{n}", n % 40), format!("{n}\n").repeat(40));
    }
}

/// What lies in `staging`.
fn staged(world: &World) -> Vec<std::ffi::OsString> {
    let found = fs::read_dir(world.state().join("staging"));
    found.map_or_else(
        |_| Vec::new(),
        |found| found.flatten().map(|entry| entry.file_name()).collect(),
    )
}

#[test]
fn an_init_that_was_killed_leaves_no_workspace() {
    let world = world();
    fill_much(&world);
    let mut killed = 0;
    for moment in 0..6_u64 {
        let left = staged(&world);
        let init = world.with_json(&["init"]).spawn();
        let store = world.state().join("store.db");
        let pid = until("a daemon imports", || {
            let pid = world.daemon()?;
            (staged(&world) != left || store.exists()).then_some(pid)
        });
        // A little later each time.
        let _ = within(Duration::from_millis(25 * moment), || {
            store.exists().then_some(())
        });
        world.signal_daemon(pid, Signal::KILL);
        until_true("it is gone", || !is_alive(pid));
        let outcome = init.finish();
        if store.exists() {
            println!("moment {moment}: it was done already");
            break;
        }
        killed += 1;
        assert_ne!(outcome.code, Some(0), "{}", outcome.told());
        world.refused(&["status"], "not-a-workspace");
    }
    assert!(killed > 0, "no kill came in time");
    if !world.state().join("store.db").exists() {
        let done = world.json(&["init"]);
        assert_eq!((&done["seq"], &done["files"]), (&json!(1), &json!(1500)));
    }
    assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
    let mut left = staged(&world);
    left.retain(|name| !name.to_string_lossy().starts_with("spare-"));
    assert!(left.is_empty(), "a failed import was left: {left:?}");
}

#[test]
fn an_init_whose_client_goes_away_is_given_up() {
    let world = world();
    fill_much(&world);
    let mut init = world.with_json(&["init"]).spawn();
    until_true("the import is under way", || world.state().exists());
    init.kill();
    until_true("nothing is under way", || {
        world.json(&["daemon", "status"])["connections"] == 1
    });
    until("it is clear what became of it", || {
        let again = world.with_json(&["init"]).run();
        let code = again.json()["diagnostics"][0]["code"].clone();
        (again.code == Some(0) || code == "already-a-workspace").then_some(())
    });
    assert_eq!(world.json(&["status"])["active"]["files"], 1500);
    assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
}
