//! Nodes in the store.
//!
//! Owns: the table `nodes`.

use semaprax_protocol::StampedDigest;

use super::{Branch, Entry, NodeSource, Tree};
use crate::store::database::Database;
use crate::store::{StoreError, StoreResult};

impl NodeSource for Database {
    fn node(&self, digest: &StampedDigest) -> StoreResult<Vec<u8>> {
        let sql = "SELECT data FROM nodes WHERE digest = ?1";
        self.query_one(sql, [digest.as_bytes()], |row| row.get(0))?
            .ok_or_else(|| StoreError::damaged(format!("node {digest} is not in the store")))
    }
}

impl Database {
    /// Whether a node is in the store.
    pub fn has_node(&self, digest: &StampedDigest) -> StoreResult<bool> {
        let sql = "SELECT 1 FROM nodes WHERE digest = ?1";
        Ok(self
            .query_one(sql, [digest.as_bytes()], |_| Ok(()))?
            .is_some())
    }

    /// Stores every node of `tree` that the store does not have, inside a transaction. What is not in
    /// memory came from the store, and what the store has it has whole: neither is descended into.
    pub fn insert_nodes(&self, tree: &Tree) -> StoreResult<()> {
        self.insert_branch(tree.root())
    }

    fn insert_branch(&self, branch: &Branch) -> StoreResult<()> {
        let Some(directory) = branch.loaded() else {
            return Ok(());
        };
        if self.has_node(&branch.stamped())? {
            return Ok(());
        }
        for (_, entry) in directory.entries() {
            if let Entry::Branch(below) = entry {
                self.insert_branch(below)?;
            }
        }
        let sql = "INSERT INTO nodes (digest, data) VALUES (?1, ?2)";
        self.execute(
            sql,
            rusqlite::params![branch.stamped().as_bytes(), directory.encode()],
        )
        .map(drop)
    }
}
