//! Spare trees: used when they are what they should be, dropped when not, recycled by the rules.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_tests::fixture::{Fixture, check_on};
use semaprax_tests::oracle::{check_active, check_whole, shown, tree_on_disk};

/// The trees of the spares.
fn spares(fixture: &Fixture) -> Vec<Utf8PathBuf> {
    let staging = fixture.state("staging");
    let mut found: Vec<_> = staging
        .read_dir_utf8()
        .unwrap()
        .map(|entry| entry.unwrap().path().join("files"))
        .collect();
    found.sort();
    found
}

fn inode(place: &Utf8Path) -> u64 {
    fs::symlink_metadata(place).unwrap().ino()
}

/// The inode of the directory that ACTIVE's tree is.
fn active_inode(fixture: &Fixture) -> u64 {
    inode(&fixture.files_of(&fixture.active().1))
}

fn inodes(fixture: &Fixture) -> BTreeSet<u64> {
    spares(fixture).iter().map(|spare| inode(spare)).collect()
}

fn fixture() -> Fixture {
    let mut fixture = Fixture::with_files(&[
        ("a", "1"),
        ("d/x", "x"),
        ("d/e/y", "y"),
        ("d/e/z", "same"),
        ("run", "#!"),
    ]);
    fixture.run("publish\n  chmod run executable\n  link l a\nidle");
    assert_eq!(spares(&fixture).len(), 2);
    fixture
}

#[test]
fn an_idle_writer_has_two_and_a_publication_takes_one() {
    let mut fixture = fixture();
    let stored = fixture.stored("@").unwrap();
    for spare in spares(&fixture) {
        assert_eq!(shown(&tree_on_disk(&spare)), shown(&stored));
    }
    let before = inodes(&fixture);
    fixture.put("d/x", "2");
    assert!(before.contains(&active_inode(&fixture)));
    assert_eq!(spares(&fixture).len(), 1);
    // The other one lags behind by one publication, and takes the next one all the same.
    fixture.run("publish\n  delete d/x\n  put d/n 1");
    fixture.run("publish\n  delete! d\n  put d 1");
    assert!(before.contains(&active_inode(&fixture)));
    assert_eq!(spares(&fixture).len(), 0);
    fixture.put("a", "without");
    assert!(!before.contains(&active_inode(&fixture)));
    fixture.run("idle");
    assert_eq!(spares(&fixture).len(), 2);
    check_whole(&mut fixture);
}

#[test]
fn what_is_not_published_gives_its_spare_back() {
    let mut fixture = fixture();
    let before = inodes(&fixture);
    check_on(
        &mut fixture,
        "publish dry
           put d/x other
           delete! d/e
         idle
         publish
           put new 1",
        "ready: deleted d/e/y, deleted d/e/z, modified d/x
         -
         published @3: created new",
    );
    assert!(before.contains(&active_inode(&fixture)));
    fixture.run("idle");
    assert!(inodes(&fixture).is_disjoint(&BTreeSet::from([active_inode(&fixture)])));
    check_whole(&mut fixture);
}

/// Writes to a directory that is sealed, which then looks as it did.
fn unsealed(directory: &Utf8Path, work: impl FnOnce()) {
    let mode = fs::metadata(directory).unwrap().permissions();
    fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
    work();
    fs::set_permissions(directory, mode).unwrap();
}

/// Another inode of this content in the place of a file, with its mode and its time.
fn replace(place: &Utf8Path, content: &[u8]) {
    let found = fs::metadata(place).unwrap();
    unsealed(place.parent().unwrap(), || {
        fs::remove_file(place).unwrap();
        let mut file = File::create(place).unwrap();
        file.write_all(content).unwrap();
        file.set_permissions(found.permissions()).unwrap();
        file.set_modified(found.modified().unwrap()).unwrap();
    });
}

/// Ways to scribble in a tree; each by its name.
const SCRIBBLES: [(&str, fn(&Utf8Path)); 14] = [
    ("a new file", |files| {
        unsealed(&files.join("d"), || {
            fs::write(files.join("d/new"), "").unwrap();
        });
    }),
    ("a new directory", |files| {
        unsealed(files, || fs::create_dir(files.join("new")).unwrap());
    }),
    ("a file less", |files| {
        unsealed(&files.join("d/e"), || {
            fs::remove_file(files.join("d/e/y")).unwrap();
        });
    }),
    ("a directory less", |files| {
        unsealed(&files.join("d"), || {
            fs::remove_dir_all(files.join("d/e")).unwrap();
        });
    }),
    ("another name", |files| {
        unsealed(files, || {
            fs::rename(files.join("a"), files.join("b")).unwrap();
        });
    }),
    ("two names exchanged", |files| {
        let at = |name: &str| files.join("d/e").join(name);
        unsealed(&files.join("d/e"), || {
            fs::rename(at("y"), at("t")).unwrap();
            fs::rename(at("z"), at("y")).unwrap();
            fs::rename(at("t"), at("z")).unwrap();
        });
    }),
    ("other content", |files| {
        replace(&files.join("d/x"), b"longer");
    }),
    ("other content of the same length", |files| {
        replace(&files.join("d/e/z"), b"SAME");
    }),
    ("the same content with another mode", |files| {
        replace(&files.join("a"), b"1");
        fs::set_permissions(files.join("a"), Permissions::from_mode(0o644)).unwrap();
    }),
    ("the same content with another time", |files| {
        replace(&files.join("a"), b"1");
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        let file = File::options().read(true).open(files.join("a")).unwrap();
        file.set_modified(long_ago).unwrap();
    }),
    ("a symlink in place of a file", |files| {
        unsealed(files, || {
            fs::remove_file(files.join("a")).unwrap();
            std::os::unix::fs::symlink("d/x", files.join("a")).unwrap();
        });
    }),
    ("a symlink to elsewhere", |files| {
        unsealed(files, || {
            fs::remove_file(files.join("l")).unwrap();
            std::os::unix::fs::symlink("/", files.join("l")).unwrap();
        });
    }),
    ("a directory that can be written to", |files| {
        fs::set_permissions(files.join("d"), Permissions::from_mode(0o755)).unwrap();
    }),
    ("something beside the tree", |files| {
        fs::write(files.parent().unwrap().join("BOOT"), "boot-one").unwrap();
    }),
];

#[test]
fn a_scribbled_spare_is_dropped() {
    for (name, scribble) in SCRIBBLES {
        for older in [false, true] {
            let mut fixture = fixture();
            if older {
                // What was seen before is not looked through again unless it changed.
                fixture.put("a", "3");
                fixture.run("idle");
            }
            let scribbled = inodes(&fixture);
            for spare in spares(&fixture) {
                scribble(&spare);
            }
            fixture.run("idle");
            assert!(
                inodes(&fixture).is_disjoint(&scribbled),
                "{name}: a spare is kept"
            );
            fixture.put("new", "1");
            check_whole(&mut fixture);
        }
    }
}

/// The same content, mode and time under another inode is no damage: it is what would be copied there.
#[test]
fn another_inode_with_the_same_of_everything_will_do() {
    let mut fixture = fixture();
    let before = inodes(&fixture);
    for spare in spares(&fixture) {
        replace(&spare.join("d/e/z"), b"same");
    }
    fixture.run("idle");
    assert_eq!(inodes(&fixture), before);
    fixture.put("new", "1");
    check_whole(&mut fixture);
}

/// A spare that cannot be patched, though it was found right, is dropped, and the tree is made anew.
#[test]
fn a_spare_that_fails_is_no_failure() {
    for operation in [
        "set_mode",
        "remove_file",
        "create",
        "create_directory",
        "remove_directory",
    ] {
        let mut fixture = fixture();
        fixture.test.disk.fail_when(move |found, path| {
            let is_spare = path.as_str().contains("/spare-");
            (found == operation && is_spare).then_some(ErrorKind::Other)
        });
        let before = inodes(&fixture);
        fixture.run("publish\n  put d/x 2\n  delete! d/e\n  put f/g 1");
        fixture.test.disk.mend();
        assert!(!before.contains(&active_inode(&fixture)), "{operation}");
        let stored = fixture.stored("@").unwrap();
        check_active(&fixture, &stored);
    }
}

#[test]
fn repair_and_a_new_boot_drop_the_spares() {
    for script in ["repair", "reopen"] {
        let mut fixture = fixture();
        let before = inodes(&fixture);
        fixture.run(script);
        assert!(inodes(&fixture).is_disjoint(&before), "{script}");
        fixture.put("a", "2");
        assert!(!before.contains(&active_inode(&fixture)), "{script}");
        check_whole(&mut fixture);
    }
}

/// The numbers of the publications whose trees are there.
fn standing(fixture: &Fixture) -> Vec<u64> {
    let newest = fixture.active().0.get();
    let is_there = |seq: &u64| fixture.files_of(&fixture.revision(*seq)).exists();
    (1..=newest).filter(is_there).collect()
}

#[test]
fn under_load_old_trees_become_spares() {
    let mut fixture = Fixture::with_files(&[("a", "1"), ("d/x", "1")]);
    for round in 0..12 {
        fixture.put("a", &format!("content {round}"));
        fixture.writer().tidy();
        assert!(standing(&fixture).len() <= 7, "{:?}", standing(&fixture));
        assert!(spares(&fixture).len() <= 2);
    }
    // The one of `init` is not of this writer: the collector takes it.
    assert_eq!(standing(&fixture), [1, 8, 9, 10, 11, 12, 13]);
    // Those that were recycled are used once they were looked through.
    let recycled = inodes(&fixture);
    fixture.run("idle");
    fixture.put("d/x", "2");
    assert!(recycled.contains(&active_inode(&fixture)));
    check_whole(&mut fixture);
}

#[test]
fn what_somebody_had_is_never_recycled() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    fixture.put("a", "2");
    fixture.put("a", "3");
    fixture.put("a", "4");
    fixture.put("a", "5");
    // @2 was leased, @3 is leased, @4 is read without a daemon, @5 is pinned.
    let lease = fixture.acquire(Some("@2")).unwrap();
    fixture.release(lease.lease).unwrap();
    let held = fixture.acquire(Some("@3")).unwrap();
    let file = fixture
        .files_of(&fixture.revision(4))
        .parent()
        .unwrap()
        .join("LEASE");
    let lock = fixture
        .test
        .world
        .disk
        .try_lock(&file, false, false)
        .unwrap();
    assert!(lock.is_some());
    fixture.run("pin @5");
    for round in 0..8 {
        fixture.put("a", &format!("content {round}"));
        fixture.writer().tidy();
    }
    assert_eq!(standing(&fixture), [1, 3, 4, 5, 8, 9, 10, 11, 12, 13]);
    assert_eq!(tree_on_disk(&held.path).len(), 1);
    drop(lock);
    check_whole(&mut fixture);
}

/// A tree has as many after it as make it old, or it is young: also for `why`, and for the collector.
#[test]
fn a_tree_with_many_after_it_is_not_young() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    fixture.config.retention.young_trees = 2;
    fixture.config.retention.trees = 1;
    fixture.open().unwrap();
    check_on(
        &mut fixture,
        "publish
           put a 2
         publish
           put a 3
         publish
           put a 4
         why @1
         why @2
         why @3
         gc age=1000 keep=1
         gc",
        "published @2: modified a
         published @3: modified a
         published @4: modified a
         tree
         tree
         tree young
         removed
         removed @1 @2",
    );
    check_whole(&mut fixture);
}
