//! The runtime directory: whose it is, and what lies in it.
//!
//! Owns: the checks that make the directory safe to trust, and the lock that makes two daemons that
//! start at once end up as one.
//! Invariants: the socket's path is only ever unlinked by the holder of `daemon.lock`; the lock file is
//! never removed.

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::limits::SOCKET_PATH_BYTES;
use semaprax_protocol::{Code, Diagnostic, Refusal};

use crate::world::{Disk, EntryType, FileLock};

const LOCK: &str = "daemon.lock";
const SOCKET: &str = "daemon.sock";
const LOG: &str = "daemon.log";
const OLD_LOG: &str = "daemon.log.1";

/// A log file over this size is put aside at the start.
const LOG_BYTES: u64 = 4 << 20;

/// A runtime directory that has been checked.
#[derive(Debug)]
pub(super) struct Place {
    directory: Utf8PathBuf,
}

impl Place {
    /// Makes or checks the directory.
    pub(super) fn prepare(
        disk: &dyn Disk,
        uid: u32,
        directory: &Utf8Path,
    ) -> Result<Self, Refusal> {
        if !directory.is_absolute() {
            return Err(refuse(directory, Code::Io, "is not an absolute path"));
        }
        let length = directory.join(SOCKET).as_str().len();
        if length > SOCKET_PATH_BYTES {
            let reason =
                format!("makes a socket path of {length} bytes, {SOCKET_PATH_BYTES} is the most");
            return Err(refuse(directory, Code::Io, &reason));
        }
        make(disk, directory)?;
        let Some(found) = disk.metadata(directory)? else {
            return Err(refuse(directory, Code::Io, "was removed"));
        };
        match found.kind {
            EntryType::Directory => {}
            EntryType::Symlink => {
                return Err(refuse(directory, Code::PermissionDenied, "is a symlink"));
            }
            EntryType::File | EntryType::Other => {
                return Err(refuse(directory, Code::Io, "is not a directory"));
            }
        }
        if found.uid != uid {
            return Err(refuse(
                directory,
                Code::PermissionDenied,
                "belongs to another user",
            ));
        }
        if found.mode & 0o077 != 0 {
            narrow(disk, directory, found.mode)?;
        }
        Ok(Self {
            directory: directory.to_owned(),
        })
    }

    /// The path of the socket.
    pub(super) fn socket(&self) -> Utf8PathBuf {
        self.directory.join(SOCKET)
    }

    /// The path of the log.
    pub(super) fn log(&self) -> Utf8PathBuf {
        self.directory.join(LOG)
    }

    /// Takes the lock that says "I am the daemon of this directory"; `None` while another holds it.
    pub(super) fn try_lock(&self, disk: &dyn Disk) -> Result<Option<Box<dyn FileLock>>, Refusal> {
        Ok(disk.try_lock(&self.directory.join(LOCK), true, true)?)
    }

    /// Removes the socket of a daemon that was killed. Only for the holder of the lock.
    pub(super) fn remove_stale_socket(
        &self,
        disk: &dyn Disk,
        _lock: &dyn FileLock,
    ) -> Result<(), Refusal> {
        let socket = self.socket();
        match disk.metadata(&socket)?.map(|found| found.kind) {
            None => Ok(()),
            Some(EntryType::Other) => Ok(disk.remove_file(&socket)?),
            Some(_) => Err(refuse(
                &socket,
                Code::Io,
                "is in the way: it is not a socket",
            )),
        }
    }

    /// Puts a large log aside, over an older one.
    pub(super) fn rotate_log(&self, disk: &dyn Disk) -> Result<(), Refusal> {
        let log = self.log();
        if disk
            .metadata(&log)?
            .is_some_and(|found| found.len > LOG_BYTES)
        {
            disk.rename(&log, &self.directory.join(OLD_LOG))?;
        }
        Ok(())
    }
}

fn make(disk: &dyn Disk, directory: &Utf8Path) -> Result<(), Refusal> {
    if disk.metadata(directory)?.is_some() {
        return Ok(());
    }
    if let Some(parent) = directory.parent() {
        make(disk, parent)?;
    }
    match disk.create_directory(directory, 0o700) {
        // Another daemon that starts at the same moment.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => Ok(made?),
    }
}

/// Takes the rights of others away, but only from a directory that is plainly ours: a mistaken setting
/// must not close `/tmp` or a home to everybody.
fn narrow(disk: &dyn Disk, directory: &Utf8Path, mode: u32) -> Result<(), Refusal> {
    let ours = [LOCK, SOCKET, LOG, OLD_LOG];
    let names = disk.read_directory(directory)?;
    let foreign = names.iter().any(|(name, _)| !ours.contains(&name.as_str()));
    if foreign || mode & 0o022 != 0 {
        let reason = format!("is open to other users (mode {:o})", mode & 0o7777);
        return Err(refuse(directory, Code::PermissionDenied, &reason));
    }
    Ok(disk.set_mode(directory, 0o700)?)
}

fn refuse(path: &Utf8Path, code: Code, reason: &str) -> Refusal {
    Diagnostic::new(code, format!("the runtime directory cannot be used: `{path}` {reason}"))
        .at(path.as_str())
        .hint("set SEMAPRAX_RUNTIME_DIR to a short, absolute path of a directory of your own with mode 0700")
        .into()
}
