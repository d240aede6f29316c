//! Documents about the workspace as a whole: init, status, queue, export.

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DaemonIdentity, PathChange};
use crate::{
    Limits, NamePolicy, Revision, SchemaTag, Seq, SubmissionId, Timestamp, TreeDigest, WorkspaceId,
};

/// The status word of `init`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InitStatus {
    /// The directory is a workspace now.
    Initialized,
}

/// Why something in an imported directory was not imported.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// A directory with nothing in it.
    EmptyDirectory,
    /// A FIFO, socket or device: never opened.
    SpecialFile,
    /// A symlink with an absolute target.
    AbsoluteSymlink,
    /// A symlink that leaves the workspace.
    EscapingSymlink,
    /// A symlink into `.git` or the state directory.
    ReservedSymlink,
    /// A name that is not UTF-8.
    NameNotUtf8,
    /// A name the policy refuses.
    NameRefused,
    /// A name equal to another one after case folding.
    NameCollision,
    /// Larger than a file may be.
    TooLarge,
    /// Not readable by this user.
    Unreadable,
}

impl SkipReason {
    /// The word of the JSON form.
    pub const fn word(self) -> &'static str {
        match self {
            Self::EmptyDirectory => "empty-directory",
            Self::SpecialFile => "special-file",
            Self::AbsoluteSymlink => "absolute-symlink",
            Self::EscapingSymlink => "escaping-symlink",
            Self::ReservedSymlink => "reserved-symlink",
            Self::NameNotUtf8 => "name-not-utf8",
            Self::NameRefused => "name-refused",
            Self::NameCollision => "name-collision",
            Self::TooLarge => "too-large",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Something that was not imported. `path` is plain text: it may be what made it unacceptable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// The path, with bytes that are not UTF-8 replaced.
    pub path: String,
    /// Why.
    pub reason: SkipReason,
}

/// The answer of `init`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Initialized {
    /// `semaprax.init/1`.
    pub schema: SchemaTag<Initialized>,
    /// `initialized`.
    pub status: InitStatus,
    /// The directory.
    #[schemars(with = "String")]
    pub workspace: Utf8PathBuf,
    /// The identity of the workspace.
    pub id: WorkspaceId,
    /// 1.
    pub seq: Seq,
    /// The first generation.
    pub revision: Revision,
    /// Its content.
    pub tree: TreeDigest,
    /// Its files.
    pub files: u64,
    /// Bytes of its content.
    pub bytes: u64,
    /// The name policy.
    pub names: NamePolicy,
    /// What was not imported; at most a page of it.
    pub skipped: Vec<Skipped>,
    /// How many things were not imported in all.
    pub skipped_total: u64,
    /// Whether `skipped` is only the start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// What is ACTIVE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActiveGeneration {
    /// Its publication number.
    pub seq: Seq,
    /// Its revision.
    pub revision: Revision,
    /// Its content.
    pub tree: TreeDigest,
    /// Its files.
    pub files: u64,
    /// Bytes of its content.
    pub bytes: u64,
    /// Who published it.
    pub author: String,
    /// What and why.
    pub message: String,
    /// When.
    pub published_at: Timestamp,
}

/// How many generations there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GenerationCounts {
    /// Publications so far.
    pub total: u64,
    /// Generations that have a tree on disk.
    pub materialized: u64,
}

/// What is in the queue, in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct QueueCounts {
    /// Submissions that wait.
    pub waiting: u64,
    /// Submissions being decided.
    pub running: u64,
}

/// The answer of `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceStatus {
    /// `semaprax.status/1`.
    pub schema: SchemaTag<WorkspaceStatus>,
    /// The directory.
    #[schemars(with = "String")]
    pub workspace: Utf8PathBuf,
    /// The identity of the workspace.
    pub id: WorkspaceId,
    /// The name policy.
    pub names: NamePolicy,
    /// What is ACTIVE.
    pub active: ActiveGeneration,
    /// How many generations there are.
    pub generations: GenerationCounts,
    /// Leases that hold a generation, without those held by files alone.
    pub leases: u64,
    /// What is in the queue.
    pub queue: QueueCounts,
    /// The daemon; null when read straight from disk.
    pub daemon: Option<DaemonIdentity>,
    /// How the directory differs from ACTIVE; only with `--drift`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Vec<PathChange>>,
    /// The limits; only with `--limits`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Whether `drift` is only the start of a longer list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A submission in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedSubmission {
    /// The submission.
    pub submission: SubmissionId,
    /// Its place, 1 for the next one; 0 while it runs.
    pub position: u64,
    /// Who.
    pub author: String,
    /// How long it has been here, in milliseconds.
    pub since_ms: u64,
    /// `waiting` or `running`.
    pub state: String,
}

/// The answer of `queue`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    /// `semaprax.queue/1`.
    pub schema: SchemaTag<Queue>,
    /// What waits, in order.
    pub waiting: Vec<QueuedSubmission>,
    /// What is being decided.
    pub running: Vec<QueuedSubmission>,
}

/// The answer of `cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cancelled {
    /// `semaprax.cancelled/1`.
    pub schema: SchemaTag<Cancelled>,
    /// The submission that was taken back.
    pub cancelled: SubmissionId,
}

/// The answer of `export`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exported {
    /// `semaprax.export/1`.
    pub schema: SchemaTag<Exported>,
    /// The generation.
    pub revision: Revision,
    /// Its publication number.
    pub seq: Seq,
    /// Files written.
    pub files: u64,
    /// Where.
    #[schemars(with = "String")]
    pub path: Utf8PathBuf,
}
