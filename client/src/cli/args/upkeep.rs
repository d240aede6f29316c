//! The command lines of `pin`, `gc`, `verify`, `doctor`.

use clap::Args;

use crate::cli::parse::Millis;

#[derive(Debug, Args)]
pub(in crate::cli) struct PinArguments {
    /// The revision.
    #[arg(value_name = "REV")]
    pub(in crate::cli) revision: String,
    /// Why, for people.
    #[arg(long, default_value = "")]
    pub(in crate::cli) reason: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct GcArguments {
    /// Only tell what would be removed.
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// Keep trees younger than this.
    #[arg(long, value_name = "DURATION")]
    pub(in crate::cli) min_age: Option<Millis>,
    /// Keep this many of the newest trees.
    #[arg(long, value_name = "N")]
    pub(in crate::cli) keep: Option<u64>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct VerifyArguments {
    /// Read and digest every blob and every file.
    #[arg(long)]
    pub(in crate::cli) deep: bool,
    /// Put right what can be.
    #[arg(long)]
    pub(in crate::cli) repair: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct DoctorArguments {
    /// Put right what can be.
    #[arg(long)]
    pub(in crate::cli) repair: bool,
}
