//! `init`: a long piece of work that tells how far it is and stops when its client goes away.

use std::sync::Arc;
use std::time::Duration;

use semaprax_protocol::request::{Init, Request, Response};
use semaprax_protocol::rpc::Notice;

use super::blocking;
use super::connection::Connection;
use super::daemon::shutting_down;
use crate::engine::Outcome;
use crate::session::Call;
use crate::workspace;

/// Progress is told at most this often.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Starts an import.
pub(super) fn start(connection: &Arc<Connection>, call: Call) {
    let Request::Init(params) = call.request else {
        return;
    };
    let connection = Arc::clone(connection);
    tokio::spawn(async move {
        let outcome = import(&connection, call.id, params).await;
        connection.answer(call.id, &outcome);
    });
}

async fn import(connection: &Arc<Connection>, request: u64, params: Init) -> Outcome {
    let daemon = Arc::clone(&connection.daemon);
    let permit = daemon
        .imports
        .acquire()
        .await
        .map_err(|_| shutting_down())?;
    if daemon.is_stopping() {
        return Err(shutting_down());
    }
    let client = Arc::clone(connection);
    let imported = blocking("init", move || {
        let daemon = &client.daemon;
        let mut told = Duration::ZERO;
        let mut progress = |done, total| {
            let now = daemon.now();
            if now >= told + PROGRESS_INTERVAL {
                told = now;
                client.hint(&Notice::Progress {
                    request,
                    done,
                    total,
                });
            }
            !client.is_over() && !daemon.is_stopping()
        };
        workspace::initialize(&daemon.world, &params, &daemon.config, &mut progress)
    })
    .await;
    drop(permit);
    daemon.work_ended();
    imported?.map(Response::Init)
}
