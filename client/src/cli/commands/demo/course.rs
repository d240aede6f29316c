//! How far the demo is: what its threads share.
//!
//! Owns: the counts, when it is enough, and waiting for something to happen.
//! Never: talks to a daemon.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use semaprax_protocol::documents::{Receipt, ReceiptStatus};
use semaprax_protocol::{Code, Refusal, Revision, Seq};

use crate::error;
use crate::files::{Deadline, Stopwatch};

/// Publications that are enough.
pub(super) const PUBLICATIONS: u64 = 200;
/// Reads that are enough.
pub(super) const READS: u64 = 100;
/// How long writers and readers may take for it.
const LONGEST: Duration = Duration::from_secs(45);
/// Problems that are told; the others are counted.
const TOLD: usize = 20;

/// What a publication was, as its receipt has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Published {
    /// The generation.
    pub(super) revision: Revision,
    /// How many paths it changed.
    pub(super) changes: u64,
}

/// The counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    /// The publications, as their receipts had them.
    pub(super) published: BTreeMap<Seq, Published>,
    /// How long each took, in microseconds.
    pub(super) publish_us: Vec<u64>,
    /// Submissions refused as stale.
    pub(super) stale: u64,
    /// Submissions refused because of a merge conflict.
    pub(super) conflicts: u64,
    /// Submissions rebased.
    pub(super) rebases: u64,
    /// Submissions merged.
    pub(super) merges: u64,
    /// Whole trees read.
    pub(super) reads: u64,
    /// Of these, with a publication meanwhile.
    pub(super) spanned: u64,
    /// Mixed trees.
    pub(super) mixes: u64,
    /// Events the watcher was told.
    pub(super) watched: u64,
    /// Trees the collector removed.
    pub(super) collected: u64,
    /// What was wrong.
    pub(super) problems: Vec<String>,
    failure: Option<Refusal>,
    interrupted: bool,
}

impl Tally {
    /// Publications so far.
    pub(super) fn publications(&self) -> u64 {
        self.published.len() as u64
    }

    fn is_enough(&self) -> bool {
        self.publications() >= PUBLICATIONS && self.reads >= READS
    }

    fn is_broken(&self) -> bool {
        self.interrupted || self.failure.is_some() || self.mixes > TOLD as u64
    }

    /// Takes down something that is not as it should be.
    pub(super) fn problem(&mut self, text: String) {
        if self.problems.len() < TOLD {
            self.problems.push(text);
        }
    }
}

/// What the threads of the demo share.
#[derive(Debug)]
pub(super) struct Course {
    tally: Mutex<Tally>,
    changed: Condvar,
    numbers: AtomicU64,
}

/// The time that writers and readers have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance(Deadline);

impl Allowance {
    /// From now on.
    pub(super) fn start() -> Self {
        Self(Deadline::after(LONGEST))
    }
}

impl Course {
    /// Before anything happened.
    pub(super) fn new() -> Self {
        Self {
            tally: Mutex::new(Tally::default()),
            changed: Condvar::new(),
            numbers: AtomicU64::new(2),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tally> {
        // Counts are whole after every statement, whoever panicked between two of them.
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a group that no other submission has.
    pub(super) fn fresh_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes something down, and wakes who waits for it.
    pub(super) fn note(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Takes down what became of a submission that took `taken`.
    pub(super) fn note_receipt(&self, receipt: &Receipt, taken: Stopwatch) {
        let taken = u64::try_from(taken.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.note(|tally| {
            let (ReceiptStatus::Published, Some(seq), Some(revision)) =
                (receipt.status, receipt.seq, receipt.revision)
            else {
                return tally.problem(format!(
                    "submission {} changed files and was answered with `{:?}`",
                    receipt.submission, receipt.status
                ));
            };
            tally.publish_us.push(taken);
            tally.rebases += u64::from(receipt.rebased);
            tally.merges += u64::from(!receipt.merged.is_empty());
            let changes = receipt.changes.len() as u64;
            let published = Published { revision, changes };
            if tally.published.insert(seq, published).is_some() {
                tally.problem(format!("publication {seq} was promised to two submissions"));
            }
        });
    }

    /// Takes down a tree that is not one generation.
    pub(super) fn note_mix(&self, detail: String) {
        self.note(|tally| {
            tally.mixes += 1;
            tally.problem(detail);
        });
    }

    /// Ends the demo because of an error.
    pub(super) fn fail(&self, refusal: Refusal) {
        self.note(|tally| {
            tally.failure.get_or_insert(refusal);
        });
    }

    /// Ends the demo because a person wants it.
    pub(super) fn interrupt(&self) {
        self.note(|tally| tally.interrupted = true);
    }

    /// Whether writers and readers go on.
    pub(super) fn goes_on(&self, allowance: Allowance) -> bool {
        let tally = self.lock();
        !tally.is_enough() && !tally.is_broken() && allowance.0.remaining().is_some()
    }

    /// `cancelled` once a person wanted the end, or the error that ended it.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let tally = self.lock();
        if let Some(refusal) = &tally.failure {
            return Err(refusal.clone());
        }
        if tally.interrupted {
            return error::refuse(Code::Cancelled, "the demo was interrupted");
        }
        Ok(())
    }

    /// Waits until `is_true`, the end of the demo, or the end of `within`; the counts then.
    pub(super) fn await_until(
        &self,
        within: Duration,
        mut is_true: impl FnMut(&Tally) -> bool,
    ) -> Tally {
        let (tally, _) = self
            .changed
            .wait_timeout_while(self.lock(), within, |tally| {
                !tally.is_broken() && !is_true(tally)
            })
            .unwrap_or_else(PoisonError::into_inner);
        tally.clone()
    }

    /// Waits until there are more publications than `than`; whether there are.
    pub(super) fn await_more(&self, than: u64, within: Duration) -> bool {
        let (tally, _) = self
            .changed
            .wait_timeout_while(self.lock(), within, |tally| {
                !tally.is_broken() && tally.publications() <= than
            })
            .unwrap_or_else(PoisonError::into_inner);
        tally.publications() > than
    }

    /// Publications so far.
    pub(super) fn publications(&self) -> u64 {
        self.lock().publications()
    }

    /// The counts.
    pub(super) fn tally(&self) -> Tally {
        self.lock().clone()
    }
}
