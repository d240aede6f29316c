//! Making and opening the database.
//!
//! Owns: its version, its tables, and how a connection is set up. A store of a newer build is not touched.

use camino::Utf8Path;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::{Context as _, Database};
use crate::store::{StoreError, StoreResult};

/// The version of the store this build writes.
pub const STORE_VERSION: i64 = 1;
/// "SMPX": tells our databases from others.
const APPLICATION_ID: i64 = 0x534D_5058;
/// Statements kept prepared on a connection.
const STATEMENTS: usize = 64;

const TABLES: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, guard BLOB NOT NULL);
CREATE TABLE blobs (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    sha256 BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    encoding INTEGER NOT NULL,
    data BLOB,
    guard BLOB NOT NULL
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
    guard BLOB NOT NULL
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
    guard BLOB NOT NULL
);
CREATE TABLE pins (
    revision BLOB PRIMARY KEY,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL,
    guard BLOB NOT NULL
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
/// How a database is opened for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadMode {
    /// Beside a writer, or where a write-ahead log lies: sees every committed transaction.
    Shared,
    /// On a read-only directory without a write-ahead log: takes no lock and makes no file.
    Immutable,
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
        let database = Self {
            connection: Connection::open_with_flags(path, flags).context("be opened")?,
            in_turn: false,
        };
        // The last one to close a database folds its log in. A store of a newer build is not touched.
        database.fold_in_on_close(false)?;
        database.check_version()?;
        database.fold_in_on_close(true)?;
        database.tune_writer()?;
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
        let database = Self {
            connection: Connection::open_with_flags(uri, flags).context("be opened")?,
            in_turn: false,
        };
        database.tune()?;
        database.check_version()?;
        Ok(database)
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
}
