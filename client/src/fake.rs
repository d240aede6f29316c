//! A made-up daemon on a real socket, for tests.
//!
//! Owns: the lines; each test says what is answered. Never: part of a build.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;

use camino::Utf8PathBuf;
use semaprax_protocol::limits::LINE_BYTES;
use semaprax_protocol::request::{Request, Response, Welcome};
use semaprax_protocol::rpc;
use semaprax_protocol::version::{self, ProtocolRange};
use semaprax_protocol::{Code, Diagnostic};

use crate::Options;
use crate::connect::Start;
use crate::runtime::Runtime;

/// What a made-up daemon does with the requests of one connection: what it sends, line by line, for
/// each; an empty answer ends the connection.
pub(crate) type Script = Box<dyn FnMut(u64, &Request) -> Vec<u8> + Send>;

pub(crate) struct Fake {
    _place: tempfile::TempDir,
    pub(crate) runtime: Runtime,
    pub(crate) served: JoinHandle<()>,
}

impl Fake {
    /// A daemon that serves one connection for each script.
    pub(crate) fn new(scripts: Vec<Script>) -> Self {
        let place = tempfile::tempdir().unwrap();
        let directory = Utf8PathBuf::from_path_buf(place.path().join("run")).unwrap();
        let runtime = Runtime::at(&directory).unwrap();
        runtime.prepare().unwrap();
        let listener = UnixListener::bind(runtime.socket()).unwrap();
        let served = std::thread::spawn(move || {
            for script in scripts {
                let (stream, _) = listener.accept().unwrap();
                serve(&stream, script);
            }
        });
        Self {
            _place: place,
            runtime,
            served,
        }
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            workspace: None,
            start: Start::Never,
            runtime: self.runtime.clone(),
            follow_lock: false,
            idle_timeout: None,
        }
    }
}

fn serve(stream: &UnixStream, mut script: Script) {
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        if lines.read_until(b'\n', &mut line).unwrap_or(0) == 0 {
            return;
        }
        let (id, request) = rpc::decode_request(&line).unwrap();
        let said = script(id, &request);
        if said.is_empty() {
            return;
        }
        let mut stream = stream;
        if stream.write_all(&said).is_err() {
            return;
        }
    }
}

pub(crate) fn welcome(version: &str) -> Response {
    Response::Hello(Welcome {
        protocol: ProtocolRange::CURRENT.newest,
        pid: 1,
        version: version.to_owned(),
        workspace: None,
        line_bytes: LINE_BYTES as u64,
    })
}

pub(crate) fn answer(id: u64, response: &Response) -> Vec<u8> {
    rpc::encode_answer(id, Ok(response)).unwrap()
}

pub(crate) fn refusal(id: u64, code: Code) -> Vec<u8> {
    rpc::encode_answer(id, Err(Diagnostic::new(code, "no").into())).unwrap()
}

/// Answers `hello`, and everything else with `rest`.
pub(crate) fn greeting(mut rest: impl FnMut(u64, &Request) -> Vec<u8> + Send + 'static) -> Script {
    Box::new(move |id, request| match request {
        Request::Hello(_) => answer(id, &welcome(version::BUILD)),
        other => rest(id, other),
    })
}
