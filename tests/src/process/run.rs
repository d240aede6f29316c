//! One run of a program: started, fed, listened to, waited for with a deadline.
//!
//! Owns: the process, its streams, and its end: whatever happens to the test, a program it started is
//! not left behind. Never: knows what the program is.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::wait::PATIENCE;

/// A program to run, and what it is given.
#[derive(Debug)]
pub struct Call {
    command: Command,
    label: String,
    input: Option<Vec<u8>>,
}

impl Call {
    /// A call of `command`, named `label` in failures.
    pub fn new(command: Command, label: String) -> Self {
        Self {
            command,
            label,
            input: None,
        }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args<A: AsRef<std::ffi::OsStr>>(
        mut self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        self.command.args(arguments);
        self
    }

    /// A variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// A variable it does not have.
    #[must_use]
    pub fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Where it runs.
    #[must_use]
    pub fn cwd(mut self, directory: impl AsRef<Path>) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// What it reads from standard input; nothing without it.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self
    }

    /// Runs it to its end.
    #[track_caller]
    pub fn run(self) -> Outcome {
        self.spawn().finish()
    }

    /// Starts it. Its standard input is what it was given; without that it stays open until
    /// [`Running::close_input`].
    #[track_caller]
    pub fn spawn(mut self) -> Running {
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = self.command.spawn();
        let child = child.unwrap_or_else(|error| panic!("{}: {error}", self.label));
        let mut running = Running::new(child, self.label);
        if let Some(bytes) = self.input
            && let Some(mut stdin) = running.stdin.take()
        {
            // On a thread: a program may write before it has read all.
            thread::spawn(move || drop(stdin.write_all(&bytes)));
        }
        running
    }
}

/// A program that runs.
#[derive(Debug)]
pub struct Running {
    label: String,
    pid: u32,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    errors: Receiver<Vec<u8>>,
    ended: Receiver<ExitStatus>,
    status: Option<ExitStatus>,
}

impl Running {
    fn new(mut child: Child, label: String) -> Self {
        let (send_line, lines) = mpsc::channel();
        let (send_errors, errors) = mpsc::channel();
        let (send_status, ended) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                let mut stdout = BufReader::new(stdout);
                let mut line = Vec::new();
                while stdout
                    .read_until(b'\n', &mut line)
                    .is_ok_and(|read| read > 0)
                {
                    if send_line.send(std::mem::take(&mut line)).is_err() {
                        break;
                    }
                }
            });
        }
        if let Some(mut stderr) = child.stderr.take() {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                drop(stderr.read_to_end(&mut bytes));
                drop(send_errors.send(bytes));
            });
        }
        let (pid, stdin) = (child.id(), child.stdin.take());
        thread::spawn(move || {
            if let Ok(status) = child.wait() {
                let _ = send_status.send(status);
            }
        });
        Self {
            label,
            pid,
            stdin,
            lines,
            errors,
            ended,
            status: None,
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Closes its standard input.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Writes to its standard input.
    pub fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("the input is open");
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// The next line it prints, without its end.
    #[track_caller]
    pub fn line(&mut self) -> String {
        match self.line_within(PATIENCE) {
            Some(line) => line,
            None => panic!("{}: no line came", self.label),
        }
    }

    /// The next line, if one comes within a time; `None` also when no more can come.
    pub fn line_within(&mut self, limit: Duration) -> Option<String> {
        let line = self.lines.recv_timeout(limit).ok()?;
        Some(String::from_utf8_lossy(&line).trim_end().to_owned())
    }

    /// The next line as JSON.
    #[track_caller]
    pub fn json_line(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{}: {line}", self.label))
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = pid_of(self.pid) {
            kill_process(pid, signal).unwrap();
        }
    }

    /// Kills it outright, and waits until it is gone.
    pub fn kill(&mut self) {
        if self.has_ended() {
            return;
        }
        if let Some(pid) = pid_of(self.pid) {
            // It fails only when the process has just ended.
            let _ = kill_process(pid, Signal::KILL);
        }
        self.status = self.ended.recv_timeout(PATIENCE).ok();
    }

    /// Whether it has come to its end.
    pub fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.ended.try_recv().ok();
        }
        self.status.is_some()
    }

    /// Waits for its end, and for the end of its streams: whoever inherited them keeps them open.
    #[track_caller]
    pub fn finish(mut self) -> Outcome {
        self.stdin = None;
        let deadline = Instant::now() + PATIENCE;
        if self.status.is_none() {
            self.status = self.ended.recv_timeout(PATIENCE).ok();
        }
        let mut out = Vec::new();
        let complete = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => out.extend_from_slice(&line),
                Err(RecvTimeoutError::Disconnected) => break true,
                Err(RecvTimeoutError::Timeout) => break false,
            }
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let err = self.errors.recv_timeout(left);
        let (Some(status), true, Ok(err)) = (self.status, complete, err) else {
            let out = String::from_utf8_lossy(&out).into_owned();
            let status = self.status;
            panic!(
                "{}: did not end in {PATIENCE:?} ({status:?}), printed: {out}",
                self.label
            );
        };
        Outcome {
            label: std::mem::take(&mut self.label),
            code: status.code(),
            signal: status.signal(),
            out,
            err: String::from_utf8_lossy(&err).into_owned(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A process id as the system calls take it.
pub fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// How a program ended, and what it printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    label: String,
    /// The exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: String,
}

#[expect(
    clippy::return_self_not_must_use,
    reason = "the check is what they are called for; the answer is for what follows, if anything"
)]
impl Outcome {
    /// Fails the test unless the exit code is `code`.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.told());
        self
    }

    /// Fails the test unless it succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.exits(0)
    }

    /// Fails the test unless it was refused with this code, told as a document.
    #[track_caller]
    pub fn refused(self, code: &str) -> Value {
        let told = self.told();
        assert!(matches!(self.code, Some(1..=3 | 125..=127)), "{told}");
        let document = self.json();
        assert_eq!(document["schema"], "semaprax.error/1", "{told}");
        assert_eq!(document["diagnostics"][0]["code"], code, "{told}");
        document
    }

    /// Standard output as text.
    #[track_caller]
    pub fn text(&self) -> String {
        String::from_utf8(self.out.clone()).expect("text on standard output")
    }

    /// Standard output as its one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        let text = self.text();
        assert_eq!(text.matches('\n').count(), 1, "one line: {}", self.told());
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{}", self.told()))
    }

    /// Standard output as one JSON document for each line.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let text = self.text();
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        text.lines().map(parse).collect()
    }

    /// All of it, for failures.
    pub fn told(&self) -> String {
        let out = String::from_utf8_lossy(&self.out);
        format!(
            "{}: exit {:?} signal {:?}\n--- stdout\n{out}\n--- stderr\n{}",
            self.label, self.code, self.signal, self.err
        )
    }
}
