//! Where everything of a workspace lies. The only place where a logical path becomes a real one.
//!
//! Owns: the names inside `.semaprax-workspace`. Never: touches the disk.

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::{BlobDigest, LogicalPath, Revision};

/// The name of the state directory.
pub const STATE_DIRECTORY: &str = ".semaprax-workspace";

/// The paths of one workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: Utf8PathBuf,
    state: Utf8PathBuf,
}

/// The longest path that the kernel takes: `PATH_MAX` without the byte at its end.
const PATH_BYTES: usize = 4095;

impl Layout {
    /// The layout of the workspace at `root`, an absolute path.
    pub fn new(root: &Utf8Path) -> Self {
        Self {
            root: root.to_owned(),
            state: root.join(STATE_DIRECTORY),
        }
    }

    /// The directory of the workspace.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// The state directory.
    pub fn state(&self) -> &Utf8Path {
        &self.state
    }

    /// Held exclusively by the daemon that may write.
    pub fn lock(&self) -> Utf8PathBuf {
        self.state.join("LOCK")
    }

    /// The pointer.
    pub fn active(&self) -> Utf8PathBuf {
        self.state.join("ACTIVE")
    }

    /// The pointer's next content, before the rename.
    pub fn active_next(&self) -> Utf8PathBuf {
        self.state.join("ACTIVE.next")
    }

    /// The database.
    pub fn database(&self) -> Utf8PathBuf {
        self.state.join("store.db")
    }

    /// Blobs too large for the database.
    pub fn objects(&self) -> Utf8PathBuf {
        self.state.join("objects")
    }

    /// Where a large blob lies.
    pub fn object(&self, digest: &BlobDigest) -> Utf8PathBuf {
        let text = digest.to_string();
        let (head, tail) = text.split_at(2);
        self.objects().join(head).join(tail)
    }

    /// The materialized generations.
    pub fn generations(&self) -> Utf8PathBuf {
        self.state.join("generations")
    }

    /// One materialized generation.
    pub fn generation(&self, revision: &Revision) -> GenerationLayout {
        GenerationLayout {
            directory: self.generations().join(revision.to_string()),
        }
    }

    /// The bytes of the longest path of a file that can be read in a tree here.
    pub fn longest_path(&self) -> usize {
        let tree = self.generation(&Revision::from_bytes([0; 32])).files();
        PATH_BYTES.saturating_sub(tree.as_str().len() + 1)
    }

    /// Candidates and whatever is being made.
    pub fn staging(&self) -> Utf8PathBuf {
        self.state.join("staging")
    }

    /// What is being removed.
    pub fn trash(&self) -> Utf8PathBuf {
        self.state.join("trash")
    }

    /// Room kept back for a full disk.
    pub fn reserve(&self) -> Utf8PathBuf {
        self.state.join("reserve")
    }

    /// Journals of the change commands; they outlive a failed `init`.
    pub fn changes(&self) -> Utf8PathBuf {
        self.state.join("changes")
    }
}

/// The paths of one generation, or of a candidate that is to become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationLayout {
    directory: Utf8PathBuf,
}

impl GenerationLayout {
    /// The layout of a candidate that is built at `directory`.
    pub fn at(directory: Utf8PathBuf) -> Self {
        Self { directory }
    }

    /// The wrapper; stays writable, so that a normal user can move it.
    pub fn directory(&self) -> &Utf8Path {
        &self.directory
    }

    /// The tree itself; sealed.
    pub fn files(&self) -> Utf8PathBuf {
        self.directory.join("files")
    }

    /// The canonical manifest, whose digest is the revision.
    pub fn manifest(&self) -> Utf8PathBuf {
        self.directory.join("manifest.json")
    }

    /// The boot in which the tree was made or last verified.
    pub fn boot(&self) -> Utf8PathBuf {
        self.directory.join("BOOT")
    }

    /// Locked shared by readers without a daemon.
    pub fn lease(&self) -> Utf8PathBuf {
        self.directory.join("LEASE")
    }
}

/// The real path of `path` in the tree at `files`.
pub fn real_path(files: &Utf8Path, path: &LogicalPath) -> Utf8PathBuf {
    files.join(path.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_blob_lies_under_its_first_two_digits() {
        let layout = Layout::new(Utf8Path::new("/w"));
        let digest: BlobDigest = "ab".repeat(32).parse().unwrap();
        let expect = format!("/w/.semaprax-workspace/objects/ab/{}", "ab".repeat(31));
        assert_eq!(layout.object(&digest), expect);
    }
}
