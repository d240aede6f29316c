//! What differs between two trees, path by path.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::submission::EntryKind;
use crate::{LogicalPath, Sha256};

/// How a path differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// Its content differs.
    Modified,
    /// It is not there any more.
    Deleted,
    /// It was at `from` before.
    Renamed,
    /// Only its executable bit differs.
    Mode,
}

impl ChangeKind {
    /// The word of the JSON form.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Renamed => "renamed",
            Self::Mode => "mode",
        }
    }

    /// The letter of `--name-status`.
    pub const fn letter(self) -> char {
        match self {
            Self::Created => 'A',
            Self::Modified | Self::Mode => 'M',
            Self::Deleted => 'D',
            Self::Renamed => 'R',
        }
    }
}

/// One difference between two trees: the same pure function everywhere (receipt, show, diff, watch).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PathChange {
    /// The path (where it is now, for `renamed`).
    pub path: LogicalPath,
    /// How it differs.
    pub kind: ChangeKind,
    /// Where it was, for `renamed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<LogicalPath>,
    /// SHA-256 of the content before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_sha256: Option<Sha256>,
    /// SHA-256 of the content after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_sha256: Option<Sha256>,
    /// What it was before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_kind: Option<EntryKind>,
    /// What it is after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_kind: Option<EntryKind>,
    /// Bytes of the content after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}
