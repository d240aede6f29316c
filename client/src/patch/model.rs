//! A patch as data.
//!
//! Owns: what one file of a patch says, already checked for being consistent in itself.
//!
//! Never: knows the file it will meet.

use super::FileMode;

/// What a patch does to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Changes the content or the mode of a file in its place.
    Modify,
    /// Makes a file that was not there.
    Create,
    /// Removes a file.
    Delete,
    /// Moves a file, perhaps with changes.
    Rename,
    /// Makes a file from another one, perhaps with changes.
    Copy,
}

/// One file of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// The line of the patch this part begins at, from 1.
    pub line: u64,
    /// What is done.
    pub operation: Operation,
    /// The path before; none if the file is created.
    pub old_path: Option<String>,
    /// The path after; none if the file is deleted.
    pub new_path: Option<String>,
    /// The mode before, if the patch names it.
    pub old_mode: Option<FileMode>,
    /// The mode after, if the patch names it. Without it a file keeps its mode, and a created one
    /// is a plain file.
    pub new_mode: Option<FileMode>,
    /// The git blob id before, perhaps shortened, if the patch names it.
    pub old_id: Option<String>,
    /// The git blob id after, perhaps shortened, if the patch names it.
    pub new_id: Option<String>,
    /// How the content changes.
    pub body: Body,
}

impl FilePatch {
    /// The path the patch is about: the new one, or that of the deleted file.
    pub fn path(&self) -> &str {
        self.new_path
            .as_deref()
            .or(self.old_path.as_deref())
            .unwrap_or_default()
    }

    /// Whether the patch also fits where there is no file: it only adds lines at the start, as a
    /// plain unified diff (which has no other way to say it) creates a file.
    pub fn may_create(&self) -> bool {
        match (&self.operation, &self.body) {
            (Operation::Create, _) => true,
            (Operation::Modify, Body::Text(hunks)) => {
                matches!(hunks.as_slice(), [only] if only.old_start == 0 && only.old_count == 0)
            }
            _ => false,
        }
    }
}

/// How a content changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// It stays as it is.
    Unchanged,
    /// By lines.
    Text(Vec<Hunk>),
    /// As a whole.
    Binary(BinaryChange),
}

/// Lines that stand for other lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The line of the patch the hunk begins at, from 1.
    pub line: u64,
    /// The first old line, from 1; without old lines, the line they would follow.
    pub old_start: u64,
    /// How many lines [`Self::old`] has.
    pub old_count: u64,
    /// The first new line, in the same way.
    pub new_start: u64,
    /// How many lines [`Self::new`] has.
    pub new_count: u64,
    /// The old lines with their line ends: unchanged and removed ones. Only a last line of the
    /// file may lack its line end.
    pub old: Vec<u8>,
    /// The new lines with their line ends: unchanged and added ones.
    pub new: Vec<u8>,
    /// Whether it must end where the file ends: it has unchanged lines, and none after its last
    /// change. A hunk without any unchanged line says nothing about that.
    pub ends_file: bool,
}

/// The forward half of a git binary patch, inflated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BinaryChange {
    /// The new content itself.
    Literal(Vec<u8>),
    /// A git delta that makes the new content from the old one.
    Delta(Vec<u8>),
}
