//! The hidden command that becomes the command of `with`.
//!
//! Owns: dying with the parent, entering the mount, and the exit codes of a command that cannot be executed.
//! Never: returns when the command could be executed.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal};
use semaprax_protocol::{Code, Diagnostic, Refusal};

use super::mount::{self, Mount};
use crate::cli::args::EnterArguments;
use crate::cli::exit::{CommandResult, Exit, Failure};
use crate::cli::settings::Settings;
use crate::error;

/// Becomes the command; see the module of `with`.
pub(in crate::cli) fn enter(_: &Settings, arguments: &EnterArguments) -> CommandResult {
    let own = |refusal| Failure::RefusedWith(Exit::WITH_FAILED, refusal);
    die_with_parent(arguments.parent).map_err(own)?;
    if let Some(mount) = Mount::told(arguments) {
        enter_mount(&mount, arguments).map_err(own)?;
        if arguments.probe {
            return Ok(Exit::DONE);
        }
    }
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(own(error::internal("there is no command to become")));
    };
    let reason = Command::new(program).args(rest).exec();
    let exit = if reason.kind() == io::ErrorKind::NotFound {
        Exit::NOT_FOUND
    } else {
        Exit::NOT_EXECUTABLE
    };
    let refusal = error::of_io("execute", program.to_string_lossy(), &reason);
    Err(Failure::RefusedWith(exit, refusal))
}

fn enter_mount(mount: &Mount, arguments: &EnterArguments) -> Result<(), Refusal> {
    let root = mount.root();
    let failed = |action: &str, source: io::Error| {
        let message = format!("cannot {action} `{root}`: {source}");
        Refusal::from(Diagnostic::new(Code::UnsupportedFilesystem, message))
    };
    mount
        .make(arguments.user_namespace)
        .map_err(|source| failed("mount", source))?;
    if arguments.probe {
        return mount.try_out().map_err(|source| failed("use", source));
    }
    std::env::set_current_dir(root).map_err(|source| failed("enter", source))?;
    if arguments.user_namespace {
        mount::drop_rights().map_err(|source| failed("give up the rights to mount", source))?;
    }
    Ok(())
}

/// Asks to be killed when the parent dies, and makes sure that it has not died already.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn die_with_parent(parent: i32) -> Result<(), Refusal> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(|reason| {
        error::of_io(
            "tie the command to",
            format!("process {parent}"),
            &reason.into(),
        )
    })?;
    if rustix::process::getppid() == Pid::from_raw(parent) {
        return Ok(());
    }
    Err(error::internal(format!(
        "process {parent} has ended already"
    )))
}

/// Other systems do not tell a process of its parent's death.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn die_with_parent(_: i32) -> Result<(), Refusal> {
    Ok(())
}
