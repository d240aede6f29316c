//! What holds a generation across restarts: pins and detached leases.
//!
//! Owns: the tables `pins` and `leases`.
//!
//! Keeps invariant 7 across restarts of the daemon.

use std::collections::BTreeSet;

use rusqlite::Row;
use semaprax_protocol::{LeaseId, Revision, Seq, Timestamp};

use super::super::database::Database;
use super::super::guard::{Guard, GuardedRow};
use super::super::{StoreError, StoreResult};

const LEASES: &str = "leases";
const PINS: &str = "pins";

/// A lease that outlives its connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetachedLease {
    /// The lease.
    pub id: LeaseId,
    /// The generation it holds.
    pub revision: Revision,
    /// Its publication number.
    pub seq: Seq,
    /// Who, for people.
    pub owner: String,
    /// The process that asked for it.
    pub pid: Option<u32>,
    /// When it was taken.
    pub acquired: Timestamp,
    /// How long it lasts, in milliseconds.
    pub ttl_ms: u64,
    /// When it ends, by the wall clock.
    pub expires: Timestamp,
}

impl DetachedLease {
    fn row(&self) -> GuardedRow {
        GuardedRow::of(LEASES)
            .bytes(self.id.to_string().as_bytes())
            .bytes(self.revision.as_bytes())
            .number(self.seq.get().cast_signed())
            .bytes(self.owner.as_bytes())
            .number(self.pid.map_or(-1, i64::from))
            .number(self.acquired.as_nanos())
            .number(self.ttl_ms.cast_signed())
            .number(self.expires.as_nanos())
    }
}

fn pin_row(revision: &[u8], reason: &str, at: i64) -> GuardedRow {
    GuardedRow::of(PINS)
        .bytes(revision)
        .bytes(reason.as_bytes())
        .number(at)
}

impl Database {
    /// Keeps a detached lease, or its new end, inside a transaction.
    pub fn put_lease(&self, lease: &DetachedLease) -> StoreResult<()> {
        let sql =
            "INSERT INTO leases (id, revision, seq, owner, pid, acquired, ttl_ms, expires, guard)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (id) DO UPDATE SET
                   ttl_ms = excluded.ttl_ms, expires = excluded.expires, guard = excluded.guard";
        let params = rusqlite::params![
            lease.id.to_string(),
            lease.revision.as_bytes(),
            lease.seq.get().cast_signed(),
            lease.owner,
            lease.pid,
            lease.acquired.as_nanos(),
            lease.ttl_ms.cast_signed(),
            lease.expires.as_nanos(),
            lease.row().guard(),
        ];
        self.execute(sql, params).map(drop)
    }

    /// Ends a detached lease, inside a transaction.
    pub fn delete_lease(&self, id: LeaseId) -> StoreResult<()> {
        self.execute("DELETE FROM leases WHERE id = ?1", [id.to_string()])
            .map(drop)
    }

    /// The detached leases, oldest first, those that have run out included.
    pub fn leases(&self) -> StoreResult<Vec<DetachedLease>> {
        let rows = self.lease_rows()?.into_iter();
        rows.map(|(_, lease)| lease).collect()
    }

    /// The rows of leases that cannot be believed.
    pub fn unreadable_leases(&self) -> StoreResult<Vec<i64>> {
        Ok(unreadable(self.lease_rows()?))
    }

    fn lease_rows(&self) -> StoreResult<Vec<(i64, StoreResult<DetachedLease>)>> {
        let sql = "SELECT id, revision, seq, owner, pid, acquired, ttl_ms, expires, guard, rowid
                   FROM leases ORDER BY acquired, id";
        let rows = self.query_all(sql, [], |row| Ok((row.get(9)?, read_lease(row))))?;
        self.check_count(LEASES, rows.len())?;
        Ok(rows)
    }

    /// Takes a row of a lease or a pin away, inside a transaction of a repair.
    pub fn drop_hold(&self, kind: &str, row: i64) -> StoreResult<()> {
        let table = if kind == "lease" { LEASES } else { PINS };
        self.execute(&format!("DELETE FROM {table} WHERE rowid = ?1"), [row])
            .map(drop)
    }

    /// Pins a generation, inside a transaction.
    pub fn put_pin(&self, revision: &Revision, reason: &str, at: Timestamp) -> StoreResult<()> {
        let sql = "INSERT INTO pins (revision, reason, at, guard) VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT (revision) DO UPDATE SET reason = excluded.reason,
                   at = excluded.at, guard = excluded.guard";
        let at = at.as_nanos();
        let guard = pin_row(revision.as_bytes(), reason, at).guard();
        self.execute(
            sql,
            rusqlite::params![revision.as_bytes(), reason, at, guard],
        )
        .map(drop)
    }

    /// Takes a pin away, inside a transaction.
    pub fn delete_pin(&self, revision: &Revision) -> StoreResult<()> {
        self.execute(
            "DELETE FROM pins WHERE revision = ?1",
            [revision.as_bytes()],
        )
        .map(drop)
    }

    /// The pinned generations.
    pub fn pins(&self) -> StoreResult<BTreeSet<Revision>> {
        let rows = self.pin_rows()?.into_iter();
        rows.map(|(_, revision)| revision).collect()
    }

    /// The rows of pins that cannot be believed.
    pub fn unreadable_pins(&self) -> StoreResult<Vec<i64>> {
        Ok(unreadable(self.pin_rows()?))
    }

    fn pin_rows(&self) -> StoreResult<Vec<(i64, StoreResult<Revision>)>> {
        let sql = "SELECT revision, reason, at, guard, rowid FROM pins";
        let rows = self.query_all(sql, [], |row| Ok((row.get(4)?, read_pin(row))))?;
        self.check_count(PINS, rows.len())?;
        Ok(rows)
    }
}

fn unreadable<T>(rows: Vec<(i64, StoreResult<T>)>) -> Vec<i64> {
    let unreadable = rows.into_iter().filter(|(_, read)| read.is_err());
    unreadable.map(|(row, _)| row).collect()
}

fn read_lease(row: &Row<'_>) -> StoreResult<DetachedLease> {
    let read = || -> rusqlite::Result<_> {
        // An id or a number that cannot be read names no lease that anyone could hold.
        let id: Option<LeaseId> = row.get::<_, String>(0)?.parse().ok();
        let seq = Seq::new(row.get::<_, i64>(2)?.cast_unsigned());
        let guard: Guard = row.get(8)?;
        let Some((id, seq)) = id.zip(seq) else {
            return Ok(None);
        };
        let lease = DetachedLease {
            id,
            seq,
            revision: Revision::from_bytes(row.get(1)?),
            owner: row.get(3)?,
            pid: row.get(4)?,
            acquired: Timestamp::from_nanos(row.get(5)?),
            ttl_ms: row.get::<_, i64>(6)?.cast_unsigned(),
            expires: Timestamp::from_nanos(row.get(7)?),
        };
        Ok(Some((lease, guard)))
    };
    let read = read().map_err(|error| StoreError::damaged(format!("a lease: {error}")))?;
    let (lease, guard) = read.ok_or_else(|| StoreError::damaged("a lease cannot be read"))?;
    lease.row().check(guard)?;
    Ok(lease)
}

fn read_pin(row: &Row<'_>) -> StoreResult<Revision> {
    let read = || -> rusqlite::Result<([u8; 32], String, i64, Guard)> {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    };
    let read = read().map_err(|error| StoreError::damaged(format!("a pin: {error}")))?;
    let (revision, reason, at, guard) = read;
    pin_row(&revision, &reason, at).check(guard)?;
    Ok(Revision::from_bytes(revision))
}
