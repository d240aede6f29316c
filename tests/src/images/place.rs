//! A private directory for images and mount points, left clean by whoever used it.
//!
//! Owns: the directory, that it is in use (a lock that ends with the process), unmounting what is
//! mounted below it, and the same for what a killed process left behind.
//! Never: touches a place whose owner lives.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::mount::UnmountFlags;
use rustix::process::{Signal, kill_process};

use crate::process::{daemons_below, is_alive, make_writable, pid_of, within};

/// The variable with the directory that places are made in.
pub const BASE: &str = "SEMAPRAX_IMAGES_DIR";
/// What the names of places begin with.
const PREFIX: &str = "spx-image-";
/// The file whose lock says that the owner lives.
const OWNER: &str = "OWNER";
/// Images are sparse; all of a run take about 1 GiB.
const ROOM: u64 = 4 << 30;
/// How long a mount point may stay busy: the last files of a killed process are closed late.
const BUSY: Duration = Duration::from_secs(2);

/// The directory.
#[derive(Debug)]
pub struct Place {
    directory: PathBuf,
    /// Kept for a look at it, when something was wrong: the files, not the mounts.
    pub keep: bool,
    _owner: File,
}

impl Place {
    /// A new place. What killed processes left is taken away first.
    pub fn new() -> io::Result<Self> {
        Self::new_in(&base())
    }

    /// The same below a directory of the caller's choice.
    pub fn new_in(base: &Path) -> io::Result<Self> {
        release_leftovers(base);
        let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(base)?;
        let directory = made.keep();
        // Locked before it has the name by which others look for it.
        let aside = directory.join("OWNER.next");
        let owner = File::create(&aside)?;
        owner.try_lock()?;
        fs::rename(&aside, directory.join(OWNER))?;
        Ok(Self {
            directory,
            keep: false,
            _owner: owner,
        })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        release(&self.directory, self.keep);
    }
}

/// In memory where there is room: a sync of an image then costs no disk. The variable wins over it.
fn base() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let has_room =
        || rustix::fs::statvfs(memory).is_ok_and(|found| found.f_bavail * found.f_frsize >= ROOM);
    match std::env::var_os(BASE) {
        Some(given) => PathBuf::from(given),
        None if has_room() => memory.to_owned(),
        None => std::env::temp_dir(),
    }
}

fn release_leftovers(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // A place without the file is being made at this moment, or was never used.
        let Ok(owner) = File::open(entry.path().join(OWNER)) else {
            continue;
        };
        if owner.try_lock().is_ok() {
            release(&entry.path(), false);
        }
    }
}

fn release(directory: &Path, keep: bool) {
    for daemon in daemons_below(directory) {
        if let Some(process) = pid_of(daemon) {
            // It fails only when the process has just ended.
            let _ = kill_process(process, Signal::KILL);
            let _ = within(BUSY, || (!is_alive(daemon)).then_some(()));
        }
    }
    for point in mounts_below(directory).iter().rev() {
        unmount(point);
    }
    if keep {
        eprintln!("kept for a look: {}", directory.display());
        return;
    }
    make_writable(directory);
    drop(fs::remove_dir_all(directory));
}

/// Takes a mount away, and its loop device with it. One that stays busy is taken out of sight: the
/// kernel ends it when its last file is closed.
pub(super) fn unmount(point: &Path) {
    let gone = || match rustix::mount::unmount(point, UnmountFlags::empty()) {
        Err(rustix::io::Errno::BUSY) => None,
        Ok(()) | Err(_) => Some(()),
    };
    if within(BUSY, gone).is_none() {
        let _ = rustix::mount::unmount(point, UnmountFlags::DETACH);
    }
}

/// The mount points below a directory, in the order in which they were mounted.
fn mounts_below(directory: &Path) -> Vec<PathBuf> {
    let text = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let lines = text.split(|&byte| byte == b'\n');
    let points = lines.filter_map(|line| line.split(|&byte| byte == b' ').nth(4));
    points
        .map(|point| PathBuf::from(std::ffi::OsString::from_vec(unescaped(point))))
        .filter(|point| point.as_os_str().as_bytes() != directory.as_os_str().as_bytes())
        .filter(|point| point.starts_with(directory))
        .collect()
}

/// The kernel writes blanks in paths as `\040`.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut found = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let octal = (first == b'\\')
            .then(|| after.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(byte) => {
                found.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                found.push(first);
                rest = after;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_the_kernel_writes_them() {
        let check = |text: &str, expect: &str| {
            assert_eq!(unescaped(text.as_bytes()), expect.as_bytes(), "{text}");
        };
        check("/dev/shm/a", "/dev/shm/a");
        check("/a\\040b\\134c", "/a b\\c");
        check("/a\\04", "/a\\04");
    }
}
