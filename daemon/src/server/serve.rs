//! Which request goes where.
//!
//! Owns: the routing of every method: answered here, read on a thread for reads, or handed to the
//! engine for the writer.
//! Never: waits; what takes time is a task of its own.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use semaprax_protocol::limits::LINE_BYTES;
use semaprax_protocol::request::{Journal, Request, Response, Welcome};
use semaprax_protocol::version::BUILD;
use semaprax_protocol::{Code, Diagnostic, Refusal, SubmissionId};
use tokio::time::Instant;

use super::connection::Connection;
use super::daemon::{Daemon, shutting_down};
use super::hosted::Hosted;
use super::registry::Registry;
use super::writer::{Work, is_upkeep};
use super::{blocking, import, leases, subscription, unopened};
use crate::engine::{Arrival, Binding, Input, Lane, Outcome, Terms};
use crate::session::Call;
use crate::workspace::Job;

/// The longest time that `journal` waits for an entry.
const JOURNAL_WAIT: Duration = Duration::from_mins(10);

/// Carries out `hello`.
pub(super) async fn greet(
    connection: &Arc<Connection>,
    request: u64,
    protocol: u32,
    workspace: Option<Utf8PathBuf>,
) {
    let greeted = match workspace {
        None if connection.daemon.is_stopping() => Err(shutting_down()),
        None => Ok(None),
        Some(directory) => Registry::open(&connection.daemon, directory)
            .await
            .map(Some),
    };
    let greeted = greeted.and_then(|hosted| {
        if let Some(hosted) = &hosted {
            hosted.attach(connection)?;
        }
        Ok(hosted)
    });
    let outcome = match greeted {
        Ok(hosted) => {
            let workspace = hosted.as_ref().map(|hosted| hosted.workspace.id());
            connection.greeted(hosted);
            Ok(Response::Hello(Welcome {
                protocol,
                pid: std::process::id(),
                version: BUILD.to_owned(),
                workspace,
                line_bytes: LINE_BYTES as u64,
            }))
        }
        Err(refusal) => {
            connection.not_greeted();
            Err(refusal)
        }
    };
    connection.answer(request, &outcome);
}

/// Carries out a request.
pub(super) fn serve(connection: &Arc<Connection>, call: Call) {
    let id = call.id;
    match (&call.request, connection.hosted()) {
        (Request::DaemonStatus(_), _) => {
            let status = connection.daemon.status(true);
            connection.answer(id, &Ok(Response::DaemonStatus(status)));
        }
        (Request::DaemonStop(stop), _) => match connection.daemon.ask_to_stop(stop.if_idle) {
            Ok(()) => {
                let status = connection.daemon.status(false);
                connection.answer(id, &Ok(Response::DaemonStop(status)));
                connection.daemon.stop();
            }
            Err(refusal) => connection.answer(id, &Err(refusal)),
        },
        (Request::Init(_), _) => import::start(connection, call),
        (request, _) if unopened::start(connection, id, request) => {}
        (_, Some(hosted)) => {
            let hosted = Arc::clone(hosted);
            serve_workspace(connection, &hosted, call);
        }
        (request, None) => {
            let message = format!("`{}` needs a workspace", request.method());
            connection.answer(
                id,
                &Err(Diagnostic::new(Code::NotAWorkspace, message).into()),
            );
        }
    }
}

fn serve_workspace(connection: &Arc<Connection>, hosted: &Arc<Hosted>, call: Call) {
    let id = call.id;
    if Terms::of(&call.request).is_some() {
        return submit(connection, hosted, call);
    }
    match &call.request {
        Request::Queue(_) => connection.answer(id, &Ok(Response::Queue(hosted.listing()))),
        Request::Cancel(cancel) => {
            hosted.input(Input::Cancel(connection.caller(id), cancel.submission));
        }
        Request::Watch(watch) => subscription::start(connection, hosted, id, watch.since.clone()),
        Request::Journal(journal) if journal.wait_ms.is_some() => {
            follow_journal(connection, hosted, id, journal);
        }
        Request::LeaseAcquire(acquire) if acquire.ttl_ms.is_none() => {
            leases::acquire(connection, hosted, id, acquire);
        }
        Request::LeaseRelease(release) if leases::release(connection, hosted, id, release) => {}
        request if is_upkeep(request) => {
            let work = job(connection, call, None);
            hosted.input(Input::Request(connection.caller(id), Lane::Upkeep, work));
        }
        _ => read(connection, hosted, call),
    }
}

fn job(connection: &Connection, call: Call, submission: Option<SubmissionId>) -> Work {
    let Call {
        request, uploads, ..
    } = call;
    Work::Request(Box::new(Job {
        request,
        submission,
        uploads,
        pid: connection.pid,
    }))
}

fn submit(connection: &Connection, hosted: &Hosted, call: Call) {
    let Some(terms) = Terms::of(&call.request) else {
        return;
    };
    let submission = terms
        .id
        .unwrap_or_else(|| SubmissionId::from_uuid(connection.daemon.world.entropy.uuid()));
    let binding = if terms.options.dry_run {
        None
    } else {
        Binding::of(&call.request)
    };
    let arrival = Arrival {
        caller: connection.caller(call.id),
        submission,
        binding,
        author: terms.author.to_owned(),
        bytes: call.bytes,
        deadline: terms.options.deadline_ms.map(Duration::from_millis),
        detach: terms.options.detach,
        work: job(connection, call, Some(submission)),
    };
    hosted.input(Input::Submit(Box::new(arrival)));
}

fn read(connection: &Arc<Connection>, hosted: &Arc<Hosted>, call: Call) {
    let (connection, hosted) = (Arc::clone(connection), Arc::clone(hosted));
    tokio::spawn(async move {
        let outcome = answer(&connection, &hosted, call.request).await;
        connection.answer(call.id, &outcome);
    });
}

/// Reads on a thread, when there is a free one and the client takes what it asked for.
async fn answer(connection: &Connection, hosted: &Arc<Hosted>, request: Request) -> Outcome {
    // Room for one is not room for all who saw it while they waited for a thread: look again.
    let _permit = loop {
        connection.outbox().has_room().await;
        let readers = &connection.daemon.readers;
        let permit = readers.acquire().await.map_err(|_| shutting_down())?;
        if connection.outbox().has_room_now() {
            break permit;
        }
    };
    let reader = Arc::clone(hosted);
    let mut outcome = blocking(request.method(), move || reader.workspace.answer(&request)).await?;
    if let Ok(Response::Status(status)) = &mut outcome {
        status.queue = hosted.counts();
        status.daemon = Some(Daemon::identity());
    }
    outcome
}

/// Answers `journal` once there is an entry, or the time is up.
fn follow_journal(connection: &Arc<Connection>, hosted: &Arc<Hosted>, id: u64, params: &Journal) {
    let (connection, hosted) = (Arc::clone(connection), Arc::clone(hosted));
    let wait = Duration::from_millis(params.wait_ms.unwrap_or(0)).min(JOURNAL_WAIT);
    let deadline = Instant::now() + wait;
    let request = Request::Journal(Journal {
        wait_ms: None,
        ..params.clone()
    });
    tokio::spawn(async move {
        let mut grown = hosted.journal();
        let outcome = loop {
            grown.mark_unchanged();
            let outcome = answer(&connection, &hosted, request.clone()).await;
            let empty = matches!(&outcome, Ok(Response::Journal(page)) if page.entries.is_empty());
            if !empty {
                break outcome;
            }
            tokio::select! {
                changed = grown.changed() => if changed.is_err() { break outcome },
                () = tokio::time::sleep_until(deadline) => break outcome,
                () = connection.ends() => break outcome,
            }
        };
        connection.answer(id, &outcome);
    });
}

/// The refusal of a client that asks for more of something than one may have.
pub(super) fn too_many(what: &str, bound: usize) -> Refusal {
    let message = format!("one connection may have {bound} {what}");
    Diagnostic::new(Code::LimitExceeded, message)
        .hint("use another connection")
        .into()
}
