//! The Semaprax client: what library users, the command line and the MCP server share.
//!
//! [`Client`] finds the daemon of a workspace or starts one ([`Options`], [`Start`]), and asks it:
//! every method of the protocol is a parameter type that knows its answer, so
//! `client.call(Status { .. })` is typed. Without a daemon the reads that need no writer are answered
//! straight from disk.
//!
//! Owns: reaching a daemon, typed calls, holding a tree, watching, patches as text, and ([`cli`]) the
//! command line, which has no other way to the daemon than this.
//! Never: decides anything about a workspace: that is the daemon's.

pub mod cli;
mod client;
mod connect;
pub mod env;
pub mod error;
#[cfg(test)]
mod fake;
mod files;
mod hold;
#[cfg(feature = "interleavings")]
pub mod interleaving;
mod layout;
#[cfg_attr(not(feature = "daemon"), path = "no_offline.rs")]
mod offline;
pub mod patch;
mod private;
mod read;
mod runtime;
mod start;
mod submit;
mod transport;
#[cfg(test)]
mod transport_tests;
mod watch;

pub use client::{Client, new_submission_id};
pub use connect::{Options, Start};
pub use hold::Held;
pub use private::{PrivateDirectory, copy_tree};
pub use read::{ContentReader, WholeContent, sha256_of};
pub use runtime::Runtime;
pub use submit::put;
pub use transport::NoticeSink;
pub use watch::Watch;
