//! The command lines of `lease`.

use clap::{Args, Subcommand};
use semaprax_protocol::LeaseId;

use crate::cli::parse::Millis;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum LeaseCommand {
    /// Take a lease and print where the tree is.
    Acquire(LeaseAcquireArguments),
    /// Prolong a lease.
    Renew(LeaseRenewArguments),
    /// List the leases.
    List,
    /// End a lease.
    Release(LeaseReleaseArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LeaseAcquireArguments {
    /// The revision; `@` without it.
    #[arg(short, long, value_name = "REV")]
    pub(in crate::cli) revision: Option<String>,
    /// How long it lasts.
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    pub(in crate::cli) ttl: Millis,
    /// Who holds it, for people.
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) owner: Option<String>,
    /// Hold it until standard input closes, instead of for a time.
    #[arg(long, conflicts_with = "ttl")]
    pub(in crate::cli) hold: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LeaseRenewArguments {
    /// The lease.
    #[arg(value_name = "ID")]
    pub(in crate::cli) lease: LeaseId,
    /// How long it lasts from now; as long as first asked for without it.
    #[arg(long, value_name = "DURATION")]
    pub(in crate::cli) ttl: Option<Millis>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LeaseReleaseArguments {
    /// The lease.
    #[arg(value_name = "ID")]
    pub(in crate::cli) lease: LeaseId,
}
