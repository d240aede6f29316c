//! The words Semaprax speaks: identifiers, paths, documents, requests, diagnostics and limits.
//!
//! Owns: every type that crosses the socket or is printed with `--json`, and the rules that need no
//! world to be checked (path spelling, limits, the length of a line).
//!
//! Never: io, a clock, tokio, or anything of the daemon or the client. What is here can be used by a
//! client in another process, of another version, or of another language.
//!
//! Invariants: a value of a newtype is well formed; a document carries its schema name; a diagnostic
//! carries a stable code.

mod digest;
mod frame;
mod ids;
pub mod limits;
mod object;
mod path;
mod text;
mod time;

pub mod diagnostic;
pub mod documents;
pub mod reading;
pub mod request;
pub mod rpc;
pub mod schema;
pub mod submission;
pub mod version;

pub use diagnostic::{Code, Diagnostic, Refusal, Status};
pub use digest::{
    BlobDigest, DigestError, EventDigest, RecordDigest, Revision, Sha256, StampedDigest, TreeDigest,
};
pub use frame::{FrameError, LineCodec};
pub use ids::{IdError, LeaseId, Seq, SubmissionId, WorkspaceId};
pub use limits::Limits;
pub use path::{LogicalPath, NamePolicy, PathRefusal, check_symlink_target};
pub use schema::{Document, SchemaTag};
pub use time::Timestamp;
