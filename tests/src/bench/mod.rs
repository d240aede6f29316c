//! What `semaprax-bench` measures: rows, each against something else in the same run.
//!
//! Owns: `Row`, the settings, and what a run comes to. `place.rs` has the workspace under test, `tree.rs`
//! the files of one, `peers.rs` what it is measured against, `rows/` the rows, `samples.rs` the numbers,
//! `curves.rs` and `plot.rs` the pictures. Absolute times are for orientation; a row is judged by a ratio.
//! Never: an assertion: a timed one is no test.

pub mod curves;
pub mod peers;
pub mod place;
pub mod plot;
pub mod report;
pub mod rows;
pub mod samples;
pub mod tree;

use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8PathBuf;
use clap::ValueEnum as _;

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Row {
    /// A durable publication of a 5-file edit against `git add` and `git commit`.
    #[value(name = "P1")]
    P1,
    /// The same in a large tree against a small one.
    #[value(name = "P2")]
    P2,
    /// The same against a loop with the same bytes and the same syncs.
    #[value(name = "P3")]
    P3,
    /// 64 clients at once against one client, and against `git commit`.
    #[value(name = "P4")]
    P4,
    /// `init` against `git init`, `git add`, `git commit` and `git worktree add`.
    #[value(name = "P5")]
    P5,
    /// A lease over the socket against bare messages over a socket.
    #[value(name = "P6")]
    P6,
    /// Many subscribers against none.
    #[value(name = "P7")]
    P7,
    /// Memory of the daemon against the number of files.
    #[value(name = "P8")]
    P8,
    /// What the state directory grows by against the bytes that changed.
    #[value(name = "P9")]
    P9,
    /// A lease of a generation that is not on disk against `git worktree add`.
    #[value(name = "P10")]
    P10,
    /// `diff` of near generations of a large tree against a small one.
    #[value(name = "P11")]
    P11,
    /// A lease from disk against one over the socket.
    #[value(name = "lease")]
    Lease,
    /// A publication in a very large directory against one in an ordinary one.
    #[value(name = "wide")]
    Wide,
    /// Every other question in a large tree against a small one.
    #[value(name = "reads")]
    Reads,
    /// `log --path` and `blame` after many publications against few.
    #[value(name = "history")]
    History,
    /// How often an idle daemon wakes.
    #[value(name = "idle")]
    Idle,
    /// A publication against `ostree commit`.
    #[value(name = "ostree")]
    Ostree,
    /// `diff` against `watchman since`.
    #[value(name = "watchman")]
    Watchman,
}

impl Row {
    /// As it is named on the command line.
    pub fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
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
    /// Files of the small and of the large tree of the rows about size.
    pub sizes: (u64, u64),
    /// Entries of the very large directory.
    pub wide: u64,
    /// Rounds.
    pub rounds: usize,
    /// Rounds of what takes seconds.
    pub long_rounds: usize,
    /// Publications of the rows about history and growth.
    pub publications: u64,
    /// Clients that publish at once.
    pub clients: u64,
    /// Connections that watch.
    pub subscribers: usize,
    /// How long an idle daemon is watched.
    pub idle: Duration,
    /// What decides about contents and paths.
    pub seed: u64,
}

/// Why a run could not be made.
pub type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// The outcome of a step of a run.
pub type Measured<T> = Result<T, Trouble>;
