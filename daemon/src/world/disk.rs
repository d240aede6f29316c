//! What the store asks of a file system.

use camino::Utf8Path;

use super::WorldResult;

/// What a name in a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryType {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// FIFO, socket, device.
    Other,
}

/// What is known of a name without opening it; symlinks are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// What it is.
    pub kind: EntryType,
    /// Permission bits.
    pub mode: u32,
    /// Bytes.
    pub len: u64,
    /// Modification time in nanoseconds since 1970.
    pub mtime: i64,
    /// When anything of the inode last changed, in nanoseconds since 1970, by the clock of the file
    /// system. Nobody can set it; 0 where it is not known.
    pub changed: i64,
    /// Device and inode: the same two, the same file.
    pub inode: (u64, u64),
    /// Names of the inode.
    pub links: u64,
    /// Owner.
    pub uid: u32,
    /// Bytes of disk it takes.
    pub allocated: u64,
}

/// How the names begin that replace names which are not UTF-8.
pub(super) const GIVEN_NAME: &str = "not-utf-8-";

/// What kind of file system a path lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filesystem {
    /// The magic number of statfs.
    pub magic: u32,
}

impl Filesystem {
    /// The name people use for it; `None` for one this list does not have.
    pub fn name(self) -> Option<&'static str> {
        Some(match self.magic {
            0xEF53 => "ext4",
            0x9123_683E => "btrfs",
            0x5846_5342 => "xfs",
            0x0102_1994 => "tmpfs",
            0x794C_7630 => "overlay",
            0x2FC1_2FC1 => "zfs",
            0xF2F5_2010 => "f2fs",
            0x6969 => "nfs",
            0x517B | 0xFF53_4D42 | 0xFE53_4D42 => "smb",
            0x0102_1997 => "9p",
            0x6573_5546 => "fuse",
            _ => return None,
        })
    }

    /// Whether it is known to break locks, renames or durability.
    pub fn is_refused(self) -> bool {
        matches!(self.name(), Some("nfs" | "smb" | "9p"))
    }
}

/// A kernel lock; ends when dropped or when the process ends.
pub trait FileLock: Send + Sync + std::fmt::Debug {
    /// Device and inode of the locked file.
    fn inode(&self) -> (u64, u64);

    /// Replaces the content of the locked file in place.
    fn write(&self, content: &[u8]) -> WorldResult<()>;
}

/// A file opened for reading, piece by piece.
pub trait OpenedFile: Send {
    /// Reads into `buffer` from `offset`; 0 at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> WorldResult<usize>;
}

/// A file system. Paths are absolute; no operation follows a symlink in the last segment.
pub trait Disk: Send + Sync {
    /// The whole content of a file.
    fn read(&self, path: &Utf8Path) -> WorldResult<Vec<u8>>;
    /// Opens a file for reading in pieces.
    fn open(&self, path: &Utf8Path) -> WorldResult<Box<dyn OpenedFile>>;
    /// Makes a file that must not exist, with these permission bits.
    fn create(&self, path: &Utf8Path, content: &[u8], mode: u32) -> WorldResult<()>;
    /// Makes the content and metadata of a file durable.
    fn sync_file(&self, path: &Utf8Path) -> WorldResult<()>;
    /// Makes the names in a directory durable.
    fn sync_directory(&self, path: &Utf8Path) -> WorldResult<()>;
    /// Moves a name over another, atomically.
    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> WorldResult<()>;
    /// Exchanges two names, atomically.
    fn exchange(&self, one: &Utf8Path, other: &Utf8Path) -> WorldResult<()>;
    /// Makes a copy that shares blocks; fails where the file system cannot.
    fn reflink(&self, from: &Utf8Path, to: &Utf8Path) -> WorldResult<()>;
    /// Gives an inode a second name; the new name must not exist.
    fn link(&self, from: &Utf8Path, to: &Utf8Path) -> WorldResult<()>;
    /// Makes a symlink that must not exist.
    fn symlink(&self, target: &str, path: &Utf8Path) -> WorldResult<()>;
    /// Where a symlink points.
    fn read_link(&self, path: &Utf8Path) -> WorldResult<Vec<u8>>;
    /// Removes a name that is not a directory.
    fn remove_file(&self, path: &Utf8Path) -> WorldResult<()>;
    /// Removes an empty directory.
    fn remove_directory(&self, path: &Utf8Path) -> WorldResult<()>;
    /// Makes a directory that must not exist, with these permission bits.
    fn create_directory(&self, path: &Utf8Path, mode: u32) -> WorldResult<()>;
    /// Sets permission bits.
    fn set_mode(&self, path: &Utf8Path, mode: u32) -> WorldResult<()>;
    /// Sets the modification time, in nanoseconds since 1970, of the name itself.
    fn set_mtime(&self, path: &Utf8Path, mtime: i64) -> WorldResult<()>;
    /// What is known of a name; `None` when there is none.
    fn metadata(&self, path: &Utf8Path) -> WorldResult<Option<Metadata>>;
    /// The names in a directory, sorted. Names that are not UTF-8 come with replaced bytes: the store
    /// makes none, so such a name is foreign in any case.
    fn read_directory(&self, path: &Utf8Path) -> WorldResult<Vec<(String, EntryType)>>;
    /// Gives every name in a directory that is not UTF-8 one that begins with `not-utf-8-`, so that it can be
    /// dealt with; answers the given names. A disk that has no such names has nothing to do.
    fn give_names(&self, path: &Utf8Path) -> WorldResult<Vec<String>> {
        let _ = path;
        Ok(Vec::new())
    }
    /// Takes a lock without waiting, on a file that is made when missing (`create`); `None` when
    /// another holder excludes it.
    fn try_lock(
        &self,
        path: &Utf8Path,
        exclusive: bool,
        create: bool,
    ) -> WorldResult<Option<Box<dyn FileLock>>>;
    /// What kind of file system `path` lies on.
    fn filesystem(&self, path: &Utf8Path) -> WorldResult<Filesystem>;
    /// Free bytes and free inodes of the file system at `path`; where it makes inodes as it goes,
    /// `u64::MAX`.
    fn free_space(&self, path: &Utf8Path) -> WorldResult<(u64, u64)>;
}
