//! The machine this runs on: the only home of `std::fs` and of the clock.
//!
//! Owns: the real `Disk`, `Clock` and `Entropy`. Never: decides anything; each function is one
//! operation of the system.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the world that the ban points to"
)]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use camino::Utf8Path;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps};
use semaprax_protocol::Timestamp;

use super::disk::{Disk, EntryType, FileLock, Filesystem, GIVEN_NAME, Metadata, OpenedFile};
use super::{Clock, Entropy, WorldError, WorldResult};

/// The real disk, clock and entropy.
#[derive(Debug)]
pub struct RealWorld;

trait Context<T> {
    fn context(self, operation: &'static str, path: &Utf8Path) -> WorldResult<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, operation: &'static str, path: &Utf8Path) -> WorldResult<T> {
        self.map_err(|source| WorldError::new(operation, path, source))
    }
}

impl<T> Context<T> for rustix::io::Result<T> {
    fn context(self, operation: &'static str, path: &Utf8Path) -> WorldResult<T> {
        self.map_err(|source| WorldError::new(operation, path, source.into()))
    }
}

fn entry_type(kind: fs::FileType) -> EntryType {
    if kind.is_file() {
        EntryType::File
    } else if kind.is_dir() {
        EntryType::Directory
    } else if kind.is_symlink() {
        EntryType::Symlink
    } else {
        EntryType::Other
    }
}

/// No link is followed, and nothing that stands in the place of a file can hold the opening up.
const PLAIN: rustix::fs::OFlags = rustix::fs::OFlags::NOFOLLOW.union(rustix::fs::OFlags::NONBLOCK);

fn open_nofollow(path: &Utf8Path) -> io::Result<File> {
    open_plain(OpenOptions::new().read(true), path)
}

/// Opens a regular file and nothing else: a FIFO reads as an empty one, and a link leads to another.
fn open_plain(options: &mut OpenOptions, path: &Utf8Path) -> io::Result<File> {
    let no_file = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
    let opened = options.custom_flags(PLAIN.bits().cast_signed()).open(path);
    let link = rustix::io::Errno::LOOP.raw_os_error();
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(code) if code == link => no_file(),
        _ => error,
    })?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(no_file())
    }
}

impl Disk for RealWorld {
    fn read(&self, path: &Utf8Path) -> WorldResult<Vec<u8>> {
        let read = || -> io::Result<_> {
            let mut file = open_nofollow(path)?;
            let mut content = Vec::new();
            io::Read::read_to_end(&mut file, &mut content)?;
            Ok(content)
        };
        read().context("read", path)
    }

    fn open(&self, path: &Utf8Path) -> WorldResult<Box<dyn OpenedFile>> {
        let file = open_nofollow(path).context("open", path)?;
        Ok(Box::new(RealFile {
            file,
            path: path.to_owned(),
        }))
    }

    fn create(&self, path: &Utf8Path, content: &[u8], mode: u32) -> WorldResult<()> {
        let create = || -> io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(path)?;
            file.write_all(content)?;
            // The umask took its share of the mode.
            file.set_permissions(fs::Permissions::from_mode(mode))
        };
        create().context("create", path)
    }

    fn sync_file(&self, path: &Utf8Path) -> WorldResult<()> {
        open_nofollow(path)
            .and_then(|file| file.sync_all())
            .context("sync", path)
    }

    fn sync_directory(&self, path: &Utf8Path) -> WorldResult<()> {
        let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NONBLOCK;
        OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
            .and_then(|file| file.sync_all())
            .context("sync the directory", path)
    }

    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> WorldResult<()> {
        fs::rename(from, to).context("rename to", to)
    }

    fn exchange(&self, one: &Utf8Path, other: &Utf8Path) -> WorldResult<()> {
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(CWD, one.as_std_path(), CWD, other.as_std_path(), flags)
            .context("exchange", one)
    }

    fn reflink(&self, from: &Utf8Path, to: &Utf8Path) -> WorldResult<()> {
        let reflink = || -> io::Result<()> {
            let source = open_nofollow(from)?;
            let target = OpenOptions::new().write(true).create_new(true).open(to)?;
            Ok(rustix::fs::ioctl_ficlone(&target, &source)?)
        };
        reflink().context("share the blocks of", from)
    }

    fn link(&self, from: &Utf8Path, to: &Utf8Path) -> WorldResult<()> {
        // linkat without AT_SYMLINK_FOLLOW: a symlink gets a second name, not its target.
        rustix::fs::linkat(
            CWD,
            from.as_std_path(),
            CWD,
            to.as_std_path(),
            AtFlags::empty(),
        )
        .context("link", to)
    }

    fn symlink(&self, target: &str, path: &Utf8Path) -> WorldResult<()> {
        std::os::unix::fs::symlink(target, path).context("create the symlink", path)
    }

    fn read_link(&self, path: &Utf8Path) -> WorldResult<Vec<u8>> {
        let target = fs::read_link(path).context("read the symlink", path)?;
        Ok(std::os::unix::ffi::OsStringExt::into_vec(
            target.into_os_string(),
        ))
    }

    fn remove_file(&self, path: &Utf8Path) -> WorldResult<()> {
        fs::remove_file(path).context("remove", path)
    }

    fn remove_directory(&self, path: &Utf8Path) -> WorldResult<()> {
        fs::remove_dir(path).context("remove the directory", path)
    }

    fn create_directory(&self, path: &Utf8Path, mode: u32) -> WorldResult<()> {
        let create = || -> io::Result<()> {
            fs::DirBuilder::new().mode(mode).create(path)?;
            fs::set_permissions(path, fs::Permissions::from_mode(mode))
        };
        create().context("create the directory", path)
    }

    fn set_mode(&self, path: &Utf8Path, mode: u32) -> WorldResult<()> {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).context("chmod", path)
    }

    fn set_mtime(&self, path: &Utf8Path, mtime: i64) -> WorldResult<()> {
        let moment = Timespec {
            tv_sec: mtime.div_euclid(1_000_000_000),
            tv_nsec: mtime.rem_euclid(1_000_000_000),
        };
        let times = Timestamps {
            last_access: moment,
            last_modification: moment,
        };
        rustix::fs::utimensat(CWD, path.as_std_path(), &times, AtFlags::SYMLINK_NOFOLLOW)
            .context("set the time of", path)
    }

    fn metadata(&self, path: &Utf8Path) -> WorldResult<Option<Metadata>> {
        match fs::symlink_metadata(path) {
            Ok(found) => Ok(Some(Metadata {
                kind: entry_type(found.file_type()),
                mode: found.mode() & 0o7777,
                len: found.len(),
                mtime: found.mtime() * 1_000_000_000 + found.mtime_nsec(),
                changed: found.ctime() * 1_000_000_000 + found.ctime_nsec(),
                inode: (found.dev(), found.ino()),
                links: found.nlink(),
                uid: found.uid(),
                allocated: found.blocks() * 512,
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
            Err(error) => Err(WorldError::new("look at", path, error)),
        }
    }

    fn read_directory(&self, path: &Utf8Path) -> WorldResult<Vec<(String, EntryType)>> {
        let read = || -> io::Result<_> {
            let mut names = Vec::new();
            for entry in fs::read_dir(path)? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                names.push((name, entry_type(entry.file_type()?)));
            }
            names.sort();
            Ok(names)
        };
        read().context("list", path)
    }

    fn give_names(&self, path: &Utf8Path) -> WorldResult<Vec<String>> {
        let give = || -> io::Result<_> {
            let mut given = Vec::new();
            for entry in fs::read_dir(path)? {
                let name = entry?.file_name();
                if name.to_str().is_none() {
                    let digest = blake3::hash(name.as_encoded_bytes()).to_hex();
                    let new = format!("{GIVEN_NAME}{digest}");
                    fs::rename(path.as_std_path().join(&name), path.join(&new))?;
                    given.push(new);
                }
            }
            Ok(given)
        };
        give().context("give names in", path)
    }

    fn try_lock(
        &self,
        path: &Utf8Path,
        exclusive: bool,
        create: bool,
    ) -> WorldResult<Option<Box<dyn FileLock>>> {
        let mut options = OpenOptions::new();
        options.read(true);
        if create {
            options.write(true).create(true).truncate(false).mode(0o600);
        }
        let file = open_plain(&mut options, path).context("open", path)?;
        let taken = if exclusive {
            fs4::FileExt::try_lock(&file)
        } else {
            fs4::FileExt::try_lock_shared(&file)
        };
        match taken {
            Ok(()) => {
                let found = file.metadata().context("look at", path)?;
                let inode = (found.dev(), found.ino());
                Ok(Some(Box::new(RealLock {
                    file,
                    inode,
                    path: path.to_owned(),
                })))
            }
            Err(fs4::TryLockError::WouldBlock) => Ok(None),
            Err(fs4::TryLockError::Error(error)) => Err(WorldError::new("lock", path, error)),
        }
    }

    fn free_space(&self, path: &Utf8Path) -> WorldResult<(u64, u64)> {
        let bytes = fs4::available_space(path).context("measure the space at", path)?;
        let found =
            rustix::fs::statvfs(path.as_std_path()).context("measure the space at", path)?;
        let inodes = if found.f_files == 0 {
            u64::MAX
        } else {
            found.f_favail
        };
        Ok((bytes, inodes))
    }

    fn filesystem(&self, path: &Utf8Path) -> WorldResult<Filesystem> {
        let found = rustix::fs::statfs(path.as_std_path()).context("look at", path)?;
        // The type of the field differs between targets; the magic numbers fit in 32 bits.
        #[expect(
            clippy::cast_sign_loss,
            clippy::cast_possible_truncation,
            reason = "see above"
        )]
        let magic = found.f_type as u32;
        Ok(Filesystem { magic })
    }
}

struct RealFile {
    file: File,
    path: camino::Utf8PathBuf,
}

impl OpenedFile for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> WorldResult<usize> {
        self.file
            .read_at(buffer, offset)
            .context("read", &self.path)
    }
}

#[derive(Debug)]
struct RealLock {
    file: File,
    inode: (u64, u64),
    path: camino::Utf8PathBuf,
}

impl FileLock for RealLock {
    fn inode(&self) -> (u64, u64) {
        self.inode
    }

    fn write(&self, content: &[u8]) -> WorldResult<()> {
        let write = || -> io::Result<()> {
            self.file.set_len(0)?;
            self.file.write_all_at(content, 0)
        };
        write().context("write", &self.path)
    }
}

impl Clock for RealWorld {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }

    fn since_boot(&self) -> Duration {
        let found = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(found.tv_sec).unwrap_or(0);
        Duration::new(seconds, u32::try_from(found.tv_nsec).unwrap_or(0))
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn boot_id(&self) -> Option<String> {
        // A process does not outlive its boot.
        static BOOT: OnceLock<String> = OnceLock::new();
        if let Some(id) = BOOT.get() {
            return Some(id.clone());
        }
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let id = Some(text.trim().to_owned()).filter(|id| !id.is_empty())?;
        Some(BOOT.get_or_init(|| id).clone())
    }
}

impl Entropy for RealWorld {
    fn uuid(&self) -> uuid::Uuid {
        uuid::Uuid::now_v7()
    }
}
