//! What must be true of a workspace after every step, whatever the step was.
//!
//! Owns: the comparison of the tree on disk with a map of content, byte for byte and mode for mode,
//! and the checks of ACTIVE, log and journal. It reads the disk itself and trusts no answer for what it
//! can see.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use camino::Utf8Path;
use semaprax_daemon::store::spares::SPARES;
use semaprax_protocol::documents::VerificationStatus;
use semaprax_protocol::request::Log;
use semaprax_protocol::submission::EntryKind;

use crate::fixture::{Fixture, verification};
use crate::model::Content;

/// The modification time of a name, in nanoseconds since 1970.
pub fn mtime(place: &Utf8Path) -> i64 {
    let found = std::fs::symlink_metadata(place)
        .unwrap_or_else(|error| panic!("cannot look at `{place}`: {error}"));
    found.mtime() * 1_000_000_000 + found.mtime_nsec()
}

/// What a tree on disk holds; its modes must be those of a sealed generation.
pub fn tree_on_disk(files: &Utf8Path) -> Content {
    let mut content = Content::new();
    walk(files, "", &mut content);
    content
}

fn walk(directory: &Utf8Path, prefix: &str, content: &mut Content) {
    let mode = std::fs::symlink_metadata(directory)
        .unwrap()
        .permissions()
        .mode()
        & 0o7777;
    assert_eq!(mode, 0o555, "the mode of the directory `{directory}`");
    for entry in directory.read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        let place = entry.path();
        let path = format!("{prefix}{}", entry.file_name());
        let found = std::fs::symlink_metadata(place).unwrap();
        if found.is_dir() {
            walk(place, &format!("{path}/"), content);
        } else if found.is_symlink() {
            let target = std::fs::read_link(place).unwrap();
            let target = target.to_str().unwrap().as_bytes().to_vec();
            content.insert(path, (EntryKind::Symlink, target));
        } else {
            let kind = match found.permissions().mode() & 0o7777 {
                0o444 => EntryKind::File,
                0o555 => EntryKind::Executable,
                mode => panic!("`{place}` has mode {mode:o}"),
            };
            content.insert(path, (kind, std::fs::read(place).unwrap()));
        }
    }
}

/// Content in a form that a failure can be read in.
pub fn shown(content: &Content) -> Vec<String> {
    content
        .iter()
        .map(|(path, (kind, bytes))| {
            format!("{path} {} {}", kind.word(), crate::fixture::escape(bytes))
        })
        .collect()
}

/// ACTIVE names a whole tree on disk that is `expect`, and the log is complete.
#[track_caller]
pub fn check_active(fixture: &Fixture, expect: &Content) {
    let text = std::fs::read_to_string(fixture.state("ACTIVE")).unwrap();
    let active: serde_json::Value = serde_json::from_str(&text).unwrap();
    let (seq, revision) = fixture.active();
    assert_eq!(active["seq"], seq.get());
    assert_eq!(active["revision"], revision.to_string());
    assert_eq!(text.lines().count(), 1);
    assert!(text.ends_with('\n'), "ACTIVE ends with a line feed");
    let found = tree_on_disk(&fixture.files_of(&revision));
    assert_eq!(shown(&found), shown(expect), "the tree of ACTIVE on disk");
    check_log(fixture);
}

/// Every number from 1 to ACTIVE's has its publication, each naming the one before, times ascending.
#[track_caller]
pub fn check_log(fixture: &Fixture) {
    let page = fixture.ask(Log {
        limit: None,
        before: None,
        path: None,
        author: None,
    });
    let page = page.unwrap();
    let (active, revision) = fixture.active();
    assert_eq!(page.entries.len() as u64, active.get());
    assert_eq!(page.entries[0].revision, revision);
    for pair in page.entries.windows(2) {
        assert_eq!(pair[0].seq.previous(), Some(pair[1].seq));
        assert_eq!(pair[0].parent, Some(pair[1].revision));
        assert!(pair[0].published_at > pair[1].published_at, "times ascend");
    }
    assert_eq!(page.entries.last().unwrap().parent, None);
}

/// All that can be checked without a model: ACTIVE on disk is what the store says, `verify --deep`
/// finds nothing, and nothing but spare trees is left in `staging/`.
#[track_caller]
pub fn check_whole(fixture: &mut Fixture) {
    let stored = fixture.stored("@").unwrap();
    check_active(fixture, &stored);
    let found = fixture.verify(true, false);
    assert_eq!(
        found.status,
        VerificationStatus::Ok,
        "{}",
        verification(&found)
    );
    let staged = fixture.state("staging").read_dir_utf8().unwrap();
    let staged: Vec<_> = staged
        .map(|entry| entry.unwrap().file_name().to_owned())
        .collect();
    assert!(are_spares(&staged), "left in staging: {staged:?}");
}

/// Whether the names in `staging/` are those of spare trees, and no more than are kept.
pub fn are_spares(names: &[String]) -> bool {
    names.len() <= SPARES && names.iter().all(|name| name.starts_with("spare-"))
}
