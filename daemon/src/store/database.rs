//! The SQLite database: opening it, its version, its tables.
//!
//! Owns: connections and transactions; the one exception to "all io through `world`". Tables are read
//! and written by `objects.rs`, `tree/`, `history.rs`, `leases` and `pins` through [`Database`].
//!
//! Keeps invariant 3: a committed transaction is durable (WAL, `synchronous=FULL`).

use camino::Utf8Path;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Params, Row};

use super::guard::{check_guard, guard_of};
use super::{StoreError, StoreResult};

/// The version of the store this build writes.
pub const STORE_VERSION: i64 = 1;
/// "SMPX": tells our databases from others.
const APPLICATION_ID: i64 = 0x534D_5058;
/// The write-ahead log is folded into the database when idle, and in any case past this many pages.
const CHECKPOINT_PAGES: i64 = 8192;
/// Statements kept prepared on a connection.
const STATEMENTS: usize = 64;

const TABLES: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, guard BLOB);
CREATE TABLE blobs (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    sha256 BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    encoding INTEGER NOT NULL,
    data BLOB,
    guard BLOB
);
CREATE TABLE nodes (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, data BLOB NOT NULL);
CREATE TABLE publications (
    seq INTEGER PRIMARY KEY,
    record BLOB NOT NULL UNIQUE,
    revision BLOB NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    author TEXT NOT NULL,
    collected INTEGER NOT NULL DEFAULT 0,
    body BLOB NOT NULL
);
CREATE TABLE events (
    entry INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    prev BLOB,
    digest BLOB NOT NULL,
    detail TEXT NOT NULL
);
CREATE TABLE submissions (
    id TEXT PRIMARY KEY,
    digest BLOB NOT NULL,
    at INTEGER NOT NULL,
    seq INTEGER,
    receipt TEXT NOT NULL,
    guard BLOB
);
CREATE TABLE leases (
    id TEXT PRIMARY KEY,
    revision BLOB NOT NULL,
    seq INTEGER NOT NULL,
    owner TEXT NOT NULL,
    pid INTEGER,
    acquired INTEGER NOT NULL,
    ttl_ms INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    guard BLOB
);
CREATE TABLE pins (
    revision BLOB PRIMARY KEY,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL,
    guard BLOB
);
";

/// All tables.
pub const TABLE_NAMES: [&str; 8] = [
    "meta",
    "blobs",
    "nodes",
    "publications",
    "events",
    "submissions",
    "leases",
    "pins",
];
/// The tables whose rows carry a check sum.
const GUARDED: [&str; 5] = ["meta", "blobs", "submissions", "leases", "pins"];

/// One connection.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    /// Whether a turn is open: transactions are parts of it.
    in_turn: bool,
    /// Whether the tables have the column `guard`. A store that was made before it was thought of has
    /// it once a writer has opened it.
    is_guarded: bool,
}

/// How a database is opened for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadMode {
    /// Beside a writer, or where a write-ahead log lies: sees every committed transaction.
    Shared,
    /// On a read-only directory without a write-ahead log: takes no lock and makes no file.
    Immutable,
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
    /// Makes a new database at `path`, with its tables.
    pub fn create(path: &Utf8Path) -> StoreResult<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let database = Self {
            connection: Connection::open_with_flags(path, flags).context("be made")?,
            in_turn: false,
            is_guarded: true,
        };
        database.tune_writer()?;
        database
            .connection
            .execute_batch(TABLES)
            .context("make its tables")?;
        database.set_pragma("application_id", APPLICATION_ID)?;
        database.set_pragma("user_version", STORE_VERSION)?;
        Ok(database)
    }

    /// Opens the database for the one writer.
    pub fn open_writer(path: &Utf8Path) -> StoreResult<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut database = Self {
            connection: Connection::open_with_flags(path, flags).context("be opened")?,
            in_turn: false,
            is_guarded: true,
        };
        // The last one to close a database folds its log in. A store of a newer build is not touched.
        database.fold_in_on_close(false)?;
        database.check_version()?;
        database.fold_in_on_close(true)?;
        database.tune_writer()?;
        database.add_guards()?;
        Ok(database)
    }

    fn fold_in_on_close(&self, folds: bool) -> StoreResult<()> {
        self.connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !folds)
            .map(drop)
            .context("be set up")
    }

    /// Opens the database for reading only.
    pub fn open_reader(path: &Utf8Path, mode: ReadMode) -> StoreResult<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let escaped = path
            .as_str()
            .replace('%', "%25")
            .replace('?', "%3f")
            .replace('#', "%23");
        let suffix = match mode {
            ReadMode::Shared => "?mode=ro",
            ReadMode::Immutable => "?mode=ro&immutable=1",
        };
        let uri = format!("file:{escaped}{suffix}");
        let mut database = Self {
            connection: Connection::open_with_flags(uri, flags).context("be opened")?,
            in_turn: false,
            is_guarded: true,
        };
        database.tune()?;
        database.check_version()?;
        database.is_guarded = database.unguarded()?.is_empty();
        Ok(database)
    }

    /// The tables that lack the column `guard`.
    fn unguarded(&self) -> StoreResult<Vec<&'static str>> {
        let mut tables = Vec::new();
        for table in GUARDED {
            let sql = "SELECT 1 FROM pragma_table_info(?1) WHERE name = 'guard'";
            if self.query_one(sql, [table], |_| Ok(()))?.is_none() {
                tables.push(table);
            }
        }
        Ok(tables)
    }

    /// Rows that are there already stay without one: nobody can say any more whether they are right.
    fn add_guards(&mut self) -> StoreResult<()> {
        let tables = self.unguarded()?;
        if tables.is_empty() {
            return Ok(());
        }
        self.transaction(|database| {
            tables.iter().try_for_each(|table| {
                let sql = format!("ALTER TABLE {table} ADD COLUMN guard BLOB");
                database.execute(&sql, ()).map(drop)
            })
        })
    }

    /// The column `guard` in a SELECT.
    pub fn guard_column(&self) -> &'static str {
        if self.is_guarded { "guard" } else { "NULL" }
    }

    fn tune(&self) -> StoreResult<()> {
        self.connection
            .set_prepared_statement_cache_capacity(STATEMENTS);
        self.connection
            .busy_timeout(std::time::Duration::from_secs(10))
            .context("set its waiting time")?;
        self.set_pragma("cache_size", -8192)
    }

    fn tune_writer(&self) -> StoreResult<()> {
        self.tune()?;
        let mode: String = self
            .connection
            .query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))
            .context("switch to a write-ahead log")?;
        if mode != "wal" {
            return Err(StoreError::damaged(format!(
                "the database keeps a `{mode}` journal, not a write-ahead log"
            )));
        }
        self.connection
            .execute_batch("PRAGMA synchronous=FULL")
            .context("be made durable")?;
        // Measured: the automatic checkpoint is the slowest part of the slowest publications.
        self.set_pragma("wal_autocheckpoint", 0)
    }

    fn set_pragma(&self, name: &str, value: i64) -> StoreResult<()> {
        self.connection
            .execute_batch(&format!("PRAGMA {name}={value}"))
            .context("be set up")
    }

    fn check_version(&self) -> StoreResult<()> {
        let pragma = |name: &str| -> StoreResult<i64> {
            self.connection
                .query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
                .context("tell its version")
        };
        let found = pragma("user_version")?;
        if found > STORE_VERSION {
            return Err(StoreError::Version {
                found,
                supported: STORE_VERSION,
            });
        }
        if pragma("application_id")? != APPLICATION_ID || found < 1 {
            return Err(StoreError::damaged("`store.db` is not a Semaprax store"));
        }
        Ok(())
    }

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

    /// A value of the table `meta`.
    pub fn meta(&self, key: &str) -> StoreResult<Option<String>> {
        let guard = self.guard_column();
        let sql = format!("SELECT value, key, {guard} FROM meta WHERE key = ?1");
        let found = self.query_one(&sql, [key], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, String>(1)?,
                row.get(2)?,
            ))
        })?;
        let Some((value, found, guard)) = found else {
            return Ok(None);
        };
        check_guard(guard, "meta", &[key.as_bytes(), value.as_bytes()])?;
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
        let guard = guard_of("meta", &[key.as_bytes(), value.as_bytes()]);
        self.execute(sql, (key, value, guard)).map(drop)
    }

    /// Takes a value of the table `meta` away.
    pub fn delete_meta(&self, key: &str) -> StoreResult<()> {
        self.execute("DELETE FROM meta WHERE key = ?1", [key])
            .map(drop)
    }

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

    /// Ends the connection; the last one folds the write-ahead log in and removes it.
    pub fn close(self) -> StoreResult<()> {
        self.connection
            .close()
            .map_err(|(_, error)| error)
            .context("be closed")
    }
}
