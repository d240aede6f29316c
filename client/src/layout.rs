//! The files of a state directory that a client may look at.
//!
//! Owns: their paths, which docs/protocol.md promises to other programs.
//! Never: opens `store.db`: that is the daemon's, or its reader's.

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::Revision;

/// The name of the state directory.
pub(crate) const STATE: &str = ".semaprax-workspace";

/// The state directory.
pub(crate) fn state(workspace: &Utf8Path) -> Utf8PathBuf {
    workspace.join(STATE)
}

/// The file that makes a directory a workspace.
pub(crate) fn store(workspace: &Utf8Path) -> Utf8PathBuf {
    state(workspace).join("store.db")
}

/// The file that names the holder of the workspace.
pub(crate) fn lock(workspace: &Utf8Path) -> Utf8PathBuf {
    state(workspace).join("LOCK")
}

/// The file that names what is ACTIVE.
pub(crate) fn active(workspace: &Utf8Path) -> Utf8PathBuf {
    state(workspace).join("ACTIVE")
}

/// The directory of all generations.
pub(crate) fn generations(workspace: &Utf8Path) -> Utf8PathBuf {
    state(workspace).join("generations")
}

/// The directory of one generation.
pub(crate) fn generation(workspace: &Utf8Path, revision: Revision) -> Utf8PathBuf {
    generations(workspace).join(revision.to_string())
}
