//! What a publication is measured against: git in the same tree, and a bare loop with the same syncs.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

use super::Measured;

/// Bytes that the loop appends: what a publication of five files writes to the log of the database.
const APPENDED: usize = 40_000;

/// A git repository.
#[derive(Debug)]
pub struct Git {
    root: Utf8PathBuf,
}

impl Git {
    /// Makes the directory a repository in which everything is committed; `None` where there is no git.
    pub fn new(root: &Utf8Path) -> Measured<Option<Self>> {
        if Command::new("git").arg("--version").output().is_err() {
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

    fn run(&self, arguments: &[&str]) -> Measured<()> {
        let status = Command::new("git")
            .current_dir(&self.root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .args(["-c", "gc.auto=0", "-c", "user.name=b", "-c", "user.email=b"])
            .args(arguments)
            .stdout(Stdio::null())
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("git {arguments:?} ended with {status}").into())
        }
    }

    fn commit(&self) -> Measured<()> {
        self.run(&["commit", "--quiet", "--message", "edit"])
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
