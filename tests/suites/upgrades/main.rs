//! Stores of released formats, and of formats to come.
//!
//! Owns: that every store in `corpus/store/` is opened by today's code, says what it said then and goes
//! on, and that what a newer build wrote is refused and left as it is.
//! Never: writes to the corpus.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use semaprax_protocol::Code;
use semaprax_tests::corpus::{STORES, observed, unpack};
use semaprax_tests::fixture::Fixture;
use semaprax_tests::oracle::check_whole;
use semaprax_tests::process::{World, sha256};
use serde_json::Value;

/// Bytes of one archive: it is kept for ever, in every clone.
const MOST_BYTES: u64 = 100_000;

/// One test at a time: a process that is just being started holds for a moment what this one has locked,
/// and the clock of a fixture does not wait.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/store")
}

/// Archive and document of every store that there is.
fn stores() -> Vec<(PathBuf, Value)> {
    let mut found = Vec::new();
    for format in fs::read_dir(corpus()).unwrap() {
        for name in STORES {
            let place = format.as_ref().unwrap().path().join(name);
            let archive = place.with_extension("tar.gz");
            let document = fs::read_to_string(place.with_extension("json")).unwrap();
            found.push((archive, serde_json::from_str(&document).unwrap()));
        }
    }
    assert!(found.len() >= STORES.len());
    found
}

#[test]
fn stores_of_every_format_say_what_they_said() {
    let _alone = alone();
    for (archive, expect) in stores() {
        println!("{}", archive.display());
        assert!(fs::metadata(&archive).unwrap().len() < MOST_BYTES);
        let mut fixture = unpack(&archive);
        fixture.open().unwrap();
        let found = observed(&fixture);
        for part in ["publications", "leases", "journal"] {
            let (found, expect) = (found[part].as_array(), expect[part].as_array());
            let (found, expect) = (found.unwrap(), expect.unwrap());
            assert!(!expect.is_empty(), "{part}");
            for (found, expect) in found.iter().zip(expect) {
                if found[1] == "publication-voided" {
                    // Written now, when it was recovered: its time is another.
                    continue;
                }
                assert_eq!(found, expect, "{part}");
            }
            assert_eq!(found.len(), expect.len(), "{part}");
        }
        let has = |kind: &str| expect["journal"].to_string().contains(kind);
        for kind in ["refused", "pinned", "lease-acquired", "collected"] {
            assert!(has(kind), "the story of the corpus has no `{kind}`");
        }
        assert!(
            expect["publications"]
                .to_string()
                .contains("content-collected")
        );
        check_whole(&mut fixture);
        goes_on(&mut fixture, &expect);
    }
}

/// The next publications, on bases old and new, and the holds.
fn goes_on(fixture: &mut Fixture, expect: &Value) {
    let newest = expect["publications"].as_array().unwrap().last().unwrap();
    let seq = newest["seq"].as_u64().unwrap();
    let script = format!(
        r"publish id=1000 base=@{seq}
            put src/new new\n
            edit src/a.rs last => first
          publish id=1001 base=@{seq} merge
            chmod src/c.rs executable
          publish id=16 by=agent
            put src/a.rs last\n
          undo id=1002
          why @4
          why @9
          gc age=0 keep=1
          cat @4:sub/up
          verify
          reopen
          verify"
    );
    let said = fixture.run(&script);
    let expect = format!(
        r"published @{}: modified src/a.rs, created src/new
          published @{} rebased: mode src/c.rs
          published @12 replayed: modified src/a.rs
          published @{}: mode src/c.rs",
        seq + 1,
        seq + 2,
        seq + 3
    );
    let mut lines = said.lines();
    for line in expect.lines() {
        assert_eq!(lines.next(), Some(line.trim()), "{said}");
    }
    let rest: Vec<&str> = lines.collect();
    assert!(
        rest[0].contains("pinned") && rest[1].contains("leased"),
        "{said}"
    );
    assert_eq!(rest[3], "../crlf", "{said}");
    assert!(rest[4].contains("ok") && rest[6].contains("ok"), "{said}");
    check_whole(fixture);
}

/// Time and bytes of everything in a state directory, by name.
type Everything = BTreeMap<PathBuf, (i64, i64, String)>;

#[track_caller]
fn assert_same(found: &Everything, before: &Everything, what: &str) {
    let names = found.keys().chain(before.keys());
    let changed: BTreeSet<_> = names
        .filter(|name| found.get(*name) != before.get(*name))
        .collect();
    assert!(changed.is_empty(), "{what}: {changed:?}");
}

/// All of a state directory but LOCK, which names who looked, and the index of the log, which whoever
/// opens the database makes anew.
fn untouched(state: &Path) -> Everything {
    let mut found = BTreeMap::new();
    let mut left = vec![state.to_owned()];
    while let Some(path) = left.pop() {
        let entry = fs::symlink_metadata(&path).unwrap();
        let mut content = String::new();
        let is_top = path == state;
        if entry.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if entry.is_file() {
            content = sha256(fs::read(&path).unwrap());
        }
        let is_lock = path.ends_with("LOCK") || path.ends_with("store.db-shm");
        if !is_lock && !is_top {
            found.insert(path, (entry.mtime(), entry.mtime_nsec(), content));
        }
    }
    found
}

fn set_version(state: &Path, version: i64) {
    let store = rusqlite::Connection::open(state.join("store.db")).unwrap();
    store
        .set_db_config(
            rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE,
            true,
        )
        .unwrap();
    store.pragma_update(None, "user_version", version).unwrap();
}

/// What makes a store one of a newer build: the version of its database, or the name of the form of
/// ACTIVE.
fn make_newer(state: &Path, how: &str) {
    if how != "active" {
        set_version(state, 2);
    }
    if how != "database" {
        let active = state.join("ACTIVE");
        let text = fs::read_to_string(&active).unwrap();
        let text = text
            .replace("semaprax.active/1", "semaprax.active/2")
            .replace("\"seq\":", "\"epoch\":1,\"seq\":");
        fs::write(&active, text).unwrap();
    }
    if how == "both" {
        for generation in fs::read_dir(state.join("generations")).unwrap() {
            let manifest = generation.unwrap().path().join("manifest.json");
            let text = fs::read_to_string(&manifest).unwrap();
            fs::remove_file(&manifest).unwrap();
            fs::write(&manifest, text.replace("manifest/1", "manifest/2")).unwrap();
        }
    }
}

#[test]
fn what_a_newer_build_wrote_is_refused_and_left_as_it_is() {
    let _alone = alone();
    for (archive, _) in stores() {
        for how in ["database", "active", "both"] {
            let what = format!("{} newer: {how}", archive.display());
            let mut fixture = unpack(&archive);
            let state = fixture.state("");
            make_newer(state.as_std_path(), how);
            let before = untouched(state.as_std_path());
            assert!(before.len() > 20, "{what}");
            let refusal = fixture.open().unwrap_err();
            assert_eq!(refusal.code(), Code::StoreVersion, "{what}: {refusal}");
            assert!(refusal.to_string().contains('2'), "{what}: {refusal}");
            assert_same(&untouched(state.as_std_path()), &before, &what);
        }
    }
}

/// The same with the real program: whatever is asked, repair included.
#[test]
fn no_command_touches_a_newer_store() {
    let _alone = alone();
    for (archive, _) in stores() {
        for how in ["database", "active", "both"] {
            let world = World::new(env!("CARGO_BIN_EXE_semaprax-under-test"));
            let unpacked = Command::new("tar")
                .args(["--no-same-owner", "--warning=no-timestamp", "-xpzf"])
                .arg(&archive)
                .arg("-C")
                .arg(world.workspace())
                .status();
            assert!(unpacked.unwrap().success());
            make_newer(&world.state(), how);
            let before = untouched(&world.state());
            let commands: [&[&str]; 11] = [
                &["status"],
                &["log"],
                &["cat", "crlf"],
                &["publish", "--delete", "crlf"],
                &["undo"],
                &["gc"],
                &["verify"],
                &["verify", "--deep", "--repair"],
                &["lease", "acquire"],
                &["--no-autostart", "status"],
                &["--no-autostart", "log"],
            ];
            for words in commands {
                let refused = world
                    .with_json(words)
                    .run()
                    .exits(2)
                    .refused("store-version");
                let hint = refused["diagnostics"][0]["hint"].as_str();
                assert!(hint.is_some_and(|hint| hint.contains("new")), "{refused}");
            }
            world.refused(&["init"], "already-a-workspace");
            world.stop();
            assert_same(&untouched(&world.state()), &before, how);
        }
    }
}

/// A store of today, opened by the real program on this machine's clock.
#[test]
fn the_real_program_opens_them() {
    let _alone = alone();
    for (archive, expect) in stores() {
        let world = World::new(env!("CARGO_BIN_EXE_semaprax-under-test"));
        let unpacked = Command::new("tar")
            .args(["--no-same-owner", "--warning=no-timestamp", "-xpzf"])
            .arg(&archive)
            .arg("-C")
            .arg(world.workspace())
            .status();
        assert!(unpacked.unwrap().success());
        let publications = expect["publications"].as_array().unwrap();
        let newest = publications.last().unwrap();
        // Without a daemon first: nothing is recovered then.
        let off = world.json(&["--no-autostart", "status"]);
        assert_eq!(off["active"]["revision"], newest["revision"]);
        assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
        let log = world.json(&["log"]);
        assert_eq!(log["entries"].as_array().unwrap().len(), publications.len());
        for (path, leaf) in newest["files"].as_object().unwrap() {
            if leaf[0] != "symlink" {
                let bytes = world.ok(&["cat", &format!(":{path}")]).out;
                assert_eq!(leaf[1], sha256(bytes), "{path}");
            }
        }
        let seq = newest["seq"].as_u64().unwrap();
        assert_eq!(world.put("next", "1\n")["seq"], seq + 1);
        assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
    }
}
