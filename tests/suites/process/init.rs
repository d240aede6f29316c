//! `init` of odd trees: what is content, what is not and why.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use semaprax_tests::process::{World, contents};
use serde_json::Value;

use crate::{is_root, world};

fn fifo(path: &std::path::Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// Path -> reason of what was not imported.
fn skipped(document: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = document["skipped"].as_array().unwrap().iter();
    list.map(|entry| (text(&entry["path"]), text(&entry["reason"])))
        .collect()
}

/// The paths of the imported tree.
fn paths(world: &World) -> Vec<String> {
    let listing = world.json(&["ls"]);
    let entries = listing["entries"].as_array().unwrap().iter();
    entries
        .map(|entry| entry["path"].as_str().unwrap().to_owned())
        .collect()
}

fn git(world: &World, words: &[&str]) {
    let call = world.program("git", format!("git {words:?}"));
    let identity = [
        "-c",
        "user.name=suite",
        "-c",
        "user.email=suite@example.invalid",
    ];
    call.args(identity).args(words).run().ok();
}

#[test]
fn what_is_no_content_is_told_with_its_reason() {
    let world = world();
    world.fill();
    let ws = world.workspace();
    fifo(&ws.join("pipe"));
    let _socket = UnixListener::bind(ws.join("socket")).unwrap();
    fs::create_dir_all(ws.join("void/inner")).unwrap();
    fs::create_dir(ws.join("bare")).unwrap();
    symlink("/etc/passwd", ws.join("absolute")).unwrap();
    symlink("../outside", ws.join("leaving")).unwrap();
    symlink("../../outside", ws.join("src/leaving")).unwrap();
    symlink("nowhere", ws.join("dangling")).unwrap();
    symlink("loop-b", ws.join("loop-a")).unwrap();
    symlink("loop-a", ws.join("loop-b")).unwrap();
    symlink(".", ws.join("self")).unwrap();
    let odd = ws.join(OsStr::from_bytes(b"bad-\xff-name"));
    fs::write(&odd, "x").unwrap();
    let before = contents(&ws);
    let done = world.json(&["init"]);
    assert_eq!(contents(&ws), before, "the original was touched");
    let told = skipped(&done);
    let check = |path: &str, reason: &str| {
        assert_eq!(
            told.get(path).map(String::as_str),
            Some(reason),
            "{path}: {told:?}"
        );
    };
    check("pipe", "special-file");
    check("socket", "special-file");
    check("bare", "empty-directory");
    assert!(
        told.contains_key("void") || told.contains_key("void/inner"),
        "{told:?}"
    );
    check("absolute", "absolute-symlink");
    check("leaving", "escaping-symlink");
    check("src/leaving", "escaping-symlink");
    assert!(
        told.iter()
            .any(|(path, reason)| path.contains("bad-") && reason == "name-not-utf8"),
        "{told:?}"
    );
    let found = paths(&world);
    for kept in [
        "dangling", "loop-a", "loop-b", "self", "link", "empty", "run.sh",
    ] {
        assert!(found.contains(&kept.to_owned()), "{kept}: {found:?}");
    }
    assert_eq!(world.ok(&["cat", "loop-a"]).text(), "loop-b");
    let listing = world.json(&["ls", "run.sh"]);
    assert_eq!(listing["entries"][0]["kind"], "executable");
}

#[test]
fn strict_says_so_with_its_exit_code() {
    let world = world();
    world.fill();
    fs::create_dir(world.workspace().join("void")).unwrap();
    let done = world.run(&["init", "--strict"]).exits(1);
    assert!(
        done.text().trim_end().ends_with("1 file not imported")
            || done.text().contains("not imported"),
        "{}",
        done.told()
    );
    world.json(&["status"]);
}

#[test]
fn an_unreadable_file_is_told_and_not_imported() {
    if is_root() {
        println!("root reads everything: not tried");
        return;
    }
    let world = world();
    world.fill();
    let secret = world.write("ws/secret", "x");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    let closed = world
        .write("ws/closed/inner", "x")
        .parent()
        .unwrap()
        .to_owned();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let done = world.json(&["init"]);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let told = skipped(&done);
    assert_eq!(
        told.get("secret").map(String::as_str),
        Some("unreadable"),
        "{told:?}"
    );
    assert_eq!(
        told.get("closed").map(String::as_str),
        Some("unreadable"),
        "{told:?}"
    );
}

#[test]
fn ignore_rules_are_those_of_the_tree_alone() {
    let world = world();
    world.fill();
    // Outside: a parent's rules and the user's own.
    world.write(".gitignore", "*.rs\n");
    world.write("home/.config/git/ignore", "README.md\n");
    world.write("ws/.gitignore", "target/\n*.log\n!keep.log\n");
    world.write("ws/target/junk", "x");
    world.write("ws/only-ignored/a.log", "x");
    world.write("ws/a.log", "x");
    world.write("ws/keep.log", "x");
    world.write("ws/deep/.gitignore", "secret\n");
    world.write("ws/deep/secret", "x");
    world.write("ws/.hidden/file", "x");
    world.write("ws/.ignore", "empty\n");
    let done = world.json(&["init"]);
    let found = paths(&world);
    for kept in [
        "src/a.rs",
        "README.md",
        ".gitignore",
        "keep.log",
        "deep/.gitignore",
        ".hidden/file",
        ".ignore",
        "empty",
    ] {
        assert!(found.contains(&kept.to_owned()), "{kept}: {found:?}");
    }
    for ignored in ["target/junk", "only-ignored/a.log", "a.log", "deep/secret"] {
        assert!(!found.contains(&ignored.to_owned()), "{ignored}: {found:?}");
    }
    assert_eq!(
        skipped(&done),
        BTreeMap::new(),
        "what is ignored is not told"
    );
}

#[test]
fn what_git_tracks_is_content() {
    let world = world();
    world.fill();
    world.write("ws/.gitignore", "*.gen\nout/\n");
    world.write("ws/tracked.gen", "t");
    world.write("ws/untracked.gen", "u");
    world.write("ws/out/tracked", "t");
    world.write("ws/out/untracked", "u");
    world.write("ws/was-file", "x");
    world.write("ws/gone", "x");
    git(&world, &["init", "-q"]);
    git(
        &world,
        &[
            "add",
            "-f",
            "tracked.gen",
            "out/tracked",
            "was-file",
            "gone",
            "src",
        ],
    );
    // The index names these still, and the directory holds something else.
    fs::remove_file(world.workspace().join("gone")).unwrap();
    fs::remove_file(world.workspace().join("was-file")).unwrap();
    fifo(&world.workspace().join("was-file"));
    let done = world.json(&["init"]);
    let found = paths(&world);
    for kept in ["tracked.gen", "out/tracked", "src/a.rs"] {
        assert!(found.contains(&kept.to_owned()), "{kept}: {found:?}");
    }
    for left in ["untracked.gen", "out/untracked", "was-file", "gone"] {
        assert!(!found.contains(&left.to_owned()), "{left}: {found:?}");
    }
    assert!(
        !found.iter().any(|path| path.contains(".git/")),
        "{found:?}"
    );
    assert_eq!(
        skipped(&done).get("was-file").map(String::as_str),
        Some("special-file")
    );
}

#[test]
fn repositories_inside_are_files() {
    let world = world();
    world.fill();
    world.write("ws/module/.git", "gitdir: ../.git/modules/module\n");
    world.write("ws/module/file", "m");
    world.write("ws/nested/.git/HEAD", "ref: refs/heads/main\n");
    world.write("ws/nested/file", "n");
    world.write("ws/shouting/.GIT/HEAD", "x");
    world.write("ws/shouting/file", "n");
    let done = world.json(&["init"]);
    let found = paths(&world);
    for kept in ["module/file", "nested/file", "shouting/file"] {
        assert!(found.contains(&kept.to_owned()), "{kept}: {found:?}");
    }
    assert!(
        !found
            .iter()
            .any(|path| path.to_lowercase().contains(".git")),
        "{found:?}"
    );
    assert_eq!(skipped(&done), BTreeMap::new());
}

#[test]
fn bytes_come_in_as_they_are() {
    let world = world();
    let all: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    let files: &[(&str, &[u8])] = &[
        ("crlf", b"a\r\nb\r\n"),
        ("bom", b"\xef\xbb\xbfx"),
        ("no-newline", b"x"),
        ("latin", b"caf\xe9"),
        ("nul", b"\0\0\0"),
        ("empty", b""),
        ("all", &all),
    ];
    for (name, bytes) in files {
        world.write(format!("ws/{name}"), bytes);
    }
    world.json(&["init"]);
    for (name, bytes) in files {
        assert!(world.ok(&["cat", name]).out == *bytes, "{name}");
    }
    let tree = world.json(&["lease", "acquire", "--ttl", "60s"])["path"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(contents(tree.as_ref()), contents(&world.workspace()));
}

#[test]
fn the_name_policy_is_the_strictest_that_fits() {
    let check = |names: &[&str], flags: &[&str], policy: &str, left_out: &[&str]| {
        let world = world();
        for name in names {
            world.write(format!("ws/{name}"), name);
        }
        let words: Vec<&str> = ["init"].into_iter().chain(flags.iter().copied()).collect();
        let done = world.json(&words);
        assert_eq!(done["names"], policy, "{names:?} {flags:?}");
        assert_eq!(world.json(&["status"])["names"], policy);
        let told = skipped(&done).into_values().collect::<Vec<_>>();
        assert_eq!(told, left_out, "{names:?} {flags:?}");
    };
    check(&["a", "B/c"], &[], "portable", &[]);
    check(&["a", "B/c"], &["--names", "native"], "native", &[]);
    check(&["README", "readme"], &[], "native", &[]);
    check(&["src/a", "SRC/b"], &[], "native", &[]);
    check(&["a:b"], &[], "native", &[]);
    check(&["aux.txt"], &[], "native", &[]);
    check(&["dot."], &[], "native", &[]);
    // Whoever insists on a policy is told what it leaves out.
    let portable = ["--names", "portable"];
    check(
        &["README", "readme"],
        &portable,
        "portable",
        &["name-collision"],
    );
    check(
        &["src/a", "SRC/b"],
        &portable,
        "portable",
        &["name-collision"],
    );
    check(&["ok", "a:b"], &portable, "portable", &["name-refused"]);
    check(&["ok", "aux.txt"], &portable, "portable", &["name-refused"]);
}

#[test]
fn workspaces_may_lie_in_each_other_but_not_in_a_state_directory() {
    let world = world();
    world.fill();
    world.json(&["init"]);
    world.json(&["init", "src"]);
    let inner = world.workspace().join("src");
    assert_eq!(
        world.with_json(&["status"]).cwd(&inner).run().ok().json()["active"]["files"],
        2
    );
    world.refused(&["init"], "already-a-workspace");
    world.refused(
        &["init", ".semaprax-workspace/generations"],
        "already-a-workspace",
    );
    world.refused(&["init", "missing"], "not-found");
    world.refused(&["init", "README.md"], "not-found");
}
