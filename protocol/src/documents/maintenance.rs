//! Documents about upkeep: gc, why, pin, verify, doctor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Code, Revision, SchemaTag};

/// Why a generation's tree is kept.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum KeptReason {
    /// It is ACTIVE.
    Active,
    /// A lease holds it, over the socket, detached, or by its LEASE file.
    Leased,
    /// A person pinned it.
    Pinned,
    /// A publication or a lease is being made of it.
    InFlight,
    /// It is younger than the least age.
    Young,
    /// It is one of the newest, which are kept.
    Retention,
}

impl KeptReason {
    /// The word of the JSON form.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Leased => "leased",
            Self::Pinned => "pinned",
            Self::InFlight => "in-flight",
            Self::Young => "young",
            Self::Retention => "retention",
        }
    }
}

/// A generation whose tree was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptGeneration {
    /// The generation.
    pub revision: Revision,
    /// Why.
    pub reasons: Vec<KeptReason>,
}

/// The answer of `gc`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Collection {
    /// `semaprax.gc/1`.
    pub schema: SchemaTag<Collection>,
    /// Generations whose trees were removed (with `--dry-run`: would be).
    pub removed: Vec<Revision>,
    /// Generations whose trees were kept.
    pub kept: Vec<KeptGeneration>,
    /// Bytes of disk that were given back, as far as known: files that other trees share do not count.
    pub freed_bytes: u64,
    /// Whether nothing was removed because it was only asked what would be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Publications whose content was collected under the retention rules.
    #[serde(default)]
    pub content_collected: u64,
}

/// The answer of `why`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// `semaprax.why/1`.
    pub schema: SchemaTag<Why>,
    /// The generation.
    pub revision: Revision,
    /// Whether it has a tree on disk.
    pub materialized: bool,
    /// Why the tree is kept; empty when the next collection may take it.
    pub reasons: Vec<KeptReason>,
}

/// The answer of `pin` and `unpin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pinned {
    /// `semaprax.pin/1`.
    pub schema: SchemaTag<Pinned>,
    /// The generation.
    pub revision: Revision,
    /// Whether it is pinned now.
    pub pinned: bool,
}

/// What a verification found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VerificationStatus {
    /// All that was checked is right.
    Ok,
    /// Something is not.
    Damaged,
    /// Something was not, and was put right.
    Repaired,
}

/// How much was checked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct VerificationCounts {
    /// Publication records.
    pub records: u64,
    /// Journal entries.
    pub events: u64,
    /// Tree nodes.
    pub nodes: u64,
    /// Blobs.
    pub blobs: u64,
    /// Materialized trees.
    pub generations: u64,
    /// Files in them.
    pub files: u64,
}

/// One damaged thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Damage {
    /// What kind of thing: `tree`, `blob`, `node`, `record`, `event`, `active`, `database` ...
    pub kind: String,
    /// The generation it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// The path in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What is wrong.
    pub detail: String,
    /// Whether it was put right.
    #[serde(default)]
    pub repaired: bool,
}

/// The answer of `verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// `semaprax.verify/1`.
    pub schema: SchemaTag<Verification>,
    /// What was found.
    pub status: VerificationStatus,
    /// How much was checked.
    pub checked: VerificationCounts,
    /// What is damaged.
    pub damage: Vec<Damage>,
}

/// How a finding is to be taken.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum FindingStatus {
    /// As it should be.
    Ok,
    /// Works, with a drawback.
    Warning,
    /// Does not work.
    Problem,
}

/// One finding of `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What was looked at, a kebab-case word.
    pub check: String,
    /// How it is.
    pub status: FindingStatus,
    /// What was seen.
    pub detail: String,
    /// The code that a request meets which this keeps from succeeding, or that explains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Whether it was put right.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repaired: bool,
}

/// The answer of `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// `semaprax.doctor/1`.
    pub schema: SchemaTag<Health>,
    /// What was found, worst first within each check.
    pub findings: Vec<Finding>,
}
