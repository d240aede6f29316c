//! One connection as a sans-io machine: bytes go in, what is to be done comes out.
//!
//! Owns: the greeting, the framing, how many requests are under way, the leases that end with the
//! connection, and the content it has sent ahead.
//! Never: a socket, a clock, or what a request does.
//!
//! Invariants: nothing is served before `hello`; requests under way and bytes held are bounded; what
//! is malformed is answered, and only a line that is too long ends the connection.
//!
//! A client that closes its sending side has gone away: what it waits for is taken back, as if it had
//! closed both sides. Half-closed connections are not served.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::Utf8PathBuf;
use semaprax_protocol::limits::{CONNECTION_BYTES, CONNECTION_REQUESTS, LINE_BYTES};
use semaprax_protocol::request::{Hello, Request, Response};
use semaprax_protocol::rpc;
use semaprax_protocol::version::ProtocolRange;
use semaprax_protocol::{Code, Diagnostic, LeaseId, Limits, LineCodec, Refusal, Sha256};
use serde_json::json;

use crate::uploads::SentAhead;

#[cfg(test)]
mod tests;

/// Bytes of request lines of one connection that may be under way at once; one line always may.
const BYTES_UNDER_WAY: usize = 4 * LINE_BYTES;
/// Bytes that are still read while no more requests are taken, so that the end of the client is seen.
const BYTES_AHEAD: usize = 256 << 10;

/// What is to be done.
#[derive(Debug)]
pub enum Action {
    /// A client introduces itself: open its workspace, then call `greeted`.
    Greet {
        /// The id of the request.
        request: u64,
        /// The version both sides speak.
        protocol: u32,
        /// The client's name, for the log.
        client: String,
        /// The workspace it wants.
        workspace: Option<Utf8PathBuf>,
    },
    /// Carry out a request, then call `answered`.
    Serve(Call),
    /// Answer at once.
    Answer(u64, Result<Response, Refusal>),
    /// Send a line as it is.
    Send(Vec<u8>),
    /// Send what is to be sent, then close.
    End,
}

/// A request to carry out.
#[derive(Debug)]
pub struct Call {
    /// The id of the request.
    pub id: u64,
    /// The request.
    pub request: Request,
    /// Bytes of content it holds in memory.
    pub bytes: u64,
    /// The content it names that was sent ahead.
    pub uploads: BTreeMap<Sha256, Arc<Vec<u8>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing but `hello` is served.
    Silent,
    /// `hello` is being carried out; what follows waits.
    Greeting,
    /// Requests are served; those about a workspace only when there is one.
    Open { workspace: bool },
    /// The last line is sent; then the connection is closed.
    Ending,
    /// Nothing is served any more.
    Ended,
}

/// One connection.
#[derive(Debug)]
pub struct Session {
    codec: LineCodec,
    stage: Stage,
    /// A line was too long: once what came before it is served, the connection ends.
    too_long: bool,
    /// The daemon holds too much for its clients, this one among them: the connection ends.
    no_room: bool,
    /// Bytes that came since all lines were last taken.
    ahead: usize,
    under_way: BTreeMap<u64, usize>,
    bytes_under_way: usize,
    uploads: SentAhead,
    limits: Limits,
    leases: BTreeSet<LeaseId>,
}

impl Session {
    /// A connection that has just been made.
    pub fn new(limits: Limits) -> Self {
        Self {
            codec: LineCodec::new(LINE_BYTES),
            stage: Stage::Silent,
            too_long: false,
            no_room: false,
            ahead: 0,
            under_way: BTreeMap::new(),
            bytes_under_way: 0,
            uploads: SentAhead::default(),
            limits,
            leases: BTreeSet::new(),
        }
    }

    /// Takes bytes as they arrive.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.ahead += bytes.len();
        if self.codec.push(bytes).is_err() {
            self.too_long = true;
        }
    }

    /// How many bytes are held for the client in memory.
    pub fn held(&self) -> usize {
        self.codec.held() + self.bytes_under_way + self.uploads.held()
    }

    /// The daemon holds as much for all its clients as it may. One that has more than its own small
    /// share has to go; the others go on.
    pub fn no_room(&mut self) {
        self.no_room |= self.held() > CONNECTION_BYTES;
    }

    /// Whether more bytes should be read now.
    pub fn wants_bytes(&self) -> bool {
        let free = self.stage != Stage::Greeting && !self.is_full();
        let over =
            matches!(self.stage, Stage::Ending | Stage::Ended) || self.too_long || self.no_room;
        !over && (free || self.ahead < BYTES_AHEAD)
    }

    /// The next thing to do; `None` until more bytes arrive, or until something under way is answered.
    pub fn next_action(&mut self) -> Option<Action> {
        if self.stage == Stage::Ending {
            self.stage = Stage::Ended;
            return Some(Action::End);
        }
        if matches!(self.stage, Stage::Ended | Stage::Greeting) {
            return None;
        }
        if self.no_room {
            return Some(self.refuse_for_room());
        }
        if self.is_full() {
            return None;
        }
        let line = loop {
            match self.codec.next_line() {
                Some(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                Some(line) => break line,
                None => {
                    self.ahead = 0;
                    return self.too_long.then(|| self.refuse_long_line());
                }
            }
        };
        Some(match rpc::decode_request(&line) {
            Ok((id, request)) => self.take(id, request, line.len()),
            Err(bad) => Action::Send(rpc::encode_bad_request(bad).unwrap_or_default()),
        })
    }

    /// The greeting was carried out: `Ok` with the limits of the workspace, if one is open now. After
    /// a failure the client may greet again.
    pub fn greeted(&mut self, workspace: Result<Option<Limits>, ()>) {
        if self.stage != Stage::Greeting {
            return;
        }
        self.stage = match workspace {
            Ok(limits) => {
                let named = limits.is_some();
                self.limits = limits.unwrap_or_else(|| self.limits.clone());
                Stage::Open { workspace: named }
            }
            Err(()) => Stage::Silent,
        };
    }

    /// A request is no longer under way. Answers whether it was.
    pub fn answered(&mut self, id: u64) -> bool {
        let bytes = self.under_way.remove(&id);
        self.bytes_under_way -= bytes.unwrap_or(0);
        bytes.is_some()
    }

    /// The connection holds this lease from now on; `false` when it has ended, and the lease has to be
    /// released by the caller.
    pub fn hold(&mut self, lease: LeaseId) -> bool {
        self.stage != Stage::Ended && self.leases.insert(lease)
    }

    /// How many leases it holds.
    pub fn leases(&self) -> usize {
        self.leases.len()
    }

    /// The connection no longer holds this lease.
    pub fn let_go(&mut self, lease: LeaseId) {
        self.leases.remove(&lease);
    }

    /// Whether any request is under way.
    pub fn is_busy(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// The connection has ended. Answers the leases that end with it.
    pub fn end(&mut self) -> BTreeSet<LeaseId> {
        self.stage = Stage::Ended;
        self.uploads = SentAhead::default();
        self.codec = LineCodec::new(LINE_BYTES);
        self.under_way.clear();
        self.bytes_under_way = 0;
        std::mem::take(&mut self.leases)
    }

    fn is_full(&self) -> bool {
        self.under_way.len() >= CONNECTION_REQUESTS
            || (self.bytes_under_way >= BYTES_UNDER_WAY && !self.under_way.is_empty())
    }

    fn take(&mut self, id: u64, request: Request, bytes: usize) -> Action {
        if self.under_way.contains_key(&id) {
            let message = format!("the id {id} belongs to a request that is still under way");
            return Action::Answer(
                id,
                Err(Diagnostic::new(Code::InvalidRequest, message).into()),
            );
        }
        match (self.stage, request) {
            (Stage::Silent, Request::Hello(hello)) => self.greet(id, hello, bytes),
            (_, Request::Hello(_)) => {
                Action::Answer(id, Err(out_of_turn("`hello` was said already")))
            }
            (Stage::Open { workspace }, request) => {
                if !workspace && needs_workspace(&request) {
                    return Action::Answer(id, Err(no_workspace(&request)));
                }
                if let Request::BlobPut(piece) = &request {
                    let answer = self.uploads.put(piece, &self.limits);
                    return Action::Answer(id, answer.map(Response::BlobPut));
                }
                self.serve(id, request, bytes)
            }
            _ => Action::Answer(
                id,
                Err(out_of_turn("the first request of a connection is `hello`")),
            ),
        }
    }

    fn greet(&mut self, id: u64, hello: Hello, bytes: usize) -> Action {
        let Some(protocol) = ProtocolRange::CURRENT.agree(hello.protocol) else {
            return Action::Answer(id, Err(no_common_version(hello.protocol)));
        };
        self.begin(id, bytes);
        self.stage = Stage::Greeting;
        Action::Greet {
            request: id,
            protocol,
            client: hello.client,
            workspace: hello.workspace,
        }
    }

    fn serve(&mut self, id: u64, request: Request, bytes: usize) -> Action {
        let uploads = self.uploads.named_by(&request);
        let content: usize = uploads.values().map(|content| content.len()).sum();
        self.begin(id, bytes);
        Action::Serve(Call {
            id,
            request,
            bytes: (bytes + content) as u64,
            uploads,
        })
    }

    fn begin(&mut self, id: u64, bytes: usize) {
        self.under_way.insert(id, bytes);
        self.bytes_under_way += bytes;
    }

    fn refuse_for_room(&mut self) -> Action {
        self.stage = Stage::Ending;
        let bound = self.limits.client_bytes;
        let message = format!("the daemon holds {bound} bytes for its clients, as much as it may");
        let refusal = Diagnostic::new(Code::LimitExceeded, message)
            .hint("try again when other clients have been served, or raise `client-bytes`");
        Action::Send(unasked_refusal(&refusal.into()))
    }

    fn refuse_long_line(&mut self) -> Action {
        self.stage = Stage::Ending;
        let message = format!("a line is longer than {LINE_BYTES} bytes");
        let refusal = Diagnostic::new(Code::LimitExceeded, message)
            .hint("send large content ahead with `blob.put`");
        Action::Send(unasked_refusal(&refusal.into()))
    }
}

/// The line that answers request `id`. An answer that would be too long for a line is refused instead.
pub fn answer_line(id: u64, outcome: &Result<Response, Refusal>) -> Vec<u8> {
    let answer = outcome.as_ref().map_err(Clone::clone);
    match rpc::encode_answer(id, answer) {
        Ok(line) if line.len() <= LINE_BYTES => line,
        Ok(line) => {
            let message = format!("the answer would be a line of {} bytes", line.len());
            let refusal = Diagnostic::new(Code::LimitExceeded, message)
                .hint("ask for less at once, with `limit` or a narrower path");
            rpc::encode_answer(id, Err(refusal.into())).unwrap_or_default()
        }
        Err(error) => {
            let message = format!("the answer cannot be written: {error}");
            let refusal = Diagnostic::new(Code::Internal, message);
            rpc::encode_answer(id, Err(refusal.into())).unwrap_or_default()
        }
    }
}

/// The line of a refusal that answers no request: the connection itself is refused.
pub fn unasked_refusal(refusal: &Refusal) -> Vec<u8> {
    let error = json!({ "code": -32000, "message": refusal.to_string(), "data": refusal });
    format!(
        "{}\n",
        json!({ "jsonrpc": "2.0", "id": null, "error": error })
    )
    .into_bytes()
}

fn needs_workspace(request: &Request) -> bool {
    match request {
        Request::Hello(_)
        | Request::DaemonStatus(_)
        | Request::DaemonStop(_)
        | Request::Init(_) => false,
        // Of a directory that is none, or that cannot be opened.
        Request::Doctor(doctor) => doctor.directory.is_none(),
        Request::Verify(verify) => verify.directory.is_none(),
        _ => true,
    }
}

fn out_of_turn(message: &str) -> Refusal {
    Diagnostic::new(Code::InvalidRequest, message).into()
}

fn no_workspace(request: &Request) -> Refusal {
    let message = format!(
        "`{}` needs a workspace, and `hello` named none",
        request.method()
    );
    Diagnostic::new(Code::NotAWorkspace, message).into()
}

fn no_common_version(theirs: ProtocolRange) -> Refusal {
    let ours = ProtocolRange::CURRENT;
    let message = format!(
        "the client speaks the protocol versions {} to {}, the daemon {} to {}",
        theirs.oldest, theirs.newest, ours.oldest, ours.newest
    );
    Diagnostic::new(Code::ProtocolVersion, message).into()
}
