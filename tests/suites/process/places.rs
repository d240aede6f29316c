//! Where daemon and client meet: the runtime directory, whose it is, LOCK, other daemons.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use semaprax_tests::process::{Call, World, is_alive, until_true};
use serde_json::{Value, json};

use crate::{is_root, seeded, world};

#[test]
fn the_socket_is_for_its_owner_alone() {
    let world = seeded();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!(mode(&world.runtime()), 0o700);
    assert_eq!(mode(&world.socket()), 0o600);
    assert_eq!(mode(&world.state()), 0o700);
}

#[test]
fn a_directory_that_others_may_have_made_is_refused() {
    let world = world();
    world.fill();
    let elsewhere = world.directory().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, world.runtime()).unwrap();
    let refusal = world.refused(&["init"], "permission-denied");
    assert!(
        refusal["diagnostics"][0]["message"]
            .as_str()
            .unwrap()
            .contains("symlink")
    );
    fs::remove_file(world.runtime()).unwrap();

    fs::create_dir(world.runtime()).unwrap();
    fs::set_permissions(world.runtime(), fs::Permissions::from_mode(0o777)).unwrap();
    world.refused(&["init"], "permission-denied");
    fs::set_permissions(world.runtime(), fs::Permissions::from_mode(0o700)).unwrap();

    let foreign = if is_root() {
        chown(world.runtime(), Some(65534), Some(65534)).unwrap();
        world.runtime()
    } else {
        "/".into()
    };
    let call = world
        .with_json(&["init"])
        .env("SEMAPRAX_RUNTIME_DIR", foreign);
    let refusal = call.run().refused("permission-denied");
    assert!(
        refusal["diagnostics"][0]["message"]
            .as_str()
            .unwrap()
            .contains("another user")
    );
    assert!(!world.state().exists(), "something was done all the same");
}

#[test]
fn a_directory_with_a_long_name_is_refused_with_a_way_out() {
    let world = world();
    let long = world.directory().join("x".repeat(100));
    let call = world
        .with_json(&["init"])
        .env("SEMAPRAX_RUNTIME_DIR", &long);
    let refusal = call.run().exits(2).refused("daemon-unreachable");
    assert!(
        refusal["diagnostics"][0]["hint"]
            .as_str()
            .unwrap()
            .contains("SEMAPRAX_RUNTIME_DIR")
    );
    assert!(!long.exists());
}

/// A call of a session that knows nothing of the runtime directory.
fn elsewhere(world: &World, arguments: &[&str]) -> Call {
    let call = world
        .with_json(arguments)
        .without_env("SEMAPRAX_RUNTIME_DIR");
    call.env("XDG_RUNTIME_DIR", world.directory().join("session"))
}

#[test]
fn a_daemon_is_found_through_lock() {
    let world = seeded();
    world.json(&["status"]);
    let pid = json!(world.daemon().unwrap());
    fs::create_dir(world.directory().join("session")).unwrap();
    assert_eq!(
        elsewhere(&world, &["status"]).run().ok().json()["daemon"]["pid"],
        pid
    );
    assert_eq!(
        elsewhere(&world, &["daemon", "status"]).run().ok().json()["daemon"]["pid"],
        pid
    );
    assert_eq!(world.daemons().len(), 1);
    elsewhere(&world, &["daemon", "stop"]).run().ok();
    until_true("that daemon is gone", || world.daemons().is_empty());
    // LOCK names a dead socket now: that is no daemon, and one is started where this session has its own.
    let status = elsewhere(&world, &["status"]).run().ok().json();
    assert_ne!(status["daemon"]["pid"], pid);
    assert!(
        world
            .directory()
            .join("session/semaprax/daemon.sock")
            .exists()
    );
    // The first session finds its way there too, but only when it did not choose a place on purpose.
    world.refused(&["status"], "workspace-locked");
}

#[test]
fn without_a_session_directory_the_socket_is_among_the_temporary_files() {
    let world = seeded();
    world.stop();
    let call = world
        .with_json(&["status"])
        .without_env("SEMAPRAX_RUNTIME_DIR");
    call.run().ok();
    let user = rustix::process::geteuid().as_raw();
    let directory = world.directory().join(format!("tmp/semaprax-{user}"));
    assert!(directory.join("daemon.sock").exists());
    assert_eq!(fs::metadata(directory).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn two_daemons_do_not_share_a_workspace() {
    let world = seeded();
    world.json(&["status"]);
    let other = |arguments: &[&str]| {
        let call = world.with_json(arguments);
        call.env("SEMAPRAX_RUNTIME_DIR", world.directory().join("run2"))
    };
    let refusal = other(&["status"])
        .run()
        .exits(1)
        .refused("workspace-locked");
    let socket = world.socket();
    let message = refusal.to_string();
    assert!(
        message.contains(socket.to_str().unwrap()),
        "it names the holder: {message}"
    );
    other(&["why", "@1"]).run().refused("workspace-locked");
    // Both daemons run, and each serves its own.
    world.write("ws2/a", "a");
    let second = world.directory().join("ws2");
    other(&["-C", second.to_str().unwrap(), "init"]).run().ok();
    other(&["-C", second.to_str().unwrap(), "status"])
        .run()
        .ok();
    assert_eq!(world.daemons().len(), 2);
    world.json(&["status"]);
    world.refused(
        &["-C", second.to_str().unwrap(), "status"],
        "workspace-locked",
    );
    // When the holder leaves, the other takes over.
    world.stop();
    assert_eq!(other(&["status"]).run().ok().json()["active"]["seq"], 1);
}

#[test]
fn one_daemon_serves_many_workspaces() {
    let world = seeded();
    world.json(&["status"]);
    for name in ["ws2", "ws3"] {
        world.write(format!("{name}/a"), name);
        let directory = world.directory().join(name);
        world.json(&["-C", directory.to_str().unwrap(), "init"]);
        let found = world
            .ok(&["-C", directory.to_str().unwrap(), "cat", "a"])
            .text();
        assert_eq!(found, name);
    }
    assert_eq!(world.daemons().len(), 1);
    let status = world.json(&["daemon", "status"]);
    assert_eq!(status["workspaces"].as_array().unwrap().len(), 3);
}

/// Answers as a daemon of another version would. Ends when it was asked to stop, if it agrees to.
fn pretend(listener: &UnixListener, version: &str, agrees: bool) -> Vec<String> {
    let mut asked = Vec::new();
    let (stream, _) = listener.accept().unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).unwrap_or(0) == 0 {
            return asked;
        }
        let request: Value = serde_json::from_str(&line).unwrap();
        let method = request["method"].as_str().unwrap().to_owned();
        let refused = json!({"status": "rejected", "diagnostics": [{"code": "workspace-locked", "message": "not idle"}]});
        let answer = match method.as_str() {
            "hello" => {
                json!({"result": {"protocol": 1, "pid": 1, "version": version, "lineBytes": 4 << 20}})
            }
            "daemon.stop" if agrees => {
                json!({"result": {"schema": "semaprax.daemon/1", "running": false, "socket": "/x", "connections": 1}})
            }
            _ => json!({"error": {"code": -32000, "message": "no", "data": refused}}),
        };
        let mut answer = answer;
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = request["id"].clone();
        writer.write_all(format!("{answer}\n").as_bytes()).unwrap();
        asked.push(method.clone());
        if method == "daemon.stop" && agrees {
            return asked;
        }
    }
}

#[test]
fn an_idle_daemon_of_an_older_build_gives_way() {
    let world = seeded();
    world.stop();
    let listener = UnixListener::bind(world.socket()).unwrap();
    let socket = world.socket();
    let old = thread::spawn(move || {
        let asked = pretend(&listener, "0.0.1", true);
        // As a daemon does that leaves.
        fs::remove_file(socket).unwrap();
        asked
    });
    let status = world.json(&["status"]);
    assert_eq!(old.join().unwrap(), ["hello", "daemon.stop"]);
    let pid = world.daemon().unwrap();
    assert_eq!(status["daemon"]["pid"], pid);
    assert!(is_alive(pid));
}

#[test]
fn a_busy_older_and_any_newer_daemon_stay() {
    for (version, expected) in [
        ("0.0.1", vec!["hello", "daemon.stop", "status"]),
        ("999.0.0", vec!["hello", "status"]),
    ] {
        let world = seeded();
        world.stop();
        let listener = UnixListener::bind(world.socket()).unwrap();
        let other = thread::spawn(move || pretend(&listener, version, false));
        // It is asked, whatever it answers.
        world.refused(&["status"], "workspace-locked");
        assert_eq!(other.join().unwrap(), expected, "{version}");
        assert!(world.daemons().is_empty());
    }
}

#[test]
fn another_user_is_turned_away() {
    if !is_root() {
        println!("only root can act as another user: not tried");
        return;
    }
    let world = seeded();
    // Even where the modes would let it in.
    for (path, mode) in [
        (world.directory(), 0o755),
        (&world.runtime(), 0o755),
        (&world.socket(), 0o666),
    ] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let script = "my $socket = IO::Socket::UNIX->new(shift) or die; print scalar <$socket>";
    let other = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let as_other = |label: &str| {
        let call = world.program("setpriv", label.to_owned()).cwd("/");
        let call = call.env("PATH", "/usr/bin:/bin");
        call.args(other)
    };
    let words = ["perl", "-MIO::Socket::UNIX", "-e", script];
    let call = as_other("perl").args(words);
    let said = call.arg(world.socket()).run().ok().json();
    assert_eq!(
        said["error"]["data"]["diagnostics"][0]["code"], "permission-denied",
        "{said}"
    );
    // Its own client does not even ask: the directory is another user's.
    let binary = world.directory().join("semaprax");
    fs::copy(world.binary(), &binary).unwrap();
    let refused = as_other("semaprax")
        .arg(&binary)
        .arg("--json")
        .arg("daemon")
        .arg("status")
        .run();
    refused.refused("permission-denied");
    world.json(&["status"]);
}
