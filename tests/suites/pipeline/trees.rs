//! Trees on disk: whole, sealed, linked, and with times that tools can rely on.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;

use semaprax_tests::fixture::{Fixture, check};
use semaprax_tests::oracle::{check_active, check_whole, mtime, tree_on_disk};

#[test]
fn only_what_changed_is_newer() {
    // `stamps` also compares the time of each file on disk with that of its publication.
    check(
        r"file a 1
          file b 1
          exec c 1
          link l a
          stamps
          publish
            put b 2
          stamps
          publish
            chmod c file
            link l b
          stamps
          rollback @2
          stamps
          rollback @1
          stamps
          publish
            move a z
          stamps
          stamps @2",
        "a@1 b@1 c@1 l@1
         published @2: modified b
         a@1 b@2 c@1 l@1
         published @3: mode c, modified l
         a@1 b@2 c@3 l@3
         published @4: mode c, modified l
         a@1 b@2 c@4 l@4
         published @5: modified b
         a@1 b@5 c@4 l@4
         published @6: renamed a -> z
         b@5 c@4 l@4 z@6
         a@1 b@2 c@1 l@1",
    );
}

#[test]
fn a_merge_stamps_what_it_changed() {
    check(
        r"file t 1\n2\n3\n4\n
          file u 1
          publish
            edit t 1 => one
          publish base=@1 merge
            edit t 4 => four
            put u 2
          stamps",
        "published @2: modified t
         published @3 rebased merged=t: modified t, modified u
         t@3 u@3",
    );
}

#[test]
fn times_ascend_when_the_clock_steps_back() {
    check(
        r"file a 1
          publish
            put a 2
          clock -100000
          publish
            put a 3
          publish
            put a 4
          stamps
          log",
        "published @2: modified a
         -
         published @3: modified a
         published @4: modified a
         a@4
         @4(1) @3(1) @2(1) @1(1)",
    );
}

#[test]
fn unchanged_files_are_shared_and_the_rest_is_not() {
    let mut fixture = Fixture::with_files(&[("a", "1"), ("b", "same")]);
    let first = fixture.active().1;
    fixture.put("a", "2");
    let second = fixture.active().1;
    let inode = |fixture: &Fixture, revision, path: &str| {
        std::fs::metadata(fixture.files_of(revision).join(path))
            .unwrap()
            .ino()
    };
    assert_eq!(inode(&fixture, &first, "b"), inode(&fixture, &second, "b"));
    assert_ne!(inode(&fixture, &first, "a"), inode(&fixture, &second, "a"));
    // The file that was imported is another one: the workspace never shares with what people edit.
    let imported = std::fs::metadata(fixture.root.join("b")).unwrap().ino();
    assert_ne!(inode(&fixture, &first, "b"), imported);
    // Content that came back has another stamp, so it is another inode.
    fixture.run("rollback @1");
    let third = fixture.active().1;
    assert_ne!(inode(&fixture, &first, "a"), inode(&fixture, &third, "a"));
    check_whole(&mut fixture);
}

#[test]
fn old_trees_never_change() {
    let mut fixture = Fixture::with_files(&[("a", "1"), ("d/x", "1"), ("e/y", "1")]);
    let lease = fixture.acquire(None).unwrap();
    let before = tree_on_disk(&lease.path);
    let times: Vec<i64> = before
        .keys()
        .map(|path| mtime(&lease.path.join(path)))
        .collect();
    fixture.run(
        "publish
           put a 2
           delete! d
           move! e d
         rollback @1
         undo
         gc age=0 keep=0",
    );
    assert_eq!(tree_on_disk(&lease.path), before);
    let after: Vec<i64> = before
        .keys()
        .map(|path| mtime(&lease.path.join(path)))
        .collect();
    assert_eq!(after, times);
    check_whole(&mut fixture);
}

/// A file system that takes no more links for an inode (EMLINK): the copy made instead is the same
/// file, so it carries the same old time.
#[test]
fn a_copy_in_place_of_a_link_keeps_its_time() {
    let mut fixture = Fixture::with_files(&[("a", "1"), ("b", "1")]);
    fixture.test.disk.fail_when(|operation, path| {
        (operation == "link" && path.as_str().ends_with("/b")).then_some(ErrorKind::TooManyLinks)
    });
    fixture.put("a", "2");
    fixture.test.disk.mend();
    assert_eq!(fixture.run("stamps"), "a@2 b@1\n");
    check_whole(&mut fixture);
}

#[test]
fn a_file_system_without_links_gets_whole_copies() {
    let mut fixture = Fixture::with_files(&[("a", "1"), ("d/b", "1")]);
    fixture
        .test
        .disk
        .fail_when(|operation, _| (operation == "link").then_some(ErrorKind::PermissionDenied));
    fixture.put("a", "2");
    fixture.run("rollback @1");
    assert_eq!(fixture.run("stamps"), "a@3 d/b@1\n");
    check_whole(&mut fixture);
}

#[test]
fn bytes_are_kept_exactly() {
    let odd: Vec<(&str, String)> = vec![
        ("empty", String::new()),
        ("crlf", "a\r\nb\r\n".to_owned()),
        ("bom", "\u{feff}x".to_owned()),
        ("no-newline", "x".to_owned()),
        ("nul", "\0\u{1}\0".to_owned()),
        ("big", "0123456789abcdef".repeat(20_000)),
        ("spaces in a name/ü\u{2028}", "x".to_owned()),
    ];
    let files: Vec<(&str, &str)> = odd
        .iter()
        .map(|(path, text)| (*path, text.as_str()))
        .collect();
    let mut fixture = Fixture::with_files(&files);
    let expect = fixture.stored("@").unwrap();
    assert_eq!(expect.len(), odd.len());
    for (path, text) in &odd {
        assert_eq!(expect[*path].1, text.as_bytes(), "{path}");
        assert_eq!(
            std::fs::read(fixture.root.join(path)).unwrap(),
            text.as_bytes()
        );
    }
    check_active(&fixture, &expect);
    // The same through a submission, in base64 too, and through an export.
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let mut change = semaprax_tests::fixture::put("binary", "");
    if let semaprax_protocol::submission::Change::Put {
        content,
        content_base64,
        ..
    } = &mut change
    {
        use base64::Engine as _;
        *content = None;
        *content_base64 = Some(base64::engine::general_purpose::STANDARD.encode(&bytes));
    }
    fixture.publish(vec![change]).unwrap();
    assert_eq!(fixture.content(None, "binary").unwrap(), bytes);
    let copy = fixture.export(None, "copy");
    assert_eq!(std::fs::read(copy.join("binary")).unwrap(), bytes);
    check_whole(&mut fixture);
}
