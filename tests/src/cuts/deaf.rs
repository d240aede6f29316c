//! A daemon whose database is never synced.
//!
//! Owns: `strace` beside a running daemon, which answers the syncs of two files in the kernel's stead. The database
//! does its own io, so no disk of ours can leave its syncs out, and the product has no switch for it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use camino::Utf8Path;

use crate::images::is_there;
use crate::torture::{During as _, Outcome, violation};

/// Deaf to syncs of the database for as long as this lives.
#[derive(Debug)]
pub(super) struct Deaf {
    strace: Child,
}

impl Deaf {
    /// Whether this machine has the program.
    pub(super) fn is_possible() -> bool {
        is_there("strace")
    }

    /// From now on syncs of the database of a daemon do nothing, and succeed.
    pub(super) fn attach(daemon: u32, state: &Utf8Path) -> Outcome<Self> {
        let mut command = Command::new("strace");
        command.args(["-f", "-e", "trace=fsync,fdatasync"]);
        command.args(["-e", "inject=fsync,fdatasync:retval=0", "-o", "/dev/null"]);
        for name in ["store.db", "store.db-wal"] {
            command.arg("-P").arg(state.join(name));
        }
        command.args(["-p", &daemon.to_string()]);
        let started = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut strace = started.during(|| "starting strace".to_owned())?;
        let said = strace.stderr.take();
        let deaf = Self { strace };
        // It says so when it has the daemon, and nothing more that anyone would read.
        let mut said = BufReader::new(said.ok_or_else(|| violation("strace is mute"))?);
        let mut line = String::new();
        said.read_line(&mut line)
            .during(|| "listening to strace".to_owned())?;
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        if line.contains("attached") {
            return Ok(deaf);
        }
        Err(violation(format!("strace: {line}")))
    }
}

impl Drop for Deaf {
    fn drop(&mut self) {
        // It lets go of the daemon when it ends.
        drop(self.strace.kill());
        drop(self.strace.wait());
    }
}
