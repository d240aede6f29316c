//! The writer's state: the store, the tip, and whether anything may be written.
//!
//! Owns: `Ledger`, and the latch that makes a workspace read-only after a flip in doubt or a disk
//! error. Never: a stage of the pipeline; they borrow the ledger.
//!
//! Keeps invariants 2 and 8.

use std::collections::VecDeque;
use std::sync::Arc;

use semaprax_protocol::documents::Receipt;
use semaprax_protocol::{Code, Diagnostic, Limits, NamePolicy, Refusal, SubmissionId, Timestamp};

use super::flip::FlipFailure;
use crate::store::history::{Binding, Event, EventDetail, Outcome, StoredRecord};
use crate::store::recover::{self, void_beyond};
use crate::store::spares::{Current, Pool, Seen, Standing};
use crate::store::tree::Tree;
use crate::store::{Store, StoreError, StoreResult};

/// What is ACTIVE, or was decided last in a turn: the record and the tree.
#[derive(Debug, Clone)]
pub struct Tip {
    /// The record.
    pub stored: StoredRecord,
    /// The tree, with what has been loaded of it.
    pub tree: Tree,
}

/// The tree of `tip`, and where it lies.
pub(super) fn current(store: &Store, tip: &Tip) -> Current {
    Current {
        tree: tip.tree.clone(),
        files: store.layout.generation(&tip.stored.record.revision).files(),
    }
}

/// The writer's state.
#[derive(Debug)]
pub struct Ledger {
    /// The store.
    pub store: Store,
    /// What is ACTIVE; in a turn what was decided last.
    pub tip: Tip,
    /// Spare trees.
    pub spares: Arc<Pool>,
    /// The trees of the publications made here, oldest first.
    pub standing: VecDeque<Standing>,
    /// Which names are accepted.
    pub names: NamePolicy,
    /// The bounds.
    pub limits: Limits,
    /// Why nothing may be written any more, if so.
    latched: Option<Refusal>,
    /// Whether the last flip is confirmed in the database.
    confirmed: bool,
    /// Refusals a full disk had no room for, oldest first. Nothing is decided before they are recorded.
    unrecorded: Vec<Unrecorded>,
    /// Whether what a failed flip left behind is still to be voided, for want of room.
    unvoided: bool,
}

/// A refusal that is not in the journal yet.
#[derive(Debug)]
struct Unrecorded {
    at: Timestamp,
    submission: SubmissionId,
    author: String,
    refusal: Refusal,
}

/// How many refusals wait for room; with more, the workspace stops.
const UNRECORDED_MAX: usize = 1_000;

impl Ledger {
    /// The state of a recovered store.
    pub fn new(store: Store, tip: Tip, names: NamePolicy, limits: Limits) -> Self {
        let ledger = Self {
            store,
            tip,
            spares: Arc::default(),
            standing: VecDeque::new(),
            names,
            limits,
            latched: None,
            confirmed: true,
            unrecorded: Vec::new(),
            unvoided: false,
        };
        ledger.spares.set_current(ledger.current());
        ledger
    }

    /// What is ACTIVE, as spares are made of it; not in a turn.
    pub fn current(&self) -> Current {
        current(&self.store, &self.tip)
    }

    /// Does what a full disk left undone, if there is room by now. What still cannot be done is
    /// refused by `check_writable`.
    pub fn settle(&mut self) {
        if self.latched.is_none()
            && (self.unvoided || !self.unrecorded.is_empty())
            && let Err(error) = self.settle_now()
        {
            tracing::warn!(%error, "what a full disk left undone cannot be done yet");
            self.latch_unless_full(error);
        }
    }

    fn settle_now(&mut self) -> StoreResult<()> {
        if self.unvoided {
            void_beyond(&mut self.store, self.tip.stored.record.seq, "failed-flip")?;
            self.unvoided = false;
        }
        let unrecorded = &self.unrecorded;
        self.store.database.transaction(|database| {
            for waiting in unrecorded {
                database.append_event(&Event {
                    at: waiting.at,
                    detail: EventDetail::Refused {
                        submission: Some(waiting.submission),
                        author: &waiting.author,
                        refusal: &waiting.refusal,
                    },
                })?;
            }
            Ok(())
        })?;
        self.unrecorded.clear();
        Ok(())
    }

    /// Records refusals in one transaction, or keeps them until there is room on the disk. No outcome may
    /// go unrecorded: if that cannot be promised, the workspace takes no more publications.
    pub fn record_refusals(&mut self, refusals: &[(SubmissionId, &str, &Refusal)]) {
        let at = self.store.world.clock.now();
        for &(submission, author, refusal) in refusals {
            if self.unrecorded.len() >= UNRECORDED_MAX {
                self.latch(refusal.clone());
                return;
            }
            self.unrecorded.push(Unrecorded {
                at,
                submission,
                author: author.to_owned(),
                refusal: refusal.clone(),
            });
        }
        if let Err(error) = self.settle_now() {
            let submissions = refusals
                .iter()
                .map(|(submission, ..)| submission.to_string());
            let submissions = submissions.collect::<Vec<_>>().join(" ");
            tracing::error!(%error, submissions, "refusals could not be recorded");
            self.latch_unless_full(error);
        }
    }

    /// A full disk is no reason to stop for good: room can be made.
    fn latch_unless_full(&mut self, error: StoreError) {
        let refusal = Refusal::from(error);
        if refusal.code() != Code::NoSpace {
            self.latch(refusal);
        }
    }

    /// Refuses when an earlier operation left the workspace in need of recovery.
    pub fn check_writable(&self) -> Result<(), Refusal> {
        self.check_collectable()?;
        if self.unrecorded.is_empty() {
            return Ok(());
        }
        let message = "the disk has no room to record what was refused";
        Err(Diagnostic::new(Code::NoSpace, message)
            .at(self.store.layout.root().as_str())
            .into())
    }

    /// Refuses as `check_writable`, except for want of room: the collector makes it.
    pub fn check_collectable(&self) -> Result<(), Refusal> {
        match &self.latched {
            None if self.unvoided => {
                let message = "the disk has no room to clear what a failed publication left behind";
                Err(Diagnostic::new(Code::NoSpace, message)
                    .at(self.store.layout.root().as_str())
                    .hint("make room on the disk; the next command then goes on by itself")
                    .into())
            }
            None => Ok(()),
            Some(cause) => {
                let message = format!(
                    "the workspace takes no publication until it has been recovered: {cause}"
                );
                Err(Diagnostic::new(Code::RecoveryNeeded, message).into())
            }
        }
    }

    /// The first outcome of this submission, if it was decided before.
    pub fn replay(&self, binding: &Binding) -> Result<Option<Receipt>, Refusal> {
        match self
            .store
            .database
            .outcome(binding, self.store.world.clock.now())?
        {
            Outcome::Free => Ok(None),
            Outcome::Decided(receipt) => Ok(Some(*receipt)),
            Outcome::OtherContent => {
                let message = format!("the id {} belongs to another submission", binding.id);
                let hint = "give each submission an id of its own, or none";
                Err(Diagnostic::new(Code::InvalidSubmission, message)
                    .hint(hint)
                    .into())
            }
        }
    }

    /// The tip is ACTIVE now; its flip is confirmed later. `seen` is what is known of its tree.
    pub(super) fn advance(&mut self, seen: Seen) {
        self.standing.push_back(Standing {
            revision: self.tip.stored.record.revision,
            tree: self.tip.tree.clone(),
            seen,
        });
        self.confirmed = false;
        self.spares.set_current(self.current());
    }

    /// Confirms the last flip in the database, when that was not done yet.
    pub fn confirm(&mut self) -> StoreResult<()> {
        if !self.confirmed && self.latched.is_none() {
            recover::confirm(&mut self.store, &self.tip.stored)?;
            self.confirmed = true;
        }
        Ok(())
    }

    /// Whether the last flip still has to be confirmed.
    pub fn needs_confirmation(&self) -> bool {
        !self.confirmed && self.latched.is_none()
    }

    /// Puts things in order after a flip that failed, and says how it failed.
    pub(super) fn after_failed_flip(&mut self, failure: FlipFailure) -> Refusal {
        match failure {
            FlipFailure::NotFlipped(error) => {
                self.distrust(&error);
                let refusal = Refusal::from(error);
                let tip = self.tip.stored.record.seq;
                if let Err(error) = void_beyond(&mut self.store, tip, "failed-flip") {
                    tracing::error!(%error, "what a failed flip left behind could not be voided");
                    self.unvoided = true;
                    self.latch_unless_full(error);
                }
                refusal
            }
            FlipFailure::InDoubt(error) => {
                let message =
                    format!("ACTIVE was switched, but the disk did not confirm it: {error}");
                let refusal = Refusal::from(Diagnostic::new(Code::InDoubt, message));
                self.latched = Some(refusal.clone());
                refusal
            }
        }
    }

    /// Appends to the journal in a transaction of its own. A journal that cannot be written latches:
    /// no outcome may go unrecorded.
    pub fn record_event(&mut self, detail: EventDetail<'_>) -> StoreResult<()> {
        let at = self.store.world.clock.now();
        self.store
            .database
            .transaction(|database| database.append_event(&Event { at, detail }))
    }

    /// After a failed sync nobody knows what the disk holds: nothing is written any more until recovery
    /// has read it again. A full disk, or a name that could not be made, is no such case.
    pub(super) fn distrust(&mut self, error: &StoreError) {
        if error.is_failed_sync() {
            let cause = Diagnostic::new(Code::Io, error.to_string());
            self.latch(cause.into());
        }
    }

    /// Makes the workspace read-only until it is recovered.
    pub fn latch(&mut self, cause: Refusal) {
        self.latched.get_or_insert(cause);
    }
}
