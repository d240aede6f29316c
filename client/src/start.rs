//! Starting a daemon in the background.
//!
//! Owns: the lock that makes two clients which start at once get one daemon, the new process's
//! surroundings, and the wait until it listens.
//! Never: waits on time alone. Each step has a deadline of its own, shorter than what is around it,
//! so that the inner one fires first and the error names the step that hung.
//!
//! The daemon has its own session, `/` as its directory, a fixed environment, its standard streams
//! to its log, and no descriptor of its caller: descriptors that were inherited without `CLOEXEC` can
//! be closed only by number, so the started program (`daemon launch`, see [`launch`]) marks them
//! and executes itself anew.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use semaprax_protocol::Refusal;

use crate::connect::{self, Options, Session};
use crate::files::{self, Deadline};
use crate::runtime::Runtime;
use crate::{env, error};

/// How long another client may take to start the daemon before this one gives up.
const LOCK: Duration = Duration::from_secs(30);
/// How long the new process may take until it listens.
const LISTEN: Duration = Duration::from_secs(20);
/// The first and the longest pause between two looks.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));
/// How much of the log an error quotes.
const LOG_TAIL_BYTES: u64 = 600;

/// Starts a daemon, unless another client did so meanwhile, and says hello to it.
pub(crate) fn start(options: &Options, program: &Path) -> Result<Session, Refusal> {
    options.runtime.prepare()?;
    let _only_one_starts = lock(&options.runtime)?;
    if let Some(session) = connect::find(options)? {
        return Ok(session);
    }
    let (ended, log) = spawn(options, program)?;
    let deadline = Deadline::after(LISTEN);
    let mut pause = PAUSES.0;
    loop {
        if let Some(session) =
            connect::greet(&options.runtime.socket(), options.workspace.as_deref())?
        {
            return Ok(session);
        }
        match ended.recv_timeout(pause) {
            Ok(status) => return Err(ended_early(&options.runtime, status, &log)),
            // Its reaper is gone, so nothing says how it is: the deadline remains.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        pause = (pause * 2).min(PAUSES.1);
        if deadline.remaining().is_none() {
            return Err(error::unreachable(format!(
                "the daemon was started but does not listen on `{}` after {} seconds; its log is `{}`",
                options.runtime.socket(),
                LISTEN.as_secs(),
                options.runtime.log()
            )));
        }
    }
}

/// Takes the lock that lets one client at a time start a daemon.
fn lock(runtime: &Runtime) -> Result<File, Refusal> {
    let path = runtime.start_lock();
    let file = files::open_lock(&path).map_err(|source| error::of_io("open", &path, &source))?;
    let deadline = Deadline::after(LOCK);
    // Nothing is ever sent here: it is a wait that ends by itself.
    let (_keep, timer) = mpsc::channel::<()>();
    let mut pause = PAUSES.0;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::Error(source)) => {
                return Err(error::of_io("lock", &path, &source));
            }
            Err(std::fs::TryLockError::WouldBlock) if deadline.remaining().is_none() => {
                return Err(error::unreachable(format!(
                    "another client has been starting the daemon for {} seconds (`{path}` is locked)",
                    LOCK.as_secs()
                )));
            }
            Err(std::fs::TryLockError::WouldBlock) => {
                let _ = timer.recv_timeout(pause);
                pause = (pause * 2).min(PAUSES.1);
            }
        }
    }
}

/// The log, and where this daemon's part of it begins.
struct LogPlace {
    start: u64,
}

fn spawn(options: &Options, program: &Path) -> Result<(Receiver<ExitStatus>, LogPlace), Refusal> {
    let path = options.runtime.log();
    let open = || files::open_log(&path).map_err(|source| error::of_io("open", &path, &source));
    let (output, errors) = (open()?, open()?);
    let place = LogPlace {
        start: output.metadata().map_or(0, |found| found.len()),
    };
    let mut command = Command::new(program);
    command.arg0("semaprax");
    command.args(["daemon", "launch", "--runtime-dir"]);
    command.arg(options.runtime.directory());
    if let Some(idle) = &options.idle_timeout {
        command.args(["--idle-timeout", idle]);
    }
    if let Some(directory) = env::value(env::XDG_CONFIG_HOME) {
        command.arg("--config-home").arg(directory);
    }
    command.env_clear().env(env::PATH, env::DAEMON_PATH);
    for name in env::DAEMON_KEEPS.into_iter().chain([env::LOG]) {
        if let Some(value) = env::value(name) {
            command.env(name, value);
        }
    }
    command
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    let mut child = command.spawn().map_err(|source| {
        error::unreachable(format!(
            "the daemon cannot be started: `{}`: {source}",
            program.display()
        ))
    })?;
    let (report, ended) = mpsc::channel();
    // The daemon may end long after; a caller that lives on must not keep its remains.
    std::thread::spawn(move || {
        if let Ok(status) = child.wait() {
            let _ = report.send(status);
        }
    });
    Ok((ended, place))
}

fn ended_early(runtime: &Runtime, status: ExitStatus, place: &LogPlace) -> Refusal {
    let tail = log_tail(runtime, place.start).unwrap_or_default();
    let tail = tail.trim();
    let mut message = format!(
        "the daemon ended ({status}) before it listened; its log is `{}`",
        runtime.log()
    );
    if !tail.is_empty() {
        message.push_str(", and ends with: ");
        message.push_str(tail);
    }
    error::unreachable(message)
}

fn log_tail(runtime: &Runtime, start: u64) -> io::Result<String> {
    let mut log = files::open(runtime.log())?;
    let end = log.metadata()?.len();
    log.seek(SeekFrom::Start(
        start.max(end.saturating_sub(LOG_TAIL_BYTES)),
    ))?;
    let mut tail = Vec::new();
    log.take(LOG_TAIL_BYTES).read_to_end(&mut tail)?;
    Ok(String::from_utf8_lossy(&tail).into_owned())
}

/// What the new process does first: takes a session of its own, marks every inherited descriptor to
/// be closed, and becomes `program daemon run ARGUMENTS`. Returns only when that fails.
pub(crate) fn launch(program: &Path, arguments: &[std::ffi::OsString]) -> io::Error {
    // It fails only for the leader of a process group, which a started process is not.
    let _ = rustix::process::setsid();
    close_fds::set_fds_cloexec(3, &[]);
    Command::new(program)
        .arg0("semaprax")
        .args(["daemon", "run"])
        .args(arguments)
        .exec()
}
