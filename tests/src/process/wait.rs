//! Waiting on conditions.
//!
//! Owns: looking again and again, with a pause that grows, until a condition holds or a deadline passes.
//! Never: waits a fixed time for something to have happened.

use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long any one condition may take. Long, because only a failure waits for it.
pub const PATIENCE: Duration = Duration::from_mins(1);
/// The first and the longest pause between two looks.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(25));

/// Looks until `look` finds something; `None` when it did not within `limit`.
pub fn within<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    // Nothing is ever sent here: it is a wait that ends by itself.
    let (_keep, timer) = mpsc::channel::<()>();
    let mut pause = PAUSES.0;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        let _ = timer.recv_timeout(pause);
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Looks until `look` finds something, and fails the test when it never does.
#[track_caller]
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    match within(PATIENCE, look) {
        Some(found) => found,
        None => panic!("waited {PATIENCE:?} in vain until {what}"),
    }
}

/// Waits until a condition holds.
#[track_caller]
pub fn until_true(what: &str, mut holds: impl FnMut() -> bool) {
    until(what, || holds().then_some(()));
}
