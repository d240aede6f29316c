//! The command line as it was written.
//!
//! Owns: commands, flags and their help. Never: looks at the environment, a file, or the daemon: what
//! the arguments mean is settled in `settings.rs` and by each command.

mod lease;
mod program;
mod publish;
mod read;
mod upkeep;
mod with;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(super) use lease::{LeaseAcquireArguments, LeaseCommand};
pub(super) use program::{
    CompletionsArguments, DaemonCommand, DaemonLaunchArguments, DaemonRunArguments,
    DaemonStartArguments, DemoArguments, ExplainArguments, SchemaArguments,
};
pub(super) use publish::{
    AttributionArguments, CancelArguments, CarryOutArguments, InitArguments, PublishArguments,
    RevertArguments, RollbackArguments, UndoArguments,
};
pub(super) use read::{
    BlameArguments, CatArguments, DiffArguments, ExportArguments, JournalArguments, LogArguments,
    LsArguments, RevisionArguments, StatusArguments, WatchArguments,
};
pub(super) use upkeep::{DoctorArguments, GcArguments, PinArguments, VerifyArguments};
pub(super) use with::{EnterArguments, Scratch, WithArguments};

/// Publishes multi-file edits as one whole, verified generation or not at all.
#[derive(Debug, Parser)]
#[command(
    name = "semaprax",
    version,
    propagate_version = false,
    max_term_width = 100
)]
#[command(disable_help_subcommand = false, arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) global: GlobalArguments,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Flags of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(super) struct GlobalArguments {
    /// The workspace; the nearest parent that is one without it.
    #[arg(short = 'C', long, global = true, value_name = "DIR")]
    pub(super) workspace: Option<PathBuf>,
    /// Print one JSON document (streams: one per line) instead of text.
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// When to use colour.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        hide_possible_values = false
    )]
    pub(super) color: ColorWhen,
    /// Do not start a daemon when none answers.
    #[arg(long, global = true)]
    pub(super) no_autostart: bool,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum ColorWhen {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// In any case.
    Always,
    /// In no case.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Import a directory as publication 1; its files are not touched.
    Init(InitArguments),
    /// Show what is ACTIVE, and what leases and the queue hold.
    Status(StatusArguments),
    /// Publish several changes as one.
    Publish(PublishArguments),
    /// List the publications, newest first.
    Log(LogArguments),
    /// Show one publication and what it changed.
    Show(RevisionArguments),
    /// Show what differs between two revisions.
    Diff(DiffArguments),
    /// List the paths of a revision.
    Ls(LsArguments),
    /// Print the content of a path.
    Cat(CatArguments),
    /// Show which publication each line of a file comes from.
    Blame(BlameArguments),
    /// Hold a tree, so that it stays on disk unchanged.
    #[command(subcommand)]
    Lease(LeaseCommand),
    /// Run a command on a tree that stays while it runs.
    With(WithArguments),
    /// Write a writable copy of a revision.
    Export(ExportArguments),
    /// Follow the publications.
    Watch(WatchArguments),
    /// Publish the content of an old revision again.
    Rollback(RollbackArguments),
    /// Take one publication out of the middle.
    Revert(RevertArguments),
    /// Revert the newest publication; twice brings it back.
    Undo(UndoArguments),
    /// Keep a revision from being collected.
    Pin(PinArguments),
    /// Take a pin away.
    Unpin(RevisionArguments),
    /// Remove trees that nobody needs.
    Gc(GcArguments),
    /// Tell why the tree of a revision is kept.
    Why(RevisionArguments),
    /// Check the store and the trees against their digests.
    Verify(VerifyArguments),
    /// Check the environment and the workspace, with a fix for each finding.
    Doctor(DoctorArguments),
    /// Print the hash-chained journal of all that happened.
    Journal(JournalArguments),
    /// Show what waits to be published.
    Queue,
    /// Take a waiting submission back.
    Cancel(CancelArguments),
    /// Run, start, stop or look at the daemon.
    #[command(subcommand)]
    Daemon(DaemonCommand),
    /// Explain a code of an error.
    Explain(ExplainArguments),
    /// Print the JSON Schema of a document.
    Schema(SchemaArguments),
    /// Print the completions for a shell.
    Completions(CompletionsArguments),
    /// Show it all at work in a directory of its own.
    Demo(DemoArguments),
    /// Becomes the command of `with`; not for people.
    #[command(hide = true, name = "internal-enter")]
    Enter(EnterArguments),
}
