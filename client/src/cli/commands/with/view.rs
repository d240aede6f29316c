//! What the command of `with` sees of the tree: itself, a writable layer over it, or a copy.
//!
//! Owns: choosing, probing (by writing a file, not by looking at what the system says it can do),
//! and the start of the hidden command that mounts.
//! Never: mounts anything itself: that happens in a process that has the namespace for itself.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::{Code, Diagnostic, Refusal};

use super::mount::{self, Mount};
use crate::cli::args::Scratch;
use crate::cli::settings;
use crate::{PrivateDirectory, copy_tree, error};

/// What the command sees.
pub(super) struct View {
    root: Utf8PathBuf,
    mount: Option<Mount>,
    /// Removed when the view is dropped.
    _private: Option<PrivateDirectory>,
}

impl View {
    /// Makes ready what was asked for.
    pub(super) fn prepare(
        tree: &Utf8Path,
        scratch: Option<Scratch>,
        isolate: bool,
    ) -> Result<Self, Refusal> {
        match scratch {
            None if isolate => Self::isolated(tree),
            None => Ok(Self {
                root: tree.to_owned(),
                mount: None,
                _private: None,
            }),
            Some(Scratch::Copy) => Self::copied(tree),
            Some(Scratch::Overlay) => Self::layered(tree),
            Some(Scratch::Auto) => match Self::layered(tree) {
                Err(refusal) if refusal.code() == Code::UnsupportedFilesystem => Self::copied(tree),
                other => other,
            },
        }
    }

    fn copied(tree: &Utf8Path) -> Result<Self, Refusal> {
        let private = PrivateDirectory::new()?;
        private.hand_on()?;
        let root = private.path().join("files");
        copy_tree(tree, &root).map_err(|source| error::of_io("copy to", &root, &source))?;
        Ok(Self {
            root,
            mount: None,
            _private: Some(private),
        })
    }

    fn layered(tree: &Utf8Path) -> Result<Self, Refusal> {
        let private = PrivateDirectory::new()?;
        private.hand_on()?;
        let mount = Mount::overlay(tree, private.path())?;
        probe(
            &mount,
            "a writable layer over the tree cannot be made here",
            "use `--scratch=copy`",
        )?;
        Ok(Self {
            root: mount.root().to_owned(),
            mount: Some(mount),
            _private: Some(private),
        })
    }

    fn isolated(tree: &Utf8Path) -> Result<Self, Refusal> {
        let mount = Mount::read_only(tree);
        probe(
            &mount,
            "the tree cannot be mounted read-only here",
            "run it without `--isolate`",
        )?;
        Ok(Self {
            root: tree.to_owned(),
            mount: Some(mount),
            _private: None,
        })
    }

    /// The directory of the tree, as the command sees it.
    pub(super) fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// Where the started process begins: a mount is entered only once it is there.
    pub(super) fn start_directory(&self) -> &Utf8Path {
        if self.mount.is_some() {
            Utf8Path::new("/")
        } else {
            &self.root
        }
    }

    /// The process to start, which becomes `command`.
    pub(super) fn command(&self, command: &[OsString]) -> Command {
        let mut started = entering(self.mount.as_ref());
        started.arg("--").args(command);
        started
    }
}

/// The hidden command, where there is something to mount in a namespace of its own.
fn entering(mount: Option<&Mount>) -> Command {
    let program = settings::own_program();
    let mut started = if mount.is_some() {
        // It does not fork, so that what is started stays the child of this process.
        let mut started = Command::new("unshare");
        if mount::needs_user_namespace() {
            started.args(["--user", "--map-current-user", "--keep-caps"]);
        }
        started.arg("--mount").arg("--").arg(program);
        started
    } else {
        let mut started = Command::new(program);
        started.arg0("semaprax");
        started
    };
    let parent = std::process::id().to_string();
    started.args(["internal-enter", "--parent", &parent]);
    if let Some(mount) = mount {
        started.args(mount.arguments());
    }
    started
}

/// Tries the mount, and writing where that is its purpose.
fn probe(mount: &Mount, message: &str, hint: &str) -> Result<(), Refusal> {
    let tried = entering(Some(mount))
        .arg("--probe")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output();
    let reason = match tried {
        Ok(done) if done.status.success() => return Ok(()),
        Ok(done) => String::from_utf8_lossy(&done.stderr).trim().to_owned(),
        Err(source) => format!("cannot start `unshare`: {source}"),
    };
    let last = reason.lines().next().unwrap_or("no reason was given");
    Err(
        Diagnostic::new(Code::UnsupportedFilesystem, format!("{message}: {last}"))
            .hint(hint)
            .into(),
    )
}
