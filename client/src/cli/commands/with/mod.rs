//! `with`: runs a command on a tree that stays while it runs.
//!
//! Owns: the lease, the view of the tree that the command gets, its surroundings and its end.
//! Never: reads the tree, or lets it go while the command runs.
//!
//! The command must not outlive `with`, not even when `with` is killed outright. A started process can
//! ask for that itself, between fork and exec, which safe code cannot do for it. So `with` starts
//! itself anew ([`enter`]): that process asks the kernel for a death signal, checks that its parent
//! is still the one it was told of, mounts what is to be mounted, and becomes the command.

mod child;
mod enter;
mod mount;
mod view;

use std::ffi::OsString;

use camino::Utf8Path;
use semaprax_protocol::Refusal;

pub(super) use enter::enter;
use view::View;

use crate::cli::args::WithArguments;
use crate::cli::exit::{CommandResult, Exit, Failure};
use crate::cli::settings::Settings;
use crate::{Held, env};

pub(super) fn with(settings: &Settings, arguments: &WithArguments) -> CommandResult {
    let own = |refusal: Refusal| Failure::RefusedWith(Exit::WITH_FAILED, refusal);
    let mut client = settings.client().map_err(own)?;
    let name = arguments
        .command
        .first()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let held = client
        .hold(arguments.revision.as_deref(), &format!("with {name}"))
        .map_err(own)?;
    held.hand_on().map_err(own)?;
    let view = View::prepare(&held.tree, arguments.scratch, arguments.isolate).map_err(own)?;
    let mut command = view.command(&arguments.command);
    command
        .current_dir(view.start_directory())
        .env(env::REVISION, held.revision.to_string())
        .env(env::ROOT, view.root())
        .env(env::GIT_CEILING_DIRECTORIES, ceilings(&held, view.root()));
    let code = child::run(command).map_err(own)?;
    // Only now: the tree, the connection and the private layer must outlast the command.
    drop((view, held, client));
    Ok(Exit::of_command(code))
}

/// Where git stops to look for a repository: above the tree there is only the outer one.
fn ceilings(held: &Held, root: &Utf8Path) -> OsString {
    let mut directories: Vec<&Utf8Path> = Vec::new();
    for tree in [root, held.tree.as_path()] {
        let above = tree.parent().into_iter();
        for directory in above
            .flat_map(|parent| [Some(parent), parent.parent()])
            .flatten()
        {
            if !directories.contains(&directory) {
                directories.push(directory);
            }
        }
    }
    let mut joined = OsString::new();
    for directory in directories {
        if !joined.is_empty() {
            joined.push(":");
        }
        joined.push(directory);
    }
    if let Some(before) = env::value(env::GIT_CEILING_DIRECTORIES) {
        joined.push(":");
        joined.push(before);
    }
    joined
}
