//! The command line of `with`, and of the hidden command that it starts itself as.
//!
//! Owns: the two forms, which have to agree. Never: runs anything.

use std::ffi::OsString;

use camino::Utf8PathBuf;
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(in crate::cli) struct WithArguments {
    /// The revision; `@` without it.
    #[arg(short, long, value_name = "REV")]
    pub(in crate::cli) revision: Option<String>,
    /// Run in a private writable layer over the tree, thrown away at the end: an overlay where the
    /// system allows one, else a copy. Tools that write into files in place need `copy`.
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    pub(in crate::cli) scratch: Option<Scratch>,
    /// Mount the tree read-only for the command.
    #[arg(long, conflicts_with = "scratch")]
    pub(in crate::cli) isolate: bool,
    /// The command and its arguments.
    #[arg(value_name = "CMD", required = true, last = true)]
    pub(in crate::cli) command: Vec<OsString>,
}

/// How a private writable layer is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Scratch {
    /// An overlay where it works, else a copy.
    #[value(hide = true)]
    Auto,
    /// An overlay, or an error.
    Overlay,
    /// A copy.
    Copy,
}

/// What `with` hands to itself.
#[derive(Debug, Args)]
pub(in crate::cli) struct EnterArguments {
    /// The process that must still be the parent.
    #[arg(long)]
    pub(in crate::cli) parent: i32,
    /// Mount an overlay: the tree below.
    #[arg(long, requires = "upper")]
    pub(in crate::cli) lower: Option<Utf8PathBuf>,
    /// Mount an overlay: a private directory that holds what is written, and the mount.
    #[arg(long, requires = "lower")]
    pub(in crate::cli) upper: Option<Utf8PathBuf>,
    /// Mount this tree read-only onto itself.
    #[arg(long, conflicts_with = "lower")]
    pub(in crate::cli) read_only: Option<Utf8PathBuf>,
    /// Whether the mount is made in a user namespace of its own.
    #[arg(long)]
    pub(in crate::cli) user_namespace: bool,
    /// Only try the mount.
    #[arg(long)]
    pub(in crate::cli) probe: bool,
    /// The command and its arguments.
    #[arg(last = true)]
    pub(in crate::cli) command: Vec<OsString>,
}
