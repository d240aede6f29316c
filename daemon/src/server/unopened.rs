//! `verify` and `doctor` of a directory that cannot be opened as a workspace, or is none.
//!
//! Owns: that both can be asked for when nothing else can: they are how a damaged workspace is mended.
//! LOCK keeps them off a workspace that is open.

use std::sync::Arc;

use semaprax_protocol::request::{Request, Response};

use super::blocking;
use super::canonical::canonical;
use super::connection::Connection;
use super::daemon::shutting_down;
use crate::engine::Outcome;
use crate::session::Call;
use crate::workspace::{doctor, verify_unopened};

/// Starts the work.
pub(super) fn start(connection: &Arc<Connection>, call: Call) {
    let connection = Arc::clone(connection);
    tokio::spawn(async move {
        let outcome = examine(&connection, call.request).await;
        connection.answer(call.id, &outcome);
    });
}

async fn examine(connection: &Connection, request: Request) -> Outcome {
    let daemon = Arc::clone(&connection.daemon);
    let permit = daemon
        .imports
        .acquire()
        .await
        .map_err(|_| shutting_down())?;
    let shared = Arc::clone(&daemon);
    let outcome = blocking("examining a directory", move || {
        let (world, holder) = (&shared.world, shared.holder());
        match request {
            Request::Verify(params) => {
                let directory = params.directory.clone().unwrap_or_default();
                let root = canonical(&*world.disk, &directory)?;
                verify_unopened(world, &root, &holder, &params).map(Response::Verify)
            }
            Request::Doctor(params) => {
                let root = canonical(&*world.disk, &params.directory.unwrap_or_default())?;
                Ok(Response::Doctor(doctor(world, &root, &holder.socket)))
            }
            other => Err(super::internal(other.method())),
        }
    })
    .await;
    drop(permit);
    daemon.work_ended();
    outcome?
}
