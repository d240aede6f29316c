//! A submission: what an agent asks to publish.
//!
//! Owns: the JSON form, with unknown fields refused. Paths are plain text here: whether a spelling is
//! acceptable depends on the workspace's name policy and is judged at admission, where a refusal can
//! name the path.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{SchemaTag, Sha256, SubmissionId};

/// What to do when ACTIVE is no longer the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnStale {
    /// Refuse with `stale-base`.
    #[default]
    Reject,
    /// Go on when nothing touched or read has moved.
    Rebase,
    /// Like `rebase`, and merge text files that moved.
    Merge,
}

impl OnStale {
    /// The word of the JSON form.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Rebase => "rebase",
            Self::Merge => "merge",
        }
    }
}

/// What a path of a tree is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A regular file with the executable bit.
    Executable,
    /// A symbolic link; its content is its target.
    Symlink,
}

impl EntryKind {
    /// The word of the JSON form.
    pub const fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Executable => "executable",
            Self::Symlink => "symlink",
        }
    }
}

/// The mode of a regular file, as a change sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileMode {
    /// Not executable.
    File,
    /// Executable.
    Executable,
}

impl From<FileMode> for EntryKind {
    fn from(mode: FileMode) -> Self {
        match mode {
            FileMode::File => Self::File,
            FileMode::Executable => Self::Executable,
        }
    }
}

/// What must be true of a path of the base: exactly one of the two fields is given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Expect {
    /// The path holds content with this digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    /// `true`: there is nothing at the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<bool>,
}

/// A path the author relied on without changing it: exactly one of `sha256` and `absent` is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Read {
    /// The path.
    pub path: String,
    /// The digest of what was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    /// `true`: nothing was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<bool>,
}

/// One replacement: `old` must occur exactly once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Edit {
    /// The text to find.
    pub old: String,
    /// The text to put in its place.
    pub new: String,
}

/// One change. They apply in list order on the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "op",
    rename_all = "lowercase",
    deny_unknown_fields,
    remote = "Self"
)]
pub enum Change {
    /// Sets the whole content of a file. Exactly one of the three contents is given.
    Put {
        /// The path.
        path: String,
        /// The content as text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        /// The content in standard base64.
        #[serde(
            default,
            rename = "contentBase64",
            skip_serializing_if = "Option::is_none"
        )]
        content_base64: Option<String>,
        /// The SHA-256 of content sent before by `blob.put` on the same connection.
        #[serde(
            default,
            rename = "contentBlob",
            skip_serializing_if = "Option::is_none"
        )]
        content_blob: Option<Sha256>,
        /// The mode; without it an existing file keeps its own, a new one is `file`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<FileMode>,
        /// What must be at the path in the base.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expect: Option<Expect>,
        /// Why, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Replaces pieces of a text file.
    Edit {
        /// The path.
        path: String,
        /// The replacements, in order.
        edits: Vec<Edit>,
        /// What must be at the path in the base.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expect: Option<Expect>,
        /// Why, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Removes a file, symlink, or with `recursive` a directory.
    Delete {
        /// The path.
        path: String,
        /// Whether a directory is meant.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        recursive: bool,
        /// What must be at the path in the base.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expect: Option<Expect>,
        /// Why, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Gives a file, symlink, or with `recursive` a directory another path.
    Move {
        /// The path it has.
        from: String,
        /// The path it gets; must not exist.
        to: String,
        /// Whether a directory is meant.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        recursive: bool,
        /// What must be at `from` in the base.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expect: Option<Expect>,
        /// Why, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Makes a symlink, or gives an existing path a new life as one.
    Symlink {
        /// The path.
        path: String,
        /// Where it points, relative to the directory it lies in.
        target: String,
        /// What must be at the path in the base.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expect: Option<Expect>,
        /// Why, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Sets the mode of a file.
    Chmod {
        /// The path.
        path: String,
        /// The mode it gets.
        mode: FileMode,
        /// What must be at the path in the base.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expect: Option<Expect>,
        /// Why, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// A multi-file edit bound to a base.
///
/// ```
/// use semaprax_protocol::submission::Submission;
/// let text = r#"{"schema":"semaprax.submission/1","author":"me","message":"m",
///   "changes":[{"op":"put","path":"a","content":"x"}]}"#;
/// let submission: Submission = serde_json::from_str(text).unwrap();
/// assert_eq!(submission.changes.len(), 1);
/// assert!(serde_json::from_str::<Submission>(r#"{"changes":[],"colour":"red"}"#).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, remote = "Self")]
pub struct Submission {
    /// `semaprax.submission/1`.
    #[serde(default)]
    pub schema: SchemaTag<Submission>,
    /// The name of this submission; the daemon gives one when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<SubmissionId>,
    /// The revision the author started from; without it ACTIVE at the time of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// What to do when ACTIVE is no longer the base.
    #[serde(default)]
    pub on_stale: OnStale,
    /// Who, for people and the log.
    #[serde(default)]
    pub author: String,
    /// What and why, for people and the log.
    #[serde(default)]
    pub message: String,
    /// Paths relied on without being changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Read>,
    /// The changes, in order.
    pub changes: Vec<Change>,
}

crate::object::object_form!(Expect, Read, Edit, Change, Submission);
