//! `diff` as `git apply` takes it, and `git diff` as `publish --patch` takes it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use semaprax_tests::process::{World, contents};
use serde_json::json;

use crate::world;

/// A tree with all that a patch can say.
fn varied(world: &World) {
    world.fill();
    let long: Vec<String> = (0..60).map(|n| format!("line {n}\n")).collect();
    world.write("ws/long.txt", long.concat());
    world.write("ws/no-newline", "one\ntwo");
    world.write("ws/binary", (0..=255).collect::<Vec<u8>>().repeat(20));
    world.write("ws/gone.txt", "gone\n");
    world.write("ws/gone.bin", [0, 1, 2, 255]);
    world.write("ws/a name with spaces.txt", "x\n");
    world.write("ws/größe.txt", "ü\n");
    world.write("ws/to-link", "a file\n");
    symlink("empty", world.workspace().join("to-file")).unwrap();
}

/// Changes everything in a directory that holds the varied tree.
fn change(root: &Path) {
    let write = |path: &str, bytes: &[u8]| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let long = fs::read_to_string(root.join("long.txt")).unwrap();
    let long = long
        .replace("line 3\n", "changed 3\n")
        .replace("line 30\n", "")
        .replace("line 58\n", "line 58\nmore\n");
    write("long.txt", long.as_bytes());
    write("no-newline", b"one\ntwo\nthree");
    write("README.md", b"hello\r\nWORLD\r\n");
    let mut binary = fs::read(root.join("binary")).unwrap();
    binary.truncate(3000);
    binary[7] = 0;
    write("binary", &binary);
    write("new.bin", &[7, 0, 9].repeat(500));
    write("new/deep/file.txt", b"new\n");
    write("new/empty", b"");
    write("empty", b"no longer\n");
    write("a name with spaces.txt", b"y\n");
    write("größe.txt", "ä\n".as_bytes());
    for path in ["gone.txt", "gone.bin", "link", "to-link", "to-file"] {
        fs::remove_file(root.join(path)).unwrap();
    }
    fs::rename(root.join("src/a.rs"), root.join("src/renamed.rs")).unwrap();
    symlink("src/b.rs", root.join("link")).unwrap();
    symlink("no-newline", root.join("to-link")).unwrap();
    write("to-file", b"a file now\n");
    let mode = |path: &str, mode: u32| {
        fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("run.sh", 0o644);
    mode("long.txt", 0o755);
}

/// The paths that are executable.
fn executables(root: &Path) -> Vec<String> {
    let is_executable = |path: &String| {
        let found = fs::symlink_metadata(root.join(path)).unwrap();
        found.is_file() && found.permissions().mode() & 0o100 != 0
    };
    contents(root).into_keys().filter(is_executable).collect()
}

fn tree(world: &World, revision: &str) -> std::path::PathBuf {
    let lease = world.json(&["lease", "acquire", "--revision", revision, "--ttl", "10m"]);
    lease["path"].as_str().unwrap().into()
}

fn git(world: &World, at: &Path, words: &[&str], input: &[u8]) -> Vec<u8> {
    let call = world
        .program("git", format!("git {words:?}"))
        .cwd(at)
        .input(input);
    let identity = [
        "-c",
        "user.name=suite",
        "-c",
        "user.email=suite@example.invalid",
        "-c",
        "core.autocrlf=false",
    ];
    call.args(identity).args(words).run().ok().out
}

#[test]
fn git_applies_what_diff_prints() {
    let world = world();
    varied(&world);
    world.json(&["init"]);
    let copy = world.directory().join("copy");
    world.ok(&["export", copy.to_str().unwrap()]);
    change(&copy);
    world.json(&["publish", "--from-dir", copy.to_str().unwrap()]);
    let (old, new) = (tree(&world, "@1"), tree(&world, "@2"));
    let apply = |name: &str, start: &str, patch: &[u8], flags: &[&str], goal: &Path| {
        let place = world.directory().join(name);
        world.ok(&["export", start, place.to_str().unwrap()]);
        git(&world, &place, &[&["apply"], flags, &["-"]].concat(), patch);
        assert_eq!(contents(&place), contents(goal), "{name}");
        assert_eq!(executables(&place), executables(goal), "{name}");
    };
    let forward = world.ok(&["diff", "@1", "@2"]).out;
    apply("forward", "@1", &forward, &[], &new);
    apply("reverse", "@2", &forward, &["--reverse"], &old);
    apply(
        "back",
        "@2",
        &world.ok(&["diff", "@2", "@1"]).out,
        &[],
        &old,
    );
    // `show` prints the same patch after its header.
    let shown = world.ok(&["show", "@2"]).text();
    let patch = world.ok(&["diff", "@1", "@2"]).text();
    assert!(shown.ends_with(&patch));
}

#[test]
fn publish_takes_what_git_prints() {
    let world = world();
    varied(&world);
    let repository = world.directory().join("repository");
    world.json(&["init"]);
    world.ok(&["export", repository.to_str().unwrap()]);
    git(&world, &repository, &["init", "-q"], b"");
    git(&world, &repository, &["add", "-A", "-f"], b"");
    git(&world, &repository, &["commit", "-q", "-m", "one"], b"");
    change(&repository);
    git(&world, &repository, &["add", "-A", "-f"], b"");
    let patch = git(
        &world,
        &repository,
        &["diff", "--cached", "--binary", "-M"],
        b"",
    );
    let call = world
        .with_json(&["publish", "--patch", "-", "-m", "by patch"])
        .input(patch.clone());
    let receipt = call.run().ok().json();
    assert_eq!(receipt["status"], "published");
    let new = tree(&world, "@2");
    assert_eq!(contents(&new), contents(&repository));
    assert_eq!(executables(&new), executables(&repository));
    // The same patch again does not fit, and changes nothing.
    let again = world
        .with_json(&["publish", "--patch", "-"])
        .input(patch)
        .run();
    assert!(matches!(again.code, Some(1 | 2)), "{}", again.told());
    assert_eq!(world.json(&["status"])["active"]["seq"], 2);
}

#[test]
fn a_rename_that_a_submission_names_is_told_as_one() {
    let world = world();
    world.seed();
    world.change(&json!([
        {"op": "move", "from": "src/a.rs", "to": "src/c.rs"},
        {"op": "edit", "path": "src/c.rs", "edits": [{"old": "foo", "new": "bar"}]},
    ]));
    let patch = world.ok(&["show", "@2"]).text();
    assert!(
        patch.contains("rename from src/a.rs\nrename to src/c.rs"),
        "{patch}"
    );
    let place = world.directory().join("place");
    world.ok(&["export", "@1", place.to_str().unwrap()]);
    git(
        &world,
        &place,
        &["apply", "-"],
        &patch.as_bytes()[patch.find("diff --git").unwrap()..],
    );
    assert_eq!(contents(&place), contents(&tree(&world, "@2")));
}
