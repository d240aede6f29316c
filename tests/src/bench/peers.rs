//! What is measured against: git, a bare loop with the same syncs, bare messages over a socket, a bare
//! lock on a file, ostree and watchman.
//!
//! Owns: how each of them is run. Never: a comparison.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use camino::{Utf8Path, Utf8PathBuf};

use super::Measured;

/// Bytes that the loop appends: what a publication of five files writes to the log of the database.
const APPENDED: usize = 40_000;

/// Whether a program can be run here.
pub fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// Runs a program to its end and answers what it printed.
fn run(command: &mut Command) -> Measured<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?} ended with {}: {said}", output.status).into())
}

/// A git repository.
#[derive(Debug)]
pub struct Git {
    root: Utf8PathBuf,
}

impl Git {
    /// Makes the directory a repository in which everything is committed; `None` where there is no git.
    pub fn new(root: &Utf8Path) -> Measured<Option<Self>> {
        if !is_installed("git") {
            return Ok(None);
        }
        let git = Self {
            root: root.to_owned(),
        };
        git.run(&["init", "--quiet"])?;
        git.run(&["add", "--all"])?;
        git.commit()?;
        Ok(Some(git))
    }

    fn run(&self, arguments: &[&str]) -> Measured<String> {
        run(Command::new("git")
            .current_dir(&self.root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .args(["-c", "gc.auto=0", "-c", "user.name=b", "-c", "user.email=b"])
            .args(arguments))
    }

    fn commit(&self) -> Measured<()> {
        self.run(&["commit", "--quiet", "--message", "edit"])
            .map(drop)
    }

    /// The name of what is committed.
    pub fn head(&self) -> Measured<String> {
        self.run(&["rev-parse", "HEAD"])
    }

    /// `git worktree add` of a commit.
    pub fn worktree(&self, place: &Utf8Path, commit: &str) -> Measured<()> {
        let arguments = ["worktree", "add", "--quiet", "--detach"];
        self.run(&[arguments.as_slice(), &[place.as_str(), commit]].concat())
            .map(drop)
    }

    /// Writes files into the tree: not part of what is timed.
    pub fn edit(&self, edits: &[(String, String)]) -> Measured<()> {
        for (path, content) in edits {
            fs::write(self.root.join(path), content)?;
        }
        Ok(())
    }

    /// `git add` of the paths and `git commit`.
    pub fn publish(&self, edits: &[(String, String)]) -> Measured<()> {
        let mut arguments = vec!["add", "--"];
        arguments.extend(edits.iter().map(|(path, _)| path.as_str()));
        self.run(&arguments)?;
        self.commit()
    }
}

/// The least that a durable publication writes and syncs.
#[derive(Debug)]
pub struct Floor {
    directory: Utf8PathBuf,
    log: File,
    bytes: Vec<u8>,
}

impl Floor {
    /// In a directory of its own.
    pub fn new(directory: &Utf8Path) -> Measured<Self> {
        fs::create_dir_all(directory)?;
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(directory.join("log"))?;
        Ok(Self {
            directory: directory.to_owned(),
            log,
            bytes: vec![0x5a; APPENDED],
        })
    }

    /// One round: append and fdatasync, a new pointer synced, renamed, its directory synced.
    pub fn publish(&mut self) -> Measured<()> {
        self.log.write_all(&self.bytes)?;
        self.log.sync_data()?;
        let (next, active) = (self.directory.join("next"), self.directory.join("ACTIVE"));
        let mut file = File::create(&next)?;
        file.write_all(&self.bytes[..200])?;
        file.sync_all()?;
        fs::rename(&next, &active)?;
        File::open(&self.directory)?.sync_all()?;
        Ok(())
    }
}

/// Somebody at the other end of a socket who answers every message with one of a given length.
#[derive(Debug)]
pub struct PingPong {
    stream: UnixStream,
    question: Vec<u8>,
    answer: Vec<u8>,
    other: Option<JoinHandle<()>>,
}

impl PingPong {
    /// With messages of these lengths.
    pub fn new(question: usize, answer: usize) -> Measured<Self> {
        let (stream, mut other) = UnixStream::pair()?;
        let echo = move || {
            let (mut asked, said) = (vec![0; question], vec![0x5a; answer]);
            while other.read_exact(&mut asked).is_ok() && other.write_all(&said).is_ok() {}
        };
        Ok(Self {
            stream,
            question: vec![0x5a; question],
            answer: vec![0; answer],
            other: Some(std::thread::spawn(echo)),
        })
    }

    /// One message there and one back.
    pub fn round(&mut self) -> Measured<()> {
        self.stream.write_all(&self.question)?;
        Ok(self.stream.read_exact(&mut self.answer)?)
    }
}

impl Drop for PingPong {
    fn drop(&mut self) {
        drop(self.stream.shutdown(std::net::Shutdown::Both));
        if let Some(other) = self.other.take() {
            drop(other.join());
        }
    }
}

/// The least that a lease from disk does: read ACTIVE, share-lock LEASE, look whether it is still there.
pub fn bare_lease(state: &Utf8Path) -> Measured<File> {
    let active: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(state.join("ACTIVE"))?)?;
    let revision = active["revision"].as_str().ok_or("ACTIVE names nothing")?;
    let path = state.join("generations").join(revision).join("LEASE");
    let lease = File::open(&path)?;
    lease.lock_shared()?;
    let is_there = std::os::unix::fs::MetadataExt::ino(&lease.metadata()?)
        == std::os::unix::fs::MetadataExt::ino(&fs::metadata(&path)?);
    if is_there {
        Ok(lease)
    } else {
        Err("LEASE was replaced".into())
    }
}

/// An ostree repository with a directory beside it.
#[derive(Debug)]
pub struct Ostree {
    repository: Utf8PathBuf,
    root: Utf8PathBuf,
}

impl Ostree {
    /// A repository in which the directory is committed; `None` where there is no ostree.
    pub fn new(repository: &Utf8Path, root: &Utf8Path) -> Measured<Option<Self>> {
        if !is_installed("ostree") {
            return Ok(None);
        }
        let ostree = Self {
            repository: repository.to_owned(),
            root: root.to_owned(),
        };
        ostree.run(&["init", "--mode=bare-user"])?;
        ostree.publish()?;
        Ok(Some(ostree))
    }

    fn run(&self, arguments: &[&str]) -> Measured<String> {
        run(Command::new("ostree")
            .arg(format!("--repo={}", self.repository))
            .args(arguments))
    }

    /// `ostree commit` of the directory.
    pub fn publish(&self) -> Measured<()> {
        let tree = format!("--tree=dir={}", self.root);
        self.run(&["commit", "--branch=bench", "--subject=edit", &tree])
            .map(drop)
    }
}

/// A watchman of our own that watches a directory.
#[derive(Debug)]
pub struct Watchman {
    place: Utf8PathBuf,
    root: Utf8PathBuf,
}

impl Watchman {
    /// Starts one; `None` where there is none.
    pub fn new(place: &Utf8Path, root: &Utf8Path) -> Measured<Option<Self>> {
        if !is_installed("watchman") {
            return Ok(None);
        }
        fs::create_dir_all(place)?;
        let watchman = Self {
            place: place.to_owned(),
            root: root.to_owned(),
        };
        watchman.run(&["watch", root.as_str()])?;
        Ok(Some(watchman))
    }

    fn run(&self, arguments: &[&str]) -> Measured<String> {
        run(Command::new("watchman")
            .arg(format!("--sockname={}", self.place.join("sock")))
            .arg(format!("--statefile={}", self.place.join("state")))
            .arg(format!("--logfile={}", self.place.join("log")))
            .arg(format!("--pidfile={}", self.place.join("pid")))
            .args(arguments))
    }

    /// The clock of now.
    pub fn clock(&self) -> Measured<String> {
        let answer = self.run(&["clock", self.root.as_str()])?;
        let answer: serde_json::Value = serde_json::from_str(&answer)?;
        Ok(answer["clock"].as_str().ok_or("no clock")?.to_owned())
    }

    /// How many files changed since then.
    pub fn since(&self, clock: &str) -> Measured<usize> {
        let answer = self.run(&["since", self.root.as_str(), clock, "**/*.rs"])?;
        let answer: serde_json::Value = serde_json::from_str(&answer)?;
        Ok(answer["files"].as_array().map_or(0, Vec::len))
    }
}

impl Drop for Watchman {
    fn drop(&mut self) {
        drop(self.run(&["shutdown-server"]));
    }
}
