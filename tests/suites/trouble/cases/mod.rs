//! The tables: what is damaged, and what is expected of it.

mod content;
mod database;
mod foreign;
mod pointer;
mod trees;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use semaprax_tests::fixture::Fixture;
use std::os::unix::fs::PermissionsExt as _;

pub use foreign::is_untouched;

use crate::damage::Case;

/// All rows of all tables.
pub fn all() -> Vec<&'static Case> {
    let tables = [
        pointer::CASES,
        database::CASES,
        content::CASES,
        trees::CASES,
        foreign::CASES,
    ];
    tables.into_iter().flatten().collect()
}

/// Takes whatever is there away, sealed or not.
pub fn remove(place: &Utf8Path) {
    let Ok(found) = std::fs::symlink_metadata(place) else {
        return;
    };
    if found.is_dir() {
        unseal(place);
        std::fs::remove_dir_all(place).unwrap();
    } else {
        std::fs::remove_file(place).unwrap();
    }
}

/// Makes a directory and all below it writable.
pub fn unseal(place: &Utf8Path) {
    set_mode(place, 0o755);
    for entry in place.read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            unseal(entry.path());
        }
    }
}

pub fn set_mode(place: &Utf8Path, mode: u32) {
    std::fs::set_permissions(place, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Puts a FIFO in its place.
pub fn fifo(place: &Utf8Path) {
    remove(place);
    let mode = Mode::from_raw_mode(0o600);
    mknodat(CWD, place.as_std_path(), FileType::Fifo, mode, 0).unwrap();
}

/// Puts a directory with a file in its place.
pub fn directory(place: &Utf8Path) {
    remove(place);
    std::fs::create_dir(place).unwrap();
    std::fs::write(place.join("inside"), "x").unwrap();
}

/// Puts a link to a copy of it outside in its place.
pub fn symlink(fixture: &Fixture, place: &Utf8Path) {
    let outside = fixture.beside("outside");
    if std::fs::symlink_metadata(place).is_ok() {
        std::fs::rename(place, &outside).unwrap();
    } else {
        std::fs::write(&outside, "x").unwrap();
    }
    std::os::unix::fs::symlink(&outside, place).unwrap();
}

/// Cuts a file to half its length.
pub fn truncate(place: &Utf8Path) {
    let content = std::fs::read(place).unwrap();
    crate::scene::write_over(place, &content[..content.len() / 2]);
}

/// Changes a byte in the middle of a file.
pub fn spoil(place: &Utf8Path) {
    let mut content = std::fs::read(place).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 0x10;
    crate::scene::write_over(place, &content);
}

/// The directory of what is ACTIVE.
pub fn active(fixture: &Fixture) -> Utf8PathBuf {
    let text = std::fs::read_to_string(fixture.state("ACTIVE")).unwrap();
    let active: serde_json::Value = serde_json::from_str(&text).unwrap();
    fixture
        .state("generations")
        .join(active["revision"].as_str().unwrap())
}

/// The first object.
pub fn object(fixture: &Fixture) -> Utf8PathBuf {
    let mut shards: Vec<_> = fixture.state("objects").read_dir_utf8().unwrap().collect();
    let shard = shards.remove(0).unwrap().into_path();
    let mut objects: Vec<_> = shard.read_dir_utf8().unwrap().collect();
    objects.remove(0).unwrap().into_path()
}

/// Changes the database behind the back of the daemon.
pub fn sql(fixture: &Fixture, sql: &str) {
    let connection = rusqlite::Connection::open(fixture.state("store.db")).unwrap();
    connection.execute_batch(sql).unwrap();
    connection.close().unwrap();
}

/// The trees on disk by their names, to make sure that they stay.
pub struct Trees {
    names: Vec<String>,
}

impl Trees {
    pub fn of(fixture: &Fixture) -> Self {
        Self {
            names: names(fixture),
        }
    }

    /// Takes away what a repair has made of a damaged workspace, and lets a daemon make the rest again.
    pub fn restore(&self, fixture: &mut Fixture) {
        let generations = fixture.state("generations");
        for name in names(fixture) {
            if !self.names.contains(&name) {
                remove(&generations.join(name));
            }
        }
        remove(&fixture.state("set-aside"));
    }
}

fn names(fixture: &Fixture) -> Vec<String> {
    let generations = fixture.state("generations").read_dir_utf8().unwrap();
    generations
        .map(|entry| entry.unwrap().file_name().to_owned())
        .collect()
}
