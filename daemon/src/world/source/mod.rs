//! Foreign directories: walked by ignore rules, read without following or trusting anything.
//!
//! Owns: what `init`, `publish --from-dir` and `status --drift` see of a directory. With `real.rs` the
//! only user of the real file system: nothing in here is ours, and nothing of it is changed.
//! Never: opens a FIFO, socket or device; follows a symlink; leaves the directory.

mod git_index;
mod ignored;
mod read;
mod scan;

pub use ignored::IgnoreRules;
pub use read::{ReadOutcome, SourceDirectory};
pub use scan::{FoundFile, Scan, scan};
