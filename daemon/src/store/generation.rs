//! A generation's manifest, and the revision that is its digest.
//!
//! Owns: the canonical bytes of `manifest.json`: one JSON line with fixed field order. It is for other
//! programs: nothing here reads it, its bytes are compared with what they have to be.
//!
//! Keeps invariant 1: a revision names exactly one content, one set of stamps, one place in history.

use semaprax_protocol::{Revision, Seq, StampedDigest, TreeDigest};
use serde::Serialize;

use super::tree::Tree;
use super::{StoreError, StoreResult};

const SCHEMA: &str = "semaprax.manifest/1";
const CONTEXT: &str = "semaprax 1 revision";

/// What a generation is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Manifest {
    schema: String,
    seq: Seq,
    tree: TreeDigest,
    stamped: StampedDigest,
    files: u64,
    bytes: u64,
}

impl Manifest {
    /// The manifest of `tree` as publication `seq`.
    pub fn of(seq: Seq, tree: &Tree) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            seq,
            tree: tree.content(),
            stamped: tree.stamped(),
            files: tree.root().files(),
            bytes: tree.root().bytes(),
        }
    }

    /// The canonical bytes.
    pub fn encode(&self) -> StoreResult<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self).map_err(|error| {
            StoreError::damaged(format!("the manifest cannot be written: {error}"))
        })?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// The revision: the digest of the canonical bytes.
    pub fn revision(&self) -> StoreResult<Revision> {
        Ok(Revision::from_bytes(blake3::derive_key(
            CONTEXT,
            &self.encode()?,
        )))
    }
}
