//! Why the store could not do something.
//!
//! Owns: `StoreError` and the code under which each kind is reported.

use semaprax_protocol::{Code, Diagnostic, Refusal, Seq};

use crate::world::WorldError;

/// Why the store could not do something.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system said no.
    #[error(transparent)]
    World(#[from] WorldError),
    /// SQLite said no.
    #[error("the database could not {operation}: {source}")]
    Database {
        /// What was tried.
        operation: &'static str,
        /// Why not.
        source: rusqlite::Error,
    },
    /// What is stored contradicts itself.
    #[error("{what}")]
    Damaged {
        /// What, as a fragment.
        what: String,
    },
    /// The record is there, the content is not any more.
    #[error("the content of @{seq} was collected under the retention rules")]
    Collected {
        /// The publication.
        seq: Seq,
    },
    /// The store is of a version this build does not understand.
    #[error("the store has version {found}; this build understands up to {supported}")]
    Version {
        /// The version found.
        found: i64,
        /// The newest this build understands.
        supported: i64,
    },
    /// Whoever asked for it wants it no longer.
    #[error("it was not finished: nobody wants it any more")]
    Interrupted,
    /// A revision argument names nothing, or several things.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// The result of an operation of the store.
pub type StoreResult<T> = Result<T, StoreError>;

impl StoreError {
    /// Whether the disk failed to make something durable: what it holds is unknown from here on.
    pub fn is_failed_sync(&self) -> bool {
        match self {
            Self::World(error) => error.is_failed_sync(),
            Self::Database { source, .. } => {
                source.sqlite_error_code() == Some(rusqlite::ErrorCode::SystemIoFailure)
                    && !is_full(source)
                    && !is_cut_short(source)
            }
            _ => false,
        }
    }

    /// Whether what is stored is damaged, by our own digests or by what SQLite says of its file.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Database { source, .. } => database_code(source) == Code::WorkspaceDamaged,
            _ => false,
        }
    }

    /// Why a file of the state directory could not be read. Something else in its place is damage.
    pub fn of_own_file(error: WorldError) -> Self {
        use std::io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory};
        match error.kind() {
            InvalidInput | IsADirectory | NotADirectory => Self::damaged(error.to_string()),
            _ => error.into(),
        }
    }

    /// A contradiction in what is stored.
    pub fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::World(error) => error.into(),
            StoreError::Refused(refusal) => refusal,
            StoreError::Damaged { .. } => Diagnostic::new(Code::WorkspaceDamaged, message).into(),
            StoreError::Collected { .. } => Diagnostic::new(Code::ContentCollected, message).into(),
            StoreError::Version { .. } => Diagnostic::new(Code::StoreVersion, message).into(),
            StoreError::Interrupted => Diagnostic::new(Code::Internal, message).into(),
            StoreError::Database { source, .. } => {
                Diagnostic::new(database_code(&source), message).into()
            }
        }
    }
}

/// Whether there was no room for the index of the write-ahead log: SQLite calls that an io error.
fn is_full(error: &rusqlite::Error) -> bool {
    error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
}

/// Whether a file of the database ends before what it says of itself.
fn is_cut_short(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_IOERR_CORRUPTFS, SQLITE_IOERR_SHORT_READ};
    error.sqlite_error().is_some_and(|error| {
        matches!(
            error.extended_code,
            SQLITE_IOERR_SHORT_READ | SQLITE_IOERR_CORRUPTFS
        )
    })
}

fn database_code(error: &rusqlite::Error) -> Code {
    use rusqlite::ErrorCode;
    if is_full(error) {
        return Code::NoSpace;
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Code::NoSpace,
        Some(ErrorCode::ReadOnly) => Code::ReadOnly,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Code::WorkspaceDamaged,
        // Our statements fit our tables: these are no longer ours. Rules of ours that a row breaks
        // were kept when it was written.
        Some(ErrorCode::Unknown | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch) => {
            Code::WorkspaceDamaged
        }
        Some(ErrorCode::SystemIoFailure) if is_cut_short(error) => Code::WorkspaceDamaged,
        Some(ErrorCode::PermissionDenied) => Code::PermissionDenied,
        Some(_) => Code::Io,
        None => Code::Internal,
    }
}
