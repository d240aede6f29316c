//! Every bound of the system, in one place.
//!
//! Owns: the defaults and the compile-time relations between them. Those a person may set are fields
//! of [`Limits`], printed by `status --limits`; the others are constants.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest line of the wire protocol, in bytes, its line feed included.
pub const LINE_BYTES: usize = 4 << 20;
/// The largest piece of content in one `blob.put` or `content` line, in bytes before base64.
pub const CHUNK_BYTES: usize = 1 << 20;
/// Content up to this many bytes is kept compressed in the database; larger content is a file.
pub const INLINE_BLOB_BYTES: usize = 64 << 10;
/// The longest path, in bytes.
pub const PATH_BYTES: usize = 4096;
/// The longest segment of a path, in bytes.
pub const SEGMENT_BYTES: usize = 255;
/// The longest author, owner or reason, in bytes.
pub const LABEL_BYTES: usize = 256;
/// Entries of a directory or of a log that one answer may hold; longer lists are paged.
pub const PAGE_ENTRIES: usize = 10_000;
/// Requests of one connection that may be under way at once.
pub const CONNECTION_REQUESTS: usize = 256;
/// What each connection may hold in memory however much the others hold, in bytes.
pub const CONNECTION_BYTES: usize = 64 << 10;
/// Events a subscriber may be behind before it is told `fresh`.
pub const SUBSCRIBER_EVENTS: usize = 1024;
/// The longest path of a socket, in bytes: what Linux, macOS and std agree on.
pub const SOCKET_PATH_BYTES: usize = 100;
/// The longest time a detached lease may run, in milliseconds: 30 days.
pub const LEASE_TTL_MS: u64 = 30 * 24 * 3600 * 1000;
/// Diagnostics of one refusal; more are cut, and the last says so.
pub const DIAGNOSTICS: usize = 100;

const _: () = assert!(
    CHUNK_BYTES * 4 / 3 + 4096 < LINE_BYTES,
    "a chunk in base64 fits in a line"
);
const _: () = assert!(SEGMENT_BYTES < PATH_BYTES);

/// The bounds a person may set, with their defaults. Part of a document: it may gain fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of all content of one submission.
    pub submission_bytes: u64,
    /// Changes of one submission.
    pub changes: u64,
    /// Submissions that may wait in one workspace.
    pub queue: u64,
    /// Bytes of content that may wait in one workspace.
    pub queue_bytes: u64,
    /// Bytes of a message.
    pub message_bytes: u64,
    /// Connections served at once.
    pub connections: u64,
    /// Bytes held in memory for all clients: what they sent and was not answered yet, and content
    /// sent ahead.
    pub client_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 64 << 20,
            submission_bytes: 256 << 20,
            changes: 10_000,
            queue: 1024,
            queue_bytes: 1 << 30,
            message_bytes: 4 << 10,
            connections: 4096,
            client_bytes: 1 << 30,
        }
    }
}
