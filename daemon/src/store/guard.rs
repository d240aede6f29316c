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

/// The check sum of these columns of a row of `table`.
pub fn guard_of(table: &str, columns: &[&[u8]]) -> Guard {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    for column in std::iter::once(&table.as_bytes()).chain(columns) {
        hasher.update(&(column.len() as u64).to_le_bytes());
        hasher.update(column);
    }
    let mut guard = Guard::default();
    hasher.finalize_xof().fill(&mut guard);
    guard
}

/// Refuses a row of `table` whose columns do not give `found`.
pub fn check_guard(found: Guard, table: &str, columns: &[&[u8]]) -> StoreResult<()> {
    if found == guard_of(table, columns) {
        return Ok(());
    }
    Err(StoreError::damaged(format!(
        "a row of the table `{table}` does not match its check sum"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_do_not_run_into_each_other() {
        let one = guard_of("t", &[b"ab", b"c"]);
        assert_ne!(one, guard_of("t", &[b"a", b"bc"]));
        assert_ne!(one, guard_of("ta", &[b"b", b"c"]));
        assert!(check_guard(one, "t", &[b"ab", b"c"]).is_ok());
        assert!(check_guard(one, "t", &[b"ab", b"d"]).is_err());
    }
}
