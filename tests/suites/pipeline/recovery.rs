//! What is true after a crash, a failed flip, or another boot.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;

use semaprax_protocol::Code;
use semaprax_tests::fixture::{Fixture, check_on, put};
use semaprax_tests::oracle::check_whole;

fn kinds(fixture: &Fixture) -> Vec<String> {
    fixture
        .journal(0)
        .into_iter()
        .map(|entry| entry.kind)
        .collect()
}

/// Killed after the transaction and before the switch: the record is there, ACTIVE is not.
#[test]
fn a_record_beyond_active_was_never_published() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    fixture.put("a", "2");
    let active = std::fs::read(fixture.state("ACTIVE")).unwrap();
    fixture.run("publish id=7\n  put a 3");
    let lost = fixture.active().1;
    fixture.kill();
    std::fs::write(fixture.state("ACTIVE"), &active).unwrap();
    fixture.open().unwrap();
    assert_eq!(
        fixture.run("tree\nlog\nrollback @3"),
        "a=2\n@2(1) @1(1)\nfailed unknown-revision\n"
    );
    assert!(!fixture.files_of(&lost).exists());
    assert_eq!(
        kinds(&fixture),
        [
            "initialized",
            "published",
            "published",
            "publication-voided",
            "refused"
        ]
    );
    let voided = &fixture.journal(3)[0].detail;
    assert_eq!(voided["seq"], 3);
    assert_eq!(voided["cause"], "recovery");
    assert_eq!(voided["revision"], lost.to_string());
    // Its id is free, also for other content; its number is used again.
    assert_eq!(
        fixture.run("publish id=7\n  put a 4"),
        "published @3: modified a\n"
    );
    check_whole(&mut fixture);
    // A second start finds nothing to do.
    let before = kinds(&fixture);
    fixture.close();
    fixture.open().unwrap();
    assert_eq!(kinds(&fixture), before);
}

/// While the record is beyond ACTIVE no reader is shown anything of it.
#[test]
fn readers_see_nothing_beyond_active() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let active = std::fs::read(fixture.state("ACTIVE")).unwrap();
    fixture.put("a", "2");
    let beyond = fixture.active().1;
    std::fs::write(fixture.state("ACTIVE"), &active).unwrap();
    check_on(
        &mut fixture,
        &format!("cat a\nlog\nshow @2\nshow {beyond}\nls @2\nevents 1").replace("ls @2\n", ""),
        "1\n@1(1)\nfailed unknown-revision\nfailed unknown-revision\n",
    );
    let event = fixture.workspace().watch_start(Some("2")).unwrap();
    assert_eq!(event.event, semaprax_protocol::documents::EventKind::Fresh);
}

#[test]
fn leftovers_are_cleared() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    fixture.kill();
    let staged = fixture.state("staging/half/files/d");
    std::fs::create_dir_all(&staged).unwrap();
    std::fs::write(staged.join("x"), "x").unwrap();
    std::fs::set_permissions(&staged, std::fs::Permissions::from_mode(0o555)).unwrap();
    std::fs::write(fixture.state("staging/object-x"), "x").unwrap();
    std::fs::write(fixture.state("ACTIVE.next"), "half").unwrap();
    let unknown = fixture.state("generations").join("e".repeat(64));
    std::fs::create_dir_all(unknown.join("files")).unwrap();
    fixture.open().unwrap();
    assert!(!unknown.exists());
    assert!(!fixture.state("ACTIVE.next").exists());
    fixture.run("idle");
    assert_eq!(fixture.state("trash").read_dir_utf8().unwrap().count(), 0);
    check_whole(&mut fixture);
}

#[test]
fn a_failed_flip_changes_nothing() {
    for (operation, ends_with) in [
        ("create_directory", "files"),
        ("create", "manifest.json"),
        ("create", "LEASE"),
        ("create", "BOOT"),
        ("create", "files/a"),
        ("set_mtime", "files/a"),
        ("rename", ""),
        ("create", "ACTIVE.next"),
        ("sync_file", "ACTIVE.next"),
        ("rename", "ACTIVE"),
    ] {
        let mut fixture = Fixture::with_files(&[("a", "1")]);
        let generations = fixture.state("generations");
        fixture.test.disk.fail_when(move |asked, path| {
            let hit = match ends_with {
                "" => path.starts_with(&generations),
                ends_with => path.ends_with(ends_with),
            };
            (asked == operation && hit).then_some(ErrorKind::StorageFull)
        });
        let outcome = fixture.publish(vec![put("a", "2")]);
        assert_eq!(
            outcome.unwrap_err().code(),
            Code::NoSpace,
            "{operation} {ends_with}"
        );
        fixture.test.disk.mend();
        assert_eq!(
            fixture.run("tree\nlog"),
            "a=1\n@1(1)\n",
            "{operation} {ends_with}"
        );
        check_whole(&mut fixture);
        assert_eq!(
            fixture.run("publish\n  put a 2"),
            "published @2: modified a\n"
        );
        check_whole(&mut fixture);
        assert_eq!(kinds(&fixture).last().unwrap(), "published");
        assert!(kinds(&fixture).contains(&"refused".to_owned()));
    }
}

/// A full disk or a name that could not be made is no reason to stop; a failed sync is: nobody knows
/// what the disk holds.
#[test]
fn what_was_voided_after_a_failed_flip_is_free() {
    for (operation, name, kind, code, goes_on) in [
        ("rename", "ACTIVE", ErrorKind::StorageFull, "no-space", true),
        ("rename", "ACTIVE", ErrorKind::Other, "io", true),
        (
            "sync_file",
            "ACTIVE.next",
            ErrorKind::StorageFull,
            "no-space",
            true,
        ),
        ("sync_file", "ACTIVE.next", ErrorKind::Other, "io", false),
    ] {
        let mut fixture = Fixture::with_files(&[("a", "1")]);
        fixture.test.disk.fail_when(move |asked, path| {
            (asked == operation && path.ends_with(name)).then_some(kind)
        });
        assert_eq!(
            fixture.run("publish id=3\n  put a 2"),
            format!("failed {code} {}\n", fixture.state(name))
        );
        fixture.test.disk.mend();
        assert_eq!(
            kinds(&fixture),
            ["initialized", "published", "publication-voided", "refused"]
        );
        assert_eq!(fixture.journal(2)[0].detail["cause"], "failed-flip");
        if !goes_on {
            let refused = fixture.run("publish id=3\n  put a 3");
            assert_eq!(refused, "failed recovery-needed\n");
            fixture.kill();
            fixture.open().unwrap();
        }
        assert_eq!(
            fixture.run("publish id=3\n  put a 3"),
            "published @2: modified a\n"
        );
        check_whole(&mut fixture);
    }
}

#[test]
fn a_flip_in_doubt_makes_the_workspace_read_only_until_recovery() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let state = fixture.root.join(".semaprax-workspace");
    fixture.test.disk.fail_when(move |operation, path| {
        (operation == "sync_directory" && path == state).then_some(ErrorKind::Other)
    });
    assert_eq!(
        fixture.run("publish id=3\n  put a 2"),
        "in-doubt in-doubt\n"
    );
    fixture.test.disk.mend();
    check_on(
        &mut fixture,
        "publish id=3
           put a 2
         publish
           put a 1
         rollback @1
         cat a
         log
         gc age=0 keep=0
         cat a",
        "failed recovery-needed
         failed recovery-needed
         failed recovery-needed
         2
         @2(1) @1(1)
         failed recovery-needed
         2",
    );
    fixture.kill();
    fixture.open().unwrap();
    assert_eq!(
        fixture.run("tree\npublish id=3\n  put a 2\npublish\n  put a 3"),
        "a=2\npublished @2 replayed: modified a\npublished @3: modified a\n"
    );
    check_whole(&mut fixture);
}

#[test]
fn a_tree_of_another_boot_is_verified_and_mended_before_use() {
    let mut fixture = Fixture::with_files(&[("a", "1"), ("d/b", "1")]);
    fixture.put("a", "2");
    fixture.kill();
    // After a power cut the files are empty: nothing had been synced.
    let empty = |fixture: &Fixture, seq: u64, revision: &semaprax_protocol::Revision| {
        let place = fixture.files_of(revision).join("d/b");
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o644)).unwrap();
        std::fs::write(&place, "").unwrap();
        assert!(place.exists(), "@{seq}");
    };
    fixture.open().unwrap();
    let (first, second) = (fixture.revision(1), fixture.revision(2));
    fixture.kill();
    empty(&fixture, 2, &second);
    fixture.test.clock.reboot(Some("boot-two"));
    fixture.open().unwrap();
    let boot = |fixture: &Fixture, revision: &semaprax_protocol::Revision| {
        let place = fixture
            .state("generations")
            .join(revision.to_string())
            .join("BOOT");
        std::fs::read_to_string(place).unwrap()
    };
    assert_eq!(boot(&fixture, &second), "boot-two");
    assert_eq!(boot(&fixture, &first), "boot-one");
    let found = std::fs::read_to_string(fixture.files_of(&second).join("d/b")).unwrap();
    assert_eq!(found, "1");
    // The older one is mended when someone wants it: the inode was shared.
    let grant = fixture.acquire(Some("@1")).unwrap();
    assert_eq!(boot(&fixture, &first), "boot-two");
    assert_eq!(
        std::fs::read_to_string(grant.path.join("d/b")).unwrap(),
        "1"
    );
    check_whole(&mut fixture);
}

#[test]
fn without_a_boot_id_every_start_verifies() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let files = fixture.files_of(&fixture.active().1);
    fixture.kill();
    fixture.test.clock.reboot(None);
    for _ in 0..2 {
        let place = files.join("a");
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o644)).unwrap();
        std::fs::write(&place, "?").unwrap();
        fixture.open().unwrap();
        check_whole(&mut fixture);
        fixture.kill();
    }
    fixture.open().unwrap();
    fixture.put("a", "2");
    let grant = fixture.acquire(Some("@1")).unwrap();
    assert_eq!(std::fs::read_to_string(grant.path.join("a")).unwrap(), "1");
    check_whole(&mut fixture);
}

#[test]
fn a_lost_tree_is_made_again() {
    let mut fixture = Fixture::with_files(&[("a", "1"), ("d/b", "1")]);
    fixture.put("a", "2");
    let files = fixture.files_of(&fixture.active().1);
    fixture.kill();
    std::fs::rename(files.parent().unwrap(), fixture.beside("away")).unwrap();
    fixture.open().unwrap();
    assert_eq!(fixture.run("stamps"), "a@2 d/b@1\n");
    check_whole(&mut fixture);
}

#[test]
fn one_writer_at_a_time() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let holder = semaprax_daemon::workspace::Holder {
        socket: "/another/socket".into(),
        pid: 2,
    };
    let second = || {
        semaprax_daemon::workspace::open(
            &fixture.test.world,
            &fixture.root,
            &holder,
            &fixture.config,
        )
    };
    let refusal = second().unwrap_err();
    assert_eq!(refusal.code(), Code::WorkspaceLocked);
    let found = refusal.diagnostics[0].found.clone().unwrap();
    assert!(found.contains("/nowhere/socket"), "{found}");
    let lock = std::fs::read_to_string(fixture.state("LOCK")).unwrap();
    assert!(
        lock.contains("/nowhere/socket"),
        "the loser wrote nothing: {lock}"
    );
    fixture.close();
    assert_eq!(std::fs::read_to_string(fixture.state("LOCK")).unwrap(), "");
    fixture.open().unwrap();
    check_whole(&mut fixture);
}

#[test]
fn a_replaced_state_directory_is_noticed() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let workspace = fixture.workspace();
    assert!(workspace.is_current());
    std::fs::rename(fixture.state(""), fixture.beside("away")).unwrap();
    assert!(!workspace.is_current());
    fixture.kill();
}

#[test]
fn a_store_of_a_newer_version_is_left_alone() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    fixture.close();
    let database =
        semaprax_daemon::store::database::Database::open_writer(&fixture.state("store.db"))
            .unwrap();
    database.execute("PRAGMA user_version = 99", ()).unwrap();
    database.close().unwrap();
    let before = std::fs::read(fixture.state("store.db")).unwrap();
    assert_eq!(fixture.open().unwrap_err().code(), Code::StoreVersion);
    assert_eq!(std::fs::read(fixture.state("store.db")).unwrap(), before);
}
