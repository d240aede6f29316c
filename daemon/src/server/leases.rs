//! Leases that end with their connection.
//!
//! Done in place: all that is needed is in memory, and a hand-over would cost more than the work.
//! Invariants: 7 (a lease taken for a connection that is gone is released at once).

use std::sync::Arc;

use semaprax_protocol::request::{LeaseAcquire, LeaseRelease, Response};

use super::connection::Connection;
use super::guarded;
use super::hosted::Hosted;
use super::serve::too_many;
use super::writer::Work;
use crate::engine::{Input, Lane};
use crate::workspace::Acquired;

/// Leases of one connection.
const LEASES: usize = 4096;

/// Takes a lease; where its tree has to be made first, the writer does so before all that waits.
pub(super) fn acquire(
    connection: &Arc<Connection>,
    hosted: &Hosted,
    id: u64,
    params: &LeaseAcquire,
) {
    if connection.leases() >= LEASES {
        return connection.answer(id, &Err(too_many("leases", LEASES)));
    }
    let acquired = guarded("taking a lease", || {
        hosted.workspace.acquire(params, connection.pid)
    });
    let (lease, ready) = match acquired.and_then(|acquired| acquired) {
        Ok(Acquired::Ready(grant)) => (grant.lease, Ok(grant)),
        Ok(Acquired::NeedsTree(lease, revision)) => (lease, Err(revision)),
        Err(refusal) => return connection.answer(id, &Err(refusal)),
    };
    if !connection.hold(lease) {
        return hosted.release_quietly(lease);
    }
    match ready {
        Ok(grant) => connection.answer(id, &Ok(Response::LeaseAcquire(grant))),
        Err(revision) => {
            let work = Work::Tree(lease, revision);
            hosted.input(Input::Request(connection.caller(id), Lane::Tree, work));
        }
    }
}

/// Ends a connection lease, of whichever connection; `false` when there is none of that id.
pub(super) fn release(
    connection: &Connection,
    hosted: &Hosted,
    id: u64,
    params: &LeaseRelease,
) -> bool {
    match guarded("releasing a lease", || {
        hosted.workspace.release(params.lease)
    }) {
        Ok(None) => false,
        Ok(Some(released)) => {
            connection.let_go(params.lease);
            connection.answer(id, &Ok(Response::LeaseRelease(released)));
            true
        }
        Err(refusal) => {
            connection.answer(id, &Err(refusal));
            true
        }
    }
}
