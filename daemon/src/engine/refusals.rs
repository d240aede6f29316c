//! The words of what the queue decides.
//!
//! Owns: the refusals of the engine, and the mark of a repeated outcome.

use std::time::Duration;

use semaprax_protocol::request::Response;
use semaprax_protocol::{Code, Diagnostic, Refusal, SubmissionId};

use super::{Bounds, Outcome};

fn refusal(code: Code, message: String) -> Refusal {
    Diagnostic::new(code, message).into()
}

pub(super) fn shutting_down() -> Refusal {
    refusal(
        Code::ShuttingDown,
        "the daemon is stopping and takes no new work".to_owned(),
    )
}

pub(super) fn queue_full(bounds: Bounds) -> Refusal {
    let Bounds {
        queue, queue_bytes, ..
    } = bounds;
    let message =
        format!("{queue} submissions or {queue_bytes} bytes wait already, as many as may");
    refusal(Code::QueueFull, message)
}

pub(super) fn other_content(submission: SubmissionId) -> Refusal {
    let message = format!("the id `{submission}` belongs to another submission that is under way");
    Diagnostic::new(Code::InvalidSubmission, message)
        .hint(
            "give every submission an id of its own; only an exact repetition may use the same one",
        )
        .into()
}

pub(super) fn cancelled(submission: SubmissionId) -> Refusal {
    refusal(
        Code::Cancelled,
        format!("the submission `{submission}` was taken back by `cancel`"),
    )
}

pub(super) fn client_gone(submission: SubmissionId) -> Refusal {
    let message =
        format!("the client of submission `{submission}` went away before it was decided");
    Diagnostic::new(Code::Cancelled, message)
        .hint("pass `--detach` for a submission that outlives its client")
        .into()
}

pub(super) fn deadline_passed(waited: Duration) -> Refusal {
    let message = format!(
        "the submission was not decided within {} ms",
        waited.as_millis()
    );
    refusal(Code::DeadlinePassed, message)
}

pub(super) fn nothing_to_cancel(submission: SubmissionId, runs: bool) -> Refusal {
    let message = if runs {
        format!(
            "the submission `{submission}` is being decided already and can no longer be taken back"
        )
    } else {
        format!("no submission `{submission}` waits")
    };
    Diagnostic::new(Code::NotFound, message)
        .hint("`semaprax queue` lists what waits; `semaprax log` what was published")
        .into()
}

/// The outcome as it is told to one who repeated the submission.
pub(super) fn replayed(mut outcome: Outcome) -> Outcome {
    if let Ok(
        Response::Publish(receipt)
        | Response::PublishDirectory(receipt)
        | Response::Rollback(receipt)
        | Response::Revert(receipt)
        | Response::Undo(receipt),
    ) = &mut outcome
    {
        receipt.replayed = true;
    }
    outcome
}
