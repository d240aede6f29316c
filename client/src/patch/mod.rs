//! Patches as text: writing the difference of two files as git does, and reading and applying it.
//!
//! Owns: the git and unified diff formats in both directions, and the rule of applying: an exact
//! match, or a refusal with the places found. There is no fuzz.
//!
//! Never: reads or writes a file, knows a workspace, or decides whether a path is allowed; paths
//! leave here as they stood in the patch.

mod apply;
mod base85;
mod binary;
mod blob;
mod delta;
mod header;
mod hunk;
mod lines;
mod model;
mod names;
mod parse;
mod place;
mod quote;
mod reader;
mod render;
mod stat;

#[cfg(test)]
mod tests;

pub use apply::{ApplyError, apply};
pub use blob::git_blob_id;
pub use delta::DeltaError;
pub use lines::is_text;
pub use model::{BinaryChange, Body, FilePatch, Hunk, Operation};
pub use parse::{Limits, ParseError, ParseErrorKind, parse, parse_within};
pub use place::PLACES_LISTED_MAX;
pub use render::render_file;
pub use stat::{Counts, StatLine, count, render_stat};

/// What kind of file a path is, as a patch names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMode {
    /// A regular file, `100644`.
    File,
    /// A regular file with the executable bit, `100755`.
    Executable,
    /// A symbolic link, `120000`; its content is its target.
    Symlink,
}

impl FileMode {
    /// The mode as git writes it.
    pub fn octal(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
        }
    }

    /// Reads a mode. Like git, of the permissions of a file only the owner's `x` counts; what is
    /// neither a file nor a symbolic link has no place in a workspace.
    fn from_octal(text: &str) -> Option<Self> {
        if text.len() > 6 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let mode = u32::from_str_radix(text, 8).ok()?;
        match mode & 0o170_000 {
            0o100_000 if mode & 0o100 != 0 => Some(Self::Executable),
            0o100_000 => Some(Self::File),
            0o120_000 => Some(Self::Symlink),
            _ => None,
        }
    }
}

/// A file on one side of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSide {
    /// What kind of file it is.
    pub mode: FileMode,
    /// Its bytes, or the target of a symbolic link.
    pub content: Vec<u8>,
}
