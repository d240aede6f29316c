//! What becomes of a submission whose base is no longer ACTIVE.

use semaprax_tests::fixture::{check, indented};

const TEN: &str = r"file t 1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

/// `ours` is published first, then `theirs` on the base before it.
#[track_caller]
fn check_two(files: &str, ours: &str, how: &str, theirs: &str, answer: &str, tree: &str) {
    let script = format!(
        "{}publish\n{}publish base=@1 {how}\n{}tree",
        indented(files, 0),
        indented(ours, 2),
        indented(theirs, 2)
    );
    let got = {
        let mut fixture = semaprax_tests::fixture::Fixture::new();
        let got = fixture.run(&script);
        semaprax_tests::oracle::check_whole(&mut fixture);
        got
    };
    let lines: Vec<&str> = got.lines().skip(1).collect();
    assert_eq!(lines, [answer, tree], "{ours} | {how} | {theirs}");
}

#[test]
fn reject_names_what_moved() {
    check_two(
        "file a 1\nfile b 1",
        "put a 2\nput c 2",
        "",
        "put b 3",
        "rejected stale-base a active=@2 moved=a,c",
        "a=2 b=1 c=2",
    );
    // The same content again is no move, whatever the number of the publication.
    check(
        r"file a 1
          publish
            put a 2
          publish
            put a 1
          publish base=@1
            put b 3
          publish base=@2
            put b 4",
        "published @2: modified a
         published @3: modified a
         published @4: created b
         rejected stale-base a active=@4 moved=a,b",
    );
    // Without a base nothing is ever stale.
    check(
        r"file a 1
          publish
            put a 2
          publish
            edit a 2 => 3",
        "published @2: modified a
         published @3: modified a",
    );
}

#[test]
fn rebase_goes_on_when_nothing_touched_moved() {
    let files = "file a 1\nfile b 1\nfile d/x 1\nfile d/y 1";
    let check = |ours: &str, theirs: &str, answer: &str, tree: &str| {
        check_two(files, ours, "rebase", theirs, answer, tree);
    };
    check(
        "put a 2",
        "put b 3",
        "published @3 rebased: modified b",
        "a=2 b=3 d/x=1 d/y=1",
    );
    check(
        "put a 2",
        "move b c\nchmod c executable\nread d/x 1",
        "published @3 rebased: renamed b -> c",
        "a=2 c*=1 d/x=1 d/y=1",
    );
    check(
        "put d/new 2",
        "put d/x 3",
        "published @3 rebased: modified d/x",
        "a=1 b=1 d/new=2 d/x=3 d/y=1",
    );
    check(
        "put a 2",
        "put a 3",
        "rejected stale-base a active=@2 moved=a",
        "a=2 b=1 d/x=1 d/y=1",
    );
    // Equal results do not make it less stale: rebase does not look at content.
    check(
        "put a 2",
        "put a 2",
        "rejected stale-base a active=@2 moved=a",
        "a=2 b=1 d/x=1 d/y=1",
    );
    check(
        "chmod a executable",
        "put a 3",
        "rejected stale-base a active=@2 moved=a",
        "a*=1 b=1 d/x=1 d/y=1",
    );
    check(
        "put a 2",
        "put b 3\nread a 1",
        "rejected stale-base a active=@2 moved=a",
        "a=2 b=1 d/x=1 d/y=1",
    );
    check(
        "put new 2",
        "put b 3\nread new -",
        "rejected stale-base new active=@2 moved=new",
        "a=1 b=1 d/x=1 d/y=1 new=2",
    );
    // A directory named as a whole has moved when anything in it has.
    check(
        "put d/new 2",
        "delete! d",
        "rejected stale-base d active=@2 moved=d",
        "a=1 b=1 d/new=2 d/x=1 d/y=1",
    );
    check(
        "put d/x 2",
        "move! d e",
        "rejected stale-base d active=@2 moved=d",
        "a=1 b=1 d/x=2 d/y=1",
    );
    check(
        "put c 2",
        "move b c",
        "rejected stale-base c active=@2 moved=c",
        "a=1 b=1 c=2 d/x=1 d/y=1",
    );
    check(
        "delete a\nput a/deep 2",
        "put a 3",
        "rejected stale-base a active=@2 moved=a",
        "a/deep=2 b=1 d/x=1 d/y=1",
    );
    check(
        "put n 2",
        "put n/deep 3",
        "rejected stale-base n/deep active=@2 moved=n/deep",
        "a=1 b=1 d/x=1 d/y=1 n=2",
    );
    // What the base does not bear out is a failed precondition, stale or not.
    check(
        "put a 2",
        "put b 3\nexpect 7",
        "rejected precondition-failed #0 b found=other",
        "a=2 b=1 d/x=1 d/y=1",
    );
    check(
        "put a 2",
        "put b 3\nread a 2",
        "rejected precondition-failed a found=other",
        "a=2 b=1 d/x=1 d/y=1",
    );
    // Verified again on the new base: two spellings meet only there.
    check(
        "put new 2",
        "put NEW 3",
        "rejected path-collision NEW found=new",
        "a=1 b=1 d/x=1 d/y=1 new=2",
    );
}

#[test]
fn a_rebase_that_changes_nothing_is_unchanged() {
    check_two(
        "file a 1\nfile b 1",
        "put a 2",
        "rebase",
        "put b 1",
        "unchanged @2 rebased",
        "a=2 b=1",
    );
}

#[test]
fn merge_puts_lines_together() {
    let check = |ours: &str, theirs: &str, answer: &str, tree: &str| {
        check_two(TEN, ours, "merge", theirs, answer, tree);
    };
    check(
        r"edit t 2\n => two\n",
        r"edit t 9\n => nine\n",
        "published @3 rebased merged=t: modified t",
        r"t=1\ntwo\n3\n4\n5\n6\n7\n8\nnine\n10\n",
    );
    // One unchanged line between is enough, none is not.
    check(
        r"edit t \n2\n => \ntwo\n",
        r"edit t \n4\n => \nfour\n",
        "published @3 rebased merged=t: modified t",
        r"t=1\ntwo\n3\nfour\n5\n6\n7\n8\n9\n10\n",
    );
    check(
        r"edit t \n2\n => \ntwo\n",
        r"edit t \n3\n => \nthree\n",
        "rejected merge-conflict t sides=xxx lines=2-3|2-3|2-3",
        r"t=1\ntwo\n3\n4\n5\n6\n7\n8\n9\n10\n",
    );
    check(
        r"edit t \n2\n => \ntwo\n",
        r"edit t \n2\n => \nzwei\n",
        "rejected merge-conflict t sides=xxx lines=2-2|2-2|2-2",
        r"t=1\ntwo\n3\n4\n5\n6\n7\n8\n9\n10\n",
    );
    // Equal results are no conflict; nothing is left to publish.
    check(
        r"edit t \n2\n => \ntwo\n",
        r"edit t \n2\n => \ntwo\n",
        "unchanged @2 rebased",
        r"t=1\ntwo\n3\n4\n5\n6\n7\n8\n9\n10\n",
    );
    // `expect` and `edit` are judged on the base: the text is gone on ACTIVE.
    check(
        r"edit t \n2\n => \ntwo\n",
        r"edit t 10\n => ten\n
          expect 1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n",
        "published @3 rebased merged=t: modified t",
        r"t=1\ntwo\n3\n4\n5\n6\n7\n8\n9\nten\n",
    );
    // A path that is both touched and read counts as touched.
    check(
        r"edit t \n2\n => \ntwo\n",
        r"edit t 10\n => ten\n
          read t 1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n",
        "published @3 rebased merged=t: modified t",
        r"t=1\ntwo\n3\n4\n5\n6\n7\n8\n9\nten\n",
    );
    check(
        r"edit t \n2\n => \ntwo\n",
        r"put n new
          read t 1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n",
        "rejected stale-base t active=@2 moved=t",
        r"t=1\ntwo\n3\n4\n5\n6\n7\n8\n9\n10\n",
    );
    check(
        "put n 1",
        "put m 2",
        "published @3 rebased: created m",
        r"m=2 n=1 t=1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n",
    );
    check(
        "chmod t executable",
        r"edit t 10\n => ten\n",
        "published @3 rebased merged=t: modified t",
        r"t*=1\n2\n3\n4\n5\n6\n7\n8\n9\nten\n",
    );
    check(
        r"edit t 10\n => ten\n",
        "chmod t executable",
        "published @3 rebased merged=t: mode t",
        r"t*=1\n2\n3\n4\n5\n6\n7\n8\n9\nten\n",
    );
}

#[test]
fn merge_refuses_what_would_lose_something() {
    let files = "file a one\nfile d/x 1\nfile z \\0bin\nlink l a";
    let check = |ours: &str, theirs: &str, answer: &str, tree: &str| {
        check_two(files, ours, "merge", theirs, answer, tree);
    };
    check(
        "put a two",
        "delete a",
        "rejected merge-conflict a sides=xx-",
        r"a=two d/x=1 l->a z=\0bin",
    );
    check(
        "delete a",
        "put a two",
        "rejected merge-conflict a sides=x-x",
        r"d/x=1 l->a z=\0bin",
    );
    check(
        "put a two",
        "move a c",
        "rejected merge-conflict a sides=xx-",
        r"a=two d/x=1 l->a z=\0bin",
    );
    check(
        "move a c",
        "put a two",
        "rejected merge-conflict a sides=x-x",
        r"c=one d/x=1 l->a z=\0bin",
    );
    check(
        "put n 1",
        "put n 2",
        "rejected merge-conflict n sides=-xx",
        r"a=one d/x=1 l->a n=1 z=\0bin",
    );
    check(
        "put n 1",
        "put n 1",
        "unchanged @2 rebased",
        r"a=one d/x=1 l->a n=1 z=\0bin",
    );
    check(
        "delete a",
        "delete a\nput n 1",
        "published @3 rebased: created n",
        r"d/x=1 l->a n=1 z=\0bin",
    );
    check(
        r"put z \0ours",
        r"put z \0theirs",
        "rejected merge-conflict z sides=xxx",
        r"a=one d/x=1 l->a z=\0ours",
    );
    check(
        "link l d",
        "link l z",
        "rejected merge-conflict l sides=xxx",
        r"a=one d/x=1 l->d z=\0bin",
    );
    check(
        "put d/new 2",
        "delete! d",
        "rejected merge-conflict d sides=---",
        r"a=one d/new=2 d/x=1 l->a z=\0bin",
    );
    check(
        "put d/x 2",
        "move! d e",
        "rejected merge-conflict d sides=---",
        r"a=one d/x=2 l->a z=\0bin",
    );
    check(
        "delete a\nput a/deep 1",
        "put a two",
        "rejected merge-conflict a sides=---",
        r"a/deep=1 d/x=1 l->a z=\0bin",
    );
    check(
        "put n 1",
        "put n/deep 2",
        "rejected merge-conflict n/deep sides=--x",
        r"a=one d/x=1 l->a n=1 z=\0bin",
    );
    check(
        "chmod a executable",
        "link a d",
        "rejected merge-conflict a sides=xxx",
        r"a*=one d/x=1 l->a z=\0bin",
    );
}

/// A file whose content happens to be the target it is replaced by: the other side's new content must
/// not become the target of a link.
#[test]
fn merge_never_makes_a_link_of_text() {
    check_two(
        "file a d",
        "put a text",
        "merge",
        "link a d",
        "rejected merge-conflict a sides=xxx",
        "a=text",
    );
    check_two(
        "file a d",
        "link a d",
        "merge",
        "put a text",
        "rejected merge-conflict a sides=xxx",
        "a->d",
    );
}

/// A directory that becomes a file, or a file a directory, is a change like any other when the other side
/// did not touch it.
#[test]
fn merge_lets_a_directory_become_a_file_and_back() {
    let files = "file a 1\nfile d/x 1\nfile f 1";
    check_two(
        files,
        "put a 2",
        "merge",
        "delete d/x\nput d 3\ndelete f\nput f/y 3",
        "published @3 rebased: created d, deleted d/x, deleted f, created f/y",
        "a=2 d=3 f/y=3",
    );
    check_two(
        files,
        "put d/new 2",
        "merge",
        "delete d/x\nput d 3",
        "rejected merge-conflict d sides=---",
        "a=1 d/new=2 d/x=1 f=1",
    );
    check_two(
        files,
        "put f 2",
        "merge",
        "delete f\nput f/y 3",
        "rejected merge-conflict f sides=xx-",
        "a=1 d/x=1 f=2",
    );
    check(
        r"file d/x 1
          file f 1
          publish
            delete d/x
            put d 2
            delete f
            put f/y 2
          undo
          tree
          undo
          tree
          publish
            put z 1
          revert 2
          tree",
        "published @2: created d, deleted d/x, deleted f, created f/y
         published @3: deleted d, created d/x, created f, deleted f/y
         d/x=1 f=1
         published @4: created d, deleted d/x, deleted f, created f/y
         d=2 f/y=2
         published @5: created z
         published @6: deleted d, created d/x, created f, deleted f/y
         d/x=1 f=1 z=1",
    );
}

#[test]
fn merge_names_every_conflict() {
    check_two(
        "file a 1\nfile b 1\nfile c 1",
        "put a 2\nput b 2\nput c 2",
        "merge",
        "put a 3\ndelete b\nput c 2",
        "rejected merge-conflict a sides=xxx lines=1-1|1-1|1-1; merge-conflict b sides=xx-",
        "a=2 b=2 c=2",
    );
}

#[test]
fn a_stale_dry_run_is_judged_like_the_real_thing() {
    check(
        r"file a 1
          file b 1
          publish
            put a 2
          publish base=@1 dry
            put b 2
          publish base=@1 rebase dry
            put b 2
          tree",
        "published @2: modified a
         rejected stale-base a active=@2 moved=a
         ready rebased: modified b
         a=2 b=1",
    );
}

#[test]
fn a_base_must_be_known() {
    check(
        r"file a 1
          publish base=@9
            put a 2
          publish base=0123456789
            put a 2
          publish base=@
            put a 2
          publish base=@-1
            put a 3
          publish base=@0
            put a 4",
        "failed unknown-revision
         failed unknown-revision
         published @2: modified a
         rejected stale-base a active=@2 moved=a
         failed unknown-revision",
    );
}
