//! Every document that `--json` prints by its name: it names its schema, and fits what `semaprax schema` prints.
//!
//! Owns: the list of documents, and the part of JSON Schema that they use.

use serde_json::Value;

use semaprax_protocol::SchemaTag;
use semaprax_protocol::diagnostic::ErrorDocument;
use semaprax_protocol::documents::{
    Blame, Cancelled, Collection, DaemonStatus, DemoReport, Explanation, Exported, Health,
    Initialized, JournalEntry, LeaseGrant, LeaseList, LeaseReleased, Listing, LogPage, Pinned,
    Publication, Queue, Receipt, SchemaList, TreeDiff, Verification, WatchEvent, Why,
    WorkspaceStatus,
};
use semaprax_protocol::schema::{Document, NAMES, json_schema_of};
use semaprax_protocol::submission::Submission;

use crate::answers::whole_refusal;
use crate::corpus::Sample;
use crate::{documents, requests};

macro_rules! documents {
    ($($name:literal => $type:ty = $value:expr;)*) => {
        pub(crate) fn samples() -> Vec<Sample> {
            vec![$(Sample {
                name: concat!("document-", $name).to_owned(),
                bytes: {
                    let value: $type = $value;
                    let mut bytes = serde_json::to_vec(&value).unwrap();
                    bytes.push(b'\n');
                    bytes
                },
            }),*]
        }

        /// Reads a document and compares it with what writing it again gives.
        pub(crate) fn read(name: &str, bytes: &[u8]) -> Result<(), serde_json::Error> {
            match name {
                $($name => {
                    let value: $type = serde_json::from_slice(bytes)?;
                    let again: $type = serde_json::from_slice(&serde_json::to_vec(&value)?)?;
                    assert_eq!(value, again);
                    assert_eq!(<$type as Document>::SCHEMA, format!("semaprax.{name}/1"));
                    Ok(())
                })*
                other => panic!("there is no document `{other}`"),
            }
        }
    };
}

documents! {
    "submission" => Submission = requests::submission();
    "error" => ErrorDocument = whole_refusal().document();
    "receipt" => Receipt = documents::receipt();
    "init" => Initialized = documents::init();
    "status" => WorkspaceStatus = documents::status();
    "log" => LogPage = documents::log();
    "publication" => Publication = documents::publication();
    "diff" => TreeDiff = documents::diff();
    "listing" => Listing = documents::listing();
    "blame" => Blame = documents::blame();
    "lease" => LeaseGrant = documents::lease();
    "leases" => LeaseList = documents::leases();
    "lease-released" => LeaseReleased = documents::lease_released();
    "export" => Exported = documents::exported();
    "event" => WatchEvent = documents::event();
    "pin" => Pinned = documents::pin();
    "gc" => Collection = documents::collection();
    "why" => Why = documents::why();
    "verify" => Verification = documents::verification();
    "doctor" => Health = documents::health();
    "journal-entry" => JournalEntry = documents::journal_entry();
    "queue" => Queue = documents::queue();
    "cancelled" => Cancelled = documents::cancelled();
    "daemon" => DaemonStatus = documents::daemon();
    "explanation" => Explanation = documents::explanation();
    "schemas" => SchemaList = SchemaList {
        schema: SchemaTag::new(),
        names: vec!["receipt".to_owned()],
    };
    "demo" => DemoReport = documents::demo();
}

#[test]
fn every_document_names_its_own_schema_and_refuses_another() {
    for sample in samples() {
        let name = sample.name.strip_prefix("document-").unwrap();
        read(name, &sample.bytes).unwrap();
        let mut value: Value = serde_json::from_slice(&sample.bytes).unwrap();
        assert_eq!(value["schema"], format!("semaprax.{name}/1"));
        value["schema"] = "semaprax.other/1".into();
        let other = serde_json::to_vec(&value).unwrap();
        assert!(read(name, &other).is_err(), "{name} takes another schema");
    }
}

/// What is printed fits the printed schema: the fields of the top are named there, and none that is
/// required is missing.
#[test]
fn every_document_fits_its_json_schema() {
    for name in NAMES {
        let sample = samples()
            .into_iter()
            .find(|sample| sample.name == format!("document-{name}"))
            .unwrap_or_else(|| panic!("no sample of `{name}`"));
        let value: Value = serde_json::from_slice(&sample.bytes).unwrap();
        let schema = json_schema_of(name).unwrap().to_value();
        let mut wrong = Vec::new();
        fits(&value, &schema, &schema, name, &mut wrong);
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert_eq!(
            schema["properties"]["schema"]["const"],
            format!("semaprax.{name}/1")
        );
    }
}

/// The part of JSON Schema that the documents use.
fn fits(value: &Value, schema: &Value, root: &Value, place: &str, wrong: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = reference
            .trim_start_matches("#/")
            .split('/')
            .fold(root, |here, part| &here[part]);
        return fits(value, target, root, place, wrong);
    }
    for combination in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[combination].as_array() {
            let any = choices.iter().any(|choice| {
                let mut inner = Vec::new();
                fits(value, choice, root, place, &mut inner);
                inner.is_empty()
            });
            if !any {
                wrong.push(format!("{place}: {value} is none of {combination}"));
            }
        }
    }
    if let Some(constant) = schema.get("const")
        && constant != value
    {
        wrong.push(format!("{place}: {value} is not {constant}"));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        wrong.push(format!("{place}: {value} is no word of the list"));
    }
    if let Some(kind) = schema.get("type") {
        let is = |kind: &str| match kind {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "null" => value.is_null(),
            _ => false,
        };
        let fitting = match kind {
            Value::String(kind) => is(kind),
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(is),
            _ => false,
        };
        if !fitting {
            wrong.push(format!("{place}: {value} is not of type {kind}"));
        }
    }
    if let (Some(fields), Some(properties)) = (value.as_object(), schema["properties"].as_object())
    {
        for (name, field) in fields {
            match properties.get(name) {
                Some(below) => fits(field, below, root, &format!("{place}.{name}"), wrong),
                None => wrong.push(format!("{place}.{name} is not in the schema")),
            }
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            if !fields.contains_key(name.as_str().unwrap()) {
                wrong.push(format!("{place}.{name} is required"));
            }
        }
    }
    if let (Some(items), Some(below)) = (value.as_array(), schema.get("items")) {
        for item in items {
            fits(item, below, root, &format!("{place}[]"), wrong);
        }
    }
}
