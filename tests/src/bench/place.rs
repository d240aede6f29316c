//! A workspace to be measured: a generated tree, a daemon of its own, clients.
//!
//! Owns: making and removing it. Never: measures anything.

use std::fmt::Write as _;
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

use super::{Measured, Settings};
use crate::process::{is_alive, make_writable, pid_of, within};
use crate::torture::chance::Chance;

/// Bytes of a file.
pub const FILE_BYTES: usize = 4_000;
/// How long spare trees are waited for.
const PATIENCE: Duration = Duration::from_secs(15);
/// A daemon nobody needs any more leaves by itself.
const IDLE: &str = "300s";

/// The place.
#[derive(Debug)]
pub struct Place {
    directory: Utf8PathBuf,
    program: PathBuf,
    runtime: Runtime,
    files: u64,
    in_directory: u64,
    chance: Chance,
}

/// Text of words, so that it packs as source does.
pub fn text(chance: &mut Chance, bytes: usize) -> String {
    const WORDS: [&str; 16] = [
        "let", "value", "fn", "return", "match", "self", "state", "index", "(&mut", "=>",
        "{\n    ", "}\n", "store", "result", "error", "0x",
    ];
    let mut text = String::with_capacity(bytes + 24);
    while text.len() < bytes {
        text.push_str(chance.pick(&WORDS).copied().unwrap_or("end"));
        if chance.percent(30) {
            write!(text, "{:x}", chance.below(1 << 24)).expect("a text takes everything");
        }
        text.push(if chance.percent(12) { '\n' } else { ' ' });
    }
    text.truncate(bytes);
    text
}

impl Place {
    /// A directory with the files, and no workspace yet.
    pub fn new(settings: &Settings) -> Measured<Self> {
        let made = tempfile::Builder::new()
            .prefix("spx-bench-")
            .tempdir_in(&settings.directory)?;
        let directory = Utf8PathBuf::from_path_buf(made.keep())
            .map_err(|path| format!("{} is not UTF-8", path.display()))?
            .canonicalize_utf8()?;
        let runtime = Runtime::at(&directory.join("run"))?;
        let mut place = Self {
            directory,
            program: settings.program.clone(),
            runtime,
            files: settings.files,
            in_directory: settings.in_directory.max(1),
            chance: Chance::new(settings.seed),
        };
        for number in 0..place.files {
            let path = place.root().join(place.path(number));
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, text(&mut place.chance, FILE_BYTES))?;
        }
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

    /// The path of a file by its number.
    fn path(&self, number: u64) -> String {
        let directory = number / self.in_directory;
        format!(
            "part{}/mod{}/file{number}.rs",
            directory % 10,
            directory / 10
        )
    }

    /// So many files with new content.
    pub fn edits(&mut self, count: u64) -> Vec<(String, String)> {
        let first = self.chance.below(self.files);
        // In directories of their own.
        let step = self.files / count.max(1) + self.in_directory;
        (0..count)
            .map(|index| {
                let path = self.path((first + index * step) % self.files);
                (path, text(&mut self.chance, FILE_BYTES))
            })
            .collect()
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

    /// Waits until the daemon has its spare trees, where it keeps any.
    pub fn settle(&self) -> bool {
        let staging = self.root().join(".semaprax-workspace/staging");
        let sealed = |place: &Utf8Path| {
            fs::metadata(place.join("files")).is_ok_and(|found| found.permissions().readonly())
        };
        within(PATIENCE, || {
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
