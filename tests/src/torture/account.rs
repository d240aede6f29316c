//! What the daemon promised, as its clients know it.
//!
//! Owns: every submission sent with its fate, the publications that were acknowledged, leases and
//! pins, what readers saw, and how far the journal was read.
//! Never: asks the daemon: that is what `check` does.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use semaprax_protocol::documents::{Receipt, ReceiptStatus};
use semaprax_protocol::request::{Publish, Request, Rollback};
use semaprax_protocol::{Code, EventDigest, LeaseId, Refusal, Revision, SubmissionId};

use super::story::{Effect, State};

/// What became of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The daemon died before it answered.
    Unknown,
    /// It was published with this number.
    Published(u64, Revision),
    /// It changed nothing.
    Unchanged,
    /// It was refused.
    Refused(Code),
}

/// A submission.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The request, to be repeated as it is.
    pub request: Request,
    /// What it does when it is published.
    pub effect: Effect,
    /// What became of it.
    pub fate: Fate,
}

/// What a reader saw: a whole tree that was ACTIVE, or leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its number.
    pub seq: u64,
    /// Its revision.
    pub revision: Revision,
    /// The words it was made of; `None` when only the number was read.
    pub state: Option<State>,
}

/// A detached lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The publication.
    pub seq: u64,
    /// The generation.
    pub revision: Revision,
    /// Where its tree is; `None` when the answer was lost.
    pub path: Option<Utf8PathBuf>,
    /// Whether a release was asked for whose answer was lost.
    pub in_doubt: bool,
}

/// Everything promised.
#[derive(Debug, Default, Clone)]
pub struct Account {
    /// Submissions.
    pub sent: BTreeMap<SubmissionId, Sent>,
    /// Detached leases that were granted and not released.
    pub leases: BTreeMap<LeaseId, Lease>,
    /// Leases whose release was acknowledged.
    pub released: BTreeSet<LeaseId>,
    /// Pins: `Some(true)` pinned, `Some(false)` not pinned, `None` unknown.
    pub pins: BTreeMap<Revision, Option<bool>>,
    /// What readers saw since the last check.
    pub seen: Vec<Seen>,
    /// What was wrong right away.
    pub violations: Vec<String>,
    /// Where a subscriber goes on from.
    pub token: Option<String>,
    /// The last journal entry read.
    pub journal: Option<(u64, EventDigest)>,
    /// Submissions whose refusal the journal has to tell, still to be found there.
    pub refusals: BTreeSet<SubmissionId>,
    /// Submissions whose refusal the journal told.
    pub told: BTreeSet<SubmissionId>,
    /// What is never to be repeated: its outcome stays what the log says.
    pub abandoned: BTreeSet<SubmissionId>,
    /// What happened, counted.
    pub counts: Counts,
}

/// Counts for the report.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Publications acknowledged.
    pub published: u64,
    /// Submissions refused.
    pub refused: u64,
    /// Outcomes that were unknown and turned out published.
    pub found_published: u64,
    /// Outcomes that were unknown and turned out not published.
    pub found_unpublished: u64,
    /// Repetitions that returned the first outcome.
    pub replayed: u64,
    /// Whole trees read.
    pub trees_read: u64,
    /// Collections.
    pub collections: u64,
    /// Trees collected.
    pub collected: u64,
}

impl Account {
    /// A submission is about to be sent.
    pub fn send(&mut self, id: SubmissionId, request: Request, effect: Effect) {
        let fate = Fate::Unknown;
        self.sent.insert(
            id,
            Sent {
                request,
                effect,
                fate,
            },
        );
    }

    /// Something that must never be.
    pub fn violate(&mut self, what: impl Into<String>) {
        self.violations.push(what.into());
    }

    /// An answer to a submission, the first or a repetition. Answers whether it is known now.
    pub fn answered(&mut self, id: SubmissionId, answer: &Result<Receipt, Refusal>) -> bool {
        let Some(sent) = self.sent.get_mut(&id) else {
            return false;
        };
        let before = sent.fate.clone();
        let now = match answer {
            Ok(receipt) => fate_of(receipt),
            Err(refusal) if is_unknown(refusal.code()) => return false,
            Err(refusal) => Fate::Refused(refusal.code()),
        };
        let replayed = answer.as_ref().is_ok_and(|receipt| receipt.replayed);
        let is_first = matches!(before, Fate::Unknown | Fate::Refused(_));
        if !is_first && (before != now || !replayed) {
            self.violate(format!(
                "submission {id} was {before:?}, repeated it is {now:?} (replayed: {replayed})"
            ));
            return true;
        }
        if let Some(sent) = self.sent.get_mut(&id) {
            sent.fate = now.clone();
        }
        match now {
            Fate::Published(..) if is_first => self.counts.published += 1,
            Fate::Refused(_) => {
                self.counts.refused += 1;
                self.refusals.insert(id);
            }
            Fate::Published(..) | Fate::Unchanged | Fate::Unknown => {}
        }
        if replayed {
            self.counts.replayed += 1;
        }
        true
    }

    /// Submissions whose outcome is unknown.
    pub fn unknown(&self) -> Vec<SubmissionId> {
        let unknown = self
            .sent
            .iter()
            .filter(|(id, sent)| sent.fate == Fate::Unknown && !self.abandoned.contains(id));
        unknown.map(|(id, _)| *id).collect()
    }
}

fn fate_of(receipt: &Receipt) -> Fate {
    match (receipt.status, receipt.seq, receipt.revision) {
        (ReceiptStatus::Published, Some(seq), Some(revision)) => {
            Fate::Published(seq.get(), revision)
        }
        _ => Fate::Unchanged,
    }
}

/// Whether a refusal leaves open what became of the submission.
pub fn is_unknown(code: Code) -> bool {
    matches!(
        code,
        Code::DaemonUnreachable | Code::ShuttingDown | Code::InDoubt | Code::Cancelled
    )
}

/// The request of a submission, as it goes over the wire.
pub fn publish(submission: semaprax_protocol::submission::Submission) -> Request {
    Request::Publish(Publish {
        submission,
        options: semaprax_protocol::request::PublishOptions::default(),
    })
}

/// The request of a rollback.
pub fn rollback(seq: u64, id: SubmissionId, author: String) -> Request {
    Request::Rollback(Rollback {
        revision: format!("@{seq}"),
        attribution: semaprax_protocol::request::Attribution {
            id: Some(id),
            author,
            message: String::new(),
        },
        options: semaprax_protocol::request::PublishOptions::default(),
    })
}
