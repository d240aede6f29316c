//! Readers that look for a mix.
//!
//! Owns: reading whole trees under a lease of a connection, and under the lock on LEASE without any daemon.
//! Never: takes a tree that went away after its lease for a mix.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use camino::Utf8PathBuf;
use semaprax_protocol::Revision;
use semaprax_protocol::request::{LeaseAcquire, LeaseRelease};
use serde_json::Value;

use super::account::Seen;
use super::chance::Chance;
use super::crew::Crew;
use super::lab::{Lab, read_tree};
use super::{locked, story};

/// Locks on LEASE that one reader holds at once, at most.
const GUARDS: usize = 3;

/// A tree that must stay while this lives, daemon or not.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(super) seen: Seen,
    pub(super) files: Utf8PathBuf,
    _lock: File,
}

/// Acquires, reads, releases.
pub(super) fn with_daemon(crew: &Crew<'_>) {
    let Some(mut client) = crew.client() else {
        return;
    };
    while !crew.is_over() {
        let grant = match client.call(LeaseAcquire {
            revision: None,
            ttl_ms: None,
            owner: "reader".to_owned(),
        }) {
            Ok(grant) => grant,
            Err(refusal) if crew.survives("a lease", &refusal) => continue,
            Err(_) => return,
        };
        let found = read_tree(&grant.path).map_err(|error| error.to_string());
        let found = found.and_then(|files| story::read(&files));
        // Only who can give the lease back has had it all the time.
        let released = client.call(LeaseRelease { lease: grant.lease });
        match (released, found) {
            (Ok(_), Ok(state)) => {
                let mut account = locked(crew.account);
                account.counts.trees_read += 1;
                account.seen.push(Seen {
                    seq: grant.seq.get(),
                    revision: grant.revision,
                    state: Some(state),
                });
            }
            (Ok(_), Err(mix)) => {
                let what = format!("under a lease of @{}: {mix}", grant.seq);
                locked(crew.account).violate(what);
            }
            (Err(_), _) if crew.restarts => {}
            (Err(_), _) => return,
        }
    }
}

/// Reads by the rule of LEASE; answers the locks it holds at the end.
pub(super) fn without_daemon(crew: &Crew<'_>, mut chance: Chance) -> Vec<Guard> {
    let mut guards = Vec::new();
    while !crew.is_over() {
        match take(crew.lab) {
            Ok(Some(guard)) => {
                let mut account = locked(crew.account);
                account.counts.trees_read += 1;
                account.seen.push(guard.seen.clone());
                drop(account);
                if guards.len() < GUARDS || chance.percent(50) {
                    guards.push(guard);
                }
                if guards.len() > GUARDS {
                    guards.remove(0);
                }
            }
            Ok(None) => {}
            Err(mix) => {
                locked(crew.account).violate(format!("without a daemon: {mix}"));
                return guards;
            }
        }
    }
    guards
}

/// Locks and reads what is ACTIVE; `None` to start over.
pub(super) fn take(lab: &Lab) -> Result<Option<Guard>, String> {
    let (seq, revision) = active(lab)?;
    let generation = lab.state().join("generations").join(revision.to_string());
    let lease = generation.join("LEASE");
    let Ok(lock) = File::open(&lease) else {
        return Ok(None);
    };
    lock.lock_shared()
        .map_err(|error| format!("LEASE cannot be locked: {error}"))?;
    let (Ok(held), Ok(there)) = (lock.metadata(), fs::symlink_metadata(&lease)) else {
        return Ok(None);
    };
    if (held.dev(), held.ino()) != (there.dev(), there.ino()) {
        return Ok(None);
    }
    let files = generation.join("files");
    let found = read_tree(&files).map_err(|error| format!("@{seq} cannot be read: {error}"))?;
    let state = story::read(&found).map_err(|mix| format!("@{seq}: {mix}"))?;
    Ok(Some(Guard {
        seen: Seen {
            seq,
            revision,
            state: Some(state),
        },
        files,
        _lock: lock,
    }))
}

/// What ACTIVE says: it is there and whole at every moment.
pub(crate) fn active(lab: &Lab) -> Result<(u64, Revision), String> {
    let path = lab.state().join("ACTIVE");
    let bytes = fs::read(&path).map_err(|error| format!("ACTIVE cannot be read: {error}"))?;
    let broken = || format!("ACTIVE holds {}", String::from_utf8_lossy(&bytes));
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| broken())?;
    let seq = value["seq"].as_u64().ok_or_else(broken)?;
    let revision = value["revision"]
        .as_str()
        .and_then(|text| text.parse().ok());
    Ok((seq, revision.ok_or_else(broken)?))
}
