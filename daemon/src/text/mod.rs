//! Text by lines: what counts as text, merging three versions, and who wrote a line.
//!
//! Owns: the decision "is this text", the line diff behind merge and blame, and the rule that a
//! doubtful merge is a conflict. Bytes are kept exactly: line ends, a missing final newline and a
//! byte order mark are content like any other.
//!
//! Never: reads a file, knows a path, a revision or a publication, or looks at an encoding.

pub mod blame;
mod lines;
pub mod merge;

#[cfg(test)]
mod tests;

pub use blame::Blame;
pub use merge::{ConflictRange, three_way};

/// How many bytes at the start of a file decide whether it is text.
pub const TEXT_PROBE_BYTES: usize = 8 * 1024;

/// Whether `content` is text: no NUL among its first [`TEXT_PROBE_BYTES`], the rule of git.
///
/// The empty file is text.
pub fn is_text(content: &[u8]) -> bool {
    !content.iter().take(TEXT_PROBE_BYTES).any(|&byte| byte == 0)
}
