//! Power cuts: a daemon at work on a real file system, what its disk held at an instant, and what a
//! daemon of another boot makes of that.
//!
//! Owns: the bench (`bench`) with live images and their copies, the cuts under a crew (`rounds`) and at
//! chosen moments (`moments`), what a copy must hold (`wreck`), and the syncs that are left out to see
//! whether anyone notices (`omissions`). The crew and the questions are those of `torture`.
//! Never: takes as promised what was not answered before the copy began.
//!
//! What is modelled: everything that a file system kept in memory is lost, names and bytes. What is
//! not: a disk with a cache of its own that reorders writes between two syncs, or loses what it said to
//! have synced.

mod bench;
mod deaf;
pub mod moments;
pub mod omissions;
pub mod rounds;
pub mod steps;
pub mod tally;
mod wreck;

pub use bench::Bench;
