//! Documents about publications and trees: log, show, diff, ls, blame, watch, journal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PathChange;
use crate::submission::EntryKind;
use crate::{
    EventDigest, LogicalPath, RecordDigest, Revision, SchemaTag, Seq, Sha256, SubmissionId,
    Timestamp, TreeDigest,
};

/// One publication of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    /// Its number.
    pub seq: Seq,
    /// Its revision.
    pub revision: Revision,
    /// Its content.
    pub tree: TreeDigest,
    /// The one before; null for the first.
    pub parent: Option<Revision>,
    /// The base it was bound to; null for the first.
    pub base: Option<Revision>,
    /// The submission it came from.
    pub submission: SubmissionId,
    /// Who.
    pub author: String,
    /// What and why.
    pub message: String,
    /// When.
    pub published_at: Timestamp,
    /// How many paths it changed.
    pub changes: u64,
}

/// The answer of `log`, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogPage {
    /// `semaprax.log/1`.
    pub schema: SchemaTag<LogPage>,
    /// The publications.
    pub entries: Vec<LogEntry>,
    /// Whether there are older ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// The answer of `show`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Publication {
    /// `semaprax.publication/1`.
    pub schema: SchemaTag<Publication>,
    /// Its number.
    pub seq: Seq,
    /// Its revision.
    pub revision: Revision,
    /// Its content.
    pub tree: TreeDigest,
    /// The one before; null for the first.
    pub parent: Option<Revision>,
    /// The base it was bound to; null for the first.
    pub base: Option<Revision>,
    /// The submission it came from.
    pub submission: SubmissionId,
    /// The digest of its record.
    pub record: RecordDigest,
    /// Whether it was moved from its base to a newer tip.
    pub rebased: bool,
    /// The paths merged from two sides.
    pub merged: Vec<LogicalPath>,
    /// Who.
    pub author: String,
    /// What and why.
    pub message: String,
    /// When.
    pub published_at: Timestamp,
    /// Files of the whole tree.
    pub files: u64,
    /// Bytes of the whole tree.
    pub bytes: u64,
    /// What differs from the parent.
    pub changes: Vec<PathChange>,
    /// Whether `changes` is only the start of a longer list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// One side of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeReference {
    /// The publication number.
    pub seq: Seq,
    /// The revision.
    pub revision: Revision,
    /// The content.
    pub tree: TreeDigest,
}

/// The answer of `diff`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeDiff {
    /// `semaprax.diff/1`.
    pub schema: SchemaTag<TreeDiff>,
    /// The old side.
    pub from: TreeReference,
    /// The new side.
    pub to: TreeReference,
    /// What differs.
    pub changes: Vec<PathChange>,
    /// Whether `changes` is only the start of a longer list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// One path of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListingEntry {
    /// The path.
    pub path: LogicalPath,
    /// What it is.
    pub kind: EntryKind,
    /// Bytes of its content.
    pub bytes: u64,
    /// SHA-256 of its content.
    pub sha256: Sha256,
    /// The publication that last changed it.
    pub seq: Seq,
}

/// The answer of `ls`, in path order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listing {
    /// `semaprax.listing/1`.
    pub schema: SchemaTag<Listing>,
    /// The generation.
    pub revision: Revision,
    /// Its publication number.
    pub seq: Seq,
    /// The paths.
    pub entries: Vec<ListingEntry>,
    /// Whether there are more after the last one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// One line of a file and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlameLine {
    /// The line number, from 1.
    pub line: u64,
    /// The publication that brought the line.
    pub seq: Seq,
    /// Its revision.
    pub revision: Revision,
    /// Who.
    pub author: String,
}

/// The answer of `blame`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Blame {
    /// `semaprax.blame/1`.
    pub schema: SchemaTag<Blame>,
    /// The file.
    pub path: LogicalPath,
    /// The generation it was read in.
    pub revision: Revision,
    /// Its lines.
    pub lines: Vec<BlameLine>,
    /// Whether something is missing: lines after the last one, or history that the retention let go
    /// (then lines of the oldest kept publication may be older than it).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// What a line of `watch` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// Where the stream starts from.
    Snapshot,
    /// Where it starts from, because what came before is gone or of another history.
    Fresh,
    /// A publication.
    Published,
}

/// One line of `watch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchEvent {
    /// `semaprax.event/1`.
    pub schema: SchemaTag<WatchEvent>,
    /// What it says.
    pub event: EventKind,
    /// The publication number.
    pub seq: Seq,
    /// The generation.
    pub revision: Revision,
    /// Where to go on from: `SEQ:RECORD`.
    pub token: String,
    /// The generation before; only for `published`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Revision>,
    /// Who; only for `published`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// What and why; only for `published`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What differs from the parent; only for `published`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<PathChange>>,
    /// Whether `changes` is only the start of a longer list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// One entry of the hash-chained journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JournalEntry {
    /// `semaprax.journal-entry/1`.
    pub schema: SchemaTag<JournalEntry>,
    /// Its number, from 1.
    pub entry: u64,
    /// When.
    pub at: Timestamp,
    /// What kind of event: `published`, `refused`, `publication-voided` ...
    #[serde(rename = "type")]
    pub kind: String,
    /// The digest of the entry before; null for the first.
    pub prev: Option<EventDigest>,
    /// The digest of this entry.
    pub digest: EventDigest,
    /// What happened, by kind.
    pub detail: serde_json::Value,
}
