//! In the place of `offline.rs` in a client built without the daemon: nothing is read from disk.
//!
//! Owns: the refusal that says so. Never: has a value: there is no `Disk`.

use camino::Utf8Path;
use semaprax_protocol::Refusal;
use semaprax_protocol::documents::WatchEvent;
use semaprax_protocol::request::{Request, Response};
use semaprax_protocol::{Revision, Seq};

use crate::error;

/// Why a workspace is read from disk.
#[derive(Debug)]
pub(crate) enum Why {
    /// No daemon answers, and none may be started.
    NoDaemon,
    /// Nobody can write to the workspace from here.
    ReadOnly,
    /// A daemon has no room to open it.
    Full(Refusal),
}

/// A workspace read from disk: not in this build.
#[derive(Debug)]
pub(crate) enum Disk {}

impl Disk {
    pub(crate) fn open(root: &Utf8Path, why: Why) -> Result<Self, Refusal> {
        let reason = match why {
            Why::NoDaemon => "no daemon answers",
            Why::ReadOnly => "no daemon can serve a read-only workspace",
            Why::Full(refusal) => return Err(refusal),
        };
        Err(error::unreachable(format!(
            "`{root}`: {reason}, and this client cannot read it from disk"
        )))
    }

    pub(crate) fn answer(&self, _: &Request) -> Result<Response, Refusal> {
        match *self {}
    }

    pub(crate) fn events_after(&self, _: Seq) -> Result<Vec<WatchEvent>, Refusal> {
        match *self {}
    }

    pub(crate) fn verify_tree(&self, _: Revision) -> Result<bool, Refusal> {
        match *self {}
    }

    pub(crate) fn root(&self) -> &Utf8Path {
        match *self {}
    }
}
