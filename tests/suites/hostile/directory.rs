//! Directories that change while they are read: what is put in the way is never waited for, and no byte
//! from outside is taken.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use camino::Utf8Path;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use semaprax_daemon::world::source::{IgnoreRules, ReadOutcome, SourceDirectory, scan};
use semaprax_tests::process::{World, contents};
use serde_json::json;

use crate::{reached, seeded, times, world};

/// What stands in every file outside, and in none inside.
const SECRET: &str = "from outside";

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

fn remove(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// Puts the `turn`-th kind of thing at `path`: what is content, what leads outside, what would be waited
/// for.
fn put(path: &Path, outside: &Path, turn: usize) {
    remove(path);
    match turn % 7 {
        0 => fs::write(path, "inside").unwrap(),
        1 => {
            fs::create_dir(path).unwrap();
            fs::write(path.join("file"), "inside").unwrap();
            fs::write(path.join("secret"), "inside").unwrap();
        }
        2 => std::os::unix::fs::symlink(outside, path).unwrap(),
        3 => std::os::unix::fs::symlink(outside.join("secret"), path).unwrap(),
        4 => fifo(path),
        5 => drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
        _ => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
    }
}

/// A directory with the names that are swapped, and one outside.
fn prepare(world: &World, name: &str) -> (PathBuf, PathBuf) {
    let outside = world
        .write("outside/secret", SECRET)
        .parent()
        .unwrap()
        .to_owned();
    world.write("outside/file", SECRET);
    world.write("outside/.gitignore", "file\n");
    let directory = world
        .write(format!("{name}/steady"), "inside")
        .parent()
        .unwrap()
        .to_owned();
    world.write(format!("{name}/deep/er/file"), "inside");
    (directory, outside)
}

const SWAPPED: [&str; 5] = ["swapped", "deep/er", "deep/er/file", ".gitignore", ".git"];

/// Swaps while `read` runs again and again; answers how many swaps there were.
fn while_swapped(directory: &Path, outside: &Path, mut read: impl FnMut()) -> usize {
    let (ended, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0.. {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                for (place, name) in SWAPPED.iter().enumerate() {
                    let path = directory.join(name);
                    // Its parent may be something else at this moment.
                    if fs::symlink_metadata(path.parent().unwrap())
                        .is_ok_and(|found| found.is_dir())
                    {
                        put(&path, outside, turn + place);
                        swaps.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
        // Also when it fails: the swapper would go on for ever.
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut read));
        ended.store(true, Ordering::Relaxed);
        read.unwrap_or_else(|failed| std::panic::resume_unwind(failed));
    });
    swaps.into_inner()
}

/// Walks and reads all there is; answers how many files.
fn read_all(directory: &Path) -> usize {
    let source = SourceDirectory::open(Utf8Path::from_path(directory).unwrap()).unwrap();
    let found = match scan(&source, &mut |_| true) {
        Ok(found) => found.unwrap(),
        // The rules kept changing while they were read.
        Err(refusal) => {
            assert_eq!(refusal.code().word(), "changed-during-import", "{refusal}");
            return 0;
        }
    };
    let mut count = 0;
    for file in &found.found {
        if let ReadOutcome::Content(kind, bytes) = source.read(&file.path, 1 << 20).unwrap() {
            let text = String::from_utf8(bytes).unwrap();
            // Of a link only where it points is taken.
            assert!(!text.contains(SECRET), "{}: {kind:?} {text}", file.path);
            count += 1;
        }
    }
    let mut rules = IgnoreRules::of(&source);
    for path in ["deep/er/file", "swapped/file", "gone"] {
        drop(rules.is_ignored(path));
    }
    count
}

#[test]
fn a_directory_may_change_at_every_moment_of_the_walk() {
    let world = world();
    let (directory, outside) = prepare(&world, "source");
    let rounds = times(1500, 20_000);
    let mut files = 0;
    let swaps = while_swapped(&directory, &outside, || {
        for _ in 0..rounds {
            files += read_all(&directory);
        }
    });
    assert!(files >= rounds, "the steady file is always there");
    reached("walks of a directory that is swapped", rounds, 1500);
    reached("swaps meanwhile", swaps, 150);
    let kept = contents(&outside);
    assert!(kept.values().any(|bytes| bytes == SECRET.as_bytes()));
}

/// The same through the daemon: what was imported and published holds nothing from outside.
#[test]
fn init_and_from_dir_of_a_directory_that_is_swapped() {
    let world = seeded();
    let (first, outside) = prepare(&world, "first");
    let mut done = 0;
    let mut imports = 0;
    let swaps = while_swapped(&first, &outside, || {
        for round in 0..times(12, 200) {
            let directory = first.to_str().unwrap();
            let call = world.with_json(&["publish", "--from-dir", directory, "--base", "@"]);
            let outcome = call.run();
            imports += 1;
            if outcome.code == Some(0) {
                done += 1;
            } else {
                let code = outcome.json()["diagnostics"][0]["code"].clone();
                let expected = [
                    "path-refused",
                    "changed-during-import",
                    "invalid-submission",
                ];
                assert!(
                    expected.iter().any(|word| code == *word),
                    "{}",
                    outcome.told()
                );
            }
            // A workspace of its own each time, in a directory beside.
            let other = world.directory().join(format!("other-{round}"));
            fs::create_dir(&other).unwrap();
            std::os::unix::fs::symlink(&outside, other.join("swapped")).unwrap();
            fifo(&other.join(".gitignore"));
            let words = [
                "-C",
                other.to_str().unwrap(),
                "init",
                other.to_str().unwrap(),
            ];
            world.with_json(&words).run().ok();
            imports += 1;
        }
    });
    for entry in world.json(&["log"])["entries"].as_array().unwrap() {
        let revision = entry["revision"].as_str().unwrap();
        let copy = world.directory().join(format!("copy-{}", entry["seq"]));
        world.ok(&["export", revision, copy.to_str().unwrap()]);
        for (path, bytes) in contents(&copy) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            assert!(!text.contains(SECRET), "{path} of {revision}: {text}");
        }
    }
    reached("imports of a directory that is swapped", imports, 24);
    reached("swaps meanwhile", swaps, 20);
    println!("{done} publications");
}

/// What the race finds by chance, on purpose: the swap is made at one moment of the walk.
#[test]
fn what_is_swapped_at_a_moment_of_the_walk_is_seen_for_what_it_is() {
    for turn in 0..7 {
        let world = world();
        let (directory, outside) = prepare(&world, "source");
        let source = SourceDirectory::open(Utf8Path::from_path(&directory).unwrap()).unwrap();
        let (first, second) = (directory.join("deep"), directory.join("steady"));
        // The top was listed, nothing below it was opened.
        let mut asked = false;
        let found = scan(&source, &mut |_| {
            if !std::mem::replace(&mut asked, true) {
                put(&first, &outside, turn);
            }
            true
        });
        let found = found.unwrap().unwrap();
        let paths: Vec<&str> = found.found.iter().map(|file| file.path.as_str()).collect();
        let below: &[&str] = if turn == 1 {
            &["deep/file", "deep/secret"]
        } else {
            &[]
        };
        assert_eq!(paths, [below, &["steady"]].concat(), "turn {turn}");
        assert_eq!(
            found.skipped.is_empty(),
            turn == 1,
            "turn {turn}: {found:?}"
        );
        // All was found, nothing was read.
        put(&second, &outside, turn);
        let read = source.read("steady", 1 << 20).unwrap();
        let expect = match turn {
            0 => "File inside",
            2 | 3 | 6 => "Symlink",
            _ => "nothing",
        };
        let got = match read {
            ReadOutcome::Content(kind, bytes) => {
                format!("{kind:?} {}", String::from_utf8_lossy(&bytes))
            }
            ReadOutcome::Special => "nothing".to_owned(),
            other => format!("{other:?}"),
        };
        assert!(
            got.starts_with(expect) && !got.contains(SECRET),
            "turn {turn}: {got}"
        );
    }
}

/// A rules file that is no file, or is too large; the directory of a git work tree likewise.
#[test]
fn rules_and_indexes_that_are_no_files_are_not_waited_for() {
    let check = |prepare: &dyn Fn(&Path, &Path), expect: Result<&[&str], &str>| {
        let world = world();
        let outside = world.write("outside/rules", "kept\n");
        let directory = world.workspace();
        world.write("ws/kept", "x");
        prepare(&directory, &outside);
        let outcome = world.with_json(&["init"]).run();
        match expect {
            Ok(paths) => {
                outcome.ok();
                let listing = world.json(&["ls"]);
                let entries = listing["entries"].as_array().unwrap();
                let found: Vec<&str> = entries
                    .iter()
                    .map(|entry| entry["path"].as_str().unwrap())
                    .collect();
                assert_eq!(found, paths);
            }
            Err(code) => {
                outcome.refused(code);
            }
        }
    };
    check(&|ws, _| fifo(&ws.join(".gitignore")), Ok(&["kept"]));
    check(
        &|ws, _| std::os::unix::fs::symlink("/dev/zero", ws.join(".gitignore")).unwrap(),
        Ok(&["kept"]),
    );
    // As git: rules behind a link are none.
    check(
        &|ws, outside| std::os::unix::fs::symlink(outside, ws.join(".gitignore")).unwrap(),
        Ok(&["kept"]),
    );
    check(
        &|ws, outside| {
            fs::copy(outside, ws.join("rules")).unwrap();
            std::os::unix::fs::symlink("rules", ws.join(".gitignore")).unwrap();
        },
        Ok(&[".gitignore", "kept", "rules"]),
    );
    check(
        &|ws, _| fs::create_dir(ws.join(".gitignore")).unwrap(),
        Ok(&["kept"]),
    );
    check(
        &|ws, _| fs::write(ws.join(".gitignore"), vec![b'\n'; (1 << 20) + 1]).unwrap(),
        Err("limit-exceeded"),
    );
    check(
        &|ws, _| fs::write(ws.join(".gitignore"), vec![b'\n'; 1 << 20]).unwrap(),
        Ok(&[".gitignore", "kept"]),
    );
    check(
        &|ws, _| fs::write(ws.join(".gitignore"), "\u{feff}kept\r\nother").unwrap(),
        Ok(&[".gitignore"]),
    );
    check(&|ws, _| fifo(&ws.join(".git")), Ok(&["kept"]));
    check(
        &|ws, _| {
            fs::create_dir(ws.join(".git")).unwrap();
            fifo(&ws.join(".git/index"));
        },
        Ok(&["kept"]),
    );
    check(
        &|ws, _| {
            fs::create_dir(ws.join(".git")).unwrap();
            std::os::unix::fs::symlink("/dev/zero", ws.join(".git/index")).unwrap();
        },
        Ok(&["kept"]),
    );
}

/// The marker of `export` is a small file of the directory itself.
#[test]
fn a_marker_that_is_no_file_is_none() {
    let world = seeded();
    let marked = |name: &str| {
        let copy = world.directory().join(name);
        world.ok(&["export", "@", copy.to_str().unwrap()]);
        (copy.join(".semaprax-workspace"), copy)
    };
    let publish = |copy: &Path| {
        fs::write(copy.join("README.md"), copy.to_str().unwrap()).unwrap();
        let words = ["publish", "--from-dir", copy.to_str().unwrap()];
        world.with_json(&words).run()
    };
    let (_, copy) = marked("good");
    publish(&copy).ok();
    // The state directory itself leads elsewhere: nothing is read there, and nothing written.
    let (state, copy) = marked("led");
    let aside = world.directory().join("aside");
    fs::rename(&state, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &state).unwrap();
    let before = contents(&aside);
    publish(&copy).refused("invalid-submission");
    assert_eq!(contents(&aside), before);
    let (state, copy) = marked("waits");
    fs::remove_file(state.join("EXPORT")).unwrap();
    fifo(&state.join("EXPORT"));
    publish(&copy).refused("invalid-submission");
    let (state, copy) = marked("large");
    let marker = fs::read(state.join("EXPORT")).unwrap();
    let large = [marker, vec![b' '; 1 << 20]].concat();
    fs::remove_file(state.join("EXPORT")).unwrap();
    fs::write(state.join("EXPORT"), large).unwrap();
    publish(&copy).refused("invalid-submission");
    assert_eq!(world.json(&["status"])["active"]["seq"], json!(2));
}
