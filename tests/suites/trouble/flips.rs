//! Single bits that flip, anywhere in the files that answers come from.
//!
//! Owns: the choice of the bits, seeded and spread over every kind of page, and what must be true after each:
//! every reading command gives the answer it gave before, or a refusal that names the damage.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_daemon::workspace::{Holder, verify_unopened};
use semaprax_protocol::Code;
use semaprax_protocol::request::Verify;
use semaprax_tests::fixture::{Fixture, verification};
use semaprax_tests::sim::Chance;

use crate::cases::{active, object};
use crate::pages::{self, Kind};
use crate::scene::{
    self, Answers, DATABASE, Kept, LOG, compare, from_daemon, from_disk, write_over,
};

const SEED: u64 = 20_261_130;
/// Flips for each kind of place at least.
const LEAST: usize = 10;

fn seed() -> u64 {
    let given = std::env::var("SEMAPRAX_SEED").ok();
    let seed = given.and_then(|text| text.parse().ok()).unwrap_or(SEED);
    println!("seed {seed}");
    seed
}

/// How long a test goes on beyond the least; `SEMAPRAX_TROUBLE_SECONDS` wins over what fits into every run.
fn time(seconds: u64) -> Duration {
    let given = std::env::var("SEMAPRAX_TROUBLE_SECONDS").ok();
    let given = given.and_then(|text| text.parse().ok());
    Duration::from_secs(given.unwrap_or(seconds))
}

/// One file, and where in it each kind lies.
struct Target {
    place: Utf8PathBuf,
    kinds: BTreeMap<Kind, Vec<Range<usize>>>,
}

impl Target {
    fn whole(place: &Utf8Path, kind: Kind) -> Self {
        let length = usize::try_from(std::fs::metadata(place).unwrap().len()).unwrap();
        Self {
            place: place.to_owned(),
            kinds: BTreeMap::from([(kind, std::iter::once(0..length).collect())]),
        }
    }
}

/// A bit of a file that was flipped.
struct Flip {
    kind: Kind,
    byte: usize,
    bit: usize,
}

impl Flip {
    /// One in a range; mostly where there is something at all.
    fn choose(chance: &mut Chance, kind: Kind, ranges: &[Range<usize>], whole: &[u8]) -> Self {
        let range = &ranges[chance.index(ranges.len())];
        let mut byte = range.start + chance.index(range.len());
        for _ in 0..chance.index(16) {
            if whole[byte] != 0 {
                break;
            }
            byte = range.start + chance.index(range.len());
        }
        let bit = chance.index(8);
        Self { kind, byte, bit }
    }

    fn apply(&self, place: &Utf8Path, whole: &[u8]) {
        let mut damaged = whole.to_vec();
        damaged[self.byte] ^= 1 << self.bit;
        write_over(place, &damaged);
    }
}

/// How many flips there were of each kind, and how many of them some reader noticed.
type Tally = BTreeMap<Kind, (usize, usize)>;

/// Flips bits of each kind in turn until the time is up; after each `look` says how many readers noticed, or
/// what is wrong.
fn flip_all(
    fixture: &mut Fixture,
    target: &Target,
    seconds: u64,
    tally: &mut Tally,
    mut look: impl FnMut(&mut Fixture) -> Result<usize, String>,
) {
    let kept = Kept::database(fixture);
    let whole = std::fs::read(&target.place).unwrap();
    let mut chance = Chance::new(seed());
    let start = Instant::now();
    let mut wrongs = Vec::new();
    for round in 0.. {
        if round >= LEAST && start.elapsed() > time(seconds) {
            break;
        }
        for (kind, ranges) in &target.kinds {
            let flip = Flip::choose(&mut chance, *kind, ranges, &whole);
            kept.restore();
            flip.apply(&target.place, &whole);
            let entry = tally.entry(*kind).or_default();
            entry.0 += 1;
            match look(fixture) {
                Ok(noticed) => entry.1 += usize::from(noticed > 0),
                Err(wrong) => {
                    let Flip { kind, byte, bit } = flip;
                    wrongs.push(format!("{kind:?}, bit {bit} of byte {byte}: {wrong}"));
                }
            }
        }
    }
    write_over(&target.place, &whole);
    kept.restore();
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
}

fn report(tally: &Tally, expected: &[Kind]) {
    for (kind, (flips, noticed)) in tally {
        println!("{kind:?}: {flips} flips, {noticed} noticed");
    }
    for kind in expected {
        let flips = tally.get(kind).map_or(0, |found| found.0);
        assert!(flips >= LEAST, "{kind:?}: only {flips} flips");
    }
}

fn database(fixture: &Fixture) -> Target {
    let place = fixture.state(DATABASE);
    let kinds = pages::of_database(&std::fs::read(&place).unwrap());
    Target { place, kinds }
}

#[test]
fn a_flipped_bit_of_the_database_gives_no_wrong_answer() {
    let mut fixture = scene::made();
    let before = from_disk(&fixture);
    let mut tally = Tally::new();
    let target = database(&fixture);
    flip_all(&mut fixture, &target, 8, &mut tally, |fixture| {
        compare(&before, &from_disk(fixture))
    });
    report(&tally, &pages::OF_DATABASE);
}

/// A workspace as a daemon leaves it that is killed: letting go of it here would fold the log in.
fn killed(script: &str) -> Fixture {
    let mut fixture = scene::made();
    fixture.open().unwrap();
    let said = fixture.run(script);
    assert!(!said.contains("failed"), "{said}");
    let left = Kept::database(&fixture);
    fixture.kill();
    left.restore();
    // What is left is read as a log that was not closed: its index is made anew.
    let index = fixture.state(scene::LOG_INDEX);
    std::fs::remove_file(index).unwrap();
    fixture
}

/// In the first the whole log is newer than the database; in the second most of it was folded in, so
/// that a log that ends early leads back to older pages.
#[test]
fn a_flipped_bit_of_the_log_gives_no_wrong_answer() {
    let mut tally = Tally::new();
    for script in [
        "publish\n  put log one\npublish\n  put d1/e0/f7 log\n  put d2/x two",
        "publish\n  put log one\nidle\npublish\n  put d1/e0/f7 log\nidle\npublish\n  put d2/x two\nidle",
    ] {
        let mut fixture = killed(script);
        let before = from_disk(&fixture);
        let place = fixture.state(LOG);
        let kinds = pages::of_log(&std::fs::read(&place).unwrap());
        let target = Target { place, kinds };
        flip_all(&mut fixture, &target, 3, &mut tally, |fixture| {
            compare(&before, &from_disk(fixture))
        });
    }
    report(
        &tally,
        &[Kind::LogHeader, Kind::LogFrameHeader, Kind::LogFrame],
    );
}

#[test]
fn a_flipped_bit_of_the_other_files_gives_no_wrong_answer() {
    let mut fixture = scene::small();
    let before = from_disk(&fixture);
    let mut tally = Tally::new();
    for (place, kind) in [
        (fixture.state("ACTIVE"), Kind::Active),
        (active(&fixture).join("manifest.json"), Kind::Manifest),
        (object(&fixture), Kind::Object),
    ] {
        let target = Target::whole(&place, kind);
        flip_all(&mut fixture, &target, 2, &mut tally, |fixture| {
            let noticed = compare(&before, &from_disk(fixture))?;
            let found = told(fixture, false)?;
            // Readers of the store look at no manifest; whoever verifies finds it.
            match kind {
                Kind::Manifest if found == "damaged: manifest" => Ok(1),
                Kind::Object if found == "damaged: blob" && noticed > 0 => Ok(1),
                Kind::Active if (noticed == 0) == (found == "ok") => Ok(noticed),
                _ => Err(format!("verify says {found}, {noticed} noticed")),
            }
        });
    }
    report(&tally, &[Kind::Active, Kind::Manifest, Kind::Object]);
}

/// What `verify --deep` says; a refusal must be a named one.
fn told(fixture: &Fixture, repair: bool) -> Result<String, String> {
    let holder = Holder {
        socket: "/nowhere/socket".into(),
        pid: 1,
    };
    let params = Verify {
        deep: true,
        repair,
        directory: None,
    };
    match verify_unopened(&fixture.test.world, &fixture.root, &holder, &params) {
        Ok(found) => Ok(verification(&found)),
        Err(refusal) => named(refusal.code()),
    }
}

fn named(code: Code) -> Result<String, String> {
    match code {
        Code::WorkspaceDamaged | Code::StoreVersion | Code::Io => Ok(code.word().to_owned()),
        other => Err(format!("refused with {other}")),
    }
}

/// Whatever the damage: a repair does not make it worse, and what a daemon answers afterwards is right.
#[test]
fn after_a_repair_of_a_flipped_bit_no_answer_is_wrong() {
    let mut fixture = scene::small();
    let before = from_disk(&fixture);
    let active = Kept::of([fixture.state("ACTIVE"), object(&fixture)]);
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    let mut tally = Tally::new();
    crate::cases::sql(
        &fixture,
        "CREATE TABLE x AS SELECT randomblob(20000); DROP TABLE x",
    );
    let target = database(&fixture);
    let trees = crate::cases::Trees::of(&fixture);
    flip_all(&mut fixture, &target, 7, &mut tally, |fixture| {
        let noticed = repaired(fixture, &before, &mut outcomes);
        fixture.kill();
        active.restore();
        trees.restore(fixture);
        noticed
    });
    for (outcome, count) in &outcomes {
        println!("{count} x {outcome}");
    }
    report(&tally, &[Kind::TableLeaf, Kind::IndexLeaf, Kind::Header]);
}

/// A page of a table that says it has a row less than it has, the last one: it looks like a good page.
#[test]
fn a_page_that_lost_its_last_row_gives_no_wrong_answer() {
    let mut fixture = scene::small();
    let before = from_disk(&fixture);
    let kept = Kept::database(&fixture);
    let active = Kept::of([fixture.state("ACTIVE"), object(&fixture)]);
    let trees = crate::cases::Trees::of(&fixture);
    let target = database(&fixture);
    let whole = std::fs::read(&target.place).unwrap();
    let size = pages::page_bytes(&whole);
    let page_of = |range: &Range<usize>| range.start / size * size;
    let leaves: BTreeSet<usize> = target.kinds[&Kind::TableLeaf].iter().map(page_of).collect();
    let mut outcomes = BTreeMap::new();
    let mut wrongs = Vec::new();
    let mut shortened = 0;
    for page in leaves.into_iter().filter(|page| *page > 0) {
        let count = u16::from_be_bytes([whole[page + 3], whole[page + 4]]);
        let Some(fewer) = count.checked_sub(1) else {
            continue;
        };
        let mut damaged = whole.clone();
        damaged[page + 3..page + 5].copy_from_slice(&fewer.to_be_bytes());
        write_over(&target.place, &damaged);
        let found = compare(&before, &from_disk(&fixture))
            .and_then(|_| repaired(&mut fixture, &before, &mut outcomes));
        match found {
            Ok(noticed) => assert!(noticed > 0, "page at {page}: nobody noticed"),
            Err(wrong) => wrongs.push(format!("page at {page}: {wrong}")),
        }
        fixture.kill();
        active.restore();
        trees.restore(&mut fixture);
        kept.restore();
        shortened += 1;
    }
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
    assert!(shortened >= 8, "only {shortened} pages");
}

fn repaired(
    fixture: &mut Fixture,
    before: &Answers,
    outcomes: &mut BTreeMap<String, usize>,
) -> Result<usize, String> {
    let found = told(fixture, true)?;
    let status = found.split(':').next().unwrap().to_owned();
    let opened = fixture.open();
    let state = match &opened {
        Ok(()) => "opens".to_owned(),
        Err(refusal) => named(refusal.code())?,
    };
    *outcomes
        .entry(format!("{status}, then {state}"))
        .or_default() += 1;
    if opened.is_err() {
        return Ok(1);
    }
    let mut before = before.clone();
    // A lease that could not be believed was taken away, an identity given anew: `status` tells of both.
    before.remove("status");
    let lost = compare(&before, &from_daemon(fixture))
        .map_err(|wrong| format!("after the repair ({found}): {wrong}"))?;
    if status != "damaged" && lost > 0 {
        return Err(format!("{found}, but {lost} answers are refused"));
    }
    Ok(usize::from(status != "ok"))
}
