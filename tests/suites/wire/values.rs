//! Values that samples are made of: each the same in every run.

use semaprax_protocol::{
    EventDigest, LeaseId, LogicalPath, RecordDigest, Revision, Seq, Sha256, SubmissionId,
    Timestamp, TreeDigest, WorkspaceId,
};

pub(crate) fn revision(byte: u8) -> Revision {
    Revision::from_bytes([byte; 32])
}

pub(crate) fn tree(byte: u8) -> TreeDigest {
    TreeDigest::from_bytes([byte; 32])
}

pub(crate) fn record(byte: u8) -> RecordDigest {
    RecordDigest::from_bytes([byte; 32])
}

pub(crate) fn event_digest(byte: u8) -> EventDigest {
    EventDigest::from_bytes([byte; 32])
}

pub(crate) fn sha256(byte: u8) -> Sha256 {
    Sha256::from_bytes([byte; 32])
}

fn uuid(number: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(0x018f_7d2e_6f0a_7c3e_9b1d_0000_0000_0000 + number)
}

pub(crate) fn submission_id() -> SubmissionId {
    SubmissionId::from_uuid(uuid(1))
}

pub(crate) fn lease_id() -> LeaseId {
    LeaseId::from_uuid(uuid(2))
}

pub(crate) fn workspace_id() -> WorkspaceId {
    WorkspaceId::from_uuid(uuid(3))
}

pub(crate) fn seq(number: u64) -> Seq {
    Seq::new(number).unwrap()
}

pub(crate) fn moment() -> Timestamp {
    "2026-01-02T03:04:05.678901234Z".parse().unwrap()
}

pub(crate) fn path(text: &str) -> LogicalPath {
    text.parse().unwrap()
}

/// A field that is given.
pub(crate) fn text<T: From<String>>(text: &str) -> T {
    T::from(text.to_owned())
}
