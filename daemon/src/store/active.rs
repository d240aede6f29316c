//! The pointer: the one commit point of the whole system.
//!
//! Owns: the file ACTIVE, its canonical line, and the three steps that replace it: the next content
//! synced, one rename, the directory synced.
//!
//! Keeps invariants 1 and 2.

use semaprax_protocol::reading::read_json;
use semaprax_protocol::{RecordDigest, Revision, Seq};
use serde::{Deserialize, Serialize};

use super::{Layout, StoreError, StoreResult, own};
use crate::world::{EntryType, World, WorldError};

/// The form this build writes, without its version.
const FORM: &str = "semaprax.active/";
const VERSION: i64 = 1;
/// Far more than it ever has.
const MOST_BYTES: u64 = 64 << 10;

/// What ACTIVE says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Active {
    /// The publication number.
    pub seq: Seq,
    /// The generation.
    pub revision: Revision,
    /// The digest of its record.
    pub record: RecordDigest,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    schema: String,
    seq: Seq,
    revision: Revision,
    record: RecordDigest,
}

#[derive(Deserialize)]
struct Schema {
    schema: String,
}

/// How replacing the pointer ended when it did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// The pointer is what it was.
    #[error(transparent)]
    NotSwitched(WorldError),
    /// The pointer is the new one, but the disk did not confirm that it stays.
    #[error(transparent)]
    InDoubt(WorldError),
}

impl Active {
    /// The canonical bytes: one JSON line.
    pub fn encode(&self) -> StoreResult<Vec<u8>> {
        let line = Line {
            schema: format!("{FORM}{VERSION}"),
            seq: self.seq,
            revision: self.revision,
            record: self.record,
        };
        let mut bytes = serde_json::to_vec(&line)
            .map_err(|error| StoreError::damaged(format!("ACTIVE cannot be written: {error}")))?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads the bytes of ACTIVE: the canonical ones and no others.
    pub fn decode(bytes: &[u8]) -> StoreResult<Self> {
        let unreadable = |reason| StoreError::damaged(format!("ACTIVE cannot be read: {reason}"));
        // A newer form may have other fields: its name is looked at before anything else.
        let schema = read_json::<Schema>(bytes).map_err(unreadable)?.schema;
        match schema
            .strip_prefix(FORM)
            .and_then(|version| version.parse().ok())
        {
            Some(VERSION) => {}
            Some(found) if found > VERSION => {
                return Err(StoreError::Version {
                    found,
                    supported: VERSION,
                });
            }
            _ => {
                return Err(StoreError::damaged(format!(
                    "ACTIVE has the schema `{schema}`"
                )));
            }
        }
        let line: Line = read_json(bytes).map_err(unreadable)?;
        let active = Self {
            seq: line.seq,
            revision: line.revision,
            record: line.record,
        };
        if active.encode()? != bytes {
            return Err(StoreError::damaged(
                "ACTIVE is not written as it is written here",
            ));
        }
        Ok(active)
    }
}

/// Reads the pointer; `None` when there is none.
pub fn read(world: &World, layout: &Layout) -> StoreResult<Option<Active>> {
    let found = world.disk.metadata(&layout.active())?;
    if found.is_some_and(|found| found.len > MOST_BYTES) {
        return Err(StoreError::damaged("ACTIVE is longer than it ever is"));
    }
    match world.disk.read(&layout.active()) {
        Ok(bytes) => Active::decode(&bytes).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::of_own_file(error)),
    }
}

/// Refuses a store whose pointer has the form of a newer build, before anything of it is opened: closing
/// a database may fold its log in. Whatever else is wrong is for later.
pub fn refuse_newer(world: &World, layout: &Layout) -> StoreResult<()> {
    match read(world, layout) {
        Err(error @ StoreError::Version { .. }) => Err(error),
        _ => Ok(()),
    }
}

/// Replaces the pointer. The rename is the commit point: before it nothing happened, after it the
/// generation is published.
pub fn switch(world: &World, layout: &Layout, bytes: &[u8]) -> Result<(), SwitchError> {
    let disk = &world.disk;
    let (next, active) = (layout.active_next(), layout.active());
    let prepare = || {
        match disk.metadata(&next)? {
            Some(found) if found.kind == EntryType::Directory => {
                own::set_aside(world, layout, &next)?;
            }
            Some(_) => disk.remove_file(&next)?,
            None => {}
        }
        disk.create(&next, bytes, 0o644)?;
        // Makes the content durable before the name can be.
        disk.sync_file(&next)?;
        disk.rename(&next, &active)
    };
    prepare().map_err(SwitchError::NotSwitched)?;
    // Makes the name durable; until then a power cut may bring the old one back.
    disk.sync_directory(layout.state())
        .map_err(SwitchError::InDoubt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_canonical_and_strict() {
        let active = Active {
            seq: Seq::FIRST,
            revision: Revision::from_bytes([1; 32]),
            record: RecordDigest::from_bytes([2; 32]),
        };
        let bytes = active.encode().unwrap();
        let expect = format!(
            "{{\"schema\":\"semaprax.active/1\",\"seq\":1,\"revision\":\"{}\",\"record\":\"{}\"}}\n",
            "01".repeat(32),
            "02".repeat(32)
        );
        assert_eq!(String::from_utf8(bytes.clone()).unwrap(), expect);
        assert_eq!(Active::decode(&bytes).unwrap(), active);
        for bad in [
            "",
            "{}",
            &expect.replace("active/1", "active/9"),
            &expect[..expect.len() / 2],
            // Other spellings of the same.
            expect.trim_end(),
            &format!(" {expect}"),
            &format!("{expect}\n"),
            &expect.replace("\"seq\":1", "\"seq\": 1"),
            &expect.replace("schema", "s\\u0063hema"),
            &expect.replace('{', "[").replace('}', "]"),
        ] {
            assert!(Active::decode(bad.as_bytes()).is_err(), "{bad:?}");
        }
        for (schema, is_newer) in [("active/9", true), ("active/0", false), ("active/x", false)] {
            let newer = expect
                .replace("active/1", schema)
                .replace("\"seq\":1", "\"number\":\"one\"");
            let refused = Active::decode(newer.as_bytes()).unwrap_err();
            let found = matches!(refused, StoreError::Version { found: 9, .. });
            assert_eq!(found, is_newer, "{schema}");
        }
    }
}
