//! Reading one file of a foreign directory, as it was at one moment.
//!
//! Owns: the safe opening: every path is resolved below the directory's descriptor, through no
//! symlink, without blocking on what turns out to be a FIFO; and the check that the file did not
//! change while it was read.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{Code, Diagnostic, Refusal};

/// How often a file that changes while it is read is tried again.
const ATTEMPTS: usize = 5;
/// Below the root, through no link of any kind.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

/// An open directory to read from.
#[derive(Debug)]
pub struct SourceDirectory {
    root: OwnedFd,
    path: Utf8PathBuf,
    /// Whether the system resolves whole paths below a descriptor (`openat2`). An old kernel or a
    /// container's filter may not: then each segment is opened on its own, without following links.
    resolves_beneath: bool,
}

/// What reading a path gave.
#[derive(Debug)]
pub enum ReadOutcome {
    /// Its kind and bytes; of a symlink, its target.
    Content(EntryKind, Vec<u8>),
    /// It is larger than the limit.
    TooLarge,
    /// It is neither file nor symlink (any more).
    Special,
    /// This user may not read it.
    Unreadable,
    /// It is not there (any more).
    Gone,
    /// It kept changing.
    Changing,
}

impl SourceDirectory {
    /// Opens `path`, which must be a directory.
    pub fn open(path: &Utf8Path) -> Result<Self, Refusal> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::openat(CWD, path.as_std_path(), flags, Mode::empty()) {
            Ok(root) => {
                let probe = OFlags::PATH | OFlags::CLOEXEC;
                let resolves_beneath =
                    rustix::fs::openat2(&root, ".", probe, Mode::empty(), BENEATH).is_ok();
                Ok(Self {
                    root,
                    path: path.to_owned(),
                    resolves_beneath,
                })
            }
            Err(error) => {
                let message = format!(
                    "cannot open the directory `{path}`: {}",
                    io::Error::from(error)
                );
                let code = if error == rustix::io::Errno::NOENT {
                    Code::NotFound
                } else {
                    Code::Io
                };
                Err(Diagnostic::new(code, message).at(path.as_str()).into())
            }
        }
    }

    /// Reads the file or symlink at `path`, at most `limit` bytes.
    pub fn read(&self, path: &str, limit: u64) -> Result<ReadOutcome, Refusal> {
        for _ in 0..ATTEMPTS {
            match self.attempt(path, limit) {
                Ok(Some(outcome)) => return Ok(outcome),
                Ok(None) => {}
                Err(error) => return self.classify(path, error),
            }
        }
        Ok(ReadOutcome::Changing)
    }

    fn classify(&self, path: &str, error: rustix::io::Errno) -> Result<ReadOutcome, Refusal> {
        use rustix::io::Errno;
        match error {
            Errno::NOENT | Errno::NOTDIR => Ok(ReadOutcome::Gone),
            Errno::ACCESS | Errno::PERM => Ok(ReadOutcome::Unreadable),
            // A symlink was put in the way, or a device without a driver.
            Errno::LOOP | Errno::XDEV | Errno::NXIO | Errno::NODEV => Ok(ReadOutcome::Special),
            error => Err(self.failed("read", path, error)),
        }
    }

    /// An error that is not the fault of what lies there.
    pub(super) fn failed(&self, what: &str, path: &str, error: rustix::io::Errno) -> Refusal {
        let place = joined(self.path.as_str(), path);
        let message = format!("cannot {what} `{place}`: {}", io::Error::from(error));
        let at = if path.is_empty() { &place } else { path };
        Diagnostic::new(Code::Io, message).at(at).into()
    }

    /// Where it was opened.
    pub(super) fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The names in the directory at `path`, the top itself for none, and what each is.
    pub(super) fn list(&self, path: &str) -> rustix::io::Result<Vec<(Vec<u8>, FileType)>> {
        let path = if path.is_empty() { "." } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut names = Vec::new();
        let mut directory = Dir::new(self.open_directory(path, flags)?)?;
        while let Some(entry) = directory.read() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not say.
                FileType::Unknown => {
                    match rustix::fs::statat(directory.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(found) => FileType::from_raw_mode(found.st_mode),
                        Err(rustix::io::Errno::NOENT) => continue,
                        Err(error) => return Err(error),
                    }
                }
                kind => kind,
            };
            names.push((name.to_bytes().to_vec(), kind));
        }
        Ok(names)
    }

    /// What lies at `path`.
    pub(super) fn kind(&self, path: &str) -> rustix::io::Result<FileType> {
        let (directory, name) = self.open_parent(path)?;
        let found = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(found.st_mode))
    }

    /// The directory a path lies in, and its last segment, which may itself be a symlink: it has to be
    /// looked at from its directory, without following it.
    fn open_parent<'path>(&self, path: &'path str) -> rustix::io::Result<(OwnedFd, &'path str)> {
        let look = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
        Ok((self.open_directory(parent, look)?, name))
    }

    /// Opens a directory below the root, through no symlink and not out of it.
    fn open_directory(&self, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        if self.resolves_beneath {
            return rustix::fs::openat2(&self.root, path, flags, Mode::empty(), BENEATH);
        }
        let mut here = rustix::fs::openat(&self.root, ".", flags, Mode::empty())?;
        for segment in path.split('/').filter(|segment| *segment != ".") {
            if segment == ".." {
                return Err(rustix::io::Errno::XDEV);
            }
            here = rustix::fs::openat(&here, segment, flags, Mode::empty())?;
        }
        Ok(here)
    }

    /// `None` when the file changed meanwhile.
    fn attempt(&self, path: &str, limit: u64) -> rustix::io::Result<Option<ReadOutcome>> {
        let (directory, name) = self.open_parent(path)?;
        let before = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(before.st_mode) {
            FileType::Symlink => {
                match rustix::fs::readlinkat(&directory, name, Vec::new()) {
                    Ok(target) => {
                        let target = target.into_bytes();
                        Ok(Some(ReadOutcome::Content(EntryKind::Symlink, target)))
                    }
                    // It is no link any more.
                    Err(rustix::io::Errno::INVAL) => Ok(None),
                    Err(error) => Err(error),
                }
            }
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                match rustix::fs::openat(&directory, name, flags, Mode::empty()) {
                    Ok(file) => read_file(&file, limit),
                    // It is a link by now.
                    Err(rustix::io::Errno::LOOP) => Ok(None),
                    Err(error) => Err(error),
                }
            }
            _ => Ok(Some(ReadOutcome::Special)),
        }
    }
}

/// The entry `name` of `directory`; of the top for none.
pub(super) fn joined(directory: &str, name: &str) -> String {
    match (directory, name) {
        ("", name) => name.to_owned(),
        (directory, "") => directory.to_owned(),
        (directory, name) => format!("{directory}/{name}"),
    }
}

/// Reads a file that nothing opened before, by a path the system resolves; `None` for what is no file
/// of at most `limit` bytes. Never waits for what is a FIFO by now.
pub(super) fn read_apart(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()?;
    match read_file(&file, limit).ok()?? {
        ReadOutcome::Content(_, bytes) => Some(bytes),
        _ => None,
    }
}

fn read_file(file: &OwnedFd, limit: u64) -> rustix::io::Result<Option<ReadOutcome>> {
    let before = rustix::fs::fstat(file)?;
    if FileType::from_raw_mode(before.st_mode) != FileType::RegularFile {
        return Ok(Some(ReadOutcome::Special));
    }
    if before.st_size.cast_unsigned() > limit {
        return Ok(Some(ReadOutcome::TooLarge));
    }
    let size = usize::try_from(before.st_size).unwrap_or(0);
    let mut content = vec![0; size + 1];
    let mut filled = 0;
    while let Some(rest) = content.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pread(file, rest, filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    content.truncate(filled);
    let after = rustix::fs::fstat(file)?;
    if filled != size || !is_same(&before, &after) {
        return Ok(None);
    }
    // As git: what the owner may execute.
    let is_executable = before.st_mode & 0o100 != 0;
    let kind = if is_executable {
        EntryKind::Executable
    } else {
        EntryKind::File
    };
    Ok(Some(ReadOutcome::Content(kind, content)))
}

fn is_same(before: &Stat, after: &Stat) -> bool {
    (
        before.st_size,
        before.st_mtime,
        before.st_mtime_nsec,
        before.st_ctime,
        before.st_ctime_nsec,
    ) == (
        after.st_size,
        after.st_mtime,
        after.st_mtime_nsec,
        after.st_ctime,
        after.st_ctime_nsec,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_followed_and_nothing_blocks() {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(directory.path()).unwrap();
        std::fs::create_dir(root.join("dir")).unwrap();
        std::fs::write(root.join("dir/file"), "content").unwrap();
        for (name, mode) in [("owner", 0o700), ("others", 0o655)] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::write(root.join(name), name).unwrap();
            std::fs::set_permissions(root.join(name), mode).unwrap();
        }
        std::os::unix::fs::symlink("dir", root.join("link")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("escape")).unwrap();
        rustix::fs::mknodat(
            CWD,
            root.join("pipe").as_std_path(),
            FileType::Fifo,
            Mode::RUSR,
            0,
        )
        .unwrap();
        let mut source = SourceDirectory::open(root).unwrap();
        for resolves_beneath in [true, false] {
            source.resolves_beneath = resolves_beneath;
            check_all(&source);
        }
    }

    fn check_all(source: &SourceDirectory) {
        let check = |path: &str, limit: u64, expect: &str| {
            let got = match source.read(path, limit).unwrap() {
                ReadOutcome::Content(kind, bytes) => {
                    format!("{} {}", kind.word(), String::from_utf8_lossy(&bytes))
                }
                other => format!("{other:?}"),
            };
            assert_eq!(got, expect, "{path}");
        };
        check("dir/file", 100, "file content");
        check("dir/file", 3, "TooLarge");
        check("owner", 100, "executable owner");
        check("others", 100, "file others");
        check("link", 100, "symlink dir");
        check("escape", 100, "symlink /etc/passwd");
        check("link/file", 100, "Gone");
        check("pipe", 100, "Special");
        check("none", 100, "Gone");
        check("dir/file/below", 100, "Gone");
        check("../x", 100, "Special");
        let list = |path: &str| {
            let mut names = source.list(path).map_err(|error| error.to_string())?;
            names.sort_by(|one, other| one.0.cmp(&other.0));
            Ok::<_, String>(
                names
                    .into_iter()
                    .map(|(name, kind)| (String::from_utf8(name).unwrap(), kind))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            list("dir").unwrap(),
            [("file".to_owned(), FileType::RegularFile)]
        );
        assert_eq!(list("").unwrap().len(), 6);
        for none in [
            "link", "escape", "pipe", "dir/file", "..", "none", "link/..",
        ] {
            list(none).unwrap_err();
        }
    }

    #[test]
    fn what_is_read_apart_is_a_small_file() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("file"), "content").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let check = |name: &str, limit: u64, expect: Option<&str>| {
            let got = read_apart(&at(name), limit);
            assert_eq!(got.as_deref(), expect.map(str::as_bytes), "{name}");
        };
        check("file", 7, Some("content"));
        check("file", 6, None);
        check("link", 100, None);
        check("pipe", 100, None);
        check("none", 100, None);
        check(".", 100, None);
    }
}
