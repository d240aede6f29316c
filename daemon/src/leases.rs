//! Who pins which revision.
//!
//! Owns: the table of leases in memory: those of connections and the detached ones. Time is an
//! argument: what runs out is counted on the boot-time clock, which no one can set.
//! Never: the disk, a clock, or why a lease is asked for.
//!
//! Keeps invariant 7: a generation under lease is never collected, changed or recycled.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use semaprax_protocol::{LeaseId, Revision, Seq, Timestamp};

/// One lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The generation it holds.
    pub revision: Revision,
    /// Its publication number.
    pub seq: Seq,
    /// Who, for people.
    pub owner: String,
    /// The process that asked for it.
    pub pid: Option<u32>,
    /// When it was taken, by the wall clock.
    pub acquired: Timestamp,
    /// When it ends; `None` while it ends with its connection.
    pub end: Option<LeaseEnd>,
}

/// When a detached lease ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseEnd {
    /// By the wall clock, for people and for the next daemon.
    pub expires: Timestamp,
    /// By the boot-time clock: what counts while this daemon runs.
    pub deadline: Duration,
}

/// All leases of a workspace.
#[derive(Debug, Default)]
pub struct Leases {
    table: BTreeMap<LeaseId, Lease>,
    /// Every generation that was leased since the table was made, as long as its tree may be there.
    ever: BTreeSet<Revision>,
}

impl Lease {
    fn is_over(&self, now: Duration) -> bool {
        self.end.is_some_and(|end| end.deadline <= now)
    }
}

impl Leases {
    /// Takes a lease, or gives one that is there a new end.
    pub fn put(&mut self, id: LeaseId, lease: Lease) {
        self.ever.insert(lease.revision);
        self.table.insert(id, lease);
    }

    /// Whether any lease ever held `revision`: whoever had one may still look at the tree.
    pub fn ever_held(&self, revision: &Revision) -> bool {
        self.ever.contains(revision)
    }

    /// The tree of `revision` is gone, and with it all who looked at it.
    pub fn forget(&mut self, revision: &Revision) {
        self.ever.remove(revision);
    }

    /// Ends a lease.
    pub fn remove(&mut self, id: LeaseId) -> Option<Lease> {
        self.table.remove(&id)
    }

    /// A lease that has not run out.
    pub fn get(&self, id: LeaseId, now: Duration) -> Option<&Lease> {
        self.table.get(&id).filter(|lease| !lease.is_over(now))
    }

    /// Whether any lease holds `revision`.
    pub fn holds(&self, revision: &Revision, now: Duration) -> bool {
        self.table
            .values()
            .any(|lease| lease.revision == *revision && !lease.is_over(now))
    }

    /// The leases that have not run out, oldest first.
    pub fn list(&self, now: Duration) -> Vec<(LeaseId, &Lease)> {
        let mut leases: Vec<_> = self
            .table
            .iter()
            .filter(|(_, lease)| !lease.is_over(now))
            .map(|(id, lease)| (*id, lease))
            .collect();
        leases.sort_by_key(|(id, lease)| (lease.acquired, *id));
        leases
    }

    /// Takes out the leases that have run out.
    pub fn expire(&mut self, now: Duration) -> Vec<LeaseId> {
        let over: Vec<LeaseId> = self
            .table
            .iter()
            .filter(|(_, lease)| lease.is_over(now))
            .map(|(id, _)| *id)
            .collect();
        for id in &over {
            self.table.remove(id);
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(revision: u8, deadline: Option<u64>) -> Lease {
        Lease {
            revision: Revision::from_bytes([revision; 32]),
            seq: Seq::FIRST,
            owner: String::new(),
            pid: None,
            acquired: Timestamp::from_nanos(0),
            end: deadline.map(|deadline| LeaseEnd {
                expires: Timestamp::from_nanos(0),
                deadline: Duration::from_secs(deadline),
            }),
        }
    }

    #[test]
    fn a_lease_holds_until_its_end() {
        let id = |byte: u8| LeaseId::from_uuid(uuid::Uuid::from_bytes([byte; 16]));
        let mut leases = Leases::default();
        leases.put(id(1), lease(1, None));
        leases.put(id(2), lease(2, Some(10)));
        let check = |leases: &Leases, revision: u8, now: u64, expect: bool| {
            let revision = Revision::from_bytes([revision; 32]);
            assert_eq!(
                leases.holds(&revision, Duration::from_secs(now)),
                expect,
                "{revision} at {now}"
            );
        };
        check(&leases, 1, 1_000_000, true);
        check(&leases, 2, 9, true);
        check(&leases, 2, 10, false);
        check(&leases, 3, 0, false);
        assert_eq!(leases.expire(Duration::from_secs(10)), [id(2)]);
        assert!(leases.remove(id(1)).is_some());
        check(&leases, 1, 0, false);
        let first = Revision::from_bytes([1; 32]);
        assert!(leases.ever_held(&first));
        assert!(!leases.ever_held(&Revision::from_bytes([3; 32])));
        leases.forget(&first);
        assert!(!leases.ever_held(&first));
    }
}
