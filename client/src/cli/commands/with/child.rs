//! The command of `with` while it runs.
//!
//! Owns: handing signals on, and the exit code. Never: decides what is run.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use rustix::process::{Pid, Signal};
use semaprax_protocol::Refusal;
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};

use crate::{error, files};

/// The signals that are handed on.
const SIGNALS: [Signal; 6] = [
    Signal::TERM,
    Signal::INT,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
];
/// More than `/proc/self/status` and `/proc/self/stat` ever hold.
const PROC_BYTES: u64 = 64 << 10;

/// Runs a command to its end and gives its exit code; 128 and the number for a signal.
///
/// The command must be started by the thread that lives as long as this process: the kernel takes the
/// end of that thread for the end of the parent. So the runtime has this one thread only.
pub(super) fn run(command: Command) -> Result<i32, Refusal> {
    let failed = |source: std::io::Error| error::of_io("run", "the command", &source);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let status = runtime.block_on(supervise(command)).map_err(failed)?;
    Ok(exit_code(status))
}

fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|number| 128 + number))
        .unwrap_or(255)
}

async fn supervise(command: Command) -> std::io::Result<ExitStatus> {
    let (report, mut arrived) = tokio::sync::mpsc::unbounded_channel();
    // Before the start, so that none is lost. What the caller ignores stays ignored for the command.
    let ignored = ignored_signals();
    for number in SIGNALS {
        if ignored & (1 << (number.as_raw() - 1)) != 0 {
            continue;
        }
        let mut stream = signal(SignalKind::from_raw(number.as_raw()))?;
        let report = report.clone();
        tokio::spawn(async move {
            while stream.recv().await.is_some() {
                if report.send(number).is_err() {
                    break;
                }
            }
        });
    }
    let mut child = tokio::process::Command::from(command).spawn()?;
    loop {
        tokio::select! {
            biased;
            status = child.wait() => return status,
            Some(number) = arrived.recv() => hand_on(&child, number),
        }
    }
}

fn hand_on(child: &Child, number: Signal) {
    // The terminal sends these to the whole group, and the command has them already.
    if matches!(number, Signal::INT | Signal::QUIT) && is_in_foreground() {
        return;
    }
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(process) = id.and_then(Pid::from_raw) {
        // It fails only when the command has just ended.
        let _ = rustix::process::kill_process(process, number);
    }
}

/// Whether this process is in the foreground group of its terminal.
fn is_in_foreground() -> bool {
    let text = files::read_small("/proc/self/stat", PROC_BYTES).unwrap_or_default();
    foreground_of(&text)
}

/// Reads `pid (name) state ppid group session terminal foreground ...`; the name may hold anything.
fn foreground_of(stat: &str) -> bool {
    let Some((_, rest)) = stat.rsplit_once(") ") else {
        return false;
    };
    let fields: Vec<&str> = rest.split(' ').collect();
    match fields.as_slice() {
        [_, _, group, _, terminal, foreground, ..] => *terminal != "0" && group == foreground,
        _ => false,
    }
}

/// The signals this process was started to ignore, one bit each.
fn ignored_signals() -> u64 {
    let text = files::read_small("/proc/self/status", PROC_BYTES).unwrap_or_default();
    let mask = text.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_foreground_group_is_read_whatever_the_name() {
        let check = |stat: &str, expect: bool| assert_eq!(foreground_of(stat), expect, "{stat}");
        check("5 (semaprax) S 4 5 4 34816 5 4194304", true);
        check("5 (semaprax) S 4 5 4 34816 9 4194304", false);
        check("5 (semaprax) S 4 5 4 0 -1 4194304", false);
        check("5 (a) b (c) S 4 7 4 34816 7 0", true);
        check("", false);
    }

    #[test]
    fn the_exit_code_tells_of_a_signal() {
        assert_eq!(exit_code(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(exit_code(ExitStatus::from_raw(9)), 137);
    }
}
