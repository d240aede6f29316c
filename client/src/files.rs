//! The one home of direct file access, and of the clock, in the client.
//!
//! Owns: reading what the user names on the command line, the few files of the state directory that
//! other programs may rely on (ACTIVE, LOCK, LEASE), scratch directories, and deadlines and
//! stopwatches.
//! Never: writes anything inside a state directory.

#![expect(
    clippy::disallowed_methods,
    reason = "the bans keep the daemon's files and clock behind its world; the client has this module instead"
)]

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

/// The mode of what nobody else has any business with.
const OURS_ALONE: u32 = 0o600;

/// A moment until which something may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// The moment `duration` from now.
    pub(crate) fn after(duration: Duration) -> Self {
        Self(Instant::now() + duration)
    }

    /// What is left; `None` when the moment has passed.
    pub(crate) fn remaining(self) -> Option<Duration> {
        let left = self.0.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

/// How long something takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// How long it has been.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// The whole content of a file.
pub(crate) fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// The content of a small file that another program wrote; more than `limit` bytes are an error.
pub(crate) fn read_small(path: impl AsRef<Path>, limit: u64) -> io::Result<String> {
    let mut text = String::new();
    let read = open_plain(path)?
        .take(limit + 1)
        .read_to_string(&mut text)?;
    if read as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the file is too large",
        ));
    }
    Ok(text)
}

/// Opens a regular file and nothing that stands in its place: a FIFO would hold the opening up for
/// ever, and a link leads elsewhere.
pub(crate) fn open_plain(path: impl AsRef<Path>) -> io::Result<File> {
    #[cfg(feature = "interleavings")]
    crate::interleaving::step();
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let mut options = File::options();
    let file = options
        .read(true)
        .custom_flags(flags.cast_signed())
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is not a regular file",
    ))
}

/// Opens a file for reading.
pub(crate) fn open(path: impl AsRef<Path>) -> io::Result<File> {
    File::open(path)
}

/// Locks a file with others, waiting for who holds it alone.
#[cfg(not(feature = "interleavings"))]
pub(crate) fn lock_shared(file: &File) -> io::Result<()> {
    file.lock_shared()
}

/// The same in turns of one thread, which must not be held up.
#[cfg(feature = "interleavings")]
pub(crate) fn lock_shared(file: &File) -> io::Result<()> {
    crate::interleaving::step();
    loop {
        match file.try_lock_shared() {
            Ok(()) => return Ok(()),
            Err(fs::TryLockError::WouldBlock) => crate::interleaving::wait(),
            Err(fs::TryLockError::Error(source)) => return Err(source),
        }
    }
}

/// Locks a directory of this user for this process alone; `None` when another has it, or it is gone, a
/// link, or another user's.
pub(crate) fn take_directory(path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let directory = File::from(opened);
    let found = directory.metadata().ok()?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    directory.try_lock().ok()?;
    let named = fs::symlink_metadata(path).ok()?;
    ((named.dev(), named.ino()) == (found.dev(), found.ino())).then_some(directory)
}

/// Whether `file` is what `path` names now.
pub(crate) fn is_still_at(file: &File, path: impl AsRef<Path>) -> io::Result<bool> {
    #[cfg(feature = "interleavings")]
    {
        crate::interleaving::step();
        if crate::interleaving::trusts_the_lock() {
            return Ok(true);
        }
    }
    let opened = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (opened.dev(), opened.ino())),
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(source),
    }
}

/// Writes a new file; one that exists is an error.
pub(crate) fn create_new(path: impl AsRef<Path>) -> io::Result<File> {
    File::options().write(true).create_new(true).open(path)
}

/// Opens a file that is only locked, making it, for this user alone, when it is missing.
pub(crate) fn open_lock(path: impl AsRef<Path>) -> io::Result<File> {
    File::options()
        .mode(OURS_ALONE)
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

/// Opens a log for appending, making it, for this user alone, when it is missing.
pub(crate) fn open_log(path: impl AsRef<Path>) -> io::Result<File> {
    File::options()
        .mode(OURS_ALONE)
        .append(true)
        .create(true)
        .open(path)
}

/// Copies the bytes and the permissions of a regular file to a new path.
pub(crate) fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
    fs::copy(from, to)
}

/// Removes a file.
pub(crate) fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    fs::remove_file(path)
}

/// Removes a directory and all below it. Directories are made writable on the way: what is below may
/// have been sealed, or left without any permission by the kernel's overlay.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir(path)
}

#[cfg(test)]
pub(crate) fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    fs::write(path, content).unwrap();
}
