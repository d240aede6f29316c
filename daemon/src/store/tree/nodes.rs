//! Nodes in the store.
//!
//! Owns: the table `nodes`.

use std::sync::Arc;

use semaprax_protocol::StampedDigest;

use super::page::Node;
use super::{Branch, Entry, NodeSource, Tree, codec};
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

    /// Stores every node of `tree` that the store does not have, inside a transaction. `parent` is a tree
    /// that it has whole: nodes that are also there are not asked for. What is not in memory came from
    /// the store, and what the store has it has whole: neither is descended into.
    pub fn insert_nodes(&self, tree: &Tree, parent: Option<&Tree>) -> StoreResult<()> {
        self.insert_branch(tree.root(), parent.map(Tree::root))
    }

    fn insert_branch(&self, branch: &Branch, known: Option<&Arc<Branch>>) -> StoreResult<()> {
        if known.is_some_and(|known| known.stamped() == branch.stamped()) {
            return Ok(());
        }
        let Some(node) = branch.loaded() else {
            return Ok(());
        };
        if self.has_node(&branch.stamped())? {
            return Ok(());
        }
        let known = known.and_then(|known| known.loaded()).map(Arc::as_ref);
        match node.as_ref() {
            Node::Names(names) => {
                for (name, entry) in names {
                    if let Entry::Branch(below) = entry {
                        self.insert_branch(below, known.and_then(|known| known.directory(name)))?;
                    }
                }
            }
            Node::Pages(pages) => {
                for page in pages {
                    let known = known.and_then(|known| known.page(page.last()));
                    self.insert_branch(page.branch(), known)?;
                }
            }
        }
        let sql = "INSERT INTO nodes (digest, data) VALUES (?1, ?2)";
        self.execute(
            sql,
            rusqlite::params![branch.stamped().as_bytes(), codec::encode(node)],
        )
        .map(drop)
    }
}
