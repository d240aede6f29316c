//! `with`: a command on a tree that stays, its exit code, its signals, its end, and its views.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use semaprax_tests::process::{Running, World, is_alive, until, until_true};

use crate::seeded;

/// Runs collection with no mercy; answers what it removed.
fn collect(world: &World) -> Vec<String> {
    let collected = world.json(&["gc", "--min-age", "0s", "--keep", "1"]);
    let removed = collected["removed"].as_array().unwrap().iter();
    removed
        .map(|entry| entry.as_str().unwrap_or_default().to_owned())
        .collect()
}

fn sh<'a>(flags: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let mut words = vec!["with"];
    words.extend(flags);
    words.extend(["--", "sh", "-c", script]);
    words
}

#[test]
fn the_exit_code_is_the_commands() {
    let world = seeded();
    for off in [None, Some("1")] {
        let run = |words: &[&str]| {
            let call = world.semaprax(words);
            match off {
                Some(value) => call.env("SEMAPRAX_NO_AUTOSTART", value).run(),
                None => call.run(),
            }
        };
        run(&sh(&[], "exit 0")).exits(0);
        run(&sh(&[], "exit 7")).exits(7);
        run(&sh(&[], "kill -TERM $$")).exits(128 + 15);
        run(&["with", "--", "no-such-command-anywhere"]).exits(127);
        run(&["with", "--", "./README.md"]).exits(126);
        run(&["with", "--revision", "@9", "--", "true"]).exits(125);
        if off.is_none() {
            world.stop();
        }
    }
    let refusal = world
        .with_json(&["with", "--revision", "@9", "--", "true"])
        .run();
    refusal.exits(125).refused("unknown-revision");
    // Before the command there is nothing to exit with but a usage error.
    world.run(&["with"]).exits(1);
}

#[test]
fn the_command_finds_the_tree_and_its_name() {
    let world = seeded();
    let revision = world.json(&["status"])["active"]["revision"]
        .as_str()
        .unwrap()
        .to_owned();
    world.put("src/a.rs", "new\n");
    let script = "pwd; echo $SEMAPRAX_ROOT; echo $SEMAPRAX_REVISION; echo $GIT_CEILING_DIRECTORIES; cat src/a.rs";
    let said = world.ok(&sh(&["--revision", "@1"], script)).text();
    let lines: Vec<&str> = said.lines().collect();
    let tree = world
        .state()
        .join("generations")
        .join(&revision)
        .join("files");
    assert_eq!(lines[0], tree.to_str().unwrap());
    assert_eq!(lines[1], lines[0]);
    assert_eq!(lines[2], revision);
    assert!(
        lines[3].split(':').any(|ceiling| tree.starts_with(ceiling)),
        "{}",
        lines[3]
    );
    assert_eq!(lines[4], "pub fn foo() {}");
    // Standard input, output and error are the command's own.
    let echoed = world
        .semaprax(&["with", "--", "sh", "-c", "cat; echo err >&2"])
        .input("in")
        .run()
        .ok();
    assert_eq!(
        (echoed.text().as_str(), echoed.err.as_str()),
        ("in", "err\n")
    );
}

#[test]
fn git_does_not_find_the_outer_repository() {
    let world = seeded();
    let git = world
        .program("git", "git init".to_owned())
        .arg("init")
        .arg("-q");
    git.run().ok();
    let found = world.run(&["with", "--", "git", "rev-parse", "--show-toplevel"]);
    assert_eq!(found.code, Some(128), "{}", found.told());
}

#[test]
fn a_sealed_tree_cannot_be_written_to() {
    let world = seeded();
    if crate::is_root() {
        println!("root may write anywhere: not tried");
        return;
    }
    for script in [
        "echo x > src/a.rs",
        "rm src/a.rs",
        "echo x > new",
        "mv src other",
    ] {
        let tried = world.run(&sh(&[], script));
        assert_ne!(tried.code, Some(0), "{script}");
    }
    assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
}

#[test]
fn signals_are_handed_on() {
    let world = seeded();
    for (signal, name) in [
        (Signal::TERM, "TERM"),
        (Signal::INT, "INT"),
        (Signal::HUP, "HUP"),
        (Signal::USR1, "USR1"),
    ] {
        let script = format!(
            "trap 'echo got {name}; exit 9' {name}; echo ready; while :; do read line < /dev/null; sleep 0.02; done"
        );
        let mut with = world.spawn(&sh(&[], &script));
        assert_eq!(with.line(), "ready");
        with.signal(signal);
        assert_eq!(with.line(), format!("got {name}"));
        with.finish().exits(9);
    }
    // A command that does nothing about it dies of it, and `with` says so.
    let mut with = world.spawn(&sh(&[], "echo ready; exec sleep 1000"));
    with.line();
    with.signal(Signal::TERM);
    with.finish().exits(128 + 15);
}

/// The command's process, which it told.
fn told_pid(with: &mut Running) -> u32 {
    with.line().parse().unwrap()
}

#[test]
fn the_command_dies_with_a_killed_with() {
    let world = seeded();
    for off in ["0", "1"] {
        let call = world.semaprax(&sh(&[], "echo $$; exec sleep 1000"));
        let mut with = call.env("SEMAPRAX_NO_AUTOSTART", off).spawn();
        let pid = told_pid(&mut with);
        assert!(is_alive(pid));
        with.kill();
        until_true("the command dies too", || !is_alive(pid));
        if off == "0" {
            world.stop();
        }
    }
}

#[test]
fn a_tree_stays_while_it_is_held_and_goes_when_its_holder_is_killed() {
    let world = seeded();
    let first = world.json(&["show", "@1"])["revision"]
        .as_str()
        .unwrap()
        .to_owned();
    let tree = world.state().join("generations").join(&first);
    let mut with = world.spawn(&sh(&["--revision", "@1"], "echo ready; exec sleep 1000"));
    with.line();
    world.put("n", "2");
    world.put("n", "3");
    assert!(!collect(&world).contains(&first));
    assert!(tree.join("files/src/a.rs").exists());
    let why = world.json(&["why", "@1"]);
    assert!(
        why["reasons"]
            .as_array()
            .unwrap()
            .iter()
            .any(|reason| reason == "leased"),
        "{why}"
    );
    with.kill();
    until_true("its tree is collected", || collect(&world).contains(&first));
    assert!(!tree.exists());
    assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
}

#[test]
fn a_reader_without_a_daemon_is_protected_by_its_lock() {
    let world = seeded();
    let first = world.json(&["show", "@1"])["revision"]
        .as_str()
        .unwrap()
        .to_owned();
    world.stop();
    let call = world.semaprax(&sh(
        &["--revision", "@1"],
        "echo ready; read line; cat src/a.rs",
    ));
    let mut with = call.env("SEMAPRAX_NO_AUTOSTART", "1").spawn();
    with.line();
    assert!(world.daemons().is_empty());
    world.put("src/a.rs", "2");
    world.put("src/a.rs", "3");
    assert!(
        !collect(&world).contains(&first),
        "a tree under a file lease was collected"
    );
    let why = world.json(&["why", "@1"]);
    assert!(
        why["reasons"]
            .as_array()
            .unwrap()
            .iter()
            .any(|reason| reason == "leased"),
        "{why}"
    );
    with.write(b"go\n");
    let done = with.finish().ok();
    assert_eq!(done.text(), "pub fn foo() {}\n");
    until_true("its tree is collected", || collect(&world).contains(&first));
}

#[test]
fn a_grandchild_keeps_the_tree() {
    let world = seeded();
    let first = world.json(&["show", "@1"])["revision"]
        .as_str()
        .unwrap()
        .to_owned();
    // It outlives the command, with streams of its own.
    let out = world.directory().join("grandchild");
    let script = format!(
        "(trap '' HUP; exec sh -c 'echo $$ > {out}.pid; while [ ! -e {out}.go ]; do sleep 0.02; done; cat src/a.rs > {out}.read') </dev/null >/dev/null 2>&1 &\n\
         while [ ! -s {out}.pid ]; do sleep 0.02; done",
        out = out.display()
    );
    world.ok(&sh(&["--revision", "@1"], &script));
    world.put("src/a.rs", "2");
    world.put("src/a.rs", "3");
    let pid: u32 = fs::read_to_string(out.with_extension("pid"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(is_alive(pid));
    assert!(
        !collect(&world).contains(&first),
        "the tree went from under a grandchild"
    );
    fs::write(out.with_extension("go"), "").unwrap();
    let read = until("it has read", || {
        fs::read_to_string(out.with_extension("read"))
            .ok()
            .filter(|text| !text.is_empty())
    });
    assert_eq!(read, "pub fn foo() {}\n");
    until_true("its tree is collected", || collect(&world).contains(&first));
}

/// Changes of every kind; files are replaced, as in an overlay files of a sealed tree have to be.
const WRITE: &str = "echo mine > t && mv -f t src/a.rs && echo n > src/new && rm -f README.md \
    && mkdir -p d/e && echo x > d/e/f && mv empty full && ls";

#[test]
fn a_scratch_copy_is_writable_and_thrown_away() {
    let world = seeded();
    scratch_is_private(&world, "--scratch=copy");
    // In a copy even writing in place is possible.
    world.ok(&sh(
        &["--scratch=copy"],
        "printf more >> src/b.rs && tail -c 4 src/b.rs",
    ));
    scratch_is_private(&world, "--scratch");
}

#[test]
fn a_scratch_overlay_is_writable_and_thrown_away_where_there_are_any() {
    let world = seeded();
    let probe = world
        .with_json(&["with", "--scratch=overlay", "--", "true"])
        .run();
    if probe.code != Some(0) {
        println!("no overlay for this user here: {}", probe.told());
        probe.exits(125).refused("unsupported-filesystem");
        return;
    }
    scratch_is_private(&world, "--scratch=overlay");
    let call = world.semaprax(&sh(&["--scratch=overlay"], "echo $$; exec sleep 1000"));
    let mut with = call.spawn();
    let pid = told_pid(&mut with);
    with.kill();
    until_true("the command dies too", || !is_alive(pid));
}

/// A `with` that is killed cannot throw its layer away. The next one does, and leaves alone what is in use.
#[test]
fn what_a_killed_with_left_is_thrown_away_by_the_next() {
    let world = seeded();
    let mut killed = world
        .semaprax(&sh(&["--scratch=copy"], "echo $$; exec sleep 1000"))
        .spawn();
    let pid = told_pid(&mut killed);
    let mut used = world
        .semaprax(&sh(&["--scratch=copy"], "echo $$; read line; cat src/a.rs"))
        .spawn();
    told_pid(&mut used);
    let left = || -> usize {
        let entries = fs::read_dir(world.directory().join("tmp")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        names
            .filter(|name| name.to_string_lossy().starts_with("semaprax-private-"))
            .count()
    };
    assert_eq!(left(), 2);
    killed.kill();
    until_true("the command dies too", || !is_alive(pid));
    assert_eq!(left(), 2, "who was to throw it away?");
    world.ok(&sh(&["--scratch=copy"], "true"));
    assert_eq!(left(), 1);
    used.write(b"go on\n");
    let said = used.finish().ok();
    assert!(said.text().contains("foo"), "{}", said.told());
    assert_eq!(left(), 0);
}

fn scratch_is_private(world: &World, how: &str) {
    let before = world.json(&["ls"]);
    let said = world.ok(&sh(&[how], &format!("{WRITE} && pwd"))).text();
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines.contains(&"full") && lines.contains(&"d"),
        "{how}: {said}"
    );
    assert!(!lines.contains(&"README.md"), "{how}: {said}");
    let place = PathBuf::from(*lines.last().unwrap());
    assert!(!place.starts_with(world.workspace()), "{how}: {said}");
    assert!(!place.exists(), "{how}: it was not thrown away");
    assert_eq!(world.json(&["ls"]), before, "{how}");
    assert_eq!(world.json(&["verify", "--deep"])["status"], "ok", "{how}");
}

#[test]
fn isolation_is_read_only_where_there_is_any() {
    let world = seeded();
    let probe = world.with_json(&["with", "--isolate", "--", "true"]).run();
    if probe.code != Some(0) {
        println!("no isolation for this user here: {}", probe.told());
        probe.exits(125).refused("unsupported-filesystem");
        return;
    }
    let script =
        "cat src/a.rs; for path in src/a.rs new; do echo x > $path && echo WRITTEN; done; true";
    let said = world.ok(&sh(&["--isolate"], script)).text();
    assert_eq!(said, "pub fn foo() {}\n");
    assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
}
