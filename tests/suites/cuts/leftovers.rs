//! Nothing stays mounted, whatever became of the process that mounted it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use semaprax_tests::images::{BASE, Kind, Place, can_mount};
use semaprax_tests::process::{daemons_below, until, until_true};

use crate::PROGRAM;

fn mounts_below(directory: &Path) -> usize {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap();
    text.matches(directory.to_str().unwrap()).count()
}

#[test]
fn what_a_killed_process_left_is_taken_away() {
    if !can_mount(&Kind::ALL) {
        return;
    }
    let base = tempfile::Builder::new()
        .prefix("spx-base-")
        .tempdir()
        .unwrap();
    let mut lab = Command::new(PROGRAM)
        .args(["--cuts", "1000", "--seed", "1"])
        .env(BASE, base.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // The shelf, and a file system with a daemon at work on it.
    until_true("the lab is at work", || {
        mounts_below(base.path()) >= 2 && !daemons_below(base.path()).is_empty()
    });
    lab.kill().unwrap();
    lab.wait().unwrap();
    assert!(mounts_below(base.path()) > 0);

    let place = Place::new_in(base.path()).unwrap();
    assert_eq!(mounts_below(base.path()), 0);
    assert_eq!(daemons_below(base.path()), [0; 0]);
    let left: Vec<_> = fs::read_dir(base.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    // One that is in use is not touched by the next.
    let other = Place::new_in(base.path()).unwrap();
    assert!(place.directory().exists());
    drop((place, other));
    until("nothing is left", || {
        fs::read_dir(base.path())
            .unwrap()
            .next()
            .is_none()
            .then_some(())
    });
}
