//! What holds a generation across restarts: pins and detached leases.
//!
//! Owns: the tables `pins` and `leases`.
//!
//! Keeps invariant 7 across restarts of the daemon.

use std::collections::BTreeSet;

use semaprax_protocol::{LeaseId, Revision, Seq, Timestamp};

use super::super::StoreResult;
use super::super::database::Database;

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

impl Database {
    /// Keeps a detached lease, or its new end, inside a transaction.
    pub fn put_lease(&self, lease: &DetachedLease) -> StoreResult<()> {
        let sql = "INSERT INTO leases (id, revision, seq, owner, pid, acquired, ttl_ms, expires)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (id) DO UPDATE SET
                   ttl_ms = excluded.ttl_ms, expires = excluded.expires";
        let params = rusqlite::params![
            lease.id.to_string(),
            lease.revision.as_bytes(),
            lease.seq.get().cast_signed(),
            lease.owner,
            lease.pid,
            lease.acquired.as_nanos(),
            lease.ttl_ms.cast_signed(),
            lease.expires.as_nanos(),
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
        let sql = "SELECT id, revision, seq, owner, pid, acquired, ttl_ms, expires FROM leases ORDER BY acquired, id";
        let rows = self.query_all(sql, [], |row| {
            // An id or a number that cannot be read names no lease that anyone could hold.
            let id: Option<LeaseId> = row.get::<_, String>(0)?.parse().ok();
            let seq = Seq::new(row.get::<_, i64>(2)?.cast_unsigned());
            let Some((id, seq)) = id.zip(seq) else {
                return Ok(None);
            };
            Ok(Some(DetachedLease {
                id,
                seq,
                revision: Revision::from_bytes(row.get(1)?),
                owner: row.get(3)?,
                pid: row.get(4)?,
                acquired: Timestamp::from_nanos(row.get(5)?),
                ttl_ms: row.get::<_, i64>(6)?.cast_unsigned(),
                expires: Timestamp::from_nanos(row.get(7)?),
            }))
        })?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// Pins a generation, inside a transaction.
    pub fn put_pin(&self, revision: &Revision, reason: &str, at: Timestamp) -> StoreResult<()> {
        let sql = "INSERT INTO pins (revision, reason, at) VALUES (?1, ?2, ?3)
                   ON CONFLICT (revision) DO UPDATE SET reason = excluded.reason";
        self.execute(
            sql,
            rusqlite::params![revision.as_bytes(), reason, at.as_nanos()],
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
        let rows = self.query_all("SELECT revision FROM pins", [], |row| {
            row.get::<_, [u8; 32]>(0)
        })?;
        Ok(rows.into_iter().map(Revision::from_bytes).collect())
    }
}
