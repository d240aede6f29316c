//! Publishing a directory, exporting one, and what `init` takes and leaves out.

use std::os::unix::fs::PermissionsExt as _;

use camino::Utf8Path;
use semaprax_daemon::workspace::initialize;
use semaprax_protocol::documents::SkipReason;
use semaprax_protocol::request::{Export, Init, StatusParams};
use semaprax_protocol::submission::OnStale;
use semaprax_protocol::{Code, NamePolicy, Refusal};
use semaprax_tests::fixture::{Fixture, changes, put, receipt, refused};
use semaprax_tests::oracle::check_whole;

fn said(outcome: Result<semaprax_protocol::documents::Receipt, Refusal>) -> String {
    outcome.map_or_else(|refusal| refused(&refusal), |found| receipt(&found))
}

fn write(directory: &Utf8Path, path: &str, content: &str) {
    let place = directory.join(path);
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::write(place, content).unwrap();
}

#[test]
fn an_export_comes_back() {
    let mut fixture = Fixture::with_files(&[("a", "1"), ("d/b", "1"), ("gone", "x")]);
    let copy = fixture.export(None, "copy");
    // It is writable, complete, and carries its base outside the content.
    let mode = |path: &str| {
        std::fs::metadata(copy.join(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!((mode("a"), mode("d")), (0o644, 0o755));
    let unchanged = fixture.publish_directory(&copy, None, OnStale::Reject);
    assert_eq!(said(unchanged), "unchanged @1");
    write(&copy, "a", "2");
    write(&copy, "new/deep", "3");
    std::fs::remove_file(copy.join("gone")).unwrap();
    std::os::unix::fs::symlink("a", copy.join("link")).unwrap();
    std::fs::set_permissions(copy.join("d/b"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let published = fixture.publish_directory(&copy, None, OnStale::Reject);
    assert_eq!(
        said(published),
        "published @2: modified a, mode d/b, deleted gone, created link, created new/deep"
    );
    check_whole(&mut fixture);
    // The copy equals @2 now, and its marker says so: the next one goes on from there.
    write(&copy, "d/b", "4\n5\n6\n");
    let next = fixture.publish_directory(&copy, None, OnStale::Reject);
    assert_eq!(said(next), "published @3: modified d/b");
    // Others publish meanwhile: what is merged with them is not what the copy has, so its base stays.
    fixture.publish(vec![put("a", "3")]).unwrap();
    write(&copy, "d/b", "4\n5\nsix\n");
    let stale = fixture.publish_directory(&copy, None, OnStale::Reject);
    assert_eq!(said(stale), "rejected stale-base a active=@4 moved=a");
    let rebased = fixture.publish_directory(&copy, None, OnStale::Rebase);
    assert_eq!(said(rebased), "published @5 rebased: modified d/b");
    let again = fixture.publish_directory(&copy, None, OnStale::Reject);
    assert_eq!(said(again), "rejected stale-base a active=@5 moved=a,d/b");
    let merged = fixture.publish_directory(&copy, None, OnStale::Merge);
    assert_eq!(said(merged), "unchanged @5 rebased");
    // Made equal to the copy, `a` goes back.
    let on_tip = fixture.publish_directory(&copy, Some("@"), OnStale::Reject);
    assert_eq!(said(on_tip), "published @6: modified a");
}

#[test]
fn a_directory_needs_a_base() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let other = fixture.beside("other");
    write(&other, "a", "2");
    let outcome = fixture.publish_directory(&other, None, OnStale::Reject);
    assert_eq!(outcome.unwrap_err().code(), Code::InvalidSubmission);
    let outcome = fixture.publish_directory(&other, Some("@1"), OnStale::Reject);
    assert_eq!(said(outcome), "published @2: modified a");
    let none = fixture.beside("none");
    let outcome = fixture.publish_directory(&none, Some("@1"), OnStale::Reject);
    assert_eq!(outcome.unwrap_err().code(), Code::NotFound);
    // The marker of another workspace is no base here.
    let mut foreign = Fixture::new();
    // Identifiers are made in order: without this both workspaces would have the same.
    foreign.test.world.entropy.uuid();
    foreign.init().unwrap();
    let copy = foreign.export(None, "copy");
    let outcome = fixture.publish_directory(&copy, None, OnStale::Reject);
    assert_eq!(outcome.unwrap_err().code(), Code::InvalidSubmission);
}

#[test]
fn ignored_paths_are_neither_added_nor_deleted() {
    let mut fixture = Fixture::with_files(&[("a", "1"), (".gitignore", "*.log\n/out/\n")]);
    fixture
        .publish(vec![
            put("kept.log", "1"),
            put("out/x", "1"),
            put("src/out/y", "1"),
        ])
        .unwrap();
    let copy = fixture.export(None, "copy");
    write(&copy, "kept.log", "changed and ignored");
    write(&copy, "new.log", "ignored");
    write(&copy, "out/z", "ignored");
    std::fs::remove_file(copy.join("out/x")).unwrap();
    std::fs::remove_file(copy.join("src/out/y")).unwrap();
    let outcome = fixture.publish_directory(&copy, None, OnStale::Reject);
    assert_eq!(said(outcome), "published @3: deleted src/out/y");
    assert_eq!(fixture.run("cat kept.log\ncat out/x"), "1\n1\n");
    // A rule that is new in the directory counts.
    write(&copy, ".gitignore", "*.log\n/out/\na\n");
    std::fs::remove_file(copy.join("a")).unwrap();
    let outcome = fixture.publish_directory(&copy, Some("@"), OnStale::Reject);
    assert_eq!(said(outcome), "published @4: modified .gitignore");
}

#[test]
fn nothing_is_left_out_of_a_directory_without_a_word() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let copy = fixture.export(None, "copy");
    std::fs::create_dir(copy.join("empty")).unwrap();
    let outcome = fixture.publish_directory(&copy, None, OnStale::Reject);
    assert_eq!(said(outcome), "unchanged @1");
    for (name, target) in [
        ("absolute", "/etc/passwd"),
        ("up", "../x"),
        ("git", ".git/x"),
    ] {
        std::os::unix::fs::symlink(target, copy.join(name)).unwrap();
        let outcome = fixture.publish_directory(&copy, None, OnStale::Reject);
        assert_eq!(said(outcome), format!("failed path-refused {name}"));
        std::fs::remove_file(copy.join(name)).unwrap();
    }
    write(&copy, "A", "clash");
    let outcome = fixture.publish_directory(&copy, None, OnStale::Reject);
    assert_eq!(said(outcome), "failed path-refused a");
    std::fs::remove_file(copy.join("A")).unwrap();
    // `.git` of the copy is not content.
    write(&copy, ".git/HEAD", "ref");
    write(&copy, "sub/.GIT/HEAD", "ref");
    let outcome = fixture.publish_directory(&copy, None, OnStale::Reject);
    assert_eq!(said(outcome), "unchanged @1");
}

#[test]
fn a_sealed_tree_is_a_directory_too() {
    let mut fixture = Fixture::with_files(&[("a", "1"), ("d/b", "1")]);
    fixture.put("a", "2");
    let grant = fixture.acquire(Some("@1")).unwrap();
    let outcome = fixture.publish_directory(&grant.path, Some("@"), OnStale::Reject);
    assert_eq!(said(outcome), "published @3: modified a");
    check_whole(&mut fixture);
}

#[test]
fn an_export_overwrites_nothing() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let mut export = |name: &str| {
        let directory = fixture.beside(name);
        let request = Export {
            revision: None,
            directory,
        };
        fixture.perform(request).map_or_else(
            |refusal| refusal.code().word().to_owned(),
            |done| done.files.to_string(),
        )
    };
    assert_eq!(export("copy"), "1");
    assert_eq!(export("copy"), "already-exists");
    assert_eq!(export("work/a"), "already-exists");
    assert_eq!(export("work/.semaprax-workspace/staging/x"), "path-refused");
    assert_eq!(export("no/parent"), "io");
    let empty = fixture.beside("empty");
    std::fs::create_dir(&empty).unwrap();
    fixture.export(Some("@1"), "empty");
    assert_eq!(std::fs::read_to_string(empty.join("a")).unwrap(), "1");
}

#[test]
fn a_failed_export_leaves_nothing() {
    let mut fixture = Fixture::with_files(&[("a", "1"), ("b", "1")]);
    fixture.test.disk.fail_when(|operation, path| {
        (operation == "create" && path.ends_with("copy/b"))
            .then_some(std::io::ErrorKind::StorageFull)
    });
    let directory = fixture.beside("copy");
    let outcome = fixture.perform(Export {
        revision: None,
        directory: directory.clone(),
    });
    assert_eq!(outcome.unwrap_err().code(), Code::NoSpace);
    assert!(!directory.exists());
}

#[test]
fn init_takes_content_and_says_what_it_left() {
    let mut fixture = Fixture::new();
    for (path, content) in [
        ("src/a.rs", "x"),
        (".hidden", "x"),
        (".gitignore", "*.log\nbuild/\n"),
        ("x.log", "ignored"),
        ("build/out", "ignored"),
        (".git/HEAD", "not content"),
        ("sub/.Git/HEAD", "not content"),
        ("sub/f", "x"),
    ] {
        fixture.write(path, content);
    }
    let root = fixture.root.clone();
    std::fs::create_dir_all(root.join("empty/deeper")).unwrap();
    for (name, target) in [
        ("absolute", "/etc"),
        ("up", "../x"),
        ("git", "sub/.git/HEAD"),
        ("good", "src/a.rs"),
        ("dangling", "nowhere"),
    ] {
        std::os::unix::fs::symlink(target, root.join(name)).unwrap();
    }
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("fifo").as_std_path(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let before = listing(&root);
    let made = fixture.init().unwrap();
    let skipped: Vec<(&str, SkipReason)> = made
        .skipped
        .iter()
        .map(|skipped| (skipped.path.as_str(), skipped.reason))
        .collect();
    assert_eq!(
        skipped,
        [
            ("absolute", SkipReason::AbsoluteSymlink),
            ("empty/deeper", SkipReason::EmptyDirectory),
            ("fifo", SkipReason::SpecialFile),
            ("git", SkipReason::ReservedSymlink),
            ("up", SkipReason::EscapingSymlink),
        ]
    );
    assert_eq!(
        fixture.run("tree"),
        ".gitignore=*.log\\nbuild/\\n .hidden=x dangling->nowhere good->src/a.rs src/a.rs=x sub/f=x\n"
    );
    assert_eq!((made.files, made.names), (6, NamePolicy::Portable));
    let mut after = listing(&root);
    after.retain(|(path, _)| !path.starts_with(".semaprax-workspace"));
    assert_eq!(after, before, "what was imported is not touched");
    check_whole(&mut fixture);
}

/// Every name below a directory, with its time.
fn listing(root: &Utf8Path) -> Vec<(String, i64)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in directory.read_dir_utf8().unwrap() {
            let entry = entry.unwrap();
            let path = entry.path().strip_prefix(root).unwrap().to_string();
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path().to_owned());
            } else {
                found.push((path, semaprax_tests::oracle::mtime(entry.path())));
            }
        }
    }
    found.sort();
    found
}

fn init_params(root: &Utf8Path) -> Init {
    Init {
        directory: root.to_owned(),
        names: None,
        force: false,
        shared: false,
        author: String::new(),
        message: String::new(),
    }
}

#[test]
fn a_workspace_is_not_made_twice_nor_inside_its_own_state() {
    let fixture = Fixture::with_files(&[("a", "1")]);
    for directory in [fixture.root.clone(), fixture.state("generations")] {
        let outcome = initialize(
            &fixture.test.world,
            &init_params(&directory),
            &fixture.config,
            &mut |_, _| true,
        );
        assert_eq!(
            outcome.unwrap_err().code(),
            Code::AlreadyAWorkspace,
            "{directory}"
        );
    }
    for name in ["none", "work/a"] {
        let outcome = initialize(
            &fixture.test.world,
            &init_params(&fixture.beside(name)),
            &fixture.config,
            &mut |_, _| true,
        );
        assert_eq!(outcome.unwrap_err().code(), Code::NotFound, "{name}");
    }
}

#[test]
fn a_failed_init_leaves_nothing_and_can_be_done_again() {
    let mut fixture = Fixture::new();
    fixture.write("a", "1");
    fixture.write("d/b", "1");
    let state = fixture.state("");
    // Abandoned at the first question, then with each kind of operation failing in turn.
    let outcome = initialize(
        &fixture.test.world,
        &init_params(&fixture.root),
        &fixture.config,
        &mut |_, _| false,
    );
    assert_eq!(outcome.unwrap_err().code(), Code::Cancelled);
    assert!(!state.exists());
    for (operation, ends_with) in [
        ("create_directory", "trash"),
        ("create", "CACHEDIR.TAG"),
        ("create", "a"),
        ("create", "BOOT"),
        ("create", "ACTIVE.next"),
        ("sync_file", "ACTIVE.next"),
        ("rename", "ACTIVE"),
        ("sync_file", "store.db"),
        ("rename", "store.db"),
    ] {
        fixture.test.disk.fail_when(move |asked, path| {
            (asked == operation && path.ends_with(ends_with))
                .then_some(std::io::ErrorKind::StorageFull)
        });
        let outcome = initialize(
            &fixture.test.world,
            &init_params(&fixture.root),
            &fixture.config,
            &mut |_, _| true,
        );
        assert_eq!(
            outcome.unwrap_err().code(),
            Code::NoSpace,
            "{operation} {ends_with}"
        );
        fixture.test.disk.mend();
        assert!(!state.exists(), "{operation} {ends_with}");
    }
    fixture.init().unwrap();
    check_whole(&mut fixture);
}

#[test]
fn what_a_killed_init_left_is_cleared() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    fixture.kill();
    // Killed before `store.db` got its name: everything else is there.
    std::fs::rename(fixture.state("store.db"), fixture.state("staging/store.db")).unwrap();
    std::fs::create_dir(fixture.state("changes")).unwrap();
    std::fs::write(fixture.state("changes/journal"), "kept").unwrap();
    assert_eq!(fixture.open().unwrap_err().code(), Code::NotAWorkspace);
    fixture.write("a", "2");
    fixture.init().unwrap();
    assert_eq!(fixture.run("tree\nlog"), "a=2\n@1(1)\n");
    assert_eq!(
        std::fs::read_to_string(fixture.state("changes/journal")).unwrap(),
        "kept"
    );
    check_whole(&mut fixture);
}

#[test]
fn drift_is_what_the_directory_has_more_or_less() {
    let mut fixture = Fixture::with_files(&[("a", "1"), ("b", "1"), (".gitignore", "*.log\n")]);
    fixture.publish(vec![put("kept.log", "1")]).unwrap();
    let drift = |fixture: &Fixture| {
        let status = fixture.ask(StatusParams {
            drift: true,
            limits: false,
        });
        changes(&status.unwrap().drift.unwrap())
    };
    assert_eq!(drift(&fixture), "");
    fixture.write("a", "2");
    fixture.write("new", "x");
    fixture.write("new.log", "x");
    std::fs::remove_file(fixture.root.join("b")).unwrap();
    assert_eq!(drift(&fixture), "modified a, deleted b, created new");
}
