//! `doctor` and `verify` of a directory that is no workspace, or one too damaged to be opened.

use std::sync::Arc;

use camino::Utf8Path;
use semaprax_protocol::request::{Request, Response, Verify};
use semaprax_protocol::{Code, Diagnostic, Refusal};

use super::blocking;
use super::canonical::canonical;
use super::connection::Connection;
use super::daemon::{Daemon, shutting_down};
use super::registry::Registry;
use crate::engine::Outcome;
use crate::workspace;

/// Starts the request when it is one of these.
pub(super) fn start(connection: &Arc<Connection>, id: u64, request: &Request) -> bool {
    let is_one = match request {
        Request::Doctor(doctor) => doctor.directory.is_some(),
        Request::Verify(verify) => verify.directory.is_some() && connection.hosted().is_none(),
        _ => false,
    };
    if is_one {
        let (connection, request) = (Arc::clone(connection), request.clone());
        tokio::spawn(async move {
            let outcome = answer(&connection.daemon, request).await;
            connection.daemon.work_ended();
            connection.answer(id, &outcome);
        });
    }
    is_one
}

async fn answer(daemon: &Arc<Daemon>, request: Request) -> Outcome {
    // Counts as an import does: long work of which there is little at once.
    let _permit = daemon
        .imports
        .acquire()
        .await
        .map_err(|_| shutting_down())?;
    if daemon.is_stopping() {
        return Err(shutting_down());
    }
    match request {
        Request::Doctor(params) => {
            let directory = params.directory.unwrap_or_default();
            if params.repair {
                return repair(daemon, &directory).await;
            }
            let (world, socket) = (daemon.world.clone(), daemon.place.socket());
            let looked = blocking("doctor", move || {
                let root = canonical(&*world.disk, &directory)?;
                Ok::<_, Refusal>(workspace::doctor(&world, &root, &socket))
            });
            looked.await?.map(Response::Doctor)
        }
        Request::Verify(params) => verify(daemon, params).await,
        other => Err(misplaced(&other)),
    }
}

async fn repair(daemon: &Arc<Daemon>, directory: &Utf8Path) -> Outcome {
    let shared = Arc::clone(daemon);
    let mended = Registry::while_closed(daemon, directory, move |root| {
        workspace::doctor_unopened(&shared.world, root, &shared.holder(), true)
    });
    mended.await.map(Response::Doctor)
}

async fn verify(daemon: &Arc<Daemon>, params: Verify) -> Outcome {
    let directory = params.directory.clone().unwrap_or_default();
    let shared = Arc::clone(daemon);
    let verified = Registry::while_closed(daemon, &directory, move |root| {
        workspace::verify_unopened(&shared.world, root, &shared.holder(), &params)
    });
    verified.await.map(Response::Verify)
}

fn misplaced(request: &Request) -> Refusal {
    let message = format!("`{}` is not about a directory", request.method());
    Diagnostic::new(Code::Internal, message).into()
}
