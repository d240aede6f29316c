//! The simulated disk: the real directory as the process sees it, and a model of what of it would
//! survive a power cut.
//!
//! Owns: `Sim` (disk, clock, entropy and their faults), `Image` (a disk at one moment, from which any
//! number of crashes can be tried), the mutations that leave out a sync.
//! Never: a sleep; the time of the machine; what a daemon promises (the suite `crash` does).
//!
//! The model is stricter than any one file system: a sync of a file carries no name, a sync of a
//! directory carries its own names only, each unsynced name is kept or lost by itself, a failed sync
//! leaves nothing for the next one to write. The database is one atomic durable file (SQLite's own
//! tests show that): its files are taken as they are at the crash.

mod chance;
pub mod clock;
pub mod cut;
pub mod disk;
pub mod image;
pub mod model;
mod operations;

pub use chance::Chance;
pub use cut::{Cut, Frozen};
pub use disk::{Fault, Mutation, Sim};
pub use image::{Image, Point, Wreck};
