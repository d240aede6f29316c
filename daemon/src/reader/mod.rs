//! Answers that need no writer: the same whether a daemon gives them or a client reads from disk.
//!
//! Owns: `View` (ACTIVE read first, then one snapshot of the database; nothing beyond ACTIVE's record
//! is shown) and `Offline`, the read-only access beside a writing daemon or on a read-only directory.
//! Never: the pipeline, or `files/`: `cat ls show diff log status` read the store.
//!
//! Keeps invariants 1 and 5 for readers.

mod blame;
mod content;
mod history;
mod offline;
mod status;
mod trees;
mod watch;

use semaprax_protocol::request::{Request, Resolved, Response};
use semaprax_protocol::{Code, Diagnostic, LogicalPath, Refusal};

pub use offline::Offline;
pub use status::StatusContext;

use crate::store::database::Database;
use crate::store::history::StoredRecord;
use crate::store::recover::tip_of;
use crate::store::tree::Tree;
use crate::store::{Layout, StoreError, StoreResult, active, revisions};
use crate::world::World;

/// What is ACTIVE and everything before it, at one moment.
pub struct View<'store> {
    world: &'store World,
    layout: &'store Layout,
    database: &'store Database,
    tip: StoredRecord,
}

impl std::fmt::Debug for View<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "View(@{})", self.tip.record.seq)
    }
}

/// Runs `work` on a view of the store as it is now.
pub fn with_view<T>(
    world: &World,
    layout: &Layout,
    database: &Database,
    work: impl FnOnce(&View<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    // ACTIVE first: its record was committed before it was named, so the snapshot has it.
    let active =
        active::read(world, layout)?.ok_or_else(|| StoreError::damaged("ACTIVE is missing"))?;
    database.snapshot(|database| {
        let tip = tip_of(database, &active)?;
        Ok(work(&View {
            world,
            layout,
            database,
            tip,
        }))
    })?
}

impl View<'_> {
    /// What is ACTIVE.
    pub fn tip(&self) -> &StoredRecord {
        &self.tip
    }

    /// The publication that a revision argument names; `@` without one.
    pub fn resolve(&self, revision: Option<&str>) -> StoreResult<StoredRecord> {
        match revision {
            None => Ok(self.tip.clone()),
            Some(text) => revisions::resolve(self.database, self.tip.record.seq, text),
        }
    }

    /// The publication that an argument names, and its tree.
    fn tree(&self, revision: Option<&str>) -> StoreResult<(StoredRecord, Tree)> {
        let stored = self.resolve(revision)?;
        let tree = stored.tree()?;
        Ok((stored, tree))
    }

    /// Answers a request that needs neither the writer nor the daemon's own state.
    pub fn answer(&self, request: &Request) -> Result<Response, Refusal> {
        Ok(match request {
            Request::Resolve(params) => {
                let stored = self.resolve(Some(&params.revision))?;
                let record = stored.record;
                Response::Resolve(Resolved {
                    seq: record.seq,
                    revision: record.revision,
                })
            }
            Request::Log(params) => Response::Log(self.log(params)?),
            Request::Show(params) => Response::Show(self.show(params)?),
            Request::Diff(params) => Response::Diff(self.diff(params)?),
            Request::List(params) => Response::List(self.list(params)?),
            Request::Content(params) => Response::Content(self.content(params)?),
            Request::Blame(params) => Response::Blame(self.blame(params)?),
            Request::Journal(params) => Response::Journal(self.journal(params)?),
            Request::JournalHead(_) => Response::JournalHead(self.journal_head()?),
            other => {
                let message = format!("`{}` needs a daemon", other.method());
                return Err(Diagnostic::new(Code::DaemonUnreachable, message).into());
            }
        })
    }
}

/// A path of a request, under the loosest policy: what the workspace holds was judged when it came.
fn path_of(text: &str) -> Result<LogicalPath, Refusal> {
    text.parse().map_err(|refusal| {
        let shown: String = text
            .chars()
            .take(200)
            .flat_map(char::escape_debug)
            .collect();
        Diagnostic::new(
            Code::PathRefused,
            format!("the path `{shown}` is refused: {refusal}"),
        )
        .at(text)
        .into()
    })
}

fn no_such_path(path: &str, stored: &StoredRecord) -> Refusal {
    let message = format!("there is no `{path}` in @{}", stored.record.seq);
    Diagnostic::new(Code::NotFound, message).at(path).into()
}
