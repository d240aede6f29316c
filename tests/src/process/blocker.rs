//! Holding a daemon's writer where it is.
//!
//! Owns: a write transaction on the store from outside. While it is open the writer waits for the
//! database (it waits for ten seconds), so what is submitted meanwhile stays undecided, on purpose.
//! Never: changes the store.

use std::path::Path;

use rusqlite::Connection;

/// Nothing is decided while this lives.
#[derive(Debug)]
pub struct Blocker {
    store: Connection,
}

impl Blocker {
    /// Blocks the writer of the workspace with this state directory.
    #[track_caller]
    pub fn new(state: &Path) -> Self {
        let store = Connection::open(state.join("store.db")).unwrap();
        store.busy_timeout(super::PATIENCE).unwrap();
        store.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self { store }
    }
}

impl Drop for Blocker {
    fn drop(&mut self) {
        drop(self.store.execute_batch("ROLLBACK"));
    }
}
