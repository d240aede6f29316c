//! A world of its own for each test of the real binary.
//!
//! Owns: a temporary directory with a workspace, a home and a runtime directory; running `semaprax` in
//! it; the daemon that this starts, and its end. Worlds do not see each other, so tests run side by
//! side.
//! Never: sleeps, or stops a process that this world did not start.

mod blocker;
mod proc;
mod run;
mod tree;
mod wait;
mod wire;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

pub use blocker::Blocker;
pub use proc::{daemons_below, is_alive, status_field};
pub use run::{Call, Outcome, Running, pid_of};
pub use tree::{contents, make_writable, sha256};
pub use wait::{PATIENCE, until, until_true, within};
pub use wire::{Wire, line_of};

/// The variable that names the binary under test.
const BINARY: &str = "SEMAPRAX_BIN";

/// A private world.
#[derive(Debug)]
pub struct World {
    directory: PathBuf,
    binary: PathBuf,
}

impl World {
    /// A world with an empty directory for a workspace. `built` is the binary cargo made for the suite
    /// (`env!("CARGO_BIN_EXE_semaprax-under-test")`); `SEMAPRAX_BIN` wins over it.
    pub fn new(built: &str) -> Self {
        let binary = std::env::var_os(BINARY).map_or_else(|| PathBuf::from(built), PathBuf::from);
        let made = tempfile::Builder::new().prefix("spx-").tempdir().unwrap();
        let directory = made.keep().canonicalize().unwrap();
        for name in ["ws", "home", "tmp"] {
            fs::create_dir(directory.join(name)).unwrap();
        }
        Self { directory, binary }
    }

    /// The directory that holds everything of this world.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory that is the workspace, once it is one.
    pub fn workspace(&self) -> PathBuf {
        self.directory.join("ws")
    }

    /// The state directory of the workspace.
    pub fn state(&self) -> PathBuf {
        self.workspace().join(".semaprax-workspace")
    }

    /// The runtime directory.
    pub fn runtime(&self) -> PathBuf {
        self.directory.join("run")
    }

    /// The daemon's socket.
    pub fn socket(&self) -> PathBuf {
        self.runtime().join("daemon.sock")
    }

    /// The binary under test.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Writes a file below this world's directory, with the directories it needs.
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// The user's settings of the daemon.
    pub fn configure(&self, text: &str) {
        let path = self.write("home/.config/semaprax/config.toml", text);
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// A program in the surroundings of this world.
    pub fn program(&self, program: impl AsRef<OsStr>, label: String) -> Call {
        self.adopt(Command::new(program), label)
    }

    /// `semaprax` with arguments, in the workspace.
    pub fn semaprax<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Call {
        let mut command = Command::new(&self.binary);
        // So that what it says of itself does not depend on where it was built.
        command.arg0("semaprax").args(arguments);
        let shown: Vec<_> = arguments
            .iter()
            .map(|word| word.as_ref().to_string_lossy())
            .collect();
        self.adopt(command, format!("semaprax {}", shown.join(" ")))
    }

    fn adopt(&self, mut command: Command, label: String) -> Call {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.directory.join("home"))
            .env("TMPDIR", self.directory.join("tmp"))
            .env("USER", "tester")
            .env("LANG", "C.UTF-8")
            .env("NO_COLOR", "1")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("SEMAPRAX_RUNTIME_DIR", self.runtime())
            .current_dir(self.workspace());
        Call::new(command, label)
    }

    /// Runs `semaprax` to its end.
    #[track_caller]
    pub fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Outcome {
        self.semaprax(arguments).run()
    }

    /// Runs `semaprax`, which must succeed.
    #[track_caller]
    pub fn ok<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Outcome {
        self.run(arguments).ok()
    }

    /// Runs `semaprax --json`, which must succeed; answers its document.
    #[track_caller]
    pub fn json<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Value {
        self.with_json(arguments).run().ok().json()
    }

    /// Runs `semaprax --json`, which must be refused with a code; answers the document.
    #[track_caller]
    pub fn refused<A: AsRef<OsStr>>(&self, arguments: &[A], code: &str) -> Value {
        self.with_json(arguments).run().refused(code)
    }

    /// `semaprax --json` with arguments.
    pub fn with_json<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Call {
        let mut all: Vec<&OsStr> = vec![OsStr::new("--json")];
        all.extend(arguments.iter().map(AsRef::as_ref));
        self.semaprax(&all)
    }

    /// Starts `semaprax`.
    #[track_caller]
    pub fn spawn<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Running {
        self.semaprax(arguments).spawn()
    }

    /// `semaprax publish` of a submission.
    pub fn publish(&self, submission: &Value, flags: &[&str]) -> Call {
        let mut arguments = vec!["publish", "--from-json", "-"];
        arguments.extend(flags);
        self.with_json(&arguments).input(submission.to_string())
    }

    /// Publishes changes, which must succeed; answers the receipt.
    #[track_caller]
    pub fn change(&self, changes: &Value) -> Value {
        self.publish(&submission(changes), &[]).run().ok().json()
    }

    /// Publishes one file; answers the receipt.
    #[track_caller]
    pub fn put(&self, path: &str, content: &str) -> Value {
        self.change(&json!([{"op": "put", "path": path, "content": content}]))
    }

    /// Fills the workspace directory with a small tree of all kinds of entries.
    pub fn fill(&self) {
        self.write("ws/src/a.rs", "pub fn foo() {}\n");
        self.write("ws/src/b.rs", "use a::foo;\nfn main() { foo() }\n");
        self.write("ws/README.md", "hello\r\nworld\r\n");
        self.write("ws/empty", "");
        let script = self.write("ws/run.sh", "#!/bin/sh\necho hi\n");
        fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("src/a.rs", self.workspace().join("link")).unwrap();
    }

    /// Fills the workspace directory and imports it; answers the document of `init`.
    #[track_caller]
    pub fn seed(&self) -> Value {
        self.fill();
        self.json(&["init"])
    }

    /// A raw connection that has said hello for the workspace. A daemon must run.
    #[track_caller]
    pub fn wire(&self) -> Wire {
        let mut wire = Wire::connect(&self.socket()).expect("a daemon");
        wire.hello(Some(&self.workspace()));
        wire
    }

    /// The process of the daemon, from a raw connection; `None` when none answers.
    pub fn daemon(&self) -> Option<u32> {
        let mut wire = Wire::connect(&self.socket()).ok()?;
        let welcome = wire.try_hello()?;
        u32::try_from(welcome["pid"].as_u64()?).ok()
    }

    /// The processes of daemons of this world, whether they answer or not.
    pub fn daemons(&self) -> Vec<u32> {
        daemons_below(&self.directory)
    }

    /// Kills the daemon outright and waits until it is gone.
    #[track_caller]
    pub fn kill_daemon(&self) {
        let pid = self.daemon().expect("a daemon to kill");
        self.signal_daemon(pid, Signal::KILL);
        until_true("the killed daemon is gone", || !is_alive(pid));
    }

    /// Sends the daemon a signal.
    pub fn signal_daemon(&self, pid: u32, signal: Signal) {
        assert!(self.daemons().contains(&pid), "{pid} is not of this world");
        kill_process(pid_of(pid).unwrap(), signal).unwrap();
    }

    /// Stops the daemon in good order and waits until its process is gone, too.
    #[track_caller]
    pub fn stop(&self) {
        let pid = self.daemon();
        self.ok(&["daemon", "stop"]);
        until_true("the stopped daemon is gone", || !pid.is_some_and(is_alive));
    }

    /// The log of the daemon.
    pub fn log(&self) -> String {
        fs::read_to_string(self.runtime().join("daemon.log")).unwrap_or_default()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let start = log.len().saturating_sub(3000);
            eprintln!(
                "--- end of the daemon's log\n{}",
                log.get(start..).unwrap_or(&log)
            );
        }
        for pid in self.daemons() {
            if let Some(pid) = pid_of(pid) {
                // It fails only when the process has just ended.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let _ = within(PATIENCE, || self.daemons().is_empty().then_some(()));
        make_writable(&self.directory);
        drop(fs::remove_dir_all(&self.directory));
    }
}

/// A submission of changes.
pub fn submission(changes: &Value) -> Value {
    json!({
        "schema": "semaprax.submission/1",
        "author": "suite",
        "message": "a change",
        "changes": changes,
    })
}

/// A new name for a submission.
pub fn new_id() -> Value {
    json!(uuid::Uuid::new_v4().to_string())
}
