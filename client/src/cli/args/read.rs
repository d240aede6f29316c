//! The command lines of what reads: `status`, `log`, `show`, `diff`, `ls`, `cat`, `blame`, `watch`,
//! `journal`, `export`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(in crate::cli) struct StatusArguments {
    /// Compare the directory with ACTIVE.
    #[arg(long)]
    pub(in crate::cli) drift: bool,
    /// Show the limits.
    #[arg(long)]
    pub(in crate::cli) limits: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LogArguments {
    /// At most this many.
    #[arg(short = 'n', long, value_name = "N")]
    pub(in crate::cli) limit: Option<u64>,
    /// Only those that changed PATH or something below it.
    #[arg(long)]
    pub(in crate::cli) path: Option<String>,
    /// Only those by this author.
    #[arg(long)]
    pub(in crate::cli) author: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RevisionArguments {
    /// Hexadecimal digits (6 or more), `@`, `@N` or `@-N`.
    #[arg(value_name = "REV", allow_hyphen_values = true)]
    pub(in crate::cli) revision: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct DiffArguments {
    /// The old side.
    #[arg(value_name = "A")]
    pub(in crate::cli) from: String,
    /// The new side; `@` without it.
    #[arg(value_name = "B")]
    pub(in crate::cli) to: Option<String>,
    /// Only count lines.
    #[arg(long, conflicts_with = "name_status")]
    pub(in crate::cli) stat: bool,
    /// Only name the paths, each with a letter.
    #[arg(long)]
    pub(in crate::cli) name_status: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LsArguments {
    /// `[REV] [PREFIX]`, `REV:PREFIX` or `:PREFIX`.
    #[arg(value_name = "REV|PREFIX")]
    pub(in crate::cli) first: Option<String>,
    /// Only this path, or what lies below it.
    #[arg(value_name = "PREFIX")]
    pub(in crate::cli) second: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CatArguments {
    /// `PATH`, `REV:PATH` or `:PATH`.
    #[arg(value_name = "[REV:]PATH")]
    pub(in crate::cli) target: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct BlameArguments {
    /// `PATH`, `REV:PATH` or `:PATH`.
    #[arg(value_name = "[REV:]PATH")]
    pub(in crate::cli) target: String,
}

#[derive(Debug, Args)]
#[command(override_usage = "semaprax export [OPTIONS] [REV] <DIR>")]
pub(in crate::cli) struct ExportArguments {
    /// `[REV] DIR`: DIR must not exist, or be empty.
    #[arg(value_names = ["REV", "DIR"], num_args = 1..=2, required = true)]
    pub(in crate::cli) arguments: Vec<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct WatchArguments {
    /// Go on from here: `SEQ` or `SEQ:RECORD`, as an earlier event told.
    #[arg(long, value_name = "TOKEN")]
    pub(in crate::cli) since: Option<String>,
    /// End after this many publications.
    #[arg(short = 'n', long, value_name = "N")]
    pub(in crate::cli) limit: Option<u64>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct JournalArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: Option<JournalCommand>,
    /// Only entries after this number.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(in crate::cli) since: u64,
    /// Go on with new entries as they come.
    #[arg(short, long)]
    pub(in crate::cli) follow: bool,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum JournalCommand {
    /// Print the newest entry.
    Head,
}
