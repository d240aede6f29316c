//! Patches as changes, against a made-up daemon that holds a few files.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use semaprax_protocol::Revision;
use semaprax_protocol::request::{ContentChunk, Request, Response};
use semaprax_protocol::submission::EntryKind;

use super::*;
use crate::fake::{Fake, answer, greeting, refusal};
use crate::sha256_of;

/// The files of the base.
fn files() -> BTreeMap<&'static str, (EntryKind, &'static str)> {
    BTreeMap::from([
        ("a", (EntryKind::File, "one\ntwo\nthree\n")),
        ("b", (EntryKind::File, "x\nx\nx\n")),
        ("run", (EntryKind::Executable, "#!/bin/sh\n")),
        ("link", (EntryKind::Symlink, "a")),
    ])
}

fn client() -> (Fake, Client) {
    let fake = Fake::new(vec![greeting(|id, request| {
        let Request::Content(wanted) = request else {
            panic!("{request:?}");
        };
        let Some((kind, content)) = files().get(wanted.path.as_str()).copied() else {
            return refusal(id, Code::NotFound);
        };
        answer(
            id,
            &Response::Content(ContentChunk {
                revision: Revision::from_bytes([1; 32]),
                kind,
                bytes: content.len() as u64,
                sha256: sha256_of(content.as_bytes()),
                offset: 0,
                data: BASE64.encode(content),
            }),
        )
    })]);
    let client = Client::connect(fake.options()).unwrap();
    (fake, client)
}

/// What a patch becomes: one line for each change, or the codes of what is wrong.
fn outcome(text: &str) -> String {
    let (_fake, mut client) = client();
    let files = patch::parse(text.as_bytes()).unwrap();
    let mut work = Work::new(&mut client, "@".to_owned(), &files);
    if let Err(refusal) = work.apply(&files) {
        let codes = refusal
            .diagnostics
            .iter()
            .map(|wrong| format!("{} {}", wrong.code, wrong.path.clone().unwrap_or_default()));
        return codes.collect::<Vec<_>>().join("; ");
    }
    let mut out = String::new();
    for change in work.changes() {
        if !out.is_empty() {
            out.push_str("; ");
        }
        let expected = |expect: &Option<Expect>| match expect {
            Some(expect) if expect.absent == Some(true) => " if absent",
            Some(_) => " if as it was",
            None => "",
        };
        match change {
            Change::Put {
                path,
                content,
                mode,
                expect,
                ..
            } => write!(
                out,
                "put {path} {:?} {:?}{}",
                content.unwrap(),
                mode.unwrap(),
                expected(&expect)
            ),
            Change::Delete { path, expect, .. } => {
                write!(out, "delete {path}{}", expected(&expect))
            }
            Change::Move {
                from, to, expect, ..
            } => write!(out, "move {from} {to}{}", expected(&expect)),
            Change::Symlink {
                path,
                target,
                expect,
                ..
            } => write!(out, "symlink {path} {target}{}", expected(&expect)),
            Change::Chmod {
                path, mode, expect, ..
            } => write!(out, "chmod {path} {mode:?}{}", expected(&expect)),
            Change::Edit { path, .. } => write!(out, "edit {path}"),
        }
        .unwrap();
    }
    out
}

fn check(text: &str, expect: &str) {
    assert_eq!(outcome(text), expect, "{text}");
}

#[test]
fn a_change_says_what_it_expects() {
    check(
        "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
        r#"put a "one\n2\nthree\n" File if as it was"#,
    );
    check(
        "--- a/run\n+++ b/run\n@@ -1 +1,2 @@\n #!/bin/sh\n+exit\n",
        r##"put run "#!/bin/sh\nexit\n" Executable if as it was"##,
    );
    check(
        "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n",
        r#"put new "n\n" File if absent"#,
    );
    check(
        "--- a/a\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n",
        "delete a if as it was",
    );
}

#[test]
fn modes_links_and_moves() {
    check(
        "diff --git a/run b/run\nold mode 100755\nnew mode 100644\n",
        "chmod run File if as it was",
    );
    check(
        "diff --git a/l2 b/l2\nnew file mode 120000\n--- /dev/null\n+++ b/l2\n@@ -0,0 +1 @@\n+run\n\\ No newline at end of file\n",
        "symlink l2 run if absent",
    );
    check(
        "diff --git a/a b/c\nsimilarity index 100%\nrename from a\nrename to c\n",
        "move a c if as it was",
    );
    check(
        "diff --git a/a b/c\nsimilarity index 60%\nrename from a\nrename to c\n--- a/a\n+++ b/c\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
        r#"move a c if as it was; put c "one\n2\nthree\n" File"#,
    );
    check(
        "diff --git a/a b/c\nsimilarity index 100%\ncopy from a\ncopy to c\n",
        r#"put c "one\ntwo\nthree\n" File if absent"#,
    );
}

#[test]
fn two_files_that_change_places() {
    check(
        "diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n\
         diff --git a/b b/a\nsimilarity index 100%\nrename from b\nrename to a\n",
        r#"put a "x\nx\nx\n" File if as it was; put b "one\ntwo\nthree\n" File if as it was"#,
    );
}

#[test]
fn parts_of_one_file_go_on_from_each_other() {
    check(
        "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n\
         --- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-1\n+I\n two\n",
        r#"put a "I\ntwo\nthree\n" File if as it was"#,
    );
}

#[test]
fn what_does_not_fit_is_refused_by_path() {
    check(
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-four\n+4\n",
        "edit-not-found a",
    );
    check(
        "--- a/b\n+++ b/b\n@@ -7 +7 @@\n-x\n+y\n",
        "edit-not-unique b",
    );
    check(
        "--- a/gone\n+++ b/gone\n@@ -1 +1 @@\n-x\n+y\n",
        "not-found gone",
    );
    check(
        "diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+n\n",
        "already-exists a",
    );
    check(
        "diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n",
        "already-exists b",
    );
    check(
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-four\n+4\n--- a/gone\n+++ b/gone\n@@ -1 +1 @@\n-x\n+y\n",
        "edit-not-found a; not-found gone",
    );
}
