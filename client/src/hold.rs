//! Holding a tree: a generation that stays, unchanged, for as long as it is held.
//!
//! Owns: the lease over the socket together with the share-lock on the LEASE file, the rule of file
//! leases for readers without a daemon, and the private copy where no trustworthy tree is on disk.
//! Never: writes into a state directory.
//!
//! The file rule: open LEASE, share-lock it (the collector holds it exclusively for a moment), then
//! compare the locked file with what the path names now. Another or no file there means that the
//! collector came first: start over. Descriptors of the lock may be handed on; the lock lasts until
//! the last one is closed.

use std::fs::File;

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::request::{LeaseAcquire, LeaseRelease, Resolve, Resolved};
use semaprax_protocol::{Code, Diagnostic, LeaseId, Refusal, Revision, Seq};

use crate::connect::Link;
use crate::private::PrivateDirectory;
use crate::{Client, error, files, layout};

/// How often a reader starts over before it takes a private copy.
const ATTEMPTS: usize = 50;
/// More than ACTIVE ever holds.
const SMALL_FILE_BYTES: u64 = 64 << 10;

/// A tree that stays while this lives (and while a process that inherited its lock lives).
#[derive(Debug)]
pub struct Held {
    /// The publication number.
    pub seq: Seq,
    /// The generation.
    pub revision: Revision,
    /// The directory to read from.
    pub tree: Utf8PathBuf,
    /// The lease of the connection, which [`Client::release`] ends before the connection does.
    granted: Option<LeaseId>,
    lease: Option<File>,
    copy: Option<PrivateDirectory>,
}

impl Held {
    /// Lets started commands inherit the lock, so that the tree outlives this process for them.
    pub fn hand_on(&self) -> Result<(), Refusal> {
        if let Some(copy) = &self.copy {
            copy.hand_on()?;
        }
        let Some(lease) = &self.lease else {
            return Ok(());
        };
        rustix::io::fcntl_setfd(lease, rustix::io::FdFlags::empty())
            .map_err(|reason| error::of_io("hand on the lease of", &self.tree, &reason.into()))
    }

    /// Whether this is a copy made for the purpose, because no tree on disk could be trusted.
    pub fn is_private_copy(&self) -> bool {
        self.copy.is_some()
    }
}

impl Client {
    /// Holds the tree of a revision (`@` without it) until the answer is dropped. With a daemon the
    /// lease also ends with this client's connection.
    pub fn hold(&mut self, revision: Option<&str>, owner: &str) -> Result<Held, Refusal> {
        if self.session().is_none() {
            return self.hold_from_disk(revision);
        }
        let grant = self.call(LeaseAcquire {
            revision: revision.map(str::to_owned),
            ttl_ms: None,
            owner: owner.to_owned(),
        })?;
        let lease = grant.path.parent().map(lock_lease).transpose()?.flatten();
        Ok(Held {
            seq: grant.seq,
            revision: grant.revision,
            tree: grant.path,
            granted: Some(grant.lease),
            lease,
            copy: None,
        })
    }

    /// Lets go of a tree. Without this a lease over the socket lasts as long as the connection, also
    /// after the answer of [`Client::hold`] was dropped.
    pub fn release(&mut self, held: Held) -> Result<(), Refusal> {
        let granted = held.granted;
        drop(held);
        let Some(lease) = granted else { return Ok(()) };
        match self.call(LeaseRelease { lease }) {
            // It went with the connection it was taken on.
            Err(gone) if gone.code() == Code::LeaseUnknown => Ok(()),
            other => other.map(drop),
        }
    }

    fn hold_from_disk(&mut self, revision: Option<&str>) -> Result<Held, Refusal> {
        for _ in 0..ATTEMPTS {
            let wanted = self.call(Resolve {
                revision: revision.unwrap_or("@").to_owned(),
            })?;
            let Link::Disk(disk) = self.link() else {
                return Err(error::internal("a daemon has come up meanwhile"));
            };
            let directory = layout::generation(disk.root(), wanted.revision);
            match lock_lease(&directory)? {
                Some(lease) => {
                    // After a power cut, what was never synced may be anything.
                    if disk.verify_tree(wanted.revision)? {
                        return Ok(Held {
                            seq: wanted.seq,
                            revision: wanted.revision,
                            tree: directory.join("files"),
                            granted: None,
                            lease: Some(lease),
                            copy: None,
                        });
                    }
                    return self.hold_a_copy(&wanted);
                }
                // ACTIVE has moved on meanwhile. Trees other than its own need not be on disk.
                None if revision.is_none() || is_active(disk.root(), wanted.revision) => {}
                None => return self.hold_a_copy(&wanted),
            }
        }
        let wanted = self.call(Resolve {
            revision: revision.unwrap_or("@").to_owned(),
        })?;
        self.hold_a_copy(&wanted)
    }

    fn hold_a_copy(&mut self, wanted: &Resolved) -> Result<Held, Refusal> {
        let copy = PrivateDirectory::new()?;
        let tree = copy.path().join("files");
        self.copy_to(&wanted.revision.to_string(), &tree)?;
        Ok(Held {
            seq: wanted.seq,
            revision: wanted.revision,
            tree,
            granted: None,
            lease: None,
            copy: Some(copy),
        })
    }
}

/// Share-locks the LEASE of a generation's directory. `None`: it is not there, or was replaced.
fn lock_lease(directory: &Utf8Path) -> Result<Option<File>, Refusal> {
    let path = directory.join("LEASE");
    let failed = |source: &std::io::Error| error::of_io("lock", &path, source);
    let link = rustix::io::Errno::LOOP.raw_os_error();
    let file = match files::open_plain(&path) {
        Ok(file) => file,
        Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        // Something else in its place is no lease.
        Err(other) if other.kind() == std::io::ErrorKind::InvalidInput => return Ok(None),
        Err(other) if other.raw_os_error() == Some(link) => return Ok(None),
        Err(source) => return Err(failed(&source)),
    };
    files::lock_shared(&file).map_err(|source| failed(&source))?;
    let is_there = files::is_still_at(&file, &path).map_err(|source| failed(&source))?;
    Ok(is_there.then_some(file))
}

fn is_active(root: &Utf8Path, revision: Revision) -> bool {
    read_active(root).is_ok_and(|active| active == revision)
}

/// The revision that ACTIVE names.
fn read_active(root: &Utf8Path) -> Result<Revision, Refusal> {
    let path = layout::active(root);
    let text = files::read_small(&path, SMALL_FILE_BYTES)
        .map_err(|source| error::of_io("read", &path, &source))?;
    let named = serde_json::from_str::<serde_json::Value>(&text)
        .ok()
        .and_then(|active| active.get("revision")?.as_str()?.parse().ok());
    named.ok_or_else(|| {
        let message = format!("`{path}` names no revision");
        Diagnostic::new(Code::WorkspaceDamaged, message).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation() -> (tempfile::TempDir, Utf8PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(directory.path().to_owned()).unwrap();
        (directory, path)
    }

    #[test]
    fn a_lease_is_shared_and_keeps_the_collector_out() {
        let (_keep, path) = generation();
        files::write(path.join("LEASE"), "");
        let first = lock_lease(&path).unwrap().unwrap();
        let second = lock_lease(&path).unwrap().unwrap();
        let collector = files::open(path.join("LEASE")).unwrap();
        assert!(collector.try_lock().is_err());
        drop((first, second));
        assert!(collector.try_lock().is_ok());
    }

    #[test]
    fn what_is_no_file_is_no_lease() {
        let (_keep, path) = generation();
        std::os::unix::fs::symlink("/dev/null", path.join("LEASE")).unwrap();
        assert!(lock_lease(&path).unwrap().is_none());
        files::remove_file(path.join("LEASE")).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        let place = path.join("LEASE");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, place.as_std_path(), fifo, mode, 0).unwrap();
        assert!(lock_lease(&path).unwrap().is_none());
    }

    #[test]
    fn a_lease_that_was_replaced_while_waiting_is_no_lease() {
        let (_keep, path) = generation();
        let lease = path.join("LEASE");
        assert!(lock_lease(&path).unwrap().is_none(), "there is none yet");
        files::write(&lease, "");
        let collector = files::open(&lease).unwrap();
        collector.lock().unwrap();
        let waiting = {
            let path = path.clone();
            std::thread::spawn(move || lock_lease(&path).unwrap().is_none())
        };
        files::remove_file(&lease).unwrap();
        files::write(&lease, "");
        drop(collector);
        // Whether the reader opened the old file or the new one, what it holds is what is there.
        let reader_lost = waiting.join().unwrap();
        let held = lock_lease(&path).unwrap();
        assert!(held.is_some() || reader_lost);
    }
}
