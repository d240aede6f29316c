//! An error of the world: which operation, on which path, and why.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::{Code, Diagnostic, Refusal};

/// The verb with which the names of all syncing operations start.
const SYNC: &str = "sync";

/// An operation on a path that did not succeed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} `{path}`: {source}")]
pub struct WorldError {
    /// What was tried, a verb.
    pub operation: &'static str,
    /// On what.
    pub path: Utf8PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// The result of an operation on the world.
pub type WorldResult<T> = Result<T, WorldError>;

impl WorldError {
    /// Names the operation and the path of an error of the system.
    pub fn new(operation: &'static str, path: &Utf8Path, source: io::Error) -> Self {
        Self {
            operation,
            path: path.to_owned(),
            source,
        }
    }

    /// The kind of the system's error.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// Whether it was a sync that failed, for another reason than a full disk.
    pub fn is_failed_sync(&self) -> bool {
        self.operation.starts_with(SYNC) && self.code() != Code::NoSpace
    }

    /// The code under which it is reported.
    pub fn code(&self) -> Code {
        match self.source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::NoSpace,
            io::ErrorKind::ReadOnlyFilesystem => Code::ReadOnly,
            io::ErrorKind::PermissionDenied => Code::PermissionDenied,
            _ => Code::Io,
        }
    }
}

impl From<WorldError> for Refusal {
    fn from(error: WorldError) -> Self {
        let code = error.code();
        Diagnostic::new(code, error.to_string())
            .at(error.path.as_str())
            .into()
    }
}
