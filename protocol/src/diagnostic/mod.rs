//! Refusals and errors as documents: a code, a message, a path, a hint.
//!
//! Owns: `Diagnostic`, `Refusal` and the error document. The codes and their explanations are in
//! `code.rs`. Never: text of another program taken for a code.

mod code;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use code::Code;

use crate::limits::DIAGNOSTICS;
use crate::{LogicalPath, Revision, SchemaTag, Seq, Sha256};

/// What became of a request that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Judged and turned down: the workspace is fine, the request does not fit it. Exit code 1.
    Rejected,
    /// Not understood, or could not be done. Exit code 2.
    Failed,
    /// Perhaps done: only recovery can tell. Exit code 3.
    InDoubt,
}

impl Status {
    /// The exit code of the command line.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Rejected => 1,
            Self::Failed => 2,
            Self::InDoubt => 3,
        }
    }
}

/// The generation that is ACTIVE, where a refusal has to name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActiveReference {
    /// Its publication number.
    pub seq: Seq,
    /// Its revision.
    pub revision: Revision,
}

/// One place where two edits meet. Line ranges are `[first, last]`, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConflictLines {
    /// Lines of the base.
    pub base: (u64, u64),
    /// Lines of what is ACTIVE.
    pub ours: (u64, u64),
    /// Lines of what was submitted.
    pub theirs: (u64, u64),
}

/// The three sides of a conflict; a side without content is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    /// SHA-256 of the path in the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Sha256>,
    /// SHA-256 of the path in ACTIVE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<Sha256>,
    /// SHA-256 of the path as submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theirs: Option<Sha256>,
    /// The line ranges that overlap; empty when the conflict is not one of lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<ConflictLines>,
}

/// One thing that is wrong.
///
/// ```
/// use semaprax_protocol::{Code, Diagnostic};
/// let diagnostic = Diagnostic::new(Code::NotFound, "there is no `a`").at("a").hint("see `semaprax ls`");
/// assert_eq!(diagnostic.code.word(), "not-found");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// The stable code.
    pub code: Code,
    /// What is wrong: a fragment in lower case, paths in backticks.
    pub message: String,
    /// The path it is about, as it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The index of the change in the submission, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<u64>,
    /// How often a text that must occur once does occur.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The lines where it occurs, from 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<u64>,
    /// What was expected at the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What is at the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// What is ACTIVE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveReference>,
    /// The paths that moved since the base.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<LogicalPath>,
    /// The sides of a merge conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<Conflict>,
}

impl Diagnostic {
    /// A diagnostic with the code's own hint.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            path: None,
            hint: code.hint().map(str::to_owned),
            change: None,
            count: None,
            lines: Vec::new(),
            expected: None,
            found: None,
            active: None,
            paths: Vec::new(),
            conflict: None,
        }
    }

    /// Names the path it is about.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Puts another next step in place of the code's own.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A request that did not succeed: at least one diagnostic, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// What became of the request.
    pub status: Status,
    /// What is wrong, the decisive one first.
    pub diagnostics: Vec<Diagnostic>,
}

impl Refusal {
    /// A refusal with the status that the code has by itself.
    pub fn new(diagnostic: Diagnostic) -> Self {
        Self {
            status: diagnostic.code.status(),
            diagnostics: vec![diagnostic],
        }
    }

    /// A refusal of several diagnostics; the first decides the status. `None` when there are none.
    pub fn of(mut diagnostics: Vec<Diagnostic>) -> Option<Self> {
        let status = diagnostics.first()?.code.status();
        if diagnostics.len() > DIAGNOSTICS {
            let cut = diagnostics.len() - DIAGNOSTICS;
            diagnostics.truncate(DIAGNOSTICS);
            if let Some(last) = diagnostics.last_mut() {
                last.message = format!("{} (and {cut} more diagnostics)", last.message);
            }
        }
        Some(Self {
            status,
            diagnostics,
        })
    }

    /// The same, as judged inside a submission, where a missing path is a rejection.
    #[must_use]
    pub fn in_submission(mut self) -> Self {
        if self.code() == Code::NotFound {
            self.status = Status::Rejected;
        }
        self
    }

    /// The code of the decisive diagnostic.
    pub fn code(&self) -> Code {
        self.diagnostics
            .first()
            .map_or(Code::Internal, |diagnostic| diagnostic.code)
    }

    /// The error document.
    pub fn document(self) -> ErrorDocument {
        ErrorDocument {
            schema: SchemaTag::new(),
            status: self.status,
            diagnostics: self.diagnostics,
        }
    }
}

impl From<Diagnostic> for Refusal {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::new(diagnostic)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.diagnostics.first() {
            Some(first) => write!(out, "{}: {}", first.code, first.message),
            None => out.write_str("refused"),
        }
    }
}

impl std::error::Error for Refusal {}

/// What `--json` prints for a refusal or an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorDocument {
    /// `semaprax.error/1`.
    pub schema: SchemaTag<ErrorDocument>,
    /// What became of the request.
    pub status: Status,
    /// What is wrong, the decisive one first.
    pub diagnostics: Vec<Diagnostic>,
}
