//! The spares that wait, and what is to be done with them.
//!
//! Owns: `Pool`, shared by the writer, which takes spares and brings trees to be recycled, and by whoever
//! keeps it (`workspace/keeper.rs`). A spare is handed out only after it was looked through.
//! Never: the disk.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Current, Spare};

/// Spares kept.
pub const SPARES: usize = 2;
/// A spare that was looked through less than this long ago is not again.
const WALK_PAUSE: Duration = Duration::from_secs(1);

/// Something to be done for the pool, away from any submission.
#[derive(Debug)]
pub enum Chore {
    /// Look through this spare, unless it was lately, at this moment; bring it up to date, then `walked`.
    Refresh(Box<Spare>, Current, Option<Duration>),
    /// Make one more, then `built`.
    Build(Current),
}

#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and any may be true with any other"
)]
struct State {
    /// With the moment at which each was looked through last.
    ready: Vec<(Spare, Duration)>,
    /// Not looked through since they were brought.
    unwalked: VecDeque<Spare>,
    /// Being looked through.
    walking: usize,
    building: bool,
    /// Counts up when all spares are given up: what is being worked on then is not taken back.
    epoch: u64,
    current: Option<Current>,
    /// Whether a keeper works beside the writer.
    is_kept: bool,
    /// Whether the writer has nothing to do.
    is_quiet: bool,
    /// When it last had, on the boot-time clock.
    moment: Duration,
    /// Building failed: not tried again before the next publication.
    has_failed: bool,
    is_closing: bool,
}

/// The spares of a workspace.
#[derive(Debug, Default)]
pub struct Pool {
    state: Mutex<State>,
    changed: Condvar,
}

impl State {
    fn count(&self) -> usize {
        self.ready.len() + self.unwalked.len() + self.walking + usize::from(self.building)
    }

    fn chore(&mut self) -> Option<Chore> {
        let current = self.current.clone()?;
        if let Some(spare) = self.unwalked.pop_front() {
            self.walking += 1;
            return Some(Chore::Refresh(Box::new(spare), current, None));
        }
        if !self.is_quiet {
            return None;
        }
        // One at a time, so that another one can be taken meanwhile.
        let (moment, stamped) = (self.moment, current.tree.stamped());
        let is_old = |walked: Duration| walked.saturating_add(WALK_PAUSE) <= moment;
        let is_late = |(spare, walked): &(Spare, Duration)| {
            is_old(*walked) || spare.tree().stamped() != stamped
        };
        if let Some(late) = self.ready.iter().position(is_late) {
            let (spare, walked) = self.ready.swap_remove(late);
            self.walking += 1;
            let walked = Some(walked).filter(|walked| !is_old(*walked));
            return Some(Chore::Refresh(Box::new(spare), current, walked));
        }
        if self.count() >= SPARES || self.has_failed {
            return None;
        }
        self.building = true;
        Some(Chore::Build(current))
    }
}

impl Pool {
    // A panic while the lock was held cannot have left the state half-changed.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What spares are made of, from now on.
    pub fn set_current(&self, current: Current) {
        let mut state = self.state();
        state.current = Some(current);
        state.has_failed = false;
    }

    /// A keeper works beside the writer from now on.
    pub fn set_kept(&self) {
        self.state().is_kept = true;
    }

    /// The writer has nothing to do, at `moment` of the boot-time clock: only then new spares are made, and
    /// those that are there are looked through again now and then.
    pub fn set_quiet(&self, moment: Duration) {
        let mut state = self.state();
        state.is_quiet = true;
        state.moment = moment;
        self.changed.notify_all();
    }

    /// The writer has work.
    pub fn set_busy(&self) {
        self.state().is_quiet = false;
    }

    /// Whether one more is wanted.
    pub fn wants(&self) -> bool {
        let state = self.state();
        state.count() < SPARES && state.current.is_some()
    }

    /// A spare that was looked through. Waits for one that a keeper is about to have ready: that is
    /// sooner than making a tree anew.
    pub fn take(&self) -> Option<Spare> {
        let mut state = self.state();
        loop {
            let current = state.current.as_ref().map(|current| current.tree.stamped());
            let is_current =
                |(spare, _): &(Spare, Duration)| Some(spare.tree().stamped()) == current;
            let best = state.ready.iter().position(is_current);
            if let Some(best) = best.or_else(|| state.ready.len().checked_sub(1)) {
                return Some(state.ready.swap_remove(best).0);
            }
            let is_coming = state.walking > 0 || state.is_kept && !state.unwalked.is_empty();
            if !is_coming || !state.is_kept || state.is_closing {
                return None;
            }
            state = self.wait(state);
        }
    }

    fn wait<'pool>(&self, state: MutexGuard<'pool, State>) -> MutexGuard<'pool, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings a spare that is still to be looked through.
    pub fn put(&self, spare: Spare) {
        self.state().unwalked.push_back(spare);
        self.changed.notify_all();
    }

    /// The next thing to do, if there is one; and the number to hand back with what came of it.
    pub fn chore(&self) -> Option<(Chore, u64)> {
        let mut state = self.state();
        let epoch = state.epoch;
        state.chore().map(|chore| (chore, epoch))
    }

    /// The same; waits for it. `None` when the pool is closed.
    pub fn next_chore(&self) -> Option<(Chore, u64)> {
        let mut state = self.state();
        loop {
            if state.is_closing {
                return None;
            }
            let epoch = state.epoch;
            if let Some(chore) = state.chore() {
                return Some((chore, epoch));
            }
            state = self.wait(state);
        }
    }

    /// Whether whoever is building may go on: not while the writer has work, or trees wait to be looked
    /// through.
    pub fn is_undisturbed(&self) -> bool {
        let state = self.state();
        state.is_quiet && state.unwalked.is_empty()
    }

    /// Whether nothing more is to be done.
    pub fn is_closing(&self) -> bool {
        self.state().is_closing
    }

    /// Waits until there is something to be looked through, or building may go on; `false` when the pool
    /// is closed.
    pub fn pause(&self) -> bool {
        let mut state = self.state();
        while !state.is_closing && !state.is_quiet && state.unwalked.is_empty() {
            state = self.wait(state);
        }
        !state.is_closing
    }

    /// The next spare to be looked through, whoever is building.
    pub fn unwalked(&self) -> Option<(Chore, u64)> {
        let mut state = self.state();
        if state.unwalked.is_empty() {
            return None;
        }
        let epoch = state.epoch;
        state.chore().map(|chore| (chore, epoch))
    }

    /// Takes back what was looked through and found right. What comes too late comes back.
    #[must_use]
    pub fn walked(
        &self,
        spare: Option<Spare>,
        epoch: u64,
        walked: Option<Duration>,
    ) -> Option<Spare> {
        let mut state = self.state();
        state.walking -= 1;
        let late = state.epoch != epoch;
        let back = match spare {
            Some(spare) if !late => {
                let walked = walked.unwrap_or(state.moment);
                state.ready.push((spare, walked));
                None
            }
            other => other,
        };
        self.changed.notify_all();
        back
    }

    /// Takes what was built; it is still to be looked through. What comes too late comes back.
    #[must_use]
    pub fn built(&self, spare: Option<Spare>, epoch: u64) -> Option<Spare> {
        let mut state = self.state();
        state.building = false;
        state.has_failed |= spare.is_none();
        let late = state.epoch != epoch;
        let back = match spare {
            Some(spare) if !late => {
                state.unwalked.push_back(spare);
                None
            }
            other => other,
        };
        self.changed.notify_all();
        back
    }

    /// Gives up every spare.
    #[must_use]
    pub fn give_up(&self) -> Vec<Spare> {
        let mut state = self.state();
        state.epoch += 1;
        let ready = std::mem::take(&mut state.ready);
        let mut all: Vec<Spare> = ready.into_iter().map(|(spare, _)| spare).collect();
        all.extend(std::mem::take(&mut state.unwalked));
        all
    }

    /// Nothing more is done.
    pub fn close(&self) {
        self.state().is_closing = true;
        self.changed.notify_all();
    }
}
