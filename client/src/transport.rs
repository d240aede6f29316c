//! Lines over a local socket.
//!
//! Owns: the socket, the framing, and telling a lost connection from a broken one.
//! Never: knows what a request means, or connects again.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::time::Duration;

use camino::Utf8Path;
use interprocess::local_socket::traits::{Stream as _, StreamCommon as _};
use interprocess::local_socket::{GenericFilePath, Stream, ToFsName};
use semaprax_protocol::limits::LINE_BYTES;
use semaprax_protocol::request::{Request, Response};
use semaprax_protocol::rpc::{self, Incoming, Notice};
use semaprax_protocol::{Code, Diagnostic, LineCodec, Refusal};

use crate::error;

/// How much is read at once.
const READ_BYTES: usize = 64 << 10;

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The daemon answered: no.
    Refused(Refusal),
    /// The connection ended before the answer.
    Lost(String),
    /// There was no answer in time.
    TimedOut,
}

impl CallError {
    /// The refusal a caller sees when nothing is tried again.
    pub(crate) fn into_refusal(self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Lost(reason) => error::unreachable(format!(
                "the connection to the daemon ended before its answer: {reason}"
            )),
            Self::TimedOut => error::unreachable("the daemon did not answer in time"),
        }
    }
}

/// What receives the notices of a request under way.
pub type NoticeSink<'sink> = &'sink mut dyn FnMut(&Notice);

/// One connection. One request is under way at a time.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    codec: LineCodec,
    last_id: u64,
    /// Notices of other requests than the one whose answer was awaited.
    waiting: VecDeque<Notice>,
}

impl Connection {
    /// Connects to the socket of a daemon of this user.
    pub(crate) fn open(socket: &Utf8Path) -> io::Result<Self> {
        let name = socket.as_std_path().to_fs_name::<GenericFilePath>()?;
        let stream = Stream::connect(name)?;
        let ours = rustix::process::geteuid().as_raw();
        // What another user's process answers is not to be believed, wherever its socket lies.
        match stream.peer_creds()?.euid() {
            Some(user) if user != ours => {
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    format!("the daemon there belongs to user {user}"),
                ));
            }
            _ => {}
        }
        Ok(Self {
            stream,
            codec: LineCodec::new(LINE_BYTES),
            last_id: 0,
            waiting: VecDeque::new(),
        })
    }

    /// Sends a request and waits for its answer; `within` bounds each wait for bytes.
    pub(crate) fn exchange(
        &mut self,
        request: &Request,
        within: Option<Duration>,
        notices: NoticeSink<'_>,
    ) -> Result<Response, CallError> {
        let id = self.send(request)?;
        loop {
            match self.receive(within)? {
                Incoming::Answer {
                    id: Some(answered), ..
                } if answered != id => {}
                Incoming::Answer { result, .. } => {
                    let result = result.map_err(CallError::Refused)?;
                    return request.parse_reply(&result).map_err(|reason| {
                        let message = format!(
                            "the answer to `{}` cannot be read: {reason}",
                            request.method()
                        );
                        CallError::Refused(error::internal(message))
                    });
                }
                Incoming::Notice(notice) if request_of(&notice) == id => notices(&notice),
                Incoming::Notice(notice) => self.waiting.push_back(notice),
            }
        }
    }

    /// The next notice of any request. `None` when none came `within` the time.
    pub(crate) fn notice(&mut self, within: Option<Duration>) -> Result<Option<Notice>, CallError> {
        if let Some(notice) = self.waiting.pop_front() {
            return Ok(Some(notice));
        }
        loop {
            match self.receive(within) {
                Ok(Incoming::Notice(notice)) => return Ok(Some(notice)),
                // The daemon ends a subscription by refusing its request a second time.
                Ok(Incoming::Answer {
                    result: Err(refusal),
                    ..
                }) => return Err(CallError::Refused(refusal)),
                Ok(Incoming::Answer { .. }) => {}
                Err(CallError::TimedOut) => return Ok(None),
                Err(failed) => return Err(failed),
            }
        }
    }

    /// Waits until the daemon closes the connection; `false` when it did not `within` the time.
    pub(crate) fn await_end(&mut self, within: Option<Duration>) -> bool {
        loop {
            match self.receive(within) {
                Err(CallError::Lost(_)) => return true,
                Err(CallError::TimedOut) => return false,
                Ok(_) | Err(CallError::Refused(_)) => {}
            }
        }
    }

    fn send(&mut self, request: &Request) -> Result<u64, CallError> {
        self.last_id += 1;
        let id = self.last_id;
        let line = rpc::encode_request(id, request).map_err(|reason| {
            let message = format!("`{}` cannot be written: {reason}", request.method());
            CallError::Refused(error::internal(message))
        })?;
        if line.len() > LINE_BYTES {
            let message = format!(
                "`{}` has {} bytes; a request has at most {LINE_BYTES}",
                request.method(),
                line.len()
            );
            let too_long = Diagnostic::new(Code::LimitExceeded, message)
                .hint("put large content in changes of its own; make one edit of many smaller");
            return Err(CallError::Refused(too_long.into()));
        }
        // A daemon that turns a client away closes after its reason: look for it before giving up.
        if let Err(failed) = self.stream.write_all(&line) {
            loop {
                match self.receive(Some(Duration::from_millis(200))) {
                    Ok(Incoming::Answer {
                        result: Err(refusal),
                        ..
                    }) => return Err(CallError::Refused(refusal)),
                    Ok(_) => {}
                    Err(_) => return Err(CallError::Lost(failed.to_string())),
                }
            }
        }
        Ok(id)
    }

    fn receive(&mut self, within: Option<Duration>) -> Result<Incoming, CallError> {
        loop {
            if let Some(line) = self.codec.next_line() {
                return rpc::decode_incoming(&line).map_err(|reason| {
                    let message = format!("a line of the daemon cannot be read: {reason}");
                    CallError::Refused(error::internal(message))
                });
            }
            self.fill(within)?;
        }
    }

    fn fill(&mut self, within: Option<Duration>) -> Result<(), CallError> {
        let lost = |reason: &io::Error| CallError::Lost(reason.to_string());
        self.stream
            .set_recv_timeout(within)
            .map_err(|reason| lost(&reason))?;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(CallError::Lost("it was closed".to_owned())),
                Ok(read) => {
                    let bytes = buffer.get(..read).unwrap_or_default();
                    return self.codec.push(bytes).map_err(|reason| {
                        CallError::Refused(error::internal(format!("from the daemon: {reason}")))
                    });
                }
                Err(again) if again.kind() == io::ErrorKind::Interrupted => {}
                Err(late)
                    if matches!(
                        late.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    return Err(CallError::TimedOut);
                }
                Err(reason) => return Err(lost(&reason)),
            }
        }
    }
}

fn request_of(notice: &Notice) -> u64 {
    match notice {
        Notice::Progress { request, .. }
        | Notice::Queued { request, .. }
        | Notice::Event { request, .. } => *request,
    }
}
