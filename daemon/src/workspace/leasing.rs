//! Detached leases and pins: holds that outlive a connection and a daemon.
//!
//! Owns: their rows in the store, kept in step with the table in memory.
//!
//! Keeps invariant 7.

use std::time::Duration;

use semaprax_protocol::documents::{LeaseGrant, LeaseReleased, Pinned};
use semaprax_protocol::limits::{LABEL_BYTES, LEASE_TTL_MS};
use semaprax_protocol::request::{LeaseAcquire, LeaseRenew, Pin, Unpin};
use semaprax_protocol::{Code, Diagnostic, LeaseId, Refusal, SchemaTag, Timestamp};
use serde_json::json;

use super::Writer;
use super::shared::{check_owner, unknown};
use crate::store::history::{DetachedLease, Event, EventDetail};

impl Writer {
    pub(super) fn acquire_detached(
        &mut self,
        params: &LeaseAcquire,
        pid: Option<u32>,
    ) -> Result<LeaseGrant, Refusal> {
        check_owner(&params.owner)?;
        let ttl_ms = checked_ttl(params.ttl_ms.unwrap_or(0))?;
        let stored = match &params.revision {
            Some(revision) => self.resolve(revision)?,
            None => self.ledger.tip.stored.clone(),
        };
        // A lease promises the content: without it a daemon that ended now would leave one that nothing
        // can be given for.
        stored.tree()?;
        let world = &self.ledger.store.world;
        let acquired = world.clock.now();
        let lease = DetachedLease {
            id: LeaseId::from_uuid(world.entropy.uuid()),
            revision: stored.record.revision,
            seq: stored.record.seq,
            owner: params.owner.clone(),
            pid,
            acquired,
            ttl_ms,
            expires: after(acquired, ttl_ms),
        };
        // In the table first: the writer itself collects, but never between these lines.
        self.hold(&lease, "lease-acquired")?;
        if let Err(refusal) = self.materialize(lease.revision) {
            drop(self.release_detached(lease.id));
            return Err(refusal);
        }
        self.workspace.grant(lease.id)
    }

    pub(super) fn renew(&mut self, params: &LeaseRenew) -> Result<LeaseGrant, Refusal> {
        let mut lease = self.detached(params.lease)?;
        lease.ttl_ms = checked_ttl(params.ttl_ms.unwrap_or(lease.ttl_ms))?;
        lease.expires = after(self.ledger.store.world.clock.now(), lease.ttl_ms);
        // A daemon that ended between taking a lease and making its tree left a lease without one.
        self.materialize(lease.revision)?;
        self.hold(&lease, "lease-renewed")?;
        self.workspace.grant(lease.id)
    }

    pub(super) fn release_detached(&mut self, id: LeaseId) -> Result<LeaseReleased, Refusal> {
        let lease = self.detached(id)?;
        let at = self.ledger.store.world.clock.now();
        self.ledger.store.database.transaction(|database| {
            database.delete_lease(id)?;
            database.append_event(&Event {
                at,
                detail: lease_event("lease-released", &lease),
            })
        })?;
        self.workspace.leases().remove(id);
        Ok(LeaseReleased {
            schema: SchemaTag::new(),
            released: id,
            revision: lease.revision,
        })
    }

    /// The row of a lease that has not run out.
    fn detached(&self, id: LeaseId) -> Result<DetachedLease, Refusal> {
        let now = self.ledger.store.world.clock.since_boot();
        if self
            .workspace
            .leases()
            .get(id, now)
            .is_none_or(|lease| lease.end.is_none())
        {
            return Err(unknown(id));
        }
        let rows = self.ledger.store.database.leases()?;
        rows.into_iter()
            .find(|lease| lease.id == id)
            .ok_or_else(|| unknown(id))
    }

    fn hold(&mut self, lease: &DetachedLease, kind: &'static str) -> Result<(), Refusal> {
        let at = self.ledger.store.world.clock.now();
        self.ledger.store.database.transaction(|database| {
            database.put_lease(lease)?;
            database.append_event(&Event {
                at,
                detail: lease_event(kind, lease),
            })
        })?;
        let entry = self.workspace.detached(lease);
        self.workspace.leases().put(lease.id, entry);
        Ok(())
    }

    /// Forgets the detached leases that have run out.
    pub(super) fn expire_leases(&mut self) -> Result<(), Refusal> {
        let now = self.ledger.store.world.clock.since_boot();
        let over = self.workspace.leases().expire(now);
        if !over.is_empty() {
            self.ledger.store.database.transaction(|database| {
                over.iter().try_for_each(|id| database.delete_lease(*id))
            })?;
        }
        Ok(())
    }

    pub(super) fn pin(&mut self, params: &Pin) -> Result<Pinned, Refusal> {
        if params.reason.len() > LABEL_BYTES {
            let message = format!(
                "the reason has {} bytes; {LABEL_BYTES} are allowed",
                params.reason.len()
            );
            return Err(Diagnostic::new(Code::LimitExceeded, message).into());
        }
        let stored = self.resolve(&params.revision)?;
        // A pin promises the content: it must still be there.
        stored.tree()?;
        let revision = stored.record.revision;
        let at = self.ledger.store.world.clock.now();
        let detail =
            json!({ "revision": revision, "seq": stored.record.seq, "reason": params.reason });
        self.ledger.store.database.transaction(|database| {
            database.put_pin(&revision, &params.reason, at)?;
            database.append_event(&Event {
                at,
                detail: EventDetail::Other {
                    kind: "pinned",
                    detail,
                },
            })
        })?;
        Ok(Pinned {
            schema: SchemaTag::new(),
            revision,
            pinned: true,
        })
    }

    pub(super) fn unpin(&mut self, params: &Unpin) -> Result<Pinned, Refusal> {
        let stored = self.resolve(&params.revision)?;
        let revision = stored.record.revision;
        let at = self.ledger.store.world.clock.now();
        let detail = json!({ "revision": revision, "seq": stored.record.seq });
        self.ledger.store.database.transaction(|database| {
            database.delete_pin(&revision)?;
            database.append_event(&Event {
                at,
                detail: EventDetail::Other {
                    kind: "unpinned",
                    detail,
                },
            })
        })?;
        Ok(Pinned {
            schema: SchemaTag::new(),
            revision,
            pinned: false,
        })
    }
}

fn lease_event(kind: &'static str, lease: &DetachedLease) -> EventDetail<'static> {
    let detail = json!({
        "lease": lease.id,
        "revision": lease.revision,
        "seq": lease.seq,
        "owner": lease.owner,
        "expires": lease.expires,
    });
    EventDetail::Other { kind, detail }
}

fn checked_ttl(ttl_ms: u64) -> Result<u64, Refusal> {
    if ttl_ms == 0 || ttl_ms > LEASE_TTL_MS {
        let longest = Duration::from_millis(LEASE_TTL_MS).as_secs() / (24 * 3600);
        let message = format!("a detached lease lasts from a millisecond to {longest} days");
        return Err(Diagnostic::new(Code::LimitExceeded, message).into());
    }
    Ok(ttl_ms)
}

fn after(start: Timestamp, millis: u64) -> Timestamp {
    start.saturating_add(
        i64::try_from(millis)
            .unwrap_or(i64::MAX)
            .saturating_mul(1_000_000),
    )
}
