//! A clock that is set back, or was far ahead once.
//!
//! Owns: what must be true whatever the clock does: times of publications strictly increase, trees carry
//! them, leases last as long as was asked for and no longer, trees are collected in the end.

use std::time::Duration;

use semaprax_protocol::documents::FindingStatus;
use semaprax_protocol::request::Log;
use semaprax_tests::fixture::Fixture;
use semaprax_tests::oracle::check_whole;

const HOUR: i64 = 3600;
const YEAR: i64 = 365 * 24 * HOUR;
/// The last second that fits into the form of a time.
const END: i64 = i64::MAX / 1_000_000_000;
const START: i64 = semaprax_tests::world::START_NANOS / 1_000_000_000;

fn times(fixture: &Fixture) -> Vec<i64> {
    let page = fixture.ask(Log {
        limit: None,
        before: None,
        path: None,
        author: None,
    });
    let newest_first = page.unwrap().entries.into_iter();
    let mut times: Vec<i64> = newest_first
        .map(|entry| entry.published_at.as_nanos())
        .collect();
    times.reverse();
    times
}

/// A publication after each setting of the clock; then all is right, also for a daemon that starts.
#[test]
fn times_strictly_increase_whatever_the_clock_does() {
    let check = |name: &str, settings: &[i64]| {
        let mut fixture = Fixture::with_files(&[("a", "0"), ("d/b", "0")]);
        for (number, &seconds) in settings.iter().enumerate() {
            fixture.test.clock.set_wall_by(seconds);
            let said = fixture.run(&format!("publish\n  put a {number}x"));
            assert!(said.starts_with("published"), "{name}: {said}");
            // Without a tick: the clock may stand still.
            let said = fixture.run(&format!("publish\n  put d/b {number}y"));
            assert!(said.starts_with("published"), "{name}: {said}");
        }
        let told = times(&fixture);
        assert_eq!(told.len(), 1 + 2 * settings.len());
        assert!(told.is_sorted_by(|a, b| a < b), "{name}: {told:?}");
        check_whole(&mut fixture);
        fixture.close();
        fixture.test.clock.reboot(Some("boot-two"));
        fixture.open().unwrap();
        check_whole(&mut fixture);
        assert_eq!(times(&fixture), told, "{name}");
    };
    check("an hour back", &[0, -HOUR, 0]);
    check("back to before 1970", &[0, -80 * YEAR, 0]);
    check("a hundred years ahead once", &[100 * YEAR, -100 * YEAR, 0]);
    check(
        "to the end of time and back",
        &[END - START - 10, -(END - START - 10), 0],
    );
    check("to and fro", &[YEAR, -2 * YEAR, YEAR, HOUR, -HOUR]);
}

/// While the clock is behind the last publication, `doctor` says so.
#[test]
fn a_clock_behind_the_last_publication_is_told() {
    let mut fixture = Fixture::with_files(&[("a", "0")]);
    fixture.test.clock.set_wall_by(YEAR);
    fixture.run("publish\n  put a 1");
    let finding = |fixture: &Fixture| {
        let world = &fixture.test.world;
        let health = semaprax_daemon::workspace::doctor(world, &fixture.root, "/nowhere/s".into());
        health
            .findings
            .into_iter()
            .find(|finding| finding.check == "clock")
            .unwrap()
    };
    assert_eq!(finding(&fixture).status, FindingStatus::Ok);
    fixture.test.clock.set_wall_by(-YEAR);
    let told = finding(&fixture);
    assert_eq!(told.status, FindingStatus::Warning);
    assert!(told.fix.is_some(), "{told:?}");
}

/// A tree that was made while the clock was ahead is not young for as long as it was ahead by.
#[test]
fn trees_of_a_wrong_clock_are_collected() {
    let mut fixture = Fixture::with_files(&[("a", "0")]);
    fixture.config.retention.trees = 1;
    fixture.close();
    fixture.open().unwrap();
    fixture.test.clock.set_wall_by(50 * YEAR);
    fixture.run("publish\n  put a 1");
    fixture.test.clock.set_wall_by(-50 * YEAR);
    fixture.run("publish\n  put a 2");
    let second = fixture.files_of(&fixture.revision(2));
    fixture.run("gc age=600 keep=1");
    assert!(second.exists(), "its age begins now");
    fixture.test.clock.advance(Duration::from_mins(11));
    fixture.run("gc age=600 keep=1");
    assert!(!second.exists(), "it is old enough by now");
    check_whole(&mut fixture);
}

/// A detached lease is counted on the clock that nobody sets. Across a start of the daemon only the
/// other clock is left: set back, it does not make the lease longer than what was asked for.
#[test]
fn leases_do_not_grow_when_the_clock_is_set_back() {
    let check = |seconds: i64, lives: bool| {
        let mut fixture = Fixture::with_files(&[("a", "0")]);
        fixture.run("lease held @1 ttl=600\npublish\n  put a 1");
        fixture.close();
        fixture.test.clock.set_wall_by(seconds);
        fixture.open().unwrap();
        assert_eq!(fixture.status().leases, u64::from(lives), "{seconds}");
        fixture.test.clock.advance(Duration::from_secs(601));
        assert_eq!(fixture.status().leases, 0, "{seconds}");
        check_whole(&mut fixture);
    };
    check(0, true);
    check(-10 * YEAR, true);
    // Nothing tells that the clock is wrong and not the time over.
    check(10 * YEAR, false);
}
