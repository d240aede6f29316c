//! The methods of the wire protocol: a closed list, each with its parameters and its answer.
//!
//! Owns: `Request` and `Response`, one variant per method; `params.rs` has their parameters.
//! Never: how a line is framed (`rpc.rs`), or what a method does.

mod params;

use serde_json::value::RawValue;

pub use params::*;

use crate::documents::{
    Blame, Cancelled, Collection, DaemonStatus, Exported, Health, Initialized, JournalEntry,
    LeaseGrant, LeaseList, LeaseReleased, Listing, LogPage, Pinned, Publication, Queue, Receipt,
    TreeDiff, Verification, WatchEvent, Why, WorkspaceStatus,
};
use crate::reading::{Unreadable, read_json};
use crate::{Code, Diagnostic, Refusal};

macro_rules! methods {
    ($($(#[$doc:meta])* $variant:ident, $method:literal, $params:ty => $reply:ty;)*) => {
        /// A request, by method.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Request { $($(#[$doc])* $variant($params),)* }

        /// The answer to a request of the same name.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Response { $($(#[$doc])* $variant($reply),)* }

        impl Request {
            /// All method names, in the order of the documents.
            pub const METHODS: &'static [&'static str] = &[$($method),*];

            /// The method name.
            pub const fn method(&self) -> &'static str {
                match self { $(Self::$variant(_) => $method),* }
            }

            /// Reads the parameters of `method`.
            pub fn parse(method: &str, params: Option<&RawValue>) -> Result<Self, Refusal> {
                let text = params.map_or("{}", RawValue::get);
                match method {
                    $($method => read_json::<$params>(text.as_bytes())
                        .map(Self::$variant)
                        .map_err(|reason| malformed(method, &reason)),)*
                    _ => Err(Diagnostic::new(
                        Code::InvalidRequest,
                        format!("there is no method `{}`", method.chars().take(60).collect::<String>()),
                    ).into()),
                }
            }

            /// The parameters as JSON.
            pub fn params(&self) -> Result<Box<RawValue>, serde_json::Error> {
                match self { $(Self::$variant(params) => serde_json::value::to_raw_value(params),)* }
            }

            /// Reads the answer to this request.
            pub fn parse_reply(&self, result: &RawValue) -> Result<Response, serde_json::Error> {
                match self {
                    $(Self::$variant(_) => serde_json::from_str::<$reply>(result.get()).map(Response::$variant),)*
                }
            }
        }

        impl Response {
            /// The answer as JSON.
            pub fn result(&self) -> Result<Box<RawValue>, serde_json::Error> {
                match self { $(Self::$variant(reply) => serde_json::value::to_raw_value(reply),)* }
            }
        }

        $(impl Method for $params {
            type Reply = $reply;

            fn request(self) -> Request {
                Request::$variant(self)
            }

            fn reply(response: Response) -> Option<$reply> {
                match response {
                    Response::$variant(reply) => Some(reply),
                    _ => None,
                }
            }
        })*
    };
}

/// Parameters that know their request and their answer: `client.call(params)` is typed by this.
pub trait Method: Sized {
    /// The answer.
    type Reply;

    /// The request.
    fn request(self) -> Request;

    /// The answer inside a response; `None` when the response is of another method.
    fn reply(response: Response) -> Option<Self::Reply>;
}

fn malformed(method: &str, reason: &Unreadable) -> Refusal {
    // A submission that cannot be read is the author's fault, whatever it came in.
    let code = if method == "publish" {
        Code::InvalidSubmission
    } else {
        Code::InvalidRequest
    };
    Diagnostic::new(
        code,
        format!("the parameters of `{method}` cannot be read: {reason}"),
    )
    .into()
}

methods! {
    /// First request of a connection: agrees on a version and names the workspace.
    Hello, "hello", Hello => Welcome;
    /// What the daemon is doing.
    DaemonStatus, "daemon.status", DaemonStatusParams => DaemonStatus;
    /// Asks the daemon to finish what runs and leave.
    DaemonStop, "daemon.stop", DaemonStop => DaemonStatus;
    /// Imports a directory as publication 1. Sends `progress` notices.
    Init, "init", Init => Initialized;
    /// The state of the workspace.
    Status, "status", StatusParams => WorkspaceStatus;
    /// Turns a revision argument into a publication.
    Resolve, "resolve", Resolve => Resolved;
    /// The publications, newest first.
    Log, "log", Log => LogPage;
    /// One publication.
    Show, "show", Show => Publication;
    /// What differs between two generations.
    Diff, "diff", Diff => TreeDiff;
    /// The paths of a generation.
    List, "ls", List => Listing;
    /// A piece of the content of a path.
    Content, "content", Content => ContentChunk;
    /// Where the lines of a file come from.
    Blame, "blame", BlameParams => Blame;
    /// Sends content ahead of a submission of the same connection.
    BlobPut, "blob.put", BlobPut => BlobReceived;
    /// Publishes a submission. Sends `queued` notices while it waits.
    Publish, "publish", Publish => Receipt;
    /// Makes the tree equal to a directory.
    PublishDirectory, "publish.directory", PublishDirectory => Receipt;
    /// Publishes old content again.
    Rollback, "rollback", Rollback => Receipt;
    /// Takes one publication out of the middle.
    Revert, "revert", Revert => Receipt;
    /// Reverts the newest publication.
    Undo, "undo", Undo => Receipt;
    /// What waits and runs.
    Queue, "queue", QueueParams => Queue;
    /// Takes a waiting submission back.
    Cancel, "cancel", Cancel => Cancelled;
    /// Holds a generation.
    LeaseAcquire, "lease.acquire", LeaseAcquire => LeaseGrant;
    /// Prolongs a detached lease.
    LeaseRenew, "lease.renew", LeaseRenew => LeaseGrant;
    /// Ends a lease.
    LeaseRelease, "lease.release", LeaseRelease => LeaseReleased;
    /// The leases.
    LeaseList, "lease.list", LeaseListParams => LeaseList;
    /// Subscribes to publications: the answer says where the stream starts, `event` notices follow.
    Watch, "watch", Watch => WatchEvent;
    /// Keeps the content and tree of a generation from being collected.
    Pin, "pin", Pin => Pinned;
    /// Takes a pin away.
    Unpin, "unpin", Unpin => Pinned;
    /// Removes trees that nobody needs.
    Collect, "gc", Collect => Collection;
    /// Why a tree is kept.
    Why, "why", WhyParams => Why;
    /// Checks the store and the trees against their digests.
    Verify, "verify", Verify => Verification;
    /// Checks the environment and the workspace.
    Doctor, "doctor", Doctor => Health;
    /// Entries of the journal.
    Journal, "journal", Journal => JournalPage;
    /// The newest entry of the journal.
    JournalHead, "journal.head", JournalHead => JournalEntry;
    /// Writes a writable copy of a generation.
    Export, "export", Export => Exported;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_parses_or_says_why() {
        for method in Request::METHODS {
            match Request::parse(method, None) {
                Ok(request) => assert_eq!(request.method(), *method),
                Err(refusal) => assert!(
                    refusal.diagnostics[0]
                        .message
                        .contains("it lacks the field `"),
                    "{method}: {refusal}"
                ),
            }
        }
    }

    #[test]
    fn unknown_methods_and_fields_are_refused() {
        let check = |method: &str, params: &str, code: Code| {
            let raw = serde_json::value::RawValue::from_string(params.to_owned()).unwrap();
            assert_eq!(
                Request::parse(method, Some(&raw)).unwrap_err().code(),
                code,
                "{method}"
            );
        };
        check("nothing", "{}", Code::InvalidRequest);
        check("status", r#"{"colour":1}"#, Code::InvalidRequest);
        check(
            "publish",
            r#"{"submission":{"changes":[],"x":1}}"#,
            Code::InvalidSubmission,
        );
        check("show", "{}", Code::InvalidRequest);
    }
}
