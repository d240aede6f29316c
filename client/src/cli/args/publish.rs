//! The command lines of what publishes: `init`, `publish`, `rollback`, `revert`, `undo`, `cancel`.

use std::path::PathBuf;

use clap::Args;
use semaprax_protocol::submission::OnStale;
use semaprax_protocol::{NamePolicy, SubmissionId};

use crate::cli::parse::{self, Millis, PathPair, SeqArgument};

#[derive(Debug, Args)]
pub(in crate::cli) struct InitArguments {
    /// The directory; the current one without it.
    pub(in crate::cli) directory: Option<PathBuf>,
    /// Which names are accepted; the strictest that no imported name offends without it.
    #[arg(long, value_parser = parse::name_policy, value_name = "portable|native")]
    pub(in crate::cli) names: Option<NamePolicy>,
    /// Accept a file system that is known to break promises.
    #[arg(long)]
    pub(in crate::cli) force: bool,
    /// Let other users read the state directory.
    #[arg(long)]
    pub(in crate::cli) shared: bool,
    /// Exit with 1 when something was not imported.
    #[arg(long)]
    pub(in crate::cli) strict: bool,
    #[command(flatten)]
    pub(in crate::cli) attribution: AttributionArguments,
}

/// Who and why.
#[derive(Debug, Args)]
pub(in crate::cli) struct AttributionArguments {
    /// Who publishes; `$SEMAPRAX_AUTHOR` or `$USER` without it.
    #[arg(long)]
    pub(in crate::cli) author: Option<String>,
    /// What is done and why.
    #[arg(short, long)]
    pub(in crate::cli) message: Option<String>,
}

/// How a publishing command is carried out.
#[derive(Debug, Args)]
pub(in crate::cli) struct CarryOutArguments {
    /// The name of the submission: repeating it takes effect once.
    #[arg(long, value_name = "UUID")]
    pub(in crate::cli) id: Option<SubmissionId>,
    /// How long it may wait for its decision, such as `30s`.
    #[arg(long, value_name = "DURATION")]
    pub(in crate::cli) deadline: Option<Millis>,
    /// Do everything but publish.
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// Let the submission stay when this command is interrupted.
    #[arg(long)]
    pub(in crate::cli) detach: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PublishArguments {
    /// A submission in JSON; `-` for standard input.
    #[arg(long, value_name = "FILE", group = "form")]
    pub(in crate::cli) from_json: Option<PathBuf>,
    /// A unified or git diff; `-` for standard input.
    #[arg(long, value_name = "FILE", group = "form")]
    pub(in crate::cli) patch: Option<PathBuf>,
    /// Make the tree equal to a directory.
    #[arg(long, value_name = "DIR", group = "form")]
    pub(in crate::cli) from_dir: Option<PathBuf>,
    /// Set the content of PATH to that of FILE (`-`: standard input). Repeatable.
    #[arg(long, value_name = "PATH=FILE", conflicts_with = "form")]
    pub(in crate::cli) put: Vec<PathPair>,
    /// Remove PATH (a directory with a `/` at the end). Repeatable.
    #[arg(long, value_name = "PATH", conflicts_with = "form")]
    pub(in crate::cli) delete: Vec<String>,
    /// Give OLD the path NEW (directories with a `/` at the end). Repeatable.
    #[arg(long = "move", value_name = "OLD=NEW", conflicts_with = "form")]
    pub(in crate::cli) moves: Vec<PathPair>,
    /// The revision the changes start from; whatever is ACTIVE without it.
    #[arg(long, value_name = "REV")]
    pub(in crate::cli) base: Option<String>,
    /// What to do when the base is no longer ACTIVE.
    #[arg(long, value_parser = parse::on_stale, value_name = "reject|rebase|merge")]
    pub(in crate::cli) on_stale: Option<OnStale>,
    #[command(flatten)]
    pub(in crate::cli) attribution: AttributionArguments,
    #[command(flatten)]
    pub(in crate::cli) carry_out: CarryOutArguments,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RollbackArguments {
    /// The revision whose content is published again.
    #[arg(value_name = "REV")]
    pub(in crate::cli) revision: String,
    #[command(flatten)]
    pub(in crate::cli) attribution: AttributionArguments,
    #[command(flatten)]
    pub(in crate::cli) carry_out: CarryOutArguments,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RevertArguments {
    /// The publication to take out: its number.
    #[arg(value_name = "SEQ")]
    pub(in crate::cli) seq: SeqArgument,
    #[command(flatten)]
    pub(in crate::cli) attribution: AttributionArguments,
    #[command(flatten)]
    pub(in crate::cli) carry_out: CarryOutArguments,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct UndoArguments {
    #[command(flatten)]
    pub(in crate::cli) attribution: AttributionArguments,
    #[command(flatten)]
    pub(in crate::cli) carry_out: CarryOutArguments,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CancelArguments {
    /// The submission.
    #[arg(value_name = "ID")]
    pub(in crate::cli) submission: SubmissionId,
}
