//! A check sum beside what no other digest covers.
//!
//! Records, nodes, journal entries and the bytes of blobs are named by their digests. The other columns of the
//! database are not: the SHA-256 of a blob, receipts, leases, pins, the identity. A flipped bit there would be
//! an answer like any other, so each such row carries eight bytes that its content must give again.
//! Owns: how they are computed and compared. Never: which columns there are.

use super::{StoreError, StoreResult};

const CONTEXT: &str = "semaprax 1 guard of a row";

/// The check sum of a row.
pub type Guard = [u8; 8];

/// A row whose columns are named one after the other.
#[derive(Debug)]
#[must_use]
pub struct GuardedRow {
    table: &'static str,
    hasher: blake3::Hasher,
}

impl GuardedRow {
    /// A row of this table, without columns yet.
    pub fn of(table: &'static str) -> Self {
        let hasher = blake3::Hasher::new_derive_key(CONTEXT);
        Self { table, hasher }.bytes(table.as_bytes())
    }

    /// The next column.
    pub fn bytes(mut self, column: &[u8]) -> Self {
        self.hasher.update(&(column.len() as u64).to_le_bytes());
        self.hasher.update(column);
        self
    }

    /// The next column, a number.
    pub fn number(self, column: i64) -> Self {
        self.bytes(&column.to_le_bytes())
    }

    /// The check sum.
    pub fn guard(&self) -> Guard {
        let mut guard = Guard::default();
        self.hasher.finalize_xof().fill(&mut guard);
        guard
    }

    /// Refuses the row when its check sum is another.
    pub fn check(&self, found: Guard) -> StoreResult<()> {
        if found == self.guard() {
            return Ok(());
        }
        Err(StoreError::damaged(format!(
            "a row of the table `{}` does not match its check sum",
            self.table
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_do_not_run_into_each_other() {
        let row = |table, columns: [&[u8]; 2]| {
            columns
                .iter()
                .fold(GuardedRow::of(table), |row, column| row.bytes(column))
        };
        let one = row("t", [b"ab", b"c"]).guard();
        assert_ne!(one, row("t", [b"a", b"bc"]).guard());
        assert_ne!(one, row("ta", [b"b", b"c"]).guard());
        assert!(row("t", [b"ab", b"c"]).check(one).is_ok());
        assert!(row("t", [b"ab", b"d"]).check(one).is_err());
    }
}
