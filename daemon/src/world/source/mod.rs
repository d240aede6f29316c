//! Foreign directories: walked by ignore rules, read without following or trusting anything.
//!
//! Owns: what `init`, `publish --from-dir` and `status --drift` see of a directory. With `real.rs` the
//! only user of the real file system: nothing in here is ours, and nothing of it is changed.
//! Never: opens a FIFO, socket or device; follows a symlink; leaves the directory.

#![cfg_attr(
    test,
    expect(
        clippy::disallowed_methods,
        reason = "tests make the directories that are read"
    )
)]

mod git_index;
mod ignored;
mod read;
mod scan;

pub use git_index::paths_of_index;
pub use ignored::{IgnoreRules, rules_ignore};
pub use read::{ReadOutcome, SourceDirectory};
pub use scan::{FoundFile, Scan, scan};
