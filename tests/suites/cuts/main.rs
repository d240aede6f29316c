//! Power cuts of real file systems, in the form that fits into every run of the tests.
//!
//! `semaprax-torture --cuts 1000` is the long form, and `semaprax-torture --cuts 1 --omissions` leaves out each
//! sync in turn. All print their seed; `SEMAPRAX_SEED` repeats one here. They need root, loop devices
//! and the programs that make the file systems; without them they say so, and fail on CI.

mod images;
mod leftovers;

use std::path::Path;
use std::time::{Duration, Instant};

use semaprax_tests::cuts::Bench;
use semaprax_tests::cuts::moments;
use semaprax_tests::cuts::omissions::{self, OMISSIONS, Omission, When};
use semaprax_tests::cuts::rounds::{self, End};
use semaprax_tests::cuts::steps::{self, Scene};
use semaprax_tests::cuts::tally::Tally;
use semaprax_tests::images::{Kind, can_mount};

const PROGRAM: &str = env!("CARGO_BIN_EXE_semaprax-torture");
const SEED: u64 = 20_261_130;
/// How long the random cuts go on.
const ROUNDS: Duration = Duration::from_secs(25);
/// Fewer random cuts than this: the lab stands still. A busy machine of two cores makes 40.
const LEAST_CUTS: u64 = 20;

/// Fewer cuts at named steps than this: some step has no cut any more. There are 48.
const LEAST_STEPS: u64 = 40;

fn program() -> &'static Path {
    Path::new(PROGRAM)
}

fn seed() -> u64 {
    let given = std::env::var("SEMAPRAX_SEED").ok();
    let seed = given.and_then(|text| text.parse().ok()).unwrap_or(SEED);
    println!("seed {seed}");
    seed
}

#[test]
fn cuts_at_random_instants_lose_nothing() {
    if !can_mount(&Kind::ALL) {
        return;
    }
    let mut tally = Tally::default();
    let end = End {
        cuts: u64::MAX,
        at: Some(Instant::now() + ROUNDS),
        workspaces: Kind::ALL.len() as u64,
    };
    let outcome = rounds::run(program(), &Kind::ALL, seed(), 0, end, &mut tally);
    println!("{tally}");
    outcome.unwrap_or_else(|violation| panic!("{violation}"));
    let cuts = tally.cuts();
    assert!(cuts >= LEAST_CUTS, "only {cuts} cuts in {ROUNDS:?}");
    for kind in Kind::ALL {
        let figures = *tally.of(kind);
        assert!(figures.cuts > 0, "no cut of {}", kind.name());
        // Else the copies hold what was never synced, and show nothing.
        assert!(figures.torn > 0, "no torn tree on {}", kind.name());
    }
}

#[test]
fn cuts_at_chosen_moments_lose_nothing() {
    if !can_mount(&Kind::ALL) {
        return;
    }
    let bench = Bench::new(program(), &Kind::ALL).unwrap();
    let (seed, mut tally) = (seed(), Tally::default());
    for kind in Kind::ALL {
        for moment in moments::ALL {
            moment(&bench, kind, seed, &mut tally)
                .unwrap_or_else(|violation| panic!("{}: {violation}", kind.name()));
        }
    }
    println!("{tally}");
    assert_eq!(tally.cuts(), 16);
}

/// The long form has all scenes on all kinds.
#[test]
fn cuts_at_named_steps_lose_nothing() {
    if !can_mount(&Kind::ALL) {
        return;
    }
    let mut tally = Tally::default();
    let seed = seed();
    for (kind, scene) in [
        // Here a name once was durable before its directory.
        (Kind::Ext4WithoutJournal, Scene::Large),
        (Kind::Btrfs, Scene::Publish),
    ] {
        let bench = Bench::new(program(), &[kind]).unwrap();
        steps::run(&bench, kind, seed, scene, &mut tally)
            .unwrap_or_else(|violation| panic!("{violation}"));
    }
    println!("{tally}");
    let cuts = tally.cuts();
    assert!(cuts >= LEAST_STEPS, "only {cuts} cuts at named steps");
}

/// A few of the table, each on a file system that misses it without fail.
#[test]
fn a_sync_that_is_left_out_is_noticed() {
    if !can_mount(&Kind::ALL) {
        return;
    }
    let of = |when: When, sync: &str| -> Omission {
        let found = OMISSIONS
            .into_iter()
            .find(|omission| omission.when == when && omission.syncs.concat() == sync);
        found.unwrap_or_else(|| panic!("not in the table: {when:?} {sync}"))
    };
    let check = |kind: Kind, omissions: &[Omission]| {
        let bench = Bench::new(program(), &[kind]).unwrap();
        let noticed = omissions::run(&bench, omissions).unwrap();
        assert_eq!(noticed, omissions.len() as u64, "{}", kind.name());
    };
    let active = of(When::Publish, "sync-file ACTIVE.next");
    let name = of(When::Publish, "sync-directory state");
    let object = of(When::Publish, "sync-directory objects/R");
    let opening = of(When::Open, "sync-file ACTIVE.next");
    let boot = of(When::Boot, "");
    check(Kind::Ext4WithoutJournal, &[active, name, object]);
    check(Kind::Xfs, &[opening, boot]);
}

#[test]
fn every_sync_is_in_the_table() {
    if !can_mount(&[Kind::Ext4]) {
        return;
    }
    let bench = Bench::new(program(), &[Kind::Ext4]).unwrap();
    let unknown = omissions::unknown(&bench, Kind::Ext4).unwrap();
    assert!(unknown.is_empty(), "not in the table: {unknown:?}");
}
