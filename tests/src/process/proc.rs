//! What the system tells of processes.
//!
//! Owns: reading `/proc`. Never: a process that no world started: they are known by the runtime
//! directory on their command line, which is each world's own.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The daemons whose command line names a path below `directory`.
pub fn daemons_below(directory: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut arguments = line.split(|&byte| byte == 0);
        let is_daemon = arguments.nth(1).is_some_and(|word| word == b"daemon");
        let below = |argument| Path::new(OsStr::from_bytes(argument)).starts_with(directory);
        is_daemon && arguments.any(below) && is_alive(pid)
    })
    .collect()
}

/// Whether a process runs; one that waits to be reaped does not.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// A field of `/proc/PID/status`, in its own units.
pub fn status_field(pid: u32, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{field}:")))?;
    line.split_whitespace().next()?.parse().ok()
}
