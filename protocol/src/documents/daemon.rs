//! Documents about the daemon and the program itself.

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::VerificationStatus;
use crate::{Code, SchemaTag, Status};

/// Which daemon answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonIdentity {
    /// Its process.
    pub pid: u32,
    /// Its build version.
    pub version: String,
}

/// The answer of `daemon status`, `daemon start` and `daemon stop`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonStatus {
    /// `semaprax.daemon/1`.
    pub schema: SchemaTag<DaemonStatus>,
    /// Whether a daemon runs.
    pub running: bool,
    /// Which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon: Option<DaemonIdentity>,
    /// Its socket.
    #[schemars(with = "String")]
    pub socket: Utf8PathBuf,
    /// Its log file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub log: Option<Utf8PathBuf>,
    /// How long it has run, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uptime_ms: Option<u64>,
    /// The workspaces it holds.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub workspaces: Vec<Utf8PathBuf>,
    /// Its open connections.
    #[serde(default)]
    pub connections: u64,
}

/// The answer of `explain`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// `semaprax.explanation/1`.
    pub schema: SchemaTag<Explanation>,
    /// The code.
    pub code: Code,
    /// What becomes of a request that ends with it.
    pub status: Status,
    /// The exit code of the command line.
    pub exit_code: u8,
    /// What it means.
    pub meaning: String,
    /// The next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The answer of `schema` without a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SchemaList {
    /// `semaprax.schemas/1`.
    pub schema: SchemaTag<SchemaList>,
    /// The names.
    pub names: Vec<String>,
}

/// How a demo ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DemoStatus {
    /// All promises were kept.
    Ok,
    /// One was not, or too little was done to tell.
    Failed,
}

/// The result of `demo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DemoReport {
    /// `semaprax.demo/1`.
    pub schema: SchemaTag<DemoReport>,
    /// How it ended.
    pub status: DemoStatus,
    /// What was not as it should be, at most a page of it.
    pub problems: Vec<String>,
    /// The workspace, left for inspection.
    #[schemars(with = "String")]
    pub workspace: Utf8PathBuf,
    /// Whose files were copied.
    pub source: String,
    /// Files in the workspace at first.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Writers at once.
    pub writers: u64,
    /// Readers at once.
    pub readers: u64,
    /// Publications made.
    pub publications: u64,
    /// Whole trees read under a lease.
    pub reads: u64,
    /// Reads with at least one publication while they went on.
    pub spanned: u64,
    /// Submissions refused as stale.
    pub stale: u64,
    /// Submissions refused because their lines met those of another.
    pub conflicts: u64,
    /// Submissions rebased.
    pub rebases: u64,
    /// Submissions rebased with files merged from two sides.
    pub merges: u64,
    /// Trees that were a mix of two generations; must be 0.
    pub mixes: u64,
    /// Publications that the watcher was told of.
    pub watched: u64,
    /// Generations that the collector removed.
    pub collected: u64,
    /// What `verify --deep` found at the end.
    pub verified: VerificationStatus,
    /// The median time of a publication, in microseconds.
    pub median_publish_us: u64,
    /// The time under which 99 of 100 publications stayed, in microseconds.
    pub slow_publish_us: u64,
    /// The whole time, in milliseconds.
    pub duration_ms: u64,
    /// The daemon's log.
    #[schemars(with = "String")]
    pub log: Utf8PathBuf,
    /// The daemon, where it was left running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon: Option<DaemonIdentity>,
    /// Commands that show what was done.
    pub inspect: Vec<String>,
}
