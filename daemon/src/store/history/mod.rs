//! What happened, in order: publication records, the event journal, outcomes of submissions, pins and
//! detached leases.
//!
//! Owns: the forms of these rows and their two chains. Never: files.

mod events;
mod holds;
mod record;
mod submissions;

pub use events::{Event, EventDetail};
pub use holds::DetachedLease;
pub use record::{NamedMove, Record, StoredRecord};
pub use submissions::{Binding, Outcome, submission_digest};
