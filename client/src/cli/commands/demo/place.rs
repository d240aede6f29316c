//! Where the demo happens: a temporary directory with a workspace and a daemon of its own.
//!
//! Owns: `workspace/` and `run/` in it, reaching the daemon and ending it.
//! Never: removes the directory: it is left for inspection.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::documents::DaemonIdentity;
use semaprax_protocol::request::DaemonStop;
use semaprax_protocol::{Code, Diagnostic, Refusal};

use crate::cli::settings;
use crate::runtime::Runtime;
use crate::{Client, Options, Start, error};

/// A daemon that a killed demo leaves behind goes by itself.
const IDLE: &str = "2m";
/// The same, where it is left on purpose.
const IDLE_KEPT: &str = "30m";
/// How long the daemon may take to leave.
const LEAVING: Duration = Duration::from_mins(1);
/// Where the socket goes when the path of the directory for temporary files is too long for one.
const SHORT: &str = "/tmp";

/// The place of one demo.
#[derive(Debug)]
pub(super) struct Place {
    base: Utf8PathBuf,
    runtime: Runtime,
    keep_daemon: bool,
}

impl Place {
    /// A new one, among the temporary files.
    pub(super) fn new(keep_daemon: bool) -> Result<Self, Refusal> {
        let base = temporary(&std::env::temp_dir())?;
        let workspace = base.join("workspace");
        std::fs::create_dir(&workspace)
            .map_err(|source| error::of_io("make", &workspace, &source))?;
        let runtime = match Runtime::at(&base.join("run")) {
            Ok(runtime) => runtime,
            Err(_) => Runtime::at(&temporary(SHORT.as_ref())?.join("run"))?,
        };
        Ok(Self {
            base,
            runtime,
            keep_daemon,
        })
    }

    /// The directory of the workspace.
    pub(super) fn workspace(&self) -> Utf8PathBuf {
        self.base.join("workspace")
    }

    /// All of it.
    pub(super) fn base(&self) -> &Utf8Path {
        &self.base
    }

    /// The daemon's log.
    pub(super) fn log(&self) -> Utf8PathBuf {
        self.runtime.log()
    }

    fn options(&self, workspace: Option<Utf8PathBuf>, start: Start) -> Options {
        let idle = if self.keep_daemon { IDLE_KEPT } else { IDLE };
        Options {
            workspace,
            start,
            runtime: self.runtime.clone(),
            follow_lock: false,
            idle_timeout: Some(idle.to_owned()),
        }
    }

    /// Starts the daemon. The connection names no workspace: there is none yet.
    pub(super) fn start(&self) -> Result<Client, Refusal> {
        Client::connect(self.options(None, Start::Program(settings::own_program())))
    }

    /// A connection of its own to the daemon, about the workspace. No daemon is started for it: one
    /// that went away is a defect the demo is there to show.
    pub(super) fn client(&self) -> Result<Client, Refusal> {
        let options = self.options(Some(self.workspace()), Start::Never);
        Client::find(options)?.ok_or_else(|| error::unreachable("the daemon of the demo went away"))
    }

    /// Ends the daemon, unless it is to stay. Which one stays.
    pub(super) fn close(&self) -> Result<Option<DaemonIdentity>, Refusal> {
        let Some(mut client) = Client::find(self.options(None, Start::Never))? else {
            return Ok(None);
        };
        if self.keep_daemon {
            return Ok(client.daemon());
        }
        client.call(DaemonStop { if_idle: false })?;
        if client.await_end(Some(LEAVING)) {
            return Ok(None);
        }
        Err(error::unreachable(format!(
            "the daemon of the demo has not left after {} seconds; its log is `{}`",
            LEAVING.as_secs(),
            self.log()
        )))
    }
}

fn temporary(parent: &std::path::Path) -> Result<Utf8PathBuf, Refusal> {
    let made = tempfile::Builder::new()
        .prefix("semaprax-demo-")
        .tempdir_in(parent)
        .and_then(|made| made.keep().canonicalize())
        .map_err(|source| error::of_io("make a directory in", parent.display(), &source))?;
    Utf8PathBuf::from_path_buf(made).map_err(|path| {
        let message = format!("`{}` is not UTF-8", path.display());
        Diagnostic::new(Code::PathRefused, message).into()
    })
}
