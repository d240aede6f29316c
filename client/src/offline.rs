//! Answers without a daemon, straight from the files of a workspace.
//!
//! Owns: which requests can be answered so. Never: writes to a workspace, or starts anything.
//!
//! The reading itself is `semaprax_daemon::reader`. A client built without the feature `daemon` has
//! `no_offline.rs` in this place.

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::documents::WatchEvent;
use semaprax_protocol::request::{Request, Response};
use semaprax_protocol::{Code, Diagnostic, Refusal, Revision, Seq};

use semaprax_daemon::{reader::Offline, world::World};

use crate::env;

/// How many events are read at once.
const EVENTS: usize = 256;

/// A workspace read from disk.
pub(crate) struct Disk {
    root: Utf8PathBuf,
    offline: Offline,
    why: Why,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Disk({})", self.root)
    }
}

/// What is answered without a daemon: nothing that writes, and nothing that only the running daemon
/// knows.
fn is_served(request: &Request) -> bool {
    matches!(
        request,
        Request::Status(_)
            | Request::Resolve(_)
            | Request::List(_)
            | Request::Content(_)
            | Request::Show(_)
            | Request::Diff(_)
            | Request::Log(_)
            | Request::Watch(_)
    )
}

/// Why a workspace is read from disk.
#[derive(Debug)]
pub(crate) enum Why {
    /// No daemon answers, and none may be started.
    NoDaemon,
    /// Nobody can write to the workspace from here, so no daemon could serve it.
    ReadOnly,
    /// A daemon has no room to open it; what it said.
    Full(Refusal),
}

fn needs_a_daemon(method: &str, why: &Why) -> Refusal {
    let of = |message| Diagnostic::new(Code::DaemonUnreachable, message);
    match why {
        Why::NoDaemon => of(format!(
            "`{method}` needs a daemon, and none answers or may be started"
        )),
        Why::ReadOnly => of(format!(
            "`{method}` needs a daemon, and the workspace is read-only from here"
        ))
        .hint("run it where the workspace can be written to, or work on an `export`"),
        Why::Full(refusal) => return refusal.clone(),
    }
    .into()
}

impl Disk {
    pub(crate) fn open(root: &Utf8Path, why: Why) -> Result<Self, Refusal> {
        let mut offline = Offline::open(&World::real(), root)?;
        offline.read_settings(env::config_home().as_deref());
        Ok(Self {
            why,
            root: root.to_owned(),
            offline,
        })
    }

    pub(crate) fn answer(&self, request: &Request) -> Result<Response, Refusal> {
        match request {
            Request::Watch(params) => self
                .offline
                .watch_start(params.since.as_deref())
                .map(Response::Watch),
            served if is_served(served) => self.offline.answer(served),
            other => Err(needs_a_daemon(other.method(), &self.why)),
        }
    }

    pub(crate) fn events_after(&self, seq: Seq) -> Result<Vec<WatchEvent>, Refusal> {
        self.offline.events_after(seq, EVENTS)
    }

    /// Whether the tree of a generation can be read as it is: made or verified since the machine
    /// started, or found right by reading every file now.
    pub(crate) fn verify_tree(&self, revision: Revision) -> Result<bool, Refusal> {
        self.offline.verify_tree(&revision)
    }
}

impl Disk {
    /// The directory of the workspace.
    pub(crate) fn root(&self) -> &Utf8Path {
        &self.root
    }
}
