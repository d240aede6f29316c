//! Identifiers that are not digests.
//!
//! Owns: `Seq`, and the UUID-shaped names of submissions, leases and workspaces.
//! Never: makes a random value; entropy comes from the world.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a text or number is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// A publication number starts at 1.
    #[error("a publication number is a whole number from 1 up, found `{0}`")]
    Seq(String),
    /// Not a UUID.
    #[error("expected a UUID such as `018f7d2e-6f0a-7c3e-9b1d-2f6a4c8e0b5d`, found `{0}`")]
    Uuid(String),
}

/// The number of a publication: 1, 2, 3 ...
///
/// ```
/// use semaprax_protocol::Seq;
/// assert_eq!(Seq::FIRST.next().unwrap().get(), 2);
/// assert!(Seq::new(0).is_none());
/// ```
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Seq(NonZeroU64);

impl Seq {
    /// The publication made by `init`.
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    /// A number from 1 up; `None` for 0.
    pub fn new(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The one after; `None` past the largest number.
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }

    /// The one before; `None` for the first.
    pub fn previous(self) -> Option<Self> {
        Self::new(self.get() - 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl FromStr for Seq {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let number = text.parse().ok().and_then(Self::new);
        number.ok_or_else(|| IdError::Seq(text.chars().take(40).collect()))
    }
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(uuid::Uuid);

        impl $name {
            /// Makes an identifier of a value the world's entropy or the store gave.
            pub const fn from_uuid(uuid: uuid::Uuid) -> Self {
                Self(uuid)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(out)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                // Only the hyphenated form, in either case: one spelling in every log and answer.
                let parsed = uuid::Uuid::try_parse(text).ok().filter(|_| text.len() == 36);
                parsed.map(Self).ok_or_else(|| IdError::Uuid(text.chars().take(80).collect()))
            }
        }

        crate::text::text_form!($name, { "type": "string", "format": "uuid" });
    };
}

uuid_id!(
    /// Names a submission; takes effect at most once.
    SubmissionId
);
uuid_id!(
    /// Names a lease.
    LeaseId
);
uuid_id!(
    /// Names a workspace, whatever path it is found at.
    WorkspaceId
);
