//! How a command ends.
//!
//! Owns: the exit codes, and how each way of failing is reported.
//! Never: decides whether something failed.

use std::io;

use semaprax_protocol::{Code, Refusal, Status};

use super::output::Output;
use crate::error;

/// An exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exit(u8);

impl Exit {
    /// Done.
    pub(super) const DONE: Self = Self(0);
    /// Done, and what was found is not as it should be.
    pub(super) const FINDINGS: Self = Self(1);
    /// `with` itself failed, as `env` and `timeout` say it.
    pub(super) const WITH_FAILED: Self = Self(125);
    /// The command of `with` cannot be executed.
    pub(super) const NOT_EXECUTABLE: Self = Self(126);
    /// The command of `with` was not found.
    pub(super) const NOT_FOUND: Self = Self(127);

    /// The code of a request that ended so.
    pub(super) const fn of(status: Status) -> Self {
        Self(status.exit_code())
    }

    /// The code of a command that `with` ran.
    pub(super) fn of_command(code: i32) -> Self {
        Self(u8::try_from(code & 0xff).unwrap_or(u8::MAX))
    }

    /// The number.
    pub(super) const fn code(self) -> u8 {
        self.0
    }
}

/// Why a command did not come to its end.
#[derive(Debug)]
pub(super) enum Failure {
    /// It was refused, here or by the daemon.
    Refused(Refusal),
    /// The same, with an exit code of its own.
    RefusedWith(Exit, Refusal),
    /// Nothing more can be printed.
    Output(io::Error),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<io::Error> for Failure {
    fn from(reason: io::Error) -> Self {
        Self::Output(reason)
    }
}

/// How a command ends.
pub(super) type CommandResult = Result<Exit, Failure>;

impl Failure {
    /// Says what happened, and gives the exit code.
    pub(super) fn report(self, output: Output) -> Exit {
        match self {
            Self::Refused(refusal) => {
                let exit = Exit::of(refusal.status);
                tell(output, refusal, exit)
            }
            Self::RefusedWith(exit, refusal) => tell(output, refusal, exit),
            // Whoever read has read enough, as with `head`.
            Self::Output(reason) if reason.kind() == io::ErrorKind::BrokenPipe => Exit::DONE,
            Self::Output(reason) => {
                let refusal = error::of_io("write to", "standard output", &reason);
                output.diagnostics_to_stderr(&refusal);
                Exit::of(Code::Io.status())
            }
        }
    }
}

fn tell(output: Output, refusal: Refusal, exit: Exit) -> Exit {
    match output.refusal(refusal) {
        Ok(()) => exit,
        Err(reason) if reason.kind() == io::ErrorKind::BrokenPipe => exit,
        Err(reason) => Failure::Output(reason).report(output),
    }
}
