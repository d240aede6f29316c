//! Killing real daemons, and asking afterwards whether anything was lost.
//!
//! Owns: a daemon under test that dies at a chosen disk operation (`disk`, `plan`, `under_test`), a crew
//! of clients (`crew`, `deeds`) with an account of what they were promised (`account`, `story`), the
//! questions asked after each restart (`check`), and the two ways to kill: at every named step
//! (`steps`) and at random (`rounds`). The power cuts (`crate::cuts`) have the same crew and the same
//! questions.
//! Never: code in the product. The daemon under test is `semaprax` on another disk.
//!
//! The `SQLite` commit is no operation of the disk: deaths right before and after it are those at the
//! operations around it, and those at random instants.

pub mod account;
pub mod chance;
pub mod check;
pub(crate) mod crew;
pub(crate) mod deeds;
pub mod disk;
pub(crate) mod history;
mod holder;
mod keeps;
pub(crate) mod lab;
pub mod plan;
pub(crate) mod readers;
pub mod rounds;
mod scenes;
pub mod steps;
pub mod story;
pub mod tally;
pub mod under_test;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Something that must never be, or a harness that cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The result of a check.
pub type Outcome<T> = Result<T, Violation>;

pub(crate) fn violation(what: impl Into<String>) -> Violation {
    Violation(what.into())
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds where something was when it went wrong.
pub(crate) trait During<T> {
    fn during(self, what: impl FnOnce() -> String) -> Outcome<T>;
}

impl<T, E: fmt::Display> During<T> for Result<T, E> {
    fn during(self, what: impl FnOnce() -> String) -> Outcome<T> {
        self.map_err(|error| violation(format!("{}: {error}", what())))
    }
}
