//! The receipt: what became of a submission.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PathChange;
use crate::{
    LogicalPath, RecordDigest, Revision, SchemaTag, Seq, SubmissionId, Timestamp, TreeDigest,
};

/// What became of a submission that was not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiptStatus {
    /// A new generation is ACTIVE.
    Published,
    /// The candidate equals the current tree: no publication.
    Unchanged,
    /// A dry run that would be published.
    Ready,
    /// Held until a person approves.
    AwaitingApproval,
}

/// What became of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateStatus {
    /// It passed.
    Passed,
    /// It did not pass.
    Failed,
    /// It ran out of time.
    TimedOut,
    /// It did not apply.
    Skipped,
}

/// One gate of a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateOutcome {
    /// Its name.
    pub name: String,
    /// What became of it.
    pub status: GateStatus,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// Whether an earlier verdict was taken over.
    pub cached: bool,
}

/// What became of a submission. `seq`, `revision`, `record` and `published_at` are those of the new
/// publication, of ACTIVE when `unchanged`, and null when nothing is published yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// `semaprax.receipt/1`.
    pub schema: SchemaTag<Receipt>,
    /// What became of it.
    pub status: ReceiptStatus,
    /// Whether this answers a repeated submission with its first outcome.
    pub replayed: bool,
    /// The submission.
    pub submission: SubmissionId,
    /// The publication number.
    pub seq: Option<Seq>,
    /// The generation.
    pub revision: Option<Revision>,
    /// The content.
    pub tree: TreeDigest,
    /// The tip it was judged on; null for the first publication.
    pub parent: Option<Revision>,
    /// The base it was bound to; null for the first publication.
    pub base: Option<Revision>,
    /// Whether it was moved from its base to a newer tip.
    pub rebased: bool,
    /// The paths merged from two sides.
    pub merged: Vec<LogicalPath>,
    /// What differs from the parent. Cut at a bound when `truncated`.
    pub changes: Vec<PathChange>,
    /// Whether `changes` is only the start of a longer list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The gates.
    pub gates: Vec<GateOutcome>,
    /// Who.
    pub author: String,
    /// What and why.
    pub message: String,
    /// When it was published: the mtime of the files it changed.
    pub published_at: Option<Timestamp>,
    /// The digest of its record.
    pub record: Option<RecordDigest>,
    /// Files of the whole tree.
    pub file_count: u64,
}
