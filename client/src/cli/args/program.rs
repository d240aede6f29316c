//! The command lines of `daemon`, `explain`, `schema`, `completions`, `demo`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::parse::Millis;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum DaemonCommand {
    /// Run the daemon in the foreground.
    Run(DaemonRunArguments),
    /// Start the daemon in the background, unless it runs.
    Start(DaemonStartArguments),
    /// Let the daemon finish what runs and leave.
    Stop,
    /// Tell whether the daemon runs.
    Status,
    /// Becomes `daemon run` in the background; not for people.
    #[command(hide = true)]
    Launch(DaemonLaunchArguments),
}

/// What `daemon run` takes is the daemon's to say.
#[cfg(feature = "daemon")]
pub(in crate::cli) type DaemonRunArguments = semaprax_daemon::server::Options;

/// There is no daemon in this build.
#[cfg(not(feature = "daemon"))]
#[derive(Debug, Args)]
pub(in crate::cli) struct DaemonRunArguments {}

#[derive(Debug, Args)]
pub(in crate::cli) struct DaemonLaunchArguments {
    /// What is handed on to `daemon run`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(in crate::cli) arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct DaemonStartArguments {
    /// Leave after this long without clients, leases or work.
    #[arg(long, value_name = "DURATION")]
    pub(in crate::cli) idle_timeout: Option<Millis>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ExplainArguments {
    /// The code, such as `stale-base`.
    pub(in crate::cli) code: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SchemaArguments {
    /// The document, such as `receipt`; all names without it.
    pub(in crate::cli) name: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CompletionsArguments {
    /// The shell.
    #[arg(value_enum)]
    pub(in crate::cli) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct DemoArguments {
    /// Whose files to copy; the sources in cargo's registry cache without it. They are not touched.
    #[arg(value_name = "DIR")]
    pub(in crate::cli) directory: Option<PathBuf>,
    /// Leave the daemon of the demo running.
    #[arg(long)]
    pub(in crate::cli) keep_daemon: bool,
}
