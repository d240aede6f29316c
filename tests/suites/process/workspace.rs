//! Workspaces in odd states: read-only, damaged, newer than this build, gone and made anew; and what
//! settings are believed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use semaprax_tests::process::{
    Call, World, contents, is_alive, make_writable, submission, until_true,
};
use serde_json::json;

use crate::{is_root, seeded};

/// `semaprax --json` where nobody can write to the workspace; `None` where that cannot be arranged.
pub(crate) fn read_only(world: &World, arguments: &[&str]) -> Option<Call> {
    if !is_root() {
        // An ordinary user is kept out by the modes, which the caller has taken away.
        return Some(world.with_json(arguments));
    }
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && cd \"$1\" && shift && exec \"$@\"";
    let unshare = |words: &[&str]| {
        let call = world.program("unshare", format!("unshare {words:?}"));
        let call = call.args(["--mount", "--", "sh", "-c", script, "sh"]);
        call.arg(world.workspace()).args(words)
    };
    if unshare(&["true"]).run().code != Some(0) {
        println!("no mounts here: read-only workspaces are not tried as root");
        return None;
    }
    let binary = world.binary().to_str().unwrap();
    let words: Vec<&str> = [binary, "--json"]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    Some(unshare(&words))
}

#[test]
fn a_read_only_workspace_can_be_read() {
    for how in ["stopped", "killed", "running"] {
        let world = seeded();
        world.put("n", "2\n");
        match how {
            "stopped" => world.stop(),
            "killed" => world.kill_daemon(),
            _ => {}
        }
        let closed = !is_root();
        if closed {
            fs::set_permissions(world.state(), fs::Permissions::from_mode(0o500)).unwrap();
        }
        let reads: &[&[&str]] = &[
            &["status"],
            &["ls"],
            &["show", "@"],
            &["diff", "@1"],
            &["log"],
            &["watch", "--since", "1", "--limit", "1"],
            &["with", "--", "true"],
        ];
        for words in reads {
            let Some(call) = read_only(&world, words) else {
                return;
            };
            call.run().ok();
        }
        let cat = read_only(&world, &["cat", "n"]).unwrap().run().ok();
        assert_eq!(cat.text(), "2\n", "{how}");
        for words in [
            &["publish", "--delete", "n"][..],
            &["undo"],
            &["gc"],
            &["lease", "acquire"],
        ] {
            let refusal = read_only(&world, words)
                .unwrap()
                .run()
                .exits(2)
                .refused("daemon-unreachable");
            let message = refusal["diagnostics"][0]["message"].as_str().unwrap();
            assert!(message.contains("read-only"), "{how}: {message}");
        }
        if closed {
            fs::set_permissions(world.state(), fs::Permissions::from_mode(0o700)).unwrap();
        }
        assert_eq!(world.put("n", "3\n")["seq"], 3, "{how}");
        assert_eq!(world.json(&["verify", "--deep"])["status"], "ok", "{how}");
    }
}

#[test]
fn settings_of_a_workspace_are_believed_only_from_their_owner() {
    let world = seeded();
    world.stop();
    let file = world.state().join("config.toml");
    let write = |text: &str, mode: u32| {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    };
    write("[limits]\nqueue = 7\n", 0o600);
    assert_eq!(world.json(&["status", "--limits"])["limits"]["queue"], 7);
    world.stop();
    write("[limits]\nqueue = 7\n", 0o666);
    world.refused(&["why", "@1"], "permission-denied");
    write("idle-timeout = \"1s\"\n", 0o600);
    world.refused(&["why", "@1"], "invalid-settings");
    write("[limits]\ncolour = 7\n", 0o600);
    world.refused(&["why", "@1"], "invalid-settings");
    fs::remove_file(&file).unwrap();
    let target = world.write("target.toml", "[limits]\nqueue = 7\n");
    symlink(target, &file).unwrap();
    world.refused(&["why", "@1"], "permission-denied");
    fs::remove_file(&file).unwrap();
    if is_root() {
        write("[limits]\nqueue = 7\n", 0o600);
        chown(&file, Some(65534), None).unwrap();
        world.refused(&["why", "@1"], "permission-denied");
        fs::remove_file(&file).unwrap();
    }
    world.ok(&["why", "@1"]);
}

#[test]
fn the_workspaces_settings_win_over_the_users() {
    let world = seeded();
    world.stop();
    world.configure("[limits]\nqueue = 5\nmessage-bytes = 9\n");
    let file = world.state().join("config.toml");
    fs::write(&file, "[limits]\nqueue = 7\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let limits = world.json(&["status", "--limits"])["limits"].clone();
    assert_eq!(
        (&limits["queue"], &limits["messageBytes"]),
        (&json!(7), &json!(9))
    );
    // Read from disk, it says the same.
    let off = world.json(&["--no-autostart", "status", "--limits"]);
    world.stop();
    let without = world.json(&["--no-autostart", "status", "--limits"]);
    assert!(without["daemon"].is_null() && !off["daemon"].is_null());
    assert_eq!(without["limits"], limits);
    let mut wanted = submission(&json!([{"op": "put", "path": "n", "content": "n"}]));
    wanted["message"] = json!("ten bytes!");
    world
        .publish(&wanted, &[])
        .run()
        .exits(2)
        .refused("limit-exceeded");
}

#[test]
fn a_workspace_that_was_removed_can_be_made_anew() {
    let world = seeded();
    world.put("n", "old");
    let pid = world.daemon().unwrap();
    make_writable(&world.workspace());
    fs::remove_dir_all(world.workspace()).unwrap();
    fs::create_dir(world.workspace()).unwrap();
    world.refused(&["status"], "not-a-workspace");
    world.write("ws/only", "new\n");
    let again = world.json(&["init"]);
    assert_eq!((&again["seq"], &again["files"]), (&json!(1), &json!(1)));
    assert_eq!(
        world.json(&["status"])["active"]["revision"],
        again["revision"]
    );
    assert_eq!(world.put("n", "new")["seq"], 2);
    assert_eq!(world.ok(&["cat", "n"]).text(), "new");
    assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
    assert_eq!(world.daemon(), Some(pid), "one daemon all the while");
}

#[test]
fn a_workspace_that_was_moved_is_found_where_it_is() {
    let world = seeded();
    world.put("n", "1");
    let moved = world.directory().join("moved");
    fs::rename(world.workspace(), &moved).unwrap();
    fs::create_dir(world.workspace()).unwrap();
    let at = moved.to_str().unwrap();
    assert_eq!(world.json(&["-C", at, "status"])["active"]["seq"], 2);
    let read = world.ok(&["-C", at, "with", "--", "cat", "n"]).text();
    assert_eq!(read, "1");
    world.ok(&["-C", at, "undo"]);
    assert_eq!(world.json(&["-C", at, "verify", "--deep"])["status"], "ok");
    world.refused(&["status"], "not-a-workspace");
}

#[test]
fn a_lost_active_is_repaired_on_request_only() {
    for damage in ["", "nonsense\n", "gone"] {
        let world = seeded();
        world.put("n", "2");
        let kept = world.put("n", "3");
        world.stop();
        let active = world.state().join("ACTIVE");
        if damage == "gone" {
            fs::remove_file(&active).unwrap();
        } else {
            fs::write(&active, damage).unwrap();
        }
        world.refused(&["status"], "workspace-damaged");
        let off = world
            .with_json(&["status"])
            .env("SEMAPRAX_NO_AUTOSTART", "1");
        off.run().refused("workspace-damaged");
        let found = world.with_json(&["verify"]).run().exits(1).json();
        assert_eq!(found["status"], "damaged", "{damage:?}: {found}");
        let doctor = world.with_json(&["doctor"]).run().exits(1).json();
        let problems = doctor["findings"].as_array().unwrap().iter();
        assert!(
            problems
                .clone()
                .any(|finding| finding["status"] == "problem"),
            "{doctor}"
        );
        assert!(
            !active.exists() || fs::read_to_string(&active).unwrap() == damage,
            "it was touched"
        );
        let repaired = world.json(&["verify", "--repair"]);
        assert_eq!(repaired["status"], "repaired", "{repaired}");
        assert_eq!(
            world.json(&["status"])["active"]["revision"],
            kept["revision"]
        );
        assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
        assert_eq!(world.put("n", "4")["seq"], 4);
    }
}

#[test]
fn a_store_of_a_newer_build_is_left_alone() {
    let world = seeded();
    world.stop();
    let path = world.state().join("store.db");
    let store = rusqlite::Connection::open(&path).unwrap();
    store.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(store);
    let before = fs::read(&path).unwrap();
    for words in [
        &["status"][..],
        &["publish", "--delete", "n"],
        &["log"],
        &["gc"],
    ] {
        world
            .with_json(words)
            .run()
            .exits(2)
            .refused("store-version");
    }
    let off = world
        .with_json(&["status"])
        .env("SEMAPRAX_NO_AUTOSTART", "1");
    off.run().exits(2).refused("store-version");
    assert!(fs::read(&path).unwrap() == before, "it was written to");
    world.refused(&["init"], "already-a-workspace");
    let doctor = world.with_json(&["doctor"]).run().exits(1).json();
    assert!(doctor.to_string().contains("99"), "{doctor}");
}

#[test]
fn damage_in_a_tree_is_found_and_repaired() {
    let world = seeded();
    let revision = world.json(&["status"])["active"]["revision"]
        .as_str()
        .unwrap()
        .to_owned();
    let tree = world
        .state()
        .join("generations")
        .join(&revision)
        .join("files");
    let before = contents(&tree);
    let file = tree.join("src/a.rs");
    fs::set_permissions(file.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&file, "pub fn evil() {}").unwrap();
    let found = world.with_json(&["verify", "--deep"]).run().exits(1).json();
    assert!(
        found["damage"]
            .as_array()
            .unwrap()
            .iter()
            .any(|damage| damage["path"] == "src/a.rs"),
        "{found}"
    );
    assert_eq!(
        world.json(&["verify", "--deep", "--repair"])["status"],
        "repaired"
    );
    assert_eq!(contents(&tree), before);
    assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
    world.put("other", "o");
    assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
}

#[test]
fn an_export_goes_round() {
    let world = seeded();
    let out = world.directory().join("out");
    let path = out.to_str().unwrap();
    let exported = world.json(&["export", path]);
    assert_eq!(exported["files"], 6);
    let tree = |world: &World| {
        let revision = world.json(&["status"])["active"]["revision"]
            .as_str()
            .unwrap()
            .to_owned();
        contents(
            &world
                .state()
                .join("generations")
                .join(revision)
                .join("files"),
        )
    };
    assert_eq!(
        contents(&out),
        tree(&world),
        "the base marker is not content"
    );
    world.refused(&["export", path], "already-exists");
    assert_eq!(
        world.json(&["publish", "--from-dir", path])["status"],
        "unchanged"
    );
    // Edited freely: content, modes, links, new, gone, ignored.
    fs::write(out.join("src/a.rs"), "changed\n").unwrap();
    fs::remove_file(out.join("README.md")).unwrap();
    fs::set_permissions(out.join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::remove_file(out.join("link")).unwrap();
    symlink("src/b.rs", out.join("link")).unwrap();
    fs::create_dir(out.join("new")).unwrap();
    fs::write(out.join("new/bytes"), [0, 159, 146, 150, 13, 10]).unwrap();
    fs::write(out.join(".gitignore"), "build/\n").unwrap();
    fs::create_dir(out.join("build")).unwrap();
    fs::write(out.join("build/junk"), "x").unwrap();
    let receipt = world.json(&["publish", "--from-dir", path, "-m", "round trip"]);
    assert_eq!(receipt["status"], "published");
    let mut expected = contents(&out);
    expected.remove("build/junk");
    assert_eq!(tree(&world), expected);
    // The directory's base is behind now, and behind what others did.
    world.put("src/b.rs", "theirs\n");
    fs::write(out.join("src/b.rs"), "mine\n").unwrap();
    world
        .with_json(&["publish", "--from-dir", path])
        .run()
        .exits(1)
        .refused("stale-base");
    // A directory that no export made needs a base.
    world.write("plain/a", "a");
    let plain = world.directory().join("plain");
    let refusal = world
        .with_json(&["publish", "--from-dir", plain.to_str().unwrap()])
        .run();
    assert!(matches!(refusal.code, Some(1 | 2)), "{}", refusal.told());
    let based = world.json(&[
        "publish",
        "--from-dir",
        plain.to_str().unwrap(),
        "--base",
        "@",
    ]);
    assert_eq!(based["fileCount"], 1);
}

#[test]
fn a_panic_or_a_kill_of_a_client_leaves_the_daemon() {
    let world = seeded();
    let pid = world.daemon().unwrap();
    let mut running: Vec<_> = (0..4).map(|_| world.spawn(&["watch"])).collect();
    for watch in &mut running {
        watch.line();
        watch.kill();
    }
    until_true("they are forgotten", || {
        world.json(&["daemon", "status"])["connections"] == 1
    });
    assert!(is_alive(pid));
}
