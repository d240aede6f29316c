//! The mounts that `with` makes in a namespace of its own.
//!
//! Owns: what is mounted and how, told to the hidden command by its arguments, and trying it out.
//! Never: makes the namespace (`unshare` does, before this program is executed in it).

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::Refusal;

use crate::cli::args::EnterArguments;
use crate::{error, files};

/// What is mounted for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mount {
    /// A writable layer, kept in a private directory, over a tree.
    Overlay {
        tree: Utf8PathBuf,
        private: Utf8PathBuf,
        root: Utf8PathBuf,
    },
    /// A tree onto itself, read-only.
    ReadOnly { tree: Utf8PathBuf },
}

impl Mount {
    /// A writable layer over `tree`, kept in `private`, whose directories are made here.
    pub(super) fn overlay(tree: &Utf8Path, private: &Utf8Path) -> Result<Self, Refusal> {
        for name in ["upper", "work", "files"] {
            let path = private.join(name);
            std::fs::create_dir(&path).map_err(|source| error::of_io("make", &path, &source))?;
        }
        Ok(Self::overlay_at(tree, private))
    }

    fn overlay_at(tree: &Utf8Path, private: &Utf8Path) -> Self {
        Self::Overlay {
            tree: tree.to_owned(),
            private: private.to_owned(),
            root: private.join("files"),
        }
    }

    /// `tree` read-only.
    pub(super) fn read_only(tree: &Utf8Path) -> Self {
        Self::ReadOnly {
            tree: tree.to_owned(),
        }
    }

    /// Where the command finds the tree.
    pub(super) fn root(&self) -> &Utf8Path {
        match self {
            Self::Overlay { root, .. } => root,
            Self::ReadOnly { tree } => tree,
        }
    }

    /// How the hidden command is told.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut arguments = match self {
            Self::Overlay { tree, private, .. } => vec![
                "--lower".to_owned(),
                tree.to_string(),
                "--upper".to_owned(),
                private.to_string(),
            ],
            Self::ReadOnly { tree } => vec!["--read-only".to_owned(), tree.to_string()],
        };
        if needs_user_namespace() {
            arguments.push("--user-namespace".to_owned());
        }
        arguments
    }

    pub(super) fn told(arguments: &EnterArguments) -> Option<Self> {
        match (&arguments.lower, &arguments.upper, &arguments.read_only) {
            (Some(lower), Some(upper), _) => Some(Self::overlay_at(lower, upper)),
            (_, _, Some(tree)) => Some(Self::read_only(tree)),
            _ => None,
        }
    }

    /// Makes the mount. Needs a mount namespace that nobody else is in.
    pub(super) fn make(&self, user_namespace: bool) -> io::Result<()> {
        match self {
            Self::Overlay {
                tree,
                private,
                root,
            } => {
                kernel::overlay(tree, private, root, user_namespace)?;
                // What was sealed below is sealed above too, until its directories are opened.
                open_directories(root)
            }
            Self::ReadOnly { tree } => kernel::read_only(tree),
        }
    }

    /// Does what the mount is for, and undoes it.
    pub(super) fn try_out(&self) -> io::Result<()> {
        let probe = self.root().join(".semaprax-probe");
        match (self, files::create_new(&probe)) {
            (Self::Overlay { .. }, Ok(mut file)) => {
                file.write_all(b"probe")?;
                files::remove_file(&probe)
            }
            (Self::Overlay { .. }, Err(reason)) => Err(reason),
            (Self::ReadOnly { .. }, Ok(_)) => {
                files::remove_file(&probe)?;
                Err(io::Error::other("the mount is not read-only"))
            }
            (Self::ReadOnly { .. }, Err(_)) => Ok(()),
        }
    }
}

/// Whether mounting needs rights that this user has only in a namespace of its own.
pub(super) fn needs_user_namespace() -> bool {
    !rustix::process::geteuid().is_root()
}

fn open_directories(path: &Utf8Path) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    for entry in path.read_dir_utf8()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_directories(entry.path())?;
        }
    }
    Ok(())
}

/// Gives up, for the command, the rights that were for mounting.
pub(super) fn drop_rights() -> io::Result<()> {
    kernel::drop_rights()
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::ffi::CString;
    use std::io;
    use std::path::Path;

    use camino::Utf8Path;
    use rustix::mount::{MountFlags, MountPropagationFlags};

    pub(super) fn overlay(
        tree: &Utf8Path,
        private: &Utf8Path,
        root: &Utf8Path,
        user_namespace: bool,
    ) -> io::Result<()> {
        let mut data = format!(
            "lowerdir={},upperdir={},workdir={}",
            escaped(tree)?,
            escaped(&private.join("upper"))?,
            escaped(&private.join("work"))?,
        );
        if user_namespace {
            data.push_str(",userxattr");
        }
        let data = CString::new(data).map_err(io::Error::other)?;
        rustix::mount::mount(
            "overlay",
            root.as_std_path(),
            "overlay",
            MountFlags::empty(),
            data.as_c_str(),
        )?;
        Ok(())
    }

    pub(super) fn read_only(tree: &Utf8Path) -> io::Result<()> {
        let tree = tree.as_std_path();
        rustix::mount::mount_bind_recursive(tree, tree)?;
        rustix::mount::mount_change(tree, MountPropagationFlags::PRIVATE)?;
        // A namespace may not drop flags that its parent's mount had.
        let kept = flags_of(tree)?;
        rustix::mount::mount_remount(tree, MountFlags::BIND | MountFlags::RDONLY | kept, "")?;
        Ok(())
    }

    fn flags_of(path: &Path) -> io::Result<MountFlags> {
        use rustix::fs::StatVfsMountFlags as Found;

        let found = rustix::fs::statvfs(path)?.f_flag;
        let mut kept = MountFlags::empty();
        for (there, flag) in [
            (Found::NOSUID, MountFlags::NOSUID),
            (Found::NODEV, MountFlags::NODEV),
            (Found::NOEXEC, MountFlags::NOEXEC),
            (Found::NOATIME, MountFlags::NOATIME),
            (Found::RELATIME, MountFlags::RELATIME),
        ] {
            if found.contains(there) {
                kept |= flag;
            }
        }
        Ok(kept)
    }

    /// A path as the options of an overlay spell it.
    fn escaped(path: &Utf8Path) -> io::Result<String> {
        if path.as_str().contains(['"', '\n']) {
            return Err(io::Error::other(
                "the path cannot be named in mount options",
            ));
        }
        Ok(path
            .as_str()
            .replace('\\', "\\\\")
            .replace(':', "\\:")
            .replace(',', "\\,"))
    }

    pub(super) fn drop_rights() -> io::Result<()> {
        use rustix::thread::{CapabilitySet, CapabilitySets};

        rustix::thread::clear_ambient_capability_set()?;
        let none = CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        };
        rustix::thread::set_capabilities(None, none)?;
        Ok(())
    }
}

/// Elsewhere there is no such mount.
#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::io;

    use camino::Utf8Path;

    pub(super) fn overlay(_: &Utf8Path, _: &Utf8Path, _: &Utf8Path, _: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn read_only(_: &Utf8Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn drop_rights() -> io::Result<()> {
        Ok(())
    }
}
