//! What the arguments and the environment mean together.
//!
//! Owns: finding the workspace, reaching the daemon, the author. Never: prints.

use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use semaprax_protocol::request::{Attribution, PublishOptions, Resolve};
use semaprax_protocol::{Code, Diagnostic, Refusal};

use super::args::{AttributionArguments, CarryOutArguments, GlobalArguments};
use super::output::Output;
use super::target::{self, Target};
use crate::{Client, Options, Start, env, error, layout};

/// The settings of one run.
#[derive(Debug)]
pub(super) struct Settings {
    workspace: Option<PathBuf>,
    no_autostart: bool,
    /// Where results go.
    pub(super) output: Output,
}

impl Settings {
    /// Takes the global flags.
    pub(super) fn new(global: &GlobalArguments, output: Output) -> Self {
        Self {
            workspace: global.workspace.clone(),
            no_autostart: global.no_autostart,
            output,
        }
    }

    /// The directory a command is about: `-C DIR`, else the current one.
    pub(super) fn directory(&self) -> PathBuf {
        self.workspace.clone().unwrap_or_else(|| PathBuf::from("."))
    }

    /// The workspace.
    pub(super) fn workspace(&self) -> Result<Utf8PathBuf, Refusal> {
        discover(&self.directory())
    }

    /// How to reach a daemon for `workspace`, or for no workspace.
    pub(super) fn options(&self, workspace: Option<Utf8PathBuf>) -> Result<Options, Refusal> {
        let start = if self.no_autostart {
            Start::Never
        } else {
            Start::Program(own_program())
        };
        Options::from_environment(workspace, start)
    }

    /// A client of the workspace.
    pub(super) fn client(&self) -> Result<Client, Refusal> {
        let workspace = self.workspace()?;
        Client::connect(self.options(Some(workspace))?)
    }
}

/// The program that runs now, to start itself with. An upgrade may have replaced the file meanwhile;
/// the system still knows the old one.
pub(super) fn own_program() -> PathBuf {
    std::env::current_exe()
        .ok()
        .filter(|path| path.exists())
        .unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// The nearest workspace at or above a directory.
fn discover(start: &Path) -> Result<Utf8PathBuf, Refusal> {
    let start = absolute(start)?;
    let found = start
        .ancestors()
        .find(|directory| layout::store(directory).is_file());
    found.map(camino::Utf8Path::to_owned).ok_or_else(|| {
        let message = format!("`{start}` is not in a workspace");
        Diagnostic::new(Code::NotAWorkspace, message)
            .at(start.as_str())
            .into()
    })
}

/// The one name of a directory that exists: absolute, without symlinks.
pub(super) fn absolute(directory: &Path) -> Result<Utf8PathBuf, Refusal> {
    let found = directory
        .canonicalize()
        .map_err(|source| error::of_io("open", directory.display(), &source))?;
    utf8(found)
}

/// An absolute name for a path that need not exist: without `..`, where its parent does.
pub(super) fn absolute_new(path: &str) -> Result<Utf8PathBuf, Refusal> {
    let found =
        std::path::absolute(path).map_err(|source| error::of_io("resolve", path, &source))?;
    let place = found.parent().and_then(|parent| parent.canonicalize().ok());
    match (place, found.file_name()) {
        (Some(place), Some(name)) => utf8(place.join(name)),
        _ => utf8(found),
    }
}

fn utf8(path: PathBuf) -> Result<Utf8PathBuf, Refusal> {
    Utf8PathBuf::from_path_buf(path).map_err(|path| {
        let message = format!("`{}` is not UTF-8", path.display());
        Diagnostic::new(Code::PathRefused, message).into()
    })
}

/// The author, where none was given.
pub(super) fn author(given: Option<&String>) -> String {
    given
        .cloned()
        .or_else(|| env::text(env::AUTHOR))
        .or_else(|| env::text(env::USER))
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Who and why, as a request says it.
pub(super) fn attribution(
    given: &AttributionArguments,
    carry_out: &CarryOutArguments,
) -> Attribution {
    Attribution {
        id: carry_out.id,
        author: author(given.author.as_ref()),
        message: given.message.clone().unwrap_or_default(),
    }
}

/// How to carry out, as a request says it.
pub(super) fn publish_options(given: &CarryOutArguments) -> PublishOptions {
    PublishOptions {
        dry_run: given.dry_run,
        detach: given.detach,
        deadline_ms: given.deadline.map(|deadline| deadline.0),
    }
}

/// Tells what an argument of `cat`, `ls` or `blame` names.
pub(super) fn target(client: &mut Client, text: &str) -> Result<Target, Refusal> {
    target::tell_apart(text, &mut |digits| {
        let asked = client.call(Resolve {
            revision: digits.to_owned(),
        });
        match asked {
            Ok(_) => Ok(true),
            Err(refusal) if refusal.code() == Code::UnknownRevision => Ok(false),
            Err(refusal) => Err(refusal),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    #[test]
    fn the_nearest_workspace_is_found() {
        let place = tempfile::tempdir().unwrap();
        let root = absolute(place.path()).unwrap();
        for directory in ["outer/inner/deep", "outer/plain", "elsewhere"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        for workspace in ["outer", "outer/inner"] {
            std::fs::create_dir(layout::state(&root.join(workspace))).unwrap();
            files::write(layout::store(&root.join(workspace)), "");
        }
        // A state directory without a store is what a failed `init` leaves.
        std::fs::create_dir(layout::state(&root.join("outer/plain"))).unwrap();
        let check = |from: &str, expect: Option<&str>| {
            let found = discover(root.join(from).as_std_path());
            let expect = expect.map(|expect| root.join(expect));
            assert_eq!(found.ok(), expect, "{from}");
        };
        check("outer", Some("outer"));
        check("outer/plain", Some("outer"));
        check("outer/inner", Some("outer/inner"));
        check("outer/inner/deep", Some("outer/inner"));
        check("outer/inner/.semaprax-workspace", Some("outer/inner"));
        check("elsewhere", None);
        check("missing", None);
    }
}
