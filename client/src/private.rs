//! Private directories that go away: scratch copies and the trees of readers without a daemon.
//!
//! Owns: making one, filling it from a tree or from the store, and removing it.
//! Never: links: what is written in a private directory is seen nowhere else.

use std::fs::{File, FileTimes, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::documents::ListingEntry;
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{Code, Diagnostic, Refusal};

use crate::{Client, ContentReader, error, files};

/// How the names of private directories begin: what is so called and not locked has no owner any more.
const PREFIX: &str = "semaprax-private-";
/// How often a directory is made that another process takes for one without an owner.
const ATTEMPTS: usize = 8;
/// Directories without an owner that are removed at once: the next one removes more.
const SWEPT: usize = 16;

/// A directory of this process alone, removed when dropped. It is locked while it is used: a process that
/// was killed could not remove its own, so the next one does.
#[derive(Debug)]
pub struct PrivateDirectory {
    path: Utf8PathBuf,
    lock: File,
}

impl PrivateDirectory {
    /// An empty one, among the temporary files.
    pub fn new() -> Result<Self, Refusal> {
        let place = std::env::temp_dir();
        sweep(&place);
        let failed =
            |source: &io::Error| error::of_io("make a directory in", place.display(), source);
        for _ in 0..ATTEMPTS {
            let made = tempfile::Builder::new()
                .prefix(PREFIX)
                .tempdir_in(&place)
                .map_err(|source| failed(&source))?;
            let path = Utf8PathBuf::from_path_buf(made.keep()).map_err(|path| {
                let message = format!("`{}` is not UTF-8", path.display());
                Refusal::from(Diagnostic::new(Code::PathRefused, message))
            })?;
            // Before it was locked another process may have removed it.
            if let Some(lock) = files::take_directory(path.as_std_path()) {
                return Ok(Self { path, lock });
            }
        }
        Err(failed(&io::ErrorKind::ResourceBusy.into()))
    }

    /// Where it is.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Lets started commands inherit the lock, so that nobody else takes the directory for theirs.
    pub(crate) fn hand_on(&self) -> Result<(), Refusal> {
        rustix::io::fcntl_setfd(&self.lock, rustix::io::FdFlags::empty())
            .map_err(|reason| error::of_io("hand on the lock of", &self.path, &reason.into()))
    }
}

/// Removes private directories of this user that nobody has locked. What cannot be removed stays.
fn sweep(place: &std::path::Path) {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    let left = ours.filter_map(|entry| Some((files::take_directory(&entry.path())?, entry.path())));
    for (lock, path) in left.take(SWEPT) {
        drop(files::remove_tree(&path));
        drop(lock);
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // What a command still holds open or keeps writing may stay behind among the temporary files.
        drop(files::remove_tree(self.path.as_std_path()));
    }
}

/// Copies a sealed tree to `to`, writable, with the same times, and without links to it.
pub fn copy_tree(from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
    std::fs::create_dir(to)?;
    for entry in from.read_dir_utf8()? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let found = entry.file_type()?;
        if found.is_dir() {
            copy_tree(source, &target)?;
        } else if found.is_symlink() {
            symlink(source.read_link()?, &target)?;
            copy_times_of_link(source, &target)?;
        } else {
            files::copy(source, &target)?;
            let old = source.metadata()?;
            let executable = old.permissions().mode() & 0o100 != 0;
            std::fs::set_permissions(&target, permissions(executable, true))?;
            let times = FileTimes::new().set_modified(old.modified()?);
            File::options()
                .write(true)
                .open(&target)?
                .set_times(times)?;
        }
    }
    Ok(())
}

fn permissions(executable: bool, writable: bool) -> Permissions {
    Permissions::from_mode(match (executable, writable) {
        (true, true) => 0o755,
        (false, true) => 0o644,
        (true, false) => 0o555,
        (false, false) => 0o444,
    })
}

fn copy_times_of_link(from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};
    use std::os::unix::fs::MetadataExt;

    let old = from.symlink_metadata()?;
    let times = Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: old.mtime(),
            tv_nsec: old.mtime_nsec(),
        },
    };
    utimensat(CWD, to.as_std_path(), &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

impl Client {
    /// Writes the content of a revision to `to`, read-only, from the store.
    pub(crate) fn copy_to(&mut self, revision: &str, to: &Utf8Path) -> Result<(), Refusal> {
        make_directory(to)?;
        let listing = self.listing(Some(revision.to_owned()), None)?;
        for entry in &listing.entries {
            let target = to.join(entry.path.as_str());
            if let Some(parent) = target.parent() {
                make_directory(parent)?;
            }
            self.copy_entry(revision, entry, &target)?;
        }
        seal_directories(to).map_err(|source| error::of_io("seal", to, &source))
    }

    fn copy_entry(
        &mut self,
        revision: &str,
        entry: &ListingEntry,
        target: &Utf8Path,
    ) -> Result<(), Refusal> {
        let failed = |source: io::Error| error::of_io("write", target, &source);
        if entry.kind == EntryKind::Symlink {
            let content = self.content(Some(revision), entry.path.as_str())?;
            let link = String::from_utf8_lossy(&content.bytes).into_owned();
            return symlink(link, target).map_err(failed);
        }
        let mut file = files::create_new(target).map_err(failed)?;
        let mut reader = ContentReader::new(Some(revision.to_owned()), entry.path.as_str());
        while let Some(piece) = reader.next_piece(self)? {
            file.write_all(&piece).map_err(failed)?;
        }
        file.set_permissions(permissions(entry.kind == EntryKind::Executable, false))
            .map_err(failed)
    }
}

fn make_directory(path: &Utf8Path) -> Result<(), Refusal> {
    std::fs::create_dir_all(path).map_err(|source| error::of_io("make", path, &source))
}

fn seal_directories(path: &Utf8Path) -> io::Result<()> {
    for entry in path.read_dir_utf8()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            seal_directories(entry.path())?;
        }
    }
    std::fs::set_permissions(path, permissions(true, false))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_copy_is_writable_and_shares_nothing() {
        let place = PrivateDirectory::new().unwrap();
        let from = place.path().join("files");
        std::fs::create_dir_all(from.join("bin")).unwrap();
        files::write(from.join("bin/tool"), "#!/bin/sh\n");
        files::write(from.join("a"), "a");
        symlink("a", from.join("link")).unwrap();
        std::fs::set_permissions(from.join("bin/tool"), permissions(true, false)).unwrap();
        std::fs::set_permissions(from.join("a"), permissions(false, false)).unwrap();
        seal_directories(&from).unwrap();

        let to = place.path().join("copy");
        copy_tree(&from, &to).unwrap();
        let check = |path: &str, mode: u32| {
            let (old, new) = (from.join(path), to.join(path));
            let (old, new) = (
                old.symlink_metadata().unwrap(),
                new.symlink_metadata().unwrap(),
            );
            assert_eq!(new.permissions().mode() & 0o777, mode, "{path}");
            assert_ne!(old.ino(), new.ino(), "{path}");
            assert_eq!(old.mtime_nsec(), new.mtime_nsec(), "{path}");
        };
        check("a", 0o644);
        check("bin/tool", 0o755);
        assert_eq!(to.join("link").read_link_utf8().unwrap(), "a");
        files::write(to.join("bin/new"), "x");

        let path = place.path().to_owned();
        drop(place);
        assert!(!path.exists(), "a sealed tree is removed too");
    }
}
