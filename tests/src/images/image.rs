//! Images of file systems.
//!
//! Owns: making one, mounting it, copying it while it is in use, and the shelf: a btrfs, itself an image,
//! on which a copy is one operation that shares all blocks.
//!
//! What a copy holds: every write that the inner file system had handed to its device by then, and no
//! other. The device keeps its content in the page cache of the shelf, which the copy includes; what the
//! inner file system had in a cache of its own is not there. So a copy is what a disk holds after the
//! power went out, for a disk that writes in the order in which it is told to.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::MountFlags;

use super::place::{Place, unmount};

/// A kind of file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// ext4 as it is usual.
    Ext4,
    /// Without a journal, syncing one file carries no other file's name.
    Ext4WithoutJournal,
    /// xfs.
    Xfs,
    /// btrfs.
    Btrfs,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ext4, Self::Ext4WithoutJournal, Self::Xfs, Self::Btrfs];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Ext4WithoutJournal => "ext4-without-journal",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// The smallest image that serves.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Ext4 | Self::Ext4WithoutJournal => 96 << 20,
            Self::Xfs => 300 << 20,
            Self::Btrfs => 128 << 20,
        }
    }

    /// The programs it needs.
    pub(super) const fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &["mkfs.ext4"],
            Self::Ext4WithoutJournal => &["mkfs.ext4", "e2fsck"],
            Self::Xfs => &["mkfs.xfs"],
            Self::Btrfs => &["mkfs.btrfs"],
        }
    }

    fn make(self) -> Command {
        let (program, arguments): (&str, &[&str]) = match self {
            Self::Ext4 => ("mkfs.ext4", &["-q", "-F", "-b", "4096"]),
            Self::Ext4WithoutJournal => (
                "mkfs.ext4",
                &["-q", "-F", "-b", "4096", "-O", "^has_journal"],
            ),
            Self::Xfs => ("mkfs.xfs", &["-q", "-f"]),
            Self::Btrfs => ("mkfs.btrfs", &["-q", "-f"]),
        };
        let mut command = Command::new(program);
        command.args(arguments);
        command
    }

    /// A copy has the identity of what it is a copy of, and both may be mounted. btrfs gives the second
    /// one an identity for the time being, by itself.
    const fn options(self) -> &'static str {
        match self {
            Self::Xfs => "loop,nouuid",
            Self::Ext4 | Self::Ext4WithoutJournal | Self::Btrfs => "loop",
        }
    }
}

/// A file with a file system.
#[derive(Debug, Clone)]
pub struct Image {
    path: PathBuf,
    kind: Kind,
}

impl Image {
    /// Makes one. `more` goes to the program that makes it, such as `-N 200` for the number of inodes.
    pub fn make(path: &Path, kind: Kind, bytes: u64, more: &[&str]) -> io::Result<Self> {
        File::create_new(path)?.set_len(bytes)?;
        run(kind.make().args(more).arg(path))?;
        Ok(Self {
            path: path.to_owned(),
            kind,
        })
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Copies it at one instant, mounted or not, on the same shelf.
    pub fn copy(&self, to: &Path) -> io::Result<Self> {
        let source = File::open(&self.path)?;
        let target = File::create_new(to)?;
        rustix::fs::ioctl_ficlone(&target, &source)?;
        Ok(Self {
            path: to.to_owned(),
            kind: self.kind,
        })
    }

    /// What a machine does at its start after a power cut. A journal is replayed by mounting; without one
    /// the file system is put in order first. Answers what was put in order.
    pub fn start_again(&self) -> io::Result<String> {
        if self.kind != Kind::Ext4WithoutJournal {
            return Ok(String::new());
        }
        let mut command = Command::new("e2fsck");
        let found = command.args(["-f", "-y"]).arg(&self.path).output()?;
        // 1: errors were corrected.
        match found.status.code() {
            Some(0 | 1) => Ok(String::from_utf8_lossy(&found.stdout).into_owned()),
            _ => Err(failed(&command, &found)),
        }
    }

    /// Mounts it at a directory, which is made when missing. `place` is what takes the mount away when
    /// all else fails.
    pub fn mount(&self, place: &Place, at: &Path) -> io::Result<Mounted> {
        assert!(at.starts_with(place.directory()), "mounted out of place");
        fs::create_dir_all(at)?;
        let mut command = Command::new("mount");
        command.args(["-t", self.type_name(), "-o", self.kind.options()]);
        run(command.arg(&self.path).arg(at))?;
        Ok(Mounted { at: at.to_owned() })
    }

    fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Ext4 | Kind::Ext4WithoutJournal => "ext4",
            Kind::Xfs => "xfs",
            Kind::Btrfs => "btrfs",
        }
    }

    /// Removes the file. What is mounted of it stays.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// A mounted image; unmounted when dropped.
#[derive(Debug)]
pub struct Mounted {
    at: PathBuf,
}

impl Mounted {
    /// Where.
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Makes it read-only under those who use it, or writable again.
    pub fn set_read_only(&self, read_only: bool) -> io::Result<()> {
        let flags = if read_only {
            MountFlags::RDONLY
        } else {
            MountFlags::empty()
        };
        Ok(rustix::mount::mount_remount(&self.at, flags, c"")?)
    }

    /// What an error of the disk does to ext4: it is read-only from one moment to the next, whoever writes
    /// to it. Mounted anew it is as its journal says.
    pub fn abort(&self) -> io::Result<()> {
        Ok(rustix::mount::mount_remount(
            &self.at,
            MountFlags::empty(),
            c"abort",
        )?)
    }

    /// Writes everything out that its file system has in memory.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(File::open(&self.at)?)?)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        unmount(&self.at);
    }
}

/// A mounted btrfs for images that are copied while in use.
#[derive(Debug)]
pub struct Shelf {
    mounted: Mounted,
}

impl Shelf {
    /// Makes one in a place. It takes room only for what is written to it.
    pub fn new(place: &Place, bytes: u64) -> io::Result<Self> {
        let image = Image::make(
            &place.directory().join("shelf.img"),
            Kind::Btrfs,
            bytes,
            &[],
        )?;
        let mounted = image.mount(place, &place.directory().join("shelf"))?;
        Ok(Self { mounted })
    }

    /// A path on it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.mounted.path().join(name)
    }
}

fn run(command: &mut Command) -> io::Result<()> {
    let found = command.output()?;
    if found.status.success() {
        return Ok(());
    }
    Err(failed(command, &found))
}

fn failed(command: &Command, found: &std::process::Output) -> io::Error {
    let said = String::from_utf8_lossy(&found.stderr);
    io::Error::other(format!("{command:?} ended with {}: {said}", found.status))
}
