//! What `semaprax-bench` measures: rows, each against something else in the same run.
//!
//! Owns: `Row`, the settings, and what a run comes to. `place.rs` has the workspace under test, `peers.rs`
//! what it is measured against, `rows/` the rows, `samples.rs` the numbers. Absolute times are for
//! orientation; a row is judged by a ratio.
//! Never: an assertion: a timed one is no test.

pub mod peers;
pub mod place;
pub mod report;
pub mod rows;
pub mod samples;

use std::path::PathBuf;

use camino::Utf8PathBuf;

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Row {
    /// A durable publication of a 5-file edit against `git add` and `git commit`.
    #[value(name = "P1")]
    P1,
    /// The same against a loop with the same bytes and the same syncs.
    #[value(name = "P3")]
    P3,
    /// 64 clients at once against one client, and against `git commit`.
    #[value(name = "P4")]
    P4,
}

/// What is measured, and how.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which rows.
    pub rows: Vec<Row>,
    /// The program whose daemon is measured.
    pub program: PathBuf,
    /// Where the workspaces lie.
    pub directory: Utf8PathBuf,
    /// Files of the workspace.
    pub files: u64,
    /// Files in a directory.
    pub in_directory: u64,
    /// Rounds.
    pub rounds: usize,
    /// What decides about contents and paths.
    pub seed: u64,
}

/// Why a run could not be made.
pub type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// The outcome of a step of a run.
pub type Measured<T> = Result<T, Trouble>;
