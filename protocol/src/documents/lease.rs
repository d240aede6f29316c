//! Documents about leases.

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LeaseId, Revision, SchemaTag, Seq, Timestamp};

/// The answer of `lease acquire` and `lease renew`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseGrant {
    /// `semaprax.lease/1`.
    pub schema: SchemaTag<LeaseGrant>,
    /// The lease.
    pub lease: LeaseId,
    /// The publication number.
    pub seq: Seq,
    /// The generation it holds.
    pub revision: Revision,
    /// The real directory to read from.
    #[schemars(with = "String")]
    pub path: Utf8PathBuf,
    /// When it ends; null while it ends with its connection.
    pub expires: Option<Timestamp>,
}

/// One lease of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseEntry {
    /// The lease.
    pub lease: LeaseId,
    /// The publication number.
    pub seq: Seq,
    /// The generation it holds.
    pub revision: Revision,
    /// Who holds it, for people.
    pub owner: String,
    /// The process that asked for it.
    pub pid: Option<u32>,
    /// How long it has been held, in milliseconds.
    pub age: u64,
    /// When it ends; null while it ends with its connection.
    pub expires: Option<Timestamp>,
}

/// The answer of `lease list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseList {
    /// `semaprax.leases/1`.
    pub schema: SchemaTag<LeaseList>,
    /// The leases, oldest first.
    pub leases: Vec<LeaseEntry>,
}

/// The answer of `lease release`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseReleased {
    /// `semaprax.lease-released/1`.
    pub schema: SchemaTag<LeaseReleased>,
    /// The lease that ended.
    pub released: LeaseId,
    /// The generation it held.
    pub revision: Revision,
}
