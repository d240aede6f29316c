//! The documents that `--json` prints and that answers of the daemon are.
//!
//! Owns: their fields, in camelCase, each with the schema name it carries. Fields are only added.
//! Never: `flatten` or `untagged`: a document can be read by eye and by any language.

mod change;
mod daemon;
mod history;
mod lease;
mod maintenance;
mod receipt;
mod workspace;

pub use change::{ChangeKind, PathChange};
pub use daemon::{DaemonIdentity, DaemonStatus, DemoReport, DemoStatus, Explanation, SchemaList};
pub use history::{
    Blame, BlameLine, EventKind, JournalEntry, Listing, ListingEntry, LogEntry, LogPage,
    Publication, TreeDiff, TreeReference, WatchEvent,
};
pub use lease::{LeaseEntry, LeaseGrant, LeaseList, LeaseReleased};
pub use maintenance::{
    Collection, Damage, Finding, FindingStatus, Health, KeptGeneration, KeptReason, Pinned,
    Verification, VerificationCounts, VerificationStatus, Why,
};
pub use receipt::{GateOutcome, GateStatus, Receipt, ReceiptStatus};
pub use workspace::{
    ActiveGeneration, Cancelled, Exported, GenerationCounts, InitStatus, Initialized, Queue,
    QueueCounts, QueuedSubmission, SkipReason, Skipped, WorkspaceStatus,
};
