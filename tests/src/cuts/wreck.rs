//! What a power cut leaves, and what must be true of it.
//!
//! Owns: the copy with what had been promised when it was made (`Wreck`), and the judgement: mounted as a
//! machine does at its start, read without a daemon, opened by a daemon of another boot, asked everything.

use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use semaprax_protocol::Code;
use semaprax_protocol::documents::VerificationStatus;

use super::bench::{Bench, Site};
use super::tally::Tally;
use crate::images::{Image, Kind};
use crate::torture::account::{Account, Counts, Fate, Sent};
use crate::torture::chance::Chance;
use crate::torture::check::{Check, look_from_disk};
use crate::torture::history::History;
use crate::torture::lab::{Lab, pause, read_tree};
use crate::torture::readers::active;
use crate::torture::rounds::end_of;
use crate::torture::{During as _, Outcome, Violation, locked, story, violation};

/// Wrecks judged at once.
const JUDGES: usize = 2;
/// The longest time until a cut in a recovery.
const RECOVERY: u64 = 40;
/// The boot after the cut.
const AFTER: &str = "after-the-cut";
/// The boot after the cut in the recovery.
const AFTER_THAT: &str = "after-the-second-cut";

/// The copy, and the promises.
#[derive(Debug)]
pub(super) struct Wreck {
    /// What is to be repeated to see it again.
    pub(super) name: String,
    /// Where it was made, for the figures.
    pub(super) moment: &'static str,
    pub(super) image: Image,
    /// What had been promised.
    pub(super) account: Account,
    /// Whether there had to be a workspace already.
    pub(super) is_workspace: bool,
    /// Whether the machine starts anew: the boot is another one.
    pub(super) reboots: bool,
    /// Whether the cut takes ACTIVE away, as a disk might that loses a block.
    pub(super) loses_active: bool,
    /// Of how many of the newest publications content is kept; of all without it.
    pub(super) kept: Option<u64>,
    /// Whether the recovery is cut as well.
    pub(super) again: Option<Chance>,
}

impl Wreck {
    /// A cut while these promises hold: nobody can be promised more until the copy is made.
    pub(super) fn cut(
        bench: &Bench,
        site: &Site,
        account: &Mutex<Account>,
        name: String,
        moment: &'static str,
    ) -> Outcome<Self> {
        let account = locked(account);
        let image = bench.copy(&site.image)?;
        let mut account = account.clone();
        // What is read without a daemon between the rename of ACTIVE and the sync of its directory is no
        // promise: nobody had been answered.
        account.seen.clear();
        account.counts = Counts::default();
        Ok(Self {
            name,
            moment,
            image,
            account,
            is_workspace: true,
            reboots: true,
            loses_active: false,
            kept: None,
            again: None,
        })
    }
}

/// Judges all of them, two at a time. Answers the first that does not hold.
pub(super) fn judge_all(bench: &Bench, wrecks: Vec<Wreck>, tally: &mut Tally) -> Outcome<()> {
    let queue = Mutex::new(wrecks.into_iter());
    let found = Mutex::new((tally, Ok(())));
    std::thread::scope(|scope| {
        for _ in 0..JUDGES {
            scope.spawn(|| {
                loop {
                    if locked(&found).1.is_err() {
                        return;
                    }
                    let Some(wreck) = locked(&queue).next() else {
                        return;
                    };
                    let mut own = Tally::default();
                    let outcome = judge(bench, wreck, &mut own);
                    let mut found = locked(&found);
                    found.0.add(&own);
                    if outcome.is_err() && found.1.is_ok() {
                        found.1 = outcome;
                    }
                }
            });
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner).1
}

/// Judges one, and keeps a copy of it when something is wrong.
pub(super) fn judge(bench: &Bench, wreck: Wreck, tally: &mut Tally) -> Outcome<()> {
    let name = wreck.name.clone();
    let keeps = std::env::var_os(KEEP).is_some();
    let pristine = keeps.then(|| bench.copy(&wreck.image)).transpose()?;
    let outcome = judged(bench, wreck, tally).during(|| name.clone());
    if let (Some(image), Err(_)) = (&pristine, &outcome) {
        keep(image, &name);
    }
    pristine
        .map_or(Ok(()), Image::remove)
        .during(|| "removing a copy".to_owned())?;
    outcome
}

/// Whether images are kept that do not hold.
const KEEP: &str = "SEMAPRAX_KEEP_IMAGES";

fn keep(image: &Image, name: &str) {
    let name: String = name
        .chars()
        .map(|letter| {
            if letter.is_alphanumeric() {
                letter
            } else {
                '-'
            }
        })
        .collect();
    let to = std::env::temp_dir().join(format!("spx-cut-{name}.img"));
    let mut copy = Command::new("cp");
    let copied = copy.arg("--sparse=always").arg(image.path()).arg(&to);
    if copied.status().is_ok_and(|status| status.success()) {
        eprintln!("kept for a look: {}", to.display());
    }
}

fn judged(bench: &Bench, wreck: Wreck, tally: &mut Tally) -> Outcome<()> {
    let Wreck {
        moment,
        image,
        mut account,
        is_workspace,
        reboots,
        loses_active,
        kept,
        mut again,
        ..
    } = wreck;
    let kind = image.kind();
    *tally.moments.entry(moment.to_owned()).or_default() += 1;
    tally.of(kind).cuts += 1;
    let boot = reboots.then_some(AFTER);
    let second = start(
        bench,
        image,
        |site, lab| {
            if !lab.state().join("store.db").exists() {
                if is_workspace {
                    return Err(violation("there is no workspace any more"));
                }
                tally.of(kind).unmade += 1;
                lab.init().during(|| "init again".to_owned())?;
            }
            tally.of(kind).torn += u64::from(is_torn(lab));
            if loses_active {
                restore(lab, &mut account)?;
            }
            let instant = again.as_mut().map(|chance| chance.below(RECOVERY * 1000));
            std::thread::scope(|scope| {
                let copy = instant.map(|instant| {
                    scope.spawn(move || {
                        pause(Duration::from_micros(instant), || false);
                        bench.copy(&site.image)
                    })
                });
                ask(lab, account.clone(), kept, kind, tally)?;
                copy.map(|copy| match copy.join() {
                    Ok(image) => image,
                    Err(_) => Err(violation("a copy panicked")),
                })
                .transpose()
            })
        },
        boot,
    )?;
    let second = match second {
        Start::Asked(second) => second,
        Start::Taken => {
            tally.of(kind).taken += 1;
            return Ok(());
        }
    };
    second.map_or(Ok(()), |image| {
        judge_again(bench, image, account, kept, tally)
    })
}

/// What a cut in the recovery from a cut left: no promise is less.
fn judge_again(
    bench: &Bench,
    image: Image,
    account: Account,
    kept: Option<u64>,
    tally: &mut Tally,
) -> Outcome<()> {
    let kind = image.kind();
    tally.of(kind).cuts += 1;
    tally.of(kind).in_recovery += 1;
    *tally.moments.entry("in recovery".to_owned()).or_default() += 1;
    start(
        bench,
        image,
        |_, lab| ask(lab, account, kept, kind, tally),
        Some(AFTER_THAT),
    )
    .during(|| "cut again in recovery".to_owned())
    .map(|started| match started {
        Start::Asked(()) => {}
        Start::Taken => tally.of(kind).taken += 1,
    })
}

/// The machine starts again: the file system is mounted, `then` is done, everything is cleared away.
fn start<T>(
    bench: &Bench,
    image: Image,
    then: impl FnOnce(&Site, &Lab) -> Outcome<T>,
    boot: Option<&str>,
) -> Outcome<Start<T>> {
    let ordered = image
        .start_again()
        .during(|| "putting the file system in order".to_owned())?;
    let has_taken = has_taken_synced_bytes(&ordered);
    let site = bench.mount(image)?;
    let lab = bench.lab(&site, boot)?;
    let mut outcome = then(&site, &lab).map(Start::Asked);
    // No promise can be kept then, but this one: it is refused, and not answered wrongly.
    if has_taken && outcome.as_ref().is_err_and(is_damaged) {
        outcome = go_back(&lab).map(|()| Start::Taken);
    }
    let log = lab.log();
    drop(lab);
    site.clear()?;
    outcome.map_err(|error| {
        let log = end_of(&log);
        violation(format!("{error}\n--- end of the daemon's log\n{log}"))
    })
}

/// The way forward from there: the newest confirmed publication that is left, and a workspace that works.
fn go_back(lab: &Lab) -> Outcome<()> {
    let found = lab.restore().during(|| "verify --repair".to_owned())?;
    if found.status == VerificationStatus::Damaged {
        return Err(violation(format!("not repaired: {:?}", found.damage)));
    }
    lab.client()
        .map(drop)
        .during(|| "after a repair".to_owned())
}

/// Whether the check of a file system without a journal took bytes away that had been synced. When a
/// file grows, its block of extents and its inode are written one after the other; between the two the
/// last extent ends past the file, and the check then clears the whole of it, old bytes too.
fn has_taken_synced_bytes(ordered: &str) -> bool {
    ordered.contains("end of extent exceeds allowed value")
}

fn is_damaged(error: &Violation) -> bool {
    error.0.contains(&Code::WorkspaceDamaged.to_string())
}

/// How a start ended.
enum Start<T> {
    /// Everything was asked.
    Asked(T),
    /// The file system had lost what was synced, and the workspace was refused.
    Taken,
}

/// Everything that is asked after a kill, of a daemon that starts on what the cut left.
fn ask(
    lab: &Lab,
    mut account: Account,
    kept: Option<u64>,
    kind: Kind,
    tally: &mut Tally,
) -> Outcome<()> {
    let published = |sent: &&Sent| matches!(sent.fate, Fate::Published(..));
    let acknowledged = account.sent.values().filter(published).count() as u64;
    if lab.daemon().is_none() {
        look_from_disk(lab, &mut account)?;
    }
    let fresh = lab.daemon().is_none();
    let client = lab.client().during(|| "starting after a cut".to_owned())?;
    let mut history = History::new();
    Check {
        lab,
        account: &mut account,
        history: &mut history,
        client,
        known: 0,
        kept,
    }
    .everything(fresh, &[])?;
    let figures = tally.of(kind);
    figures.acknowledged += acknowledged;
    figures.found_published += account.counts.found_published;
    figures.found_unpublished += account.counts.found_unpublished;
    Ok(())
}

/// ACTIVE is gone: nothing is answered until `verify --repair` has gone back to what was confirmed.
fn restore(lab: &Lab, account: &mut Account) -> Outcome<()> {
    std::fs::remove_file(lab.state().join("ACTIVE")).during(|| "losing ACTIVE".to_owned())?;
    match lab.client() {
        Err(refusal) if refusal.code() == Code::WorkspaceDamaged => {}
        other => return Err(violation(format!("without ACTIVE: {other:?}"))),
    }
    let found = lab.restore().during(|| "verify --repair".to_owned())?;
    if found.status != VerificationStatus::Repaired {
        return Err(violation(format!("not repaired: {:?}", found.damage)));
    }
    let (tip, _) = active(lab).map_err(violation)?;
    let mut left_out = 0;
    for sent in account.sent.values_mut() {
        if matches!(sent.fate, Fate::Published(seq, _) if seq > tip) {
            // It may be sent again, as what was never answered.
            sent.fate = Fate::Unknown;
            left_out += 1;
        }
    }
    // Each turn confirms the one before.
    if left_out > 1 {
        return Err(violation(format!("{left_out} publications are left out")));
    }
    Ok(())
}

/// Whether the tree that ACTIVE names lost something.
fn is_torn(lab: &Lab) -> bool {
    let Ok((_, revision)) = active(lab) else {
        return false;
    };
    let tree = lab.state().join(format!("generations/{revision}/files"));
    read_tree(&tree).map_or(true, |files| story::read(&files).is_err())
}
