//! The operations of a submission, and each refusal they can give.

use semaprax_tests::fixture::{check, indented};

/// Publishes one submission on a tree of all kinds of things and compares the answer and what is there
/// afterwards.
#[track_caller]
fn check_one(changes: &str, answer: &str, tree: &str) {
    let script = format!(
        r"file a one
          file b one\ntwo\nthree\none\n
          exec bin/tool run
          file d/x x
          file d/e/y y
          link l a
          link dl d
          publish
{}
          tree",
        indented(changes, 12)
    );
    check(&script, &format!("{answer}\n{tree}"));
}

const TREE: &str = r"a=one b=one\ntwo\nthree\none\n bin/tool*=run d/e/y=y d/x=x dl->d l->a";

/// A submission that is refused: nothing is published, the tree stays.
#[track_caller]
fn check_refused(changes: &str, answer: &str) {
    check_one(changes, answer, TREE);
}

#[test]
fn put() {
    check_one(
        "put a two\n put new/deep/f three",
        "published @2: modified a, created new/deep/f",
        r"a=two b=one\ntwo\nthree\none\n bin/tool*=run d/e/y=y d/x=x dl->d l->a new/deep/f=three",
    );
    // Without a mode an existing file keeps its own; with one it gets that.
    check_one(
        "put bin/tool again\n putx a two\n putx new n",
        "published @2: modified a, modified bin/tool, created new",
        r"a*=two b=one\ntwo\nthree\none\n bin/tool*=again d/e/y=y d/x=x dl->d l->a new*=n",
    );
    check_one(
        "putf bin/tool run",
        "published @2: mode bin/tool",
        r"a=one b=one\ntwo\nthree\none\n bin/tool=run d/e/y=y d/x=x dl->d l->a",
    );
    // The link itself becomes a file; what it points to is not touched.
    check_one(
        "put l two",
        "published @2: modified l",
        r"a=one b=one\ntwo\nthree\none\n bin/tool*=run d/e/y=y d/x=x dl->d l=two",
    );
    check_one(
        r"put a \0\r\n\n",
        "published @2: modified a",
        r"a=\0\r\n\n b=one\ntwo\nthree\none\n bin/tool*=run d/e/y=y d/x=x dl->d l->a",
    );
    check_one(
        "put a",
        "published @2: modified a",
        r"a= b=one\ntwo\nthree\none\n bin/tool*=run d/e/y=y d/x=x dl->d l->a",
    );
    check_refused("put a one", "unchanged @1");
    check_refused("put d x", "rejected path-collision #0 d");
    check_refused(
        "put a/below x",
        "rejected path-collision #0 a/below found=a",
    );
    check_refused("put dl/x x", "rejected path-collision #0 dl/x found=dl");
    check_refused("put l/x x", "rejected path-collision #0 l/x found=l");
}

#[test]
fn edit() {
    check_one(
        "edit b two => 2",
        "published @2: modified b",
        r"a=one b=one\n2\nthree\none\n bin/tool*=run d/e/y=y d/x=x dl->d l->a",
    );
    // Each sees what the one before left, also within the same submission.
    check_one(
        r"edit b two => four
          edit b four\n =>
          edit b one\nthree => x",
        "published @2: modified b",
        r"a=one b=x\none\n bin/tool*=run d/e/y=y d/x=x dl->d l->a",
    );
    check_one(
        "edit bin/tool run => ran",
        "published @2: modified bin/tool",
        r"a=one b=one\ntwo\nthree\none\n bin/tool*=ran d/e/y=y d/x=x dl->d l->a",
    );
    check_refused("edit b four => x", "rejected edit-not-found #0 b");
    check_refused(
        "edit b one => x",
        "rejected edit-not-unique #0 b count=2 lines=1,4",
    );
    check_refused(
        "put new aaaa\n edit new aa => b",
        "rejected edit-not-unique #1 new count=3 lines=1",
    );
    check_refused("edit none x => y", "rejected not-found #0 none");
    check_refused("edit d x => y", "rejected path-collision #0 d");
    check_refused("edit l a => b", "rejected path-collision #0 l");
    check_refused(
        "edit dl/x x => b",
        "rejected path-collision #0 dl/x found=dl",
    );
    check_refused("edit b two => two", "unchanged @1");
    // The second is judged on what the first left.
    check_refused(
        "edit b two => 2\n edit b two => 2",
        "rejected edit-not-found #1 b",
    );
}

#[test]
fn delete() {
    check_one(
        "delete a\n delete l\n delete! d",
        "published @2: deleted a, deleted d/e/y, deleted d/x, deleted l",
        r"b=one\ntwo\nthree\none\n bin/tool*=run dl->d",
    );
    // A directory with nothing left in it is gone.
    check_one(
        "delete d/e/y\n put d/e now-a-file",
        "published @2: created d/e, deleted d/e/y",
        r"a=one b=one\ntwo\nthree\none\n bin/tool*=run d/e=now-a-file d/x=x dl->d l->a",
    );
    check_one(
        "delete a\n put a/below x",
        "published @2: deleted a, created a/below",
        r"a/below=x b=one\ntwo\nthree\none\n bin/tool*=run d/e/y=y d/x=x dl->d l->a",
    );
    check_refused("delete d", "failed invalid-submission #0 d");
    check_refused("delete none", "rejected not-found #0 none");
    check_refused(
        "delete a/below",
        "rejected path-collision #0 a/below found=a",
    );
    check_refused("delete dl/x", "rejected path-collision #0 dl/x found=dl");
    check_refused("delete! none", "rejected not-found #0 none");
}

#[test]
fn everything_can_be_deleted_and_put_again() {
    check(
        r"file d/a one
          publish
            delete! d
          tree
          publish
            put b two
          tree
          rollback @2
          rollback @1
          tree",
        r"published @2: deleted d/a

          published @3: created b
          b=two
          published @4: deleted b
          published @5: created d/a
          d/a=one",
    );
}

#[test]
fn rename() {
    check_one(
        "move a c\n move! d f/g",
        "published @2: renamed a -> c, renamed d/e/y -> f/g/e/y, renamed d/x -> f/g/x",
        r"b=one\ntwo\nthree\none\n bin/tool*=run c=one dl->d f/g/e/y=y f/g/x=x l->a",
    );
    // Move then edit, edit then move, move then chmod: one rename with two digests.
    check_one(
        "move b c\n edit c two => 2",
        "published @2: renamed b -> c",
        r"a=one bin/tool*=run c=one\n2\nthree\none\n d/e/y=y d/x=x dl->d l->a",
    );
    check_one(
        "edit b two => 2\n move b c\n chmod c executable",
        "published @2: renamed b -> c",
        r"a=one bin/tool*=run c*=one\n2\nthree\none\n d/e/y=y d/x=x dl->d l->a",
    );
    check_one(
        "move a c\n move c f",
        "published @2: renamed a -> f",
        r"b=one\ntwo\nthree\none\n bin/tool*=run d/e/y=y d/x=x dl->d f=one l->a",
    );
    // Two paths change places.
    check_one(
        "move a t\n move d/x a\n move t d/x",
        "published @2: modified a, modified d/x",
        r"a=x b=one\ntwo\nthree\none\n bin/tool*=run d/e/y=y d/x=one dl->d l->a",
    );
    check_one("move a c\n move c a", "unchanged @1", TREE);
    check_one(
        "move a c\n put a new",
        "published @2: modified a, created c",
        r"a=new b=one\ntwo\nthree\none\n bin/tool*=run c=one d/e/y=y d/x=x dl->d l->a",
    );
    check_one(
        "delete b\n move a b",
        "published @2: deleted a, modified b",
        r"b=one bin/tool*=run d/e/y=y d/x=x dl->d l->a",
    );
    check_refused("move a b", "rejected already-exists #0 b");
    check_refused("move a d", "rejected already-exists #0 d");
    check_refused("move a a", "rejected already-exists #0 a");
    check_refused("move! d/e d", "rejected already-exists #0 d");
    check_refused("move! d d/z", "failed invalid-submission #0 d/z");
    check_refused("move d f", "failed invalid-submission #0 d");
    check_refused("move none f", "rejected not-found #0 none");
    check_refused("move a b/c", "rejected path-collision #0 b/c found=b");
    check_refused("move dl/x f", "rejected path-collision #0 dl/x found=dl");
    check_refused("move a dl/f", "rejected path-collision #0 dl/f found=dl");
}

#[test]
fn symlink() {
    check_one(
        "link d/up ../a\n link a b\n link dangling nowhere",
        "published @2: modified a, created d/up, created dangling",
        r"a->b b=one\ntwo\nthree\none\n bin/tool*=run d/e/y=y d/up->../a d/x=x dangling->nowhere dl->d l->a",
    );
    check_one(
        "link l b",
        "published @2: modified l",
        r"a=one b=one\ntwo\nthree\none\n bin/tool*=run d/e/y=y d/x=x dl->d l->b",
    );
    check_refused("link n /etc/passwd", "failed path-refused #0 n");
    check_refused("link n ../x", "failed path-refused #0 n");
    check_refused("link d/n a/../../../x", "failed path-refused #0 d/n");
    check_refused("link n .git/config", "failed path-refused #0 n");
    check_refused("link n", "failed path-refused #0 n");
    check_refused("link d a", "rejected path-collision #0 d");
    check_refused("link a/n b", "rejected path-collision #0 a/n found=a");
    // The target is judged where the link ends up: a move can make a good one bad, and the reverse.
    check_refused("link d/n ../a\n move d/n n", "failed path-refused n");
    check_refused(
        "link d/e/n ../../a\n move! d/e f",
        "failed path-refused f/n",
    );
}

#[test]
fn chmod() {
    check_one(
        "chmod a executable\n chmod bin/tool file",
        "published @2: mode a, mode bin/tool",
        r"a*=one b=one\ntwo\nthree\none\n bin/tool=run d/e/y=y d/x=x dl->d l->a",
    );
    check_one(
        "edit b two => 2\n chmod b executable",
        "published @2: modified b",
        r"a=one b*=one\n2\nthree\none\n bin/tool*=run d/e/y=y d/x=x dl->d l->a",
    );
    check_refused("chmod a file", "unchanged @1");
    check_refused("chmod none file", "rejected not-found #0 none");
    check_refused("chmod d file", "rejected path-collision #0 d");
    check_refused("chmod l file", "rejected path-collision #0 l");
}

#[test]
fn contradictions() {
    check_refused("put a x\n put a y", "failed invalid-submission #1 a");
    check_refused("put a x\n delete a", "failed invalid-submission #1 a");
    check_refused("delete a\n link a b", "failed invalid-submission #1 a");
    check_refused("delete a\n delete a", "failed invalid-submission #1 a");
    check_refused("delete! d\n put d x", "failed invalid-submission #1 d");
    // A path that a move emptied or filled in between has another life.
    check_one(
        "put a x\n move a c\n put a y",
        "published @2: modified a, created c",
        r"a=y b=one\ntwo\nthree\none\n bin/tool*=run c=x d/e/y=y d/x=x dl->d l->a",
    );
    // All or nothing: the good change does not stay.
    check_refused("put a x\n delete none", "rejected not-found #1 none");
}

#[test]
fn expectations() {
    check_one(
        "put a two\n expect one\n put n new\n expect -",
        "published @2: modified a, created n",
        r"a=two b=one\ntwo\nthree\none\n bin/tool*=run d/e/y=y d/x=x dl->d l->a n=new",
    );
    check_refused(
        "put a two\n expect other",
        "rejected precondition-failed #0 a found=other",
    );
    check_refused(
        "put a two\n expect -",
        "rejected precondition-failed #0 a found=other",
    );
    check_refused(
        "put n two\n expect one",
        "rejected precondition-failed #0 n found=absent",
    );
    check_refused(
        "delete! d\n expect -",
        "rejected precondition-failed #0 d found=directory",
    );
    check_refused(
        "delete a\n expect two\n chmod b executable\n expect one\n link l a\n expect a\n move d/x n\n expect y",
        "rejected precondition-failed #0 a found=other; precondition-failed #1 b found=other; \
         precondition-failed #3 d/x found=other",
    );
    // After a move the path is expected to be what it was where it came from.
    check_one(
        r"move a c
          edit c one => 1
          expect one",
        "published @2: renamed a -> c",
        r"b=one\ntwo\nthree\none\n bin/tool*=run c=1 d/e/y=y d/x=x dl->d l->a",
    );
    check_one(
        r"move! d f
          edit f/x x => 1
          expect x",
        "published @2: renamed d/e/y -> f/e/y, renamed d/x -> f/x",
        r"a=one b=one\ntwo\nthree\none\n bin/tool*=run dl->d f/e/y=y f/x=1 l->a",
    );
}

#[test]
fn reads() {
    check_one(
        "put a two\n read b one\\ntwo\\nthree\\none\\n\n read none -\n read a/below -",
        "published @2: modified a",
        r"a=two b=one\ntwo\nthree\none\n bin/tool*=run d/e/y=y d/x=x dl->d l->a",
    );
    check_refused(
        "put n two\n read a two\n read none one\n read b -",
        "rejected precondition-failed a found=other; precondition-failed none found=absent; \
         precondition-failed b found=other",
    );
}

#[test]
fn changes_are_one_function_of_two_trees() {
    check(
        r"file a same
          file b same
          file c other
          publish
            delete a
            delete b
            put y same
            put z same
          show @2
          diff @1 @2
          diff @2 @1
          diff @1
          events 1
          publish
            move y q
            edit q same => more
          show @3
          diff @2 @3
          diff @1 @3
          events 1
          publish
            chmod c executable
          show @4",
        r"published @2: renamed a -> y, renamed b -> z
          @2 renamed a -> y, renamed b -> z
          renamed a -> y, renamed b -> z
          renamed y -> a, renamed z -> b
          renamed a -> y, renamed b -> z
          @2 renamed a -> y, renamed b -> z
          published @3: renamed y -> q
          @3 renamed y -> q
          renamed y -> q
          deleted b, created q, renamed a -> z
          @2 renamed a -> y, renamed b -> z; @3 renamed y -> q
          published @4: mode c
          @4 mode c",
    );
}
