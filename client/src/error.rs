//! Errors of the client as the same diagnostics that the daemon gives.
//!
//! Owns: how an error of the system becomes a `Refusal` that names the path. A refusal of the daemon
//! passes through unchanged. Never: text of another program taken for a code.

use std::fmt::Display;
use std::io;

use semaprax_protocol::{Code, Diagnostic, Refusal};

/// The refusal for an error of the system: `action` is what was being done to `path`.
///
/// ```
/// let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
/// let refusal = semaprax_client::error::of_io("read", "a.json", &missing);
/// assert_eq!(refusal.code().word(), "not-found");
/// ```
pub fn of_io(action: &str, path: impl Display, error: &io::Error) -> Refusal {
    let code = match error.kind() {
        io::ErrorKind::NotFound => Code::NotFound,
        io::ErrorKind::PermissionDenied => Code::PermissionDenied,
        io::ErrorKind::ReadOnlyFilesystem => Code::ReadOnly,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::NoSpace,
        _ => Code::Io,
    };
    let mut diagnostic = Diagnostic::new(code, format!("cannot {action} `{path}`: {error}"));
    if code == Code::NotFound {
        // The code's own hint speaks of paths inside a revision.
        diagnostic.hint = None;
    }
    diagnostic.at(path.to_string()).into()
}

/// `daemon-unreachable`, with what was tried.
pub fn unreachable(message: impl Into<String>) -> Refusal {
    Diagnostic::new(Code::DaemonUnreachable, message).into()
}

/// An answer or a file that breaks the rules of the protocol.
pub fn internal(message: impl Into<String>) -> Refusal {
    Diagnostic::new(Code::Internal, message).into()
}

/// A refusal of one diagnostic.
pub fn refuse<T>(code: Code, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Diagnostic::new(code, message).into())
}
