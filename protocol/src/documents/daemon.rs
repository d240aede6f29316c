//! Documents about the daemon and the program itself.

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// The result of `demo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DemoReport {
    /// `semaprax.demo/1`.
    pub schema: SchemaTag<DemoReport>,
    /// The workspace, left for inspection.
    #[schemars(with = "String")]
    pub workspace: Utf8PathBuf,
    /// Files in it.
    pub files: u64,
    /// Publications made.
    pub publications: u64,
    /// Whole trees read under a lease.
    pub reads: u64,
    /// Submissions refused as stale.
    pub stale: u64,
    /// Submissions rebased.
    pub rebases: u64,
    /// Trees that were a mix of two generations; must be 0.
    pub mixes: u64,
    /// Publications that the watcher was told of.
    pub watched: u64,
    /// Generations that the collector removed.
    pub collected: u64,
    /// The median time of a publication, in microseconds.
    pub median_publish_us: u64,
    /// The whole time, in milliseconds.
    pub duration_ms: u64,
}
