//! A workspace to be measured: a generated tree, a daemon of its own, clients.
//!
//! Owns: making and removing it. Never: measures anything.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::process::{Signal, kill_process};
use semaprax_client::{Client, Options, Runtime, Start, new_submission_id};
use semaprax_protocol::SchemaTag;
use semaprax_protocol::documents::Receipt;
use semaprax_protocol::request::{Init, PublishOptions};
use semaprax_protocol::submission::{Change, OnStale, Submission};

use super::tree::{Shape, Sizes};
use super::{Measured, Settings};
use crate::process::{is_alive, make_writable, pid_of, within};
use crate::torture::chance::Chance;

/// How long spare trees are waited for, and how much longer for each of so many files.
const PATIENCE: Duration = Duration::from_secs(15);
const FILES_A_SECOND: u64 = 10_000;
/// A daemon nobody needs any more leaves by itself.
const IDLE: &str = "300s";

/// The place.
#[derive(Debug)]
pub struct Place {
    directory: Utf8PathBuf,
    program: PathBuf,
    runtime: Runtime,
    shape: Shape,
    chance: Chance,
}

impl Place {
    /// A directory with the files of the settings, and no workspace yet.
    pub fn new(settings: &Settings) -> Measured<Self> {
        Self::shaped(
            settings,
            Shape {
                files: settings.files,
                in_directory: settings.in_directory.max(1),
                sizes: Sizes::Even,
            },
        )
    }

    /// A directory with files, and no workspace yet.
    pub fn shaped(settings: &Settings, shape: Shape) -> Measured<Self> {
        let made = tempfile::Builder::new()
            .prefix("spx-bench-")
            .tempdir_in(&settings.directory)?;
        let directory = Utf8PathBuf::from_path_buf(made.keep())
            .map_err(|path| format!("{} is not UTF-8", path.display()))?
            .canonicalize_utf8()?;
        let runtime = Runtime::at(&directory.join("run"))?;
        // From here on what was made is removed at the end.
        let place = Self {
            directory,
            program: settings.program.clone(),
            runtime,
            shape,
            chance: Chance::new(settings.seed),
        };
        shape.write(&place.root(), settings.seed)?;
        Ok(place)
    }

    /// The directory of the workspace.
    pub fn root(&self) -> Utf8PathBuf {
        self.directory.join("work")
    }

    /// A place beside it, on the same file system.
    pub fn beside(&self, name: &str) -> Utf8PathBuf {
        self.directory.join(name)
    }

    /// So many files with new content, each of them once.
    pub fn edits(&mut self, count: u64) -> Vec<(String, String)> {
        let files = self.shape.files;
        let first = self.chance.below(files);
        // As far apart as can be: in directories of their own where there are enough.
        let step = (files / count.max(1)).max(1);
        (0..count)
            .map(|index| {
                let path = self.shape.path((first + index * step) % files);
                (path, self.shape.content(&mut self.chance))
            })
            .collect()
    }

    /// The path of some file.
    pub fn some_path(&mut self) -> String {
        self.shape.path(self.chance.below(self.shape.files))
    }

    /// The program whose daemon is measured.
    pub fn program(&self) -> &std::path::Path {
        &self.program
    }

    /// Where the daemon listens.
    pub fn socket(&self) -> Utf8PathBuf {
        self.runtime.socket()
    }

    fn options(&self) -> Options {
        Options {
            workspace: Some(self.root()),
            start: Start::Program(self.program.clone()),
            runtime: self.runtime.clone(),
            follow_lock: false,
            idle_timeout: Some(IDLE.to_owned()),
        }
    }

    /// Makes the workspace.
    pub fn init(&self) -> Measured<()> {
        let options = Options {
            workspace: None,
            ..self.options()
        };
        Client::connect(options)?.call(Init {
            directory: self.root(),
            names: None,
            force: false,
            shared: false,
            author: "bench".to_owned(),
            message: String::new(),
        })?;
        Ok(())
    }

    /// A client, as every command has one.
    pub fn client(&self) -> Measured<Client> {
        Ok(Client::connect(self.options())?)
    }

    /// A client that never asks a daemon, though one runs.
    pub fn client_of_disk(&self) -> Measured<Client> {
        Ok(Client::connect(Options {
            start: Start::Never,
            runtime: Runtime::at(&self.beside("nobody"))?,
            ..self.options()
        })?)
    }

    /// Waits until the daemon has its spare trees, where it keeps any.
    pub fn settle(&self) -> bool {
        let staging = self.root().join(".semaprax-workspace/staging");
        let sealed = |place: &Utf8Path| {
            fs::metadata(place.join("files")).is_ok_and(|found| found.permissions().readonly())
        };
        let patience = PATIENCE + Duration::from_secs(self.shape.files / FILES_A_SECOND);
        within(patience, || {
            let spares = staging.read_dir_utf8().ok()?.flatten();
            (spares.filter(|spare| sealed(spare.path())).count() >= 2).then_some(())
        })
        .is_some()
    }
}

/// The submission of these files.
pub fn submission(edits: &[(String, String)]) -> Submission {
    let put = |(path, content): &(String, String)| Change::Put {
        path: path.clone(),
        content: Some(content.clone()),
        content_base64: None,
        content_blob: None,
        mode: None,
        expect: None,
        reason: None,
    };
    Submission {
        schema: SchemaTag::new(),
        id: Some(new_submission_id()),
        base: None,
        on_stale: OnStale::Reject,
        author: "bench".to_owned(),
        message: "edit".to_owned(),
        reads: Vec::new(),
        changes: edits.iter().map(put).collect(),
    }
}

/// Publishes.
pub fn publish(client: &mut Client, submission: Submission) -> Measured<Receipt> {
    Ok(client.publish(submission, PublishOptions::default(), &mut |_| {})?)
}

impl Drop for Place {
    fn drop(&mut self) {
        let options = Options {
            start: Start::Never,
            workspace: None,
            ..self.options()
        };
        if let Ok(Some(client)) = Client::find(options)
            && let Some(daemon) = client.daemon()
            && let Some(process) = pid_of(daemon.pid)
        {
            let _ = kill_process(process, Signal::KILL);
            within(PATIENCE, || (!is_alive(daemon.pid)).then_some(()));
        }
        make_writable(self.directory.as_std_path());
        drop(fs::remove_dir_all(&self.directory));
    }
}
