//! The schema name that every document carries, and the JSON Schemas of all documents.
//!
//! Owns: `Document`, `SchemaTag`, and the list `semaprax schema` prints from.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A document: a JSON object that names its own schema.
pub trait Document {
    /// The name, such as `semaprax.receipt/1`.
    const SCHEMA: &'static str;
}

/// The field `schema` of a document `T`: always `T::SCHEMA`, and anything else is refused.
pub struct SchemaTag<T>(PhantomData<fn() -> T>);

impl<T> SchemaTag<T> {
    /// The one value.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for SchemaTag<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for SchemaTag<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SchemaTag<T> {}

impl<T> PartialEq for SchemaTag<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for SchemaTag<T> {}

impl<T: Document> fmt::Debug for SchemaTag<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(T::SCHEMA)
    }
}

impl<T: Document> Serialize for SchemaTag<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(T::SCHEMA)
    }
}

impl<'de, T: Document> Deserialize<'de> for SchemaTag<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == T::SCHEMA {
            Ok(Self::new())
        } else {
            Err(serde::de::Error::custom(format!(
                "expected schema `{}`, found `{text}`",
                T::SCHEMA
            )))
        }
    }
}

impl<T: Document> JsonSchema for SchemaTag<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("SchemaTag_{}", T::SCHEMA).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": T::SCHEMA })
    }
}

macro_rules! documents {
    ($($path:path => $name:literal),* $(,)?) => {
        $(impl Document for $path { const SCHEMA: &'static str = concat!("semaprax.", $name, "/1"); })*

        /// The short names of all documents, as `semaprax schema` lists them.
        pub const NAMES: &[&str] = &[$($name),*];

        /// The JSON Schema of the document with this short name (`receipt`) or whole schema name
        /// (`semaprax.receipt/1`).
        ///
        /// ```
        /// assert!(semaprax_protocol::schema::json_schema_of("receipt").is_some());
        /// assert!(semaprax_protocol::schema::json_schema_of("semaprax.receipt/1").is_some());
        /// assert!(semaprax_protocol::schema::json_schema_of("nothing").is_none());
        /// ```
        pub fn json_schema_of(name: &str) -> Option<Schema> {
            match name {
                $($name | concat!("semaprax.", $name, "/1") => Some(schemars::schema_for!($path)),)*
                _ => None,
            }
        }
    };
}

documents! {
    crate::submission::Submission => "submission",
    crate::diagnostic::ErrorDocument => "error",
    crate::documents::Receipt => "receipt",
    crate::documents::Initialized => "init",
    crate::documents::WorkspaceStatus => "status",
    crate::documents::LogPage => "log",
    crate::documents::Publication => "publication",
    crate::documents::TreeDiff => "diff",
    crate::documents::Listing => "listing",
    crate::documents::Blame => "blame",
    crate::documents::LeaseGrant => "lease",
    crate::documents::LeaseList => "leases",
    crate::documents::LeaseReleased => "lease-released",
    crate::documents::Exported => "export",
    crate::documents::WatchEvent => "event",
    crate::documents::Pinned => "pin",
    crate::documents::Collection => "gc",
    crate::documents::Why => "why",
    crate::documents::Verification => "verify",
    crate::documents::Health => "doctor",
    crate::documents::JournalEntry => "journal-entry",
    crate::documents::Queue => "queue",
    crate::documents::Cancelled => "cancelled",
    crate::documents::DaemonStatus => "daemon",
    crate::documents::Explanation => "explanation",
    crate::documents::SchemaList => "schemas",
    crate::documents::DemoReport => "demo",
}
