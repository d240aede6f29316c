//! `verify`: damage is found by digest and mended from the store.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use camino::Utf8Path;
use semaprax_daemon::store::database::Database;
use semaprax_daemon::workspace::{Holder, verify_unopened};
use semaprax_protocol::documents::{EventKind, Verification};
use semaprax_protocol::request::Verify;
use semaprax_protocol::{Code, Refusal};
use semaprax_tests::fixture::{Fixture, verification};
use semaprax_tests::oracle::{check_whole, mtime};

fn set_mode(place: &Utf8Path, mode: u32) {
    std::fs::set_permissions(place, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Does something to a sealed tree.
fn tamper(files: &Utf8Path, path: &str, work: impl FnOnce(&Utf8Path)) {
    let place = files.join(path);
    let parent = place.parent().unwrap();
    set_mode(parent, 0o755);
    work(&place);
    set_mode(parent, 0o555);
}

/// Writes other bytes into the inode, with its size, mode and time kept.
fn rewrite(place: &Utf8Path) {
    let (time, mode) = (
        mtime(place),
        std::fs::metadata(place).unwrap().mode() & 0o777,
    );
    set_mode(place, 0o644);
    let length = std::fs::metadata(place).unwrap().len();
    std::fs::write(place, "?".repeat(usize::try_from(length).unwrap())).unwrap();
    set_mode(place, mode);
    set_time(place, time);
}

fn set_time(place: &Utf8Path, time: i64) {
    semaprax_daemon::world::World::real()
        .disk
        .set_mtime(place, time)
        .unwrap();
}

fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.write("a", "one");
    fixture.write("d/b", "two");
    fixture.write("d/e/c", "three");
    std::os::unix::fs::symlink("a", fixture.root.join("l")).unwrap();
    fixture.init().unwrap();
    fixture
}

#[test]
fn damage_of_a_tree_is_found_and_mended() {
    let check = |path: &str, work: &dyn Fn(&Utf8Path), deep_only: bool, found: &str| {
        let mut fixture = fixture();
        let files = fixture.files_of(&fixture.active().1);
        tamper(&files, path, work);
        let shallow = verification(&fixture.verify(false, false));
        assert_eq!(shallow == "ok", deep_only, "{path}: {shallow}");
        assert_eq!(fixture.run("verify"), format!("damaged: {found}\n"));
        assert_eq!(fixture.run("repair"), format!("repaired: {found}\n"));
        assert_eq!(fixture.run("verify"), "ok\n", "{path}: {found}");
        check_whole(&mut fixture);
        let kinds: Vec<String> = fixture
            .journal(0)
            .into_iter()
            .map(|entry| entry.kind)
            .collect();
        assert_eq!(kinds, ["initialized", "repaired"]);
    };
    check("a", &|place| rewrite(place), true, "tree a");
    check(
        "d/b",
        &|place| std::fs::remove_file(place).unwrap(),
        false,
        "tree d/b",
    );
    check(
        "d/foreign",
        &|place| std::fs::write(place, "x").unwrap(),
        false,
        "tree d/foreign",
    );
    check(
        "foreign",
        &|place| std::fs::create_dir(place).unwrap(),
        false,
        "tree foreign",
    );
    check("a", &|place| set_mode(place, 0o644), false, "tree a");
    check("d", &|place| set_mode(place, 0o755), false, "tree d");
    check("d/b", &|place| set_time(place, 5), false, "tree d/b");
    check("d/b", &|place| set_mode(place, 0o555), false, "tree d/b");
    check(
        "l",
        &|place| {
            let time = mtime(place);
            std::fs::remove_file(place).unwrap();
            std::os::unix::fs::symlink("b", place).unwrap();
            set_time(place, time);
        },
        false,
        "tree l",
    );
    check(
        "a",
        &|place| {
            std::fs::remove_file(place).unwrap();
            std::fs::create_dir(place).unwrap();
        },
        false,
        "tree a",
    );
    check(
        "d/e",
        &|place| {
            set_mode(place, 0o755);
            std::fs::remove_dir_all(place).unwrap();
        },
        false,
        "tree d/e, tree d/e/c",
    );
    check(
        "d/e",
        &|place| {
            set_mode(place, 0o755);
            std::fs::remove_dir_all(place).unwrap();
            std::fs::write(place, "a file").unwrap();
        },
        false,
        "tree d/e, tree d/e/c",
    );
}

#[test]
fn damage_in_a_shared_inode_is_mended_in_every_tree() {
    let mut fixture = fixture();
    let first = fixture.active().1;
    fixture.put("a", "other");
    let second = fixture.active().1;
    let (one, two) = (fixture.files_of(&first), fixture.files_of(&second));
    let inode = |files: &Utf8Path| std::fs::metadata(files.join("d/b")).unwrap().ino();
    assert_eq!(inode(&one), inode(&two));
    let damaged = inode(&one);
    tamper(&one, "d/b", rewrite);
    // A reader that has the damaged file open keeps its inode: it is never written to.
    let open = std::fs::File::open(one.join("d/b")).unwrap();
    assert_eq!(fixture.run("repair"), "repaired: tree d/b, tree d/b\n");
    assert_ne!(inode(&one), damaged);
    assert_ne!(inode(&two), damaged);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut &open, &mut text).unwrap();
    assert_eq!(text, "???");
    check_whole(&mut fixture);
}

#[test]
fn the_tree_of_active_must_be_there() {
    let mut fixture = fixture();
    let generation = fixture.files_of(&fixture.active().1);
    let generation = generation.parent().unwrap();
    std::fs::rename(generation, fixture.beside("away")).unwrap();
    assert_eq!(fixture.run("verify"), "damaged: tree\n");
    assert_eq!(fixture.run("repair"), "repaired: tree\n");
    check_whole(&mut fixture);
}

#[test]
fn foreign_generations_and_a_wrong_manifest() {
    let mut fixture = fixture();
    let strange = fixture.state("generations").join("strange");
    std::fs::create_dir(&strange).unwrap();
    let unknown = fixture.state("generations").join("0".repeat(64));
    std::fs::create_dir(&unknown).unwrap();
    assert_eq!(fixture.run("verify"), "damaged: foreign, foreign strange\n");
    assert_eq!(
        fixture.run("repair"),
        "repaired: foreign, foreign strange\n"
    );
    assert!(!strange.exists() && !unknown.exists());

    let files = fixture.files_of(&fixture.active().1);
    let manifest = files.parent().unwrap().join("manifest.json");
    let right = std::fs::read(&manifest).unwrap();
    set_mode(&manifest, 0o644);
    std::fs::write(&manifest, "{}").unwrap();
    assert_eq!(fixture.run("verify"), "damaged: manifest\n");
    assert_eq!(fixture.run("repair"), "repaired: manifest\n");
    assert_eq!(std::fs::read(&manifest).unwrap(), right);
    std::fs::remove_file(&manifest).unwrap();
    assert_eq!(fixture.run("repair"), "repaired: manifest\n");
    assert_eq!(std::fs::read(&manifest).unwrap(), right);
    check_whole(&mut fixture);
}

#[test]
fn leftovers_are_no_damage() {
    let mut fixture = fixture();
    std::fs::create_dir(fixture.state("staging/half-made")).unwrap();
    std::fs::write(fixture.state("trash/old"), "x").unwrap();
    assert_eq!(fixture.run("verify"), "ok\n");
}

#[test]
fn damage_of_the_store_is_found_and_not_hidden() {
    let check = |sql: &str, expect: &str, repaired: &str| {
        let mut fixture = fixture();
        fixture.put("a", "two");
        let database = Database::open_writer(&fixture.state("store.db")).unwrap();
        assert!(database.execute(sql, ()).unwrap() > 0, "{sql}");
        let found = fixture.run("verify");
        assert_eq!(found, format!("damaged: {expect}\n"), "{sql}");
        let found = fixture.run("repair");
        assert_eq!(found, format!("{repaired}\n"), "{sql}");
        if repaired.starts_with("repaired") {
            assert_eq!(fixture.run("verify"), "ok\n", "{sql}");
        }
    };
    let of_one = "(SELECT digest FROM blobs WHERE bytes = 5)";
    // A tree on disk has the very bytes, by their digest.
    check(
        "UPDATE blobs SET data = x'00' WHERE bytes = 5",
        "blob",
        "repaired: blob",
    );
    check(
        &format!("DELETE FROM blobs WHERE digest = {of_one}"),
        "blob",
        "repaired: blob",
    );
    check(
        "UPDATE publications SET body = cast(replace(body, 'importer', 'impostor') AS BLOB)
         WHERE seq = 1",
        "record, record, node",
        "damaged: record, record, node",
    );
    // A value of a kind that was never written is damage too, not a defect.
    check(
        "UPDATE publications SET body = 7 WHERE seq = 1",
        "record, record, node",
        "damaged: record, record, node",
    );
    check(
        "DELETE FROM publications WHERE seq = 1",
        "record, record, node, foreign",
        "damaged: record, record, node, foreign",
    );
}

#[test]
fn a_missing_large_blob_is_found() {
    let mut fixture = fixture();
    fixture.put("big", &"x".repeat(100_000));
    let objects = fixture.state("objects");
    let head = objects.read_dir_utf8().unwrap().next().unwrap().unwrap();
    let object = head
        .path()
        .read_dir_utf8()
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    std::fs::remove_file(object.path()).unwrap();
    assert_eq!(fixture.run("verify"), "damaged: blob\n");
    assert_eq!(verification(&fixture.verify(false, false)), "ok");
}

/// What a power cut may leave on a file system without a journal.
#[test]
fn a_name_in_the_place_of_a_directory_of_objects_is_replaced() {
    let content = "x".repeat(100_000);
    let digest = blake3::hash(content.as_bytes()).to_hex().to_string();
    let mut fixture = fixture();
    let place = fixture.state("objects").join(&digest[..2]);
    std::fs::write(&place, "another inode").unwrap();
    fixture.run("gc");
    assert!(place.is_file(), "the collector leaves it");
    fixture.put("big", &content);
    assert_eq!(
        std::fs::read_to_string(place.join(&digest[2..])).unwrap(),
        content
    );
    assert_eq!(verification(&fixture.verify(true, false)), "ok");
}

fn unopened(fixture: &Fixture, repair: bool) -> Result<Verification, Refusal> {
    let holder = Holder {
        socket: "/nowhere".into(),
        pid: 1,
    };
    let params = Verify {
        deep: true,
        repair,
        directory: None,
    };
    verify_unopened(&fixture.test.world, &fixture.root, &holder, &params)
}

#[test]
fn a_lost_pointer_is_restored_to_what_was_confirmed() {
    let mut fixture = fixture();
    fixture.run("publish id=1\n  put a 2\nidle");
    let token = fixture.workspace().watch_start(None).unwrap().token;
    // This one is published, but no later turn has confirmed it.
    fixture.run("publish id=2\n  put a 3");
    let lost_token = fixture.workspace().watch_start(None).unwrap().token;
    fixture.kill();
    for damage in [None, Some("{}"), Some("not json")] {
        match damage {
            None => std::fs::remove_file(fixture.state("ACTIVE")).unwrap(),
            Some(text) => std::fs::write(fixture.state("ACTIVE"), text).unwrap(),
        }
        assert_eq!(fixture.open().unwrap_err().code(), Code::WorkspaceDamaged);
        let found = unopened(&fixture, false).unwrap();
        assert_eq!(verification(&found), "damaged: active");
    }
    let found = unopened(&fixture, true).unwrap();
    assert_eq!(verification(&found), "repaired: active");
    assert!(
        found.damage[0].detail.contains("@3"),
        "{}",
        found.damage[0].detail
    );
    fixture.open().unwrap();
    assert_eq!(
        fixture.run("tree\nlog"),
        "a=2 d/b=two d/e/c=three l->a\n@2(1) @1(4)\n"
    );
    check_whole(&mut fixture);
    let kinds: Vec<String> = fixture
        .journal(0)
        .into_iter()
        .map(|entry| entry.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            "initialized",
            "published",
            "published",
            "publication-voided",
            "active-restored"
        ]
    );
    // The id is free again, the number is used again, and the token of the lost one is another history.
    assert_eq!(
        fixture.run("publish id=1\n  put a 2\npublish id=2\n  put a 3"),
        "published @2 replayed: modified a\npublished @3: modified a\n"
    );
    let event = |token: &str| fixture.workspace().watch_start(Some(token)).unwrap().event;
    assert_eq!(event(&token), EventKind::Snapshot);
    assert_eq!(event(&lost_token), EventKind::Fresh);
}

#[test]
fn an_unopened_workspace_that_is_well_is_left_alone() {
    let mut fixture = fixture();
    fixture.close();
    assert_eq!(verification(&unopened(&fixture, false).unwrap()), "ok");
    assert_eq!(verification(&unopened(&fixture, true).unwrap()), "ok");
    fixture.open().unwrap();
    let refusal = unopened(&fixture, false).unwrap_err();
    assert_eq!(refusal.code(), Code::WorkspaceLocked);
    check_whole(&mut fixture);
}
