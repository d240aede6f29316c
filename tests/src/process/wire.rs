//! A client that speaks the protocol by hand, well or badly.
//!
//! Owns: one raw connection to a daemon. Never: uses the client library: the documented protocol is
//! what is tested.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::wait::PATIENCE;

/// A raw connection.
#[derive(Debug)]
pub struct Wire {
    /// One descriptor: some tests have thousands of these.
    reader: BufReader<UnixStream>,
    last_id: u64,
    /// What came while an answer was awaited.
    others: VecDeque<Value>,
}

impl Wire {
    /// Connects to a socket.
    pub fn connect(socket: &Path) -> std::io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            reader: BufReader::new(stream),
            last_id: 0,
            others: VecDeque::new(),
        })
    }

    /// Says hello, for a workspace or for none.
    #[track_caller]
    pub fn hello(&mut self, workspace: Option<&Path>) -> Value {
        let mut params = json!({
            "protocol": {"oldest": 1, "newest": 1},
            "client": "suite",
        });
        if let Some(workspace) = workspace {
            params["workspace"] = json!(workspace);
        }
        self.call("hello", &params).expect("hello")
    }

    /// Says hello for no workspace, to a daemon that may be about to go; `None` when it went.
    pub fn try_hello(&mut self) -> Option<Value> {
        let hello = json!({"protocol": {"oldest": 1, "newest": 1}, "client": "suite"});
        self.send_bytes(&line_of(1, "hello", &hello)).ok()?;
        let answer = self.read()?;
        answer.get("result").cloned()
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.reader.get_ref().write_all(bytes)
    }

    /// The sending side alone, for another thread.
    pub fn sender(&self) -> UnixStream {
        self.reader.get_ref().try_clone().unwrap()
    }

    /// Sends a request and answers its id.
    #[track_caller]
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send_bytes(&line_of(id, method, params)).unwrap();
        id
    }

    /// The next line, whatever it is; `None` when the daemon has closed.
    #[track_caller]
    pub fn receive(&mut self) -> Option<Value> {
        if let Some(value) = self.others.pop_front() {
            return Some(value);
        }
        self.read()
    }

    /// The next line, if one comes within a time.
    pub fn receive_within(&mut self, limit: Duration) -> Option<Value> {
        self.reader.get_ref().set_read_timeout(Some(limit)).unwrap();
        let mut line = String::new();
        let read = self.reader.read_line(&mut line);
        self.reader
            .get_ref()
            .set_read_timeout(Some(PATIENCE))
            .unwrap();
        read.ok().filter(|&read| read > 0)?;
        serde_json::from_str(&line).ok()
    }

    /// Waits for the answer to a request; other lines are kept.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Result<Value, Value> {
        if let Some(place) = self.others.iter().position(|line| line["id"] == id) {
            return split(&self.others.remove(place).unwrap());
        }
        loop {
            let line = self.read().expect("an answer before the end");
            if line["id"] == id {
                return split(&line);
            }
            self.others.push_back(line);
        }
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Stops sending; still reads.
    pub fn stop_sending(&self) {
        self.reader.get_ref().shutdown(Shutdown::Write).unwrap();
    }

    /// Waits until the daemon closes the connection; answers what came before.
    #[track_caller]
    pub fn rest(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.receive()).collect()
    }

    #[track_caller]
    fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"))),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("reading from the daemon: {error}"),
        }
    }
}

/// A request as a line.
pub fn line_of(id: u64, method: &str, params: &Value) -> Vec<u8> {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    format!("{request}\n").into_bytes()
}

fn split(line: &Value) -> Result<Value, Value> {
    match line.get("error") {
        Some(error) => Err(error["data"].clone()),
        None => Ok(line["result"].clone()),
    }
}
