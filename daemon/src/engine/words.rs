//! The words of the engine: what goes in, what comes out, and how both are named.
//!
//! Owns: the closed `Input` and `Effect`, and the numbers of connections and work.
//! Never: decides anything.

use std::time::Duration;

use semaprax_protocol::request::Response;
use semaprax_protocol::{Refusal, SubmissionId};

use super::{Binding, Event};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(u64);

        impl $name {
            /// The one with this number.
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// The number.
            pub const fn get(self) -> u64 {
                self.0
            }
        }
    };
}

number!(
    /// Names a connection for as long as the daemon lives.
    ConnectionId
);
number!(
    /// Names a piece of work for as long as the workspace is open.
    Ticket
);

/// Who is to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    /// The connection.
    pub connection: ConnectionId,
    /// The id of the request.
    pub request: u64,
}

/// What became of a request.
pub type Outcome = Result<Response, Refusal>;

/// What may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Submissions.
    pub queue: u64,
    /// Bytes of their content.
    pub queue_bytes: u64,
    /// Submissions that the writer takes at once.
    pub batch: usize,
}

/// A submission as it arrives.
#[derive(Debug)]
pub struct Arrival<Work> {
    /// Who sent it.
    pub caller: Caller,
    /// Its name, the client's own or a new one.
    pub submission: SubmissionId,
    /// What its name is bound to; `None` for a dry run, which neither binds nor joins.
    pub binding: Option<Binding>,
    /// Who, for people.
    pub author: String,
    /// Bytes of its content.
    pub bytes: u64,
    /// How long it may wait.
    pub deadline: Option<Duration>,
    /// Whether it stays when its client goes away.
    pub detach: bool,
    /// What the writer gets.
    pub work: Work,
}

/// The lanes that are not submissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// The tree a lease waits for: before everything that waits.
    Tree,
    /// Everything else that needs the writer: in turn with submissions.
    Upkeep,
}

/// What can happen to a workspace.
#[derive(Debug)]
pub enum Input<Work> {
    /// A submission arrives.
    Submit(Box<Arrival<Work>>),
    /// A request that needs the writer and is no submission.
    Request(Caller, Lane, Work),
    /// A client takes a waiting submission back.
    Cancel(Caller, SubmissionId),
    /// A connection ended.
    Disconnected(ConnectionId),
    /// The writer is done with a piece of work; a publication comes with its event.
    Finished(Ticket, Box<Outcome>, Option<Event>),
    /// The writer is done with a piece of work, but its outcome comes later: `Finished` says it.
    Aside(Ticket),
    /// The writer has recorded a refusal; those it was held for are answered now.
    Recorded(u64, Vec<Caller>, Box<Refusal>),
    /// A repair took publications back.
    HistoryChanged,
    /// Time has passed.
    Tick,
    /// No new work; what waits is refused, what runs is finished.
    ShutDown,
}

/// What is to be done about it, in this order.
#[derive(Debug)]
pub enum Effect<Work> {
    /// The writer is to carry this out.
    Run(Ticket, Work),
    /// A request is answered.
    Answer(Caller, Box<Outcome>),
    /// A waiting submission has this place, 1 for the next one.
    Queued(Caller, SubmissionId, u64),
    /// The writer is to record a refusal when it is free, then say `Recorded`.
    Record(Box<Unrecorded<Work>>),
    /// Subscribers have something to pull.
    Publish,
    /// Shut down: nothing runs any more.
    Drained,
}

/// A refusal that was decided before the writer saw the submission.
#[derive(Debug)]
pub struct Unrecorded<Work> {
    /// The submission.
    pub submission: SubmissionId,
    /// What the writer would have got.
    pub work: Work,
    /// Why it did not.
    pub refusal: Refusal,
    /// Bytes of its content.
    pub bytes: u64,
    /// Who is answered only once it is recorded.
    pub held: Vec<Caller>,
}
