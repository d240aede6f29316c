//! Upkeep of the database: folding its write-ahead log in, checking it, mending it, closing it.

use super::{Context as _, Database, TABLE_NAMES};
use crate::store::StoreResult;

/// The write-ahead log is folded into the database when idle, and in any case past this many pages.
const CHECKPOINT_PAGES: i64 = 8192;

impl Database {
    /// Makes all indexes anew from their tables, for a repair.
    pub fn reindex(&self) -> StoreResult<()> {
        self.execute("REINDEX", ()).map(drop)
    }

    /// Writes the file anew without what is unused, for a repair.
    pub fn vacuum(&self) -> StoreResult<()> {
        self.execute("VACUUM", ()).map(drop)
    }

    /// The columns of a table.
    pub fn columns(&self, table: &str) -> StoreResult<Vec<String>> {
        let sql = "SELECT name FROM pragma_table_info(?1)";
        self.query_all(sql, [table], |row| row.get(0))
    }

    /// Folds the write-ahead log into the database as far as readers let it, when it is long; `now`
    /// does it whatever its length. Waits for nobody.
    pub fn checkpoint(&self, now: bool) -> StoreResult<()> {
        let pages: i64 = self
            .connection
            .query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1))
            .unwrap_or(i64::MAX);
        if now || pages > CHECKPOINT_PAGES {
            self.run_checkpoint("PASSIVE")?;
        }
        Ok(())
    }

    /// Folds the whole write-ahead log in and empties it: for a database that nobody reads yet.
    pub fn fold_in(&self) -> StoreResult<()> {
        self.run_checkpoint("TRUNCATE")
    }

    fn run_checkpoint(&self, kind: &str) -> StoreResult<()> {
        let sql = format!("PRAGMA wal_checkpoint({kind})");
        self.connection
            .query_row(&sql, [], |_| Ok(()))
            .context("checkpoint")
    }

    /// Lets SQLite check its own structure: what it finds wrong, nothing when all is right.
    pub fn integrity(&self) -> StoreResult<Vec<String>> {
        let found: Vec<String> =
            self.query_all("PRAGMA integrity_check(20)", [], |row| row.get(0))?;
        Ok(found.into_iter().filter(|line| line != "ok").collect())
    }

    /// Tables of which an index knows more rows than are there, and how many more: a page that lost its last
    /// rows looks like a shorter one. A table that cannot be counted is left out.
    pub fn lost_rows(&self) -> Vec<(&'static str, u64)> {
        let lost = |table: &'static str| {
            let sql = format!(
                "SELECT (SELECT count(*) FROM {table} INDEXED BY sqlite_autoindex_{table}_1)
                        - (SELECT count(*) FROM {table} NOT INDEXED)"
            );
            let more = self.query_one(&sql, [], |row| row.get::<_, i64>(0));
            let more = more
                .ok()
                .flatten()
                .and_then(|more| u64::try_from(more).ok())?;
            (more > 0).then_some((table, more))
        };
        // The journal has no index; its end is written beside it.
        let indexed = TABLE_NAMES.into_iter().filter(|table| *table != "events");
        indexed.filter_map(lost).collect()
    }

    /// Ends the connection; the last one folds the write-ahead log in and removes it.
    pub fn close(self) -> StoreResult<()> {
        self.connection
            .close()
            .map_err(|(_, error)| error)
            .context("be closed")
    }
}
