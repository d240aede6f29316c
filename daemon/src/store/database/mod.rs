//! The SQLite database: connections, transactions and queries.
//!
//! Owns: the one exception to "all io through `world`". `opening.rs` makes and opens it, `upkeep.rs` folds
//! its log in, checks and mends it. Tables are read and written by `objects.rs`, `tree/`, `history/` through
//! [`Database`].
//!
//! Keeps invariant 3: a committed transaction is durable (WAL, `synchronous=FULL`).

mod opening;
mod upkeep;

use rusqlite::{Connection, Params, Row};

use super::guard::GuardedRow;
use super::{StoreError, StoreResult};

pub use opening::{ReadMode, STORE_VERSION, TABLE_NAMES};

/// One connection.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    /// Whether a turn is open: transactions are parts of it.
    in_turn: bool,
}

trait Context<T> {
    fn context(self, operation: &'static str) -> StoreResult<T>;
}

impl<T> Context<T> for rusqlite::Result<T> {
    fn context(self, operation: &'static str) -> StoreResult<T> {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, SqlInputError,
            Utf8Error,
        };
        self.map_err(|source| match source {
            // What was never written in this form.
            InvalidColumnType(..)
            | FromSqlConversionFailure(..)
            | IntegralValueOutOfRange(..)
            | Utf8Error(..) => {
                StoreError::damaged(format!("a row of the database cannot be read: {source}"))
            }
            // Our statements fit our tables: these are no longer ours.
            SqlInputError { .. } => {
                StoreError::damaged(format!("a table of the database is not ours: {source}"))
            }
            source => StoreError::Database { operation, source },
        })
    }
}

impl Database {
    /// Runs `work` in one transaction: all of it is durable when this returns `Ok`, none of it
    /// happened when it returns `Err`. In a turn it is a part of it, and durable when that is committed.
    pub fn transaction<T>(&mut self, work: impl FnOnce(&Self) -> StoreResult<T>) -> StoreResult<T> {
        let (begin, end, undo) = if self.in_turn {
            self.check_turn()?;
            (
                "SAVEPOINT part",
                "RELEASE part",
                "ROLLBACK TO part; RELEASE part",
            )
        } else {
            ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
        };
        self.connection
            .execute_batch(begin)
            .context("begin a transaction")?;
        let outcome = work(self).and_then(|value| {
            self.connection
                .execute_batch(end)
                .context("commit")
                .map(|()| value)
        });
        if outcome.is_err() && !self.connection.is_autocommit() {
            // The error that matters is the one that is returned; a failed rollback ends with the
            // connection.
            drop(self.connection.execute_batch(undo));
        }
        outcome
    }

    /// Opens a turn: from here on every transaction is a part of one.
    pub fn begin_turn(&mut self) -> StoreResult<()> {
        self.connection
            .execute_batch("BEGIN IMMEDIATE")
            .context("begin a transaction")?;
        self.in_turn = true;
        Ok(())
    }

    /// Whether the turn still stands. After some errors SQLite takes the whole of it back by itself, and
    /// what followed would be committed piece by piece.
    pub fn check_turn(&self) -> StoreResult<()> {
        if self.in_turn && !self.connection.is_autocommit() {
            return Ok(());
        }
        let source = rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT_ROLLBACK),
            Some("the transaction was taken back".to_owned()),
        );
        Err(source).context("go on with a transaction")
    }

    /// Makes all of the turn durable; with an error none of it happened.
    pub fn commit_turn(&mut self) -> StoreResult<()> {
        self.check_turn()?;
        let outcome = self.connection.execute_batch("COMMIT").context("commit");
        self.roll_turn_back();
        outcome
    }

    /// Ends the turn; what was not committed never happened.
    pub fn roll_turn_back(&mut self) {
        self.in_turn = false;
        if !self.connection.is_autocommit() {
            // A failed rollback ends with the connection.
            drop(self.connection.execute_batch("ROLLBACK"));
        }
    }

    /// Runs `work` on one snapshot: nothing that is committed meanwhile is seen.
    pub fn snapshot<T>(&self, work: impl FnOnce(&Self) -> StoreResult<T>) -> StoreResult<T> {
        self.connection
            .execute_batch("BEGIN")
            .context("begin a snapshot")?;
        let outcome = work(self);
        self.connection
            .execute_batch("ROLLBACK")
            .context("end a snapshot")?;
        outcome
    }

    /// Changes rows.
    pub fn execute(&self, sql: &str, params: impl Params) -> StoreResult<usize> {
        let mut statement = self
            .connection
            .prepare_cached(sql)
            .context("prepare a statement")?;
        statement.execute(params).context("write")
    }

    /// The first row, if there is one.
    pub fn query_one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> StoreResult<Option<T>> {
        let mut statement = self
            .connection
            .prepare_cached(sql)
            .context("prepare a statement")?;
        let mut rows = statement.query(params).context("read")?;
        rows.next()
            .context("read")?
            .map(read)
            .transpose()
            .context("read")
    }

    /// All rows.
    pub fn query_all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> StoreResult<Vec<T>> {
        let mut statement = self
            .connection
            .prepare_cached(sql)
            .context("prepare a statement")?;
        let rows = statement.query_map(params, read).context("read")?;
        rows.collect::<rusqlite::Result<Vec<T>>>().context("read")
    }

    /// Refuses a listing of a whole table that lacks rows which its index knows: a page that lost its last
    /// rows looks like a shorter one.
    pub fn check_count(&self, table: &str, found: usize) -> StoreResult<()> {
        let sql = format!("SELECT count(*) FROM {table} INDEXED BY sqlite_autoindex_{table}_1");
        let known = self.query_one(&sql, [], |row| row.get::<_, i64>(0))?;
        if known.map(i64::cast_unsigned) == Some(found as u64) {
            return Ok(());
        }
        let what = format!("the table `{table}` and its index do not have the same rows");
        Err(StoreError::damaged(what))
    }

    /// Refuses that a row of this text key is not there when its index knows of one.
    pub fn check_missing(&self, table: &str, column: &str, key: &str) -> StoreResult<()> {
        let sql = format!(
            "SELECT 1 FROM {table} INDEXED BY sqlite_autoindex_{table}_1 WHERE {column} = ?1"
        );
        match self.query_one(&sql, [key], |_| Ok(()))? {
            None => Ok(()),
            Some(()) => Err(StoreError::damaged(format!(
                "the table `{table}` lacks a row that its index knows"
            ))),
        }
    }

    /// A value of the table `meta`.
    pub fn meta(&self, key: &str) -> StoreResult<Option<String>> {
        let sql = "SELECT value, key, guard FROM meta WHERE key = ?1";
        let found = self.query_one(sql, [key], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, String>(1)?,
                row.get(2)?,
            ))
        })?;
        let Some((value, found, guard)) = found else {
            return self.check_missing("meta", "key", key).map(|()| None);
        };
        meta_row(key, &value).check(guard)?;
        if found != key {
            let what = format!("an index of the table `meta` leads to `{found}`, not `{key}`");
            return Err(StoreError::damaged(what));
        }
        Ok(Some(value))
    }

    /// Sets a value of the table `meta`.
    pub fn set_meta(&self, key: &str, value: &str) -> StoreResult<()> {
        let sql = "INSERT INTO meta (key, value, guard) VALUES (?1, ?2, ?3) ON CONFLICT (key)
                   DO UPDATE SET value = excluded.value, guard = excluded.guard";
        let guard = meta_row(key, value).guard();
        self.execute(sql, (key, value, guard)).map(drop)
    }

    /// Takes a value of the table `meta` away.
    pub fn delete_meta(&self, key: &str) -> StoreResult<()> {
        self.execute("DELETE FROM meta WHERE key = ?1", [key])
            .map(drop)
    }
}

fn meta_row(key: &str, value: &str) -> GuardedRow {
    GuardedRow::of("meta")
        .bytes(key.as_bytes())
        .bytes(value.as_bytes())
}
