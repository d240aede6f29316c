//! Where the daemon of this user listens.
//!
//! Owns: the runtime directory: which one, making it, and checking that nobody else can put a socket
//! there. Never: connects to anything.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::limits::SOCKET_PATH_BYTES;
use semaprax_protocol::{Code, Diagnostic, Refusal};

use crate::{env, error, files};

/// The file name of the socket in the runtime directory.
const SOCKET: &str = "daemon.sock";
/// The file whose lock says who may start a daemon.
const START_LOCK: &str = "start.lock";
/// The files of a runtime directory: those of the daemon and the client's lock.
const OURS: [&str; 5] = [
    "daemon.lock",
    SOCKET,
    "daemon.log",
    "daemon.log.1",
    START_LOCK,
];
/// More than LOCK ever holds.
const LOCK_BYTES: u64 = 64 << 10;

/// The runtime directory of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    directory: Utf8PathBuf,
}

impl Runtime {
    /// A runtime directory the caller names.
    pub fn at(directory: &Utf8Path) -> Result<Self, Refusal> {
        let absolute = std::path::absolute(directory)
            .map_err(|source| error::of_io("resolve", directory, &source))?;
        Self::checked(absolute)
    }

    /// The runtime directory the environment names: `SEMAPRAX_RUNTIME_DIR`, else
    /// `$XDG_RUNTIME_DIR/semaprax`, else `semaprax-UID` in the directory for temporary files.
    pub fn from_environment() -> Result<Self, Refusal> {
        if let Some(directory) = env::value(env::RUNTIME_DIR) {
            let absolute = std::path::absolute(&directory).map_err(|source| {
                error::of_io("resolve", PathBuf::from(&directory).display(), &source)
            })?;
            return Self::checked(absolute);
        }
        if let Some(base) = env::value(env::XDG_RUNTIME_DIR).map(PathBuf::from)
            && base.is_absolute()
            && is_ours(&base)
        {
            return Self::checked(base.join("semaprax"));
        }
        let user = rustix::process::geteuid().as_raw();
        Self::checked(std::env::temp_dir().join(format!("semaprax-{user}")))
    }

    fn checked(directory: PathBuf) -> Result<Self, Refusal> {
        let directory = Utf8PathBuf::from_path_buf(directory).map_err(|path| {
            let message = format!("the runtime directory `{}` is not UTF-8", path.display());
            Refusal::from(Diagnostic::new(Code::PathRefused, message))
        })?;
        let runtime = Self { directory };
        let length = runtime.socket().as_str().len();
        if length > SOCKET_PATH_BYTES {
            let message = format!(
                "the socket path `{}` has {length} bytes; the system allows {SOCKET_PATH_BYTES}",
                runtime.socket()
            );
            return Err(Diagnostic::new(Code::DaemonUnreachable, message)
                .hint(format!(
                    "set {} to a shorter, absolute path",
                    env::RUNTIME_DIR
                ))
                .into());
        }
        Ok(runtime)
    }

    /// The directory.
    pub fn directory(&self) -> &Utf8Path {
        &self.directory
    }

    /// The socket.
    pub fn socket(&self) -> Utf8PathBuf {
        self.directory.join(SOCKET)
    }

    /// The daemon's log.
    pub fn log(&self) -> Utf8PathBuf {
        self.directory.join("daemon.log")
    }

    /// The file whose lock says who may start a daemon.
    pub(crate) fn start_lock(&self) -> Utf8PathBuf {
        self.directory.join(START_LOCK)
    }

    /// Makes the directory, for this user alone, and checks that it is this user's.
    pub(crate) fn prepare(&self) -> Result<(), Refusal> {
        let mut builder = std::fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(|source| error::of_io("make", &self.directory, &source))?;
        self.check_owner()?;
        self.close_to_others()
    }

    /// Takes the rights of others away, but only from a directory that is plainly a runtime directory:
    /// a mistaken setting must not close a home to everybody.
    fn close_to_others(&self) -> Result<(), Refusal> {
        let directory = &self.directory;
        let failed = |source: io::Error| error::of_io("close to others", directory, &source);
        let mode = directory.metadata().map_err(failed)?.permissions().mode();
        if mode.trailing_zeros() >= 6 {
            return Ok(());
        }
        for entry in directory.read_dir_utf8().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if !OURS.contains(&entry.file_name()) {
                let message = format!(
                    "the runtime directory `{directory}` is open to other users and holds `{}`",
                    entry.file_name()
                );
                return Err(self.unsafe_directory(message));
            }
        }
        let closed = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(directory, closed).map_err(failed)
    }

    /// Whoever may write to the directory may pose as the daemon.
    pub(crate) fn check_owner(&self) -> Result<(), Refusal> {
        let found = match std::fs::symlink_metadata(&self.directory) {
            Ok(found) => found,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(error::of_io("look at", &self.directory, &source)),
        };
        let directory = &self.directory;
        let wrong = if found.is_symlink() {
            format!("the runtime directory `{directory}` is a symlink")
        } else if !found.is_dir() {
            format!("the runtime directory `{directory}` is not a directory")
        } else if found.uid() != rustix::process::geteuid().as_raw() {
            format!("the runtime directory `{directory}` belongs to another user")
        } else if found.permissions().mode() & 0o022 != 0 {
            format!("other users may write to the runtime directory `{directory}`")
        } else {
            return Ok(());
        };
        Err(self.unsafe_directory(wrong))
    }

    fn unsafe_directory(&self, message: String) -> Refusal {
        Diagnostic::new(Code::PermissionDenied, message)
            .at(self.directory.as_str())
            .hint(format!(
                "remove it, or set {} to a directory of your own with mode 0700",
                env::RUNTIME_DIR
            ))
            .into()
    }
}

fn is_ours(directory: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    std::fs::metadata(directory).is_ok_and(|found| found.is_dir() && found.uid() == user)
}

/// The socket that the holder of a workspace wrote into its LOCK. The lock itself is never probed: a
/// dead address and no address are the same.
pub(crate) fn named_by_lock(workspace: &Utf8Path) -> Option<Utf8PathBuf> {
    let text = files::read_small(crate::layout::lock(workspace), LOCK_BYTES).ok()?;
    let holder: serde_json::Value = serde_json::from_str(&text).ok()?;
    let socket = holder.get("socket")?.as_str()?;
    let usable = socket.starts_with('/') && socket.len() <= SOCKET_PATH_BYTES;
    usable.then(|| Utf8PathBuf::from(socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_names_a_socket_or_nothing() {
        let workspace = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(workspace.path()).unwrap();
        assert_eq!(named_by_lock(root), None);
        std::fs::create_dir(crate::layout::state(root)).unwrap();
        let check = |content: &str, expect: Option<&str>| {
            files::write(crate::layout::lock(root), content);
            assert_eq!(
                named_by_lock(root).as_deref().map(Utf8Path::as_str),
                expect,
                "{content}"
            );
        };
        check("", None);
        check("{\"schema\":", None);
        check(
            r#"{"schema":"semaprax.lock/1","socket":"/run/x.sock","pid":1}"#,
            Some("/run/x.sock"),
        );
        check(r#"{"socket":"relative.sock"}"#, None);
        check(r#"{"socket":""}"#, None);
    }

    #[test]
    fn a_long_directory_is_refused_with_a_way_out() {
        let refusal = Runtime::at(Utf8Path::new(&format!("/tmp/{}", "x".repeat(120)))).unwrap_err();
        assert_eq!(refusal.code(), Code::DaemonUnreachable);
        assert!(
            refusal.diagnostics[0]
                .hint
                .as_deref()
                .unwrap()
                .contains(env::RUNTIME_DIR)
        );
    }

    #[test]
    fn a_directory_others_may_write_to_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let directory = Utf8PathBuf::from_path_buf(parent.path().join("run")).unwrap();
        let runtime = Runtime::at(&directory).unwrap();
        runtime.prepare().unwrap();
        let mode = std::fs::metadata(&directory).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(
            runtime.check_owner().unwrap_err().code(),
            Code::PermissionDenied
        );
    }
}
