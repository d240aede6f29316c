//! A workspace in a temporary directory, and scenarios in a small text form.
//!
//! Owns: `Fixture` (one workspace, opened in this process), its commands, and `check(script, expect)`:
//! the script is run and each command gives a line, which must be those of `expect`.
//!
//! ```text
//! file a one\n            a file to import; also `exec PATH TEXT`, `link PATH TARGET`; the first
//!                         other line runs `init`
//! publish base=@1 merge   a submission, with `key=value` words and flags; its changes follow it:
//!   put a two\n           put, putx (executable), putf (file), edit OLD => NEW, delete,
//!   read b one            delete!, move, move!, link, chmod, read PATH TEXT (or `-`: absent); `expect
//!                         TEXT` (or `-`) is about the change before it
//! rollback @1             revert 2, undo, cat [REV:]PATH, tree [REV], show REV, log, diff A B, blame
//!                         PATH, lease NAME [REV] [ttl=S], release NAME, gc [age=S] [keep=N], why REV,
//!                         pin REV, unpin REV, verify, repair, clock S, idle, reopen, events, stamps
//! ```
//!
//! In a text, `\n`, `\0`, `\t`, `\r`, `\s` (space) and `\\` stand for themselves. Each command is a
//! second later than the one before.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use camino::{Utf8Path, Utf8PathBuf};
use semaprax_daemon::config::Config;
use semaprax_daemon::workspace::{
    Acquired, Holder, Job, Uploads, Workspace, Writer, initialize, open,
};
use semaprax_protocol::documents::{
    Initialized, LeaseGrant, PathChange, Receipt, Verification, WorkspaceStatus,
};
use semaprax_protocol::request::{
    Attribution, BlameParams, Collect, Content as ContentParams, Diff, Export, Init, Journal,
    LeaseAcquire, LeaseRelease, List, Log, Method, Pin, Publish, PublishDirectory, PublishOptions,
    Response, Revert, Rollback, Show, StatusParams, Undo, Unpin, Verify, WhyParams,
};
use semaprax_protocol::submission::{
    Change, Edit, EntryKind, Expect, FileMode, OnStale, Read, Submission,
};
use semaprax_protocol::{
    Diagnostic, LeaseId, NamePolicy, Refusal, Revision, SchemaTag, Seq, Sha256, Status,
    SubmissionId,
};
use sha2::Digest as _;

use crate::model::Content;
use crate::oracle;
use crate::world::TestWorld;

/// Runs `script` and compares what its commands say with `expect`, line by line. Afterwards the whole
/// workspace is compared with itself by the oracle.
#[track_caller]
pub fn check(script: &str, expect: &str) {
    let mut fixture = Fixture::new();
    check_on(&mut fixture, script, expect);
    oracle::check_whole(&mut fixture);
}

/// [`check`] on a fixture that is there, without the oracle.
#[track_caller]
pub fn check_on(fixture: &mut Fixture, script: &str, expect: &str) {
    let got = fixture.run(script);
    let expect: Vec<&str> = lines(expect).collect();
    let got: Vec<&str> = lines(&got).collect();
    assert_eq!(
        got,
        expect,
        "\nscript:\n{script}\ngot:\n{}\nexpected:\n{}\n",
        got.join("\n"),
        expect.join("\n")
    );
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// The same lines, each indented by `spaces`: to put a block into a script.
pub fn indented(block: &str, spaces: usize) -> String {
    lines(block).fold(String::new(), |mut text, line| {
        writeln!(text, "{:spaces$}{line}", "").unwrap();
        text
    })
}

/// A workspace under test.
pub struct Fixture {
    directory: tempfile::TempDir,
    /// The directory of the workspace.
    pub root: Utf8PathBuf,
    /// The world it lives in.
    pub test: TestWorld,
    /// Settings, for the next `open`.
    pub config: Config,
    /// The policy `init` asks for.
    pub names: Option<NamePolicy>,
    /// Leases by the names the script gives them.
    pub leases: BTreeMap<String, LeaseGrant>,
    opened: Option<(Arc<Workspace>, Writer)>,
}

impl Default for Fixture {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.opened = None;
        // Sealed directories cannot be emptied by a user who is not root.
        unseal(self.directory.path());
    }
}

fn unseal(directory: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    drop(std::fs::set_permissions(
        directory,
        std::fs::Permissions::from_mode(0o700),
    ));
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unseal(&entry.path());
        }
    }
}

/// The SHA-256 of `content`.
pub fn sha256(content: &[u8]) -> Sha256 {
    Sha256::from_bytes(sha2::Sha256::digest(content).into())
}

/// The submission id with this number.
pub fn id(number: u64) -> SubmissionId {
    SubmissionId::from_uuid(uuid::Uuid::from_u128(
        0x1000_8000_0000_0000_0000 << 48 | u128::from(number),
    ))
}

fn holder() -> Holder {
    Holder {
        socket: Utf8PathBuf::from("/nowhere/socket"),
        pid: 1,
    }
}

impl Fixture {
    /// An empty directory; no workspace yet.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = Utf8Path::from_path(directory.path()).unwrap();
        let root = base.canonicalize_utf8().unwrap().join("work");
        std::fs::create_dir(&root).unwrap();
        Self {
            directory,
            root,
            test: TestWorld::new(),
            config: Config::default(),
            names: None,
            leases: BTreeMap::new(),
            opened: None,
        }
    }

    /// A workspace with these files, opened.
    pub fn with_files(files: &[(&str, &str)]) -> Self {
        let mut fixture = Self::new();
        for (path, content) in files {
            fixture.write(path, content);
        }
        fixture.init().unwrap();
        fixture
    }

    /// A directory beside the workspace.
    pub fn beside(&self, name: &str) -> Utf8PathBuf {
        self.root.parent().unwrap().join(name)
    }

    /// Writes a file of the directory to import.
    pub fn write(&self, path: &str, content: &str) {
        let place = self.root.join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, content).unwrap();
    }

    /// Makes the workspace and opens it.
    pub fn init(&mut self) -> Result<Initialized, Refusal> {
        let params = Init {
            directory: self.root.clone(),
            names: self.names,
            force: false,
            shared: false,
            author: "importer".to_owned(),
            message: String::new(),
        };
        let made = initialize(&self.test.world, &params, &self.config, &mut |_, _| true)?;
        self.open()?;
        Ok(made)
    }

    /// Opens the workspace.
    pub fn open(&mut self) -> Result<(), Refusal> {
        self.opened = None;
        self.opened = Some(open(&self.test.world, &self.root, &holder(), &self.config)?);
        Ok(())
    }

    /// Lets go of everything, as a daemon that stops.
    pub fn close(&mut self) {
        if let Some((_, writer)) = self.opened.take() {
            writer.close();
        }
    }

    /// Lets go of everything without a word, as a daemon that is killed.
    pub fn kill(&mut self) {
        self.opened = None;
    }

    /// The writer.
    pub fn writer(&mut self) -> &mut Writer {
        &mut self.opened.as_mut().expect("the workspace is open").1
    }

    /// The shared handle.
    pub fn workspace(&self) -> Arc<Workspace> {
        Arc::clone(&self.opened.as_ref().expect("the workspace is open").0)
    }

    /// A path in the state directory.
    pub fn state(&self, name: &str) -> Utf8PathBuf {
        self.root.join(".semaprax-workspace").join(name)
    }

    /// Where the tree of a revision is.
    pub fn files_of(&self, revision: &Revision) -> Utf8PathBuf {
        self.state("generations")
            .join(revision.to_string())
            .join("files")
    }

    /// Asks the writer.
    pub fn perform<M: Method>(&mut self, params: M) -> Result<M::Reply, Refusal> {
        self.perform_as(params, None, Uploads::new())
    }

    /// Asks the writer under this id, with these uploads.
    pub fn perform_as<M: Method>(
        &mut self,
        params: M,
        submission: Option<SubmissionId>,
        uploads: Uploads,
    ) -> Result<M::Reply, Refusal> {
        let job = Job {
            request: params.request(),
            submission,
            uploads,
            pid: Some(7),
        };
        let response = self.writer().perform(&job)?;
        Ok(M::reply(response).expect("an answer of the same method"))
    }

    /// Asks the shared handle.
    pub fn ask<M: Method>(&self, params: M) -> Result<M::Reply, Refusal> {
        let response: Response = self.workspace().answer(&params.request())?;
        Ok(M::reply(response).expect("an answer of the same method"))
    }

    /// The state.
    pub fn status(&self) -> WorkspaceStatus {
        self.ask(StatusParams {
            drift: false,
            limits: true,
        })
        .unwrap()
    }

    /// The number and revision of what is ACTIVE.
    pub fn active(&self) -> (Seq, Revision) {
        let active = self.status().active;
        (active.seq, active.revision)
    }

    /// The revision of publication `seq`.
    pub fn revision(&self, seq: u64) -> Revision {
        let revision = format!("@{seq}");
        self.ask(Show { revision }).unwrap().revision
    }

    /// Publishes changes on no named base.
    pub fn publish(&mut self, changes: Vec<Change>) -> Result<Receipt, Refusal> {
        self.submit(submission(changes), false)
    }

    /// Publishes a submission.
    pub fn submit(&mut self, submission: Submission, dry_run: bool) -> Result<Receipt, Refusal> {
        let id = submission.id;
        let options = PublishOptions {
            dry_run,
            ..PublishOptions::default()
        };
        self.perform_as(
            Publish {
                submission,
                options,
            },
            id,
            Uploads::new(),
        )
    }

    /// Puts one file on no named base.
    pub fn put(&mut self, path: &str, content: &str) -> Receipt {
        self.tick();
        self.publish(vec![put(path, content)]).unwrap()
    }

    /// Makes the tree equal to `directory`.
    pub fn publish_directory(
        &mut self,
        directory: &Utf8Path,
        base: Option<&str>,
        on_stale: OnStale,
    ) -> Result<Receipt, Refusal> {
        self.tick();
        self.perform(PublishDirectory {
            directory: directory.to_owned(),
            base: base.map(str::to_owned),
            on_stale,
            attribution: Attribution::default(),
            options: PublishOptions::default(),
        })
    }

    /// Writes a copy of a revision beside the workspace.
    pub fn export(&mut self, revision: Option<&str>, name: &str) -> Utf8PathBuf {
        let directory = self.beside(name);
        self.perform(Export {
            revision: revision.map(str::to_owned),
            directory: directory.clone(),
        })
        .unwrap();
        directory
    }

    /// Verifies.
    pub fn verify(&mut self, deep: bool, repair: bool) -> Verification {
        self.perform(Verify {
            deep,
            repair,
            directory: None,
        })
        .unwrap()
    }

    /// A second goes by.
    pub fn tick(&self) {
        self.test.clock.advance(Duration::from_secs(1));
    }

    /// The bytes of a path, read from the store.
    pub fn content(&self, revision: Option<&str>, path: &str) -> Result<Vec<u8>, Refusal> {
        let mut bytes = Vec::new();
        loop {
            let chunk = self.ask(ContentParams {
                revision: revision.map(str::to_owned),
                path: path.to_owned(),
                offset: bytes.len() as u64,
                length: None,
            })?;
            bytes.extend(
                base64::engine::general_purpose::STANDARD
                    .decode(&chunk.data)
                    .unwrap(),
            );
            if bytes.len() as u64 == chunk.bytes {
                assert_eq!(chunk.sha256, sha256(&bytes));
                return Ok(bytes);
            }
        }
    }

    /// The whole content of a revision, read from the store.
    pub fn stored(&self, revision: &str) -> Result<Content, Refusal> {
        let listing = self.ask(List {
            revision: Some(revision.to_owned()),
            prefix: None,
            after: None,
            limit: None,
        })?;
        listing
            .entries
            .into_iter()
            .map(|entry| {
                let bytes = self.content(Some(revision), entry.path.as_str())?;
                Ok((entry.path.as_str().to_owned(), (entry.kind, bytes)))
            })
            .collect()
    }

    /// Takes a connection lease.
    pub fn acquire(&mut self, revision: Option<&str>) -> Result<LeaseGrant, Refusal> {
        let params = LeaseAcquire {
            revision: revision.map(str::to_owned),
            ttl_ms: None,
            owner: "reader".to_owned(),
        };
        let workspace = self.workspace();
        match workspace.acquire(&params, Some(9))? {
            Acquired::Ready(grant) => Ok(grant),
            Acquired::NeedsTree(lease, revision) => {
                self.writer().materialize(revision)?;
                workspace.grant(lease)
            }
        }
    }

    /// The journal's kinds, from entry `since` on.
    pub fn journal(&self, since: u64) -> Vec<semaprax_protocol::documents::JournalEntry> {
        let page = self.ask(Journal {
            since,
            limit: None,
            wait_ms: None,
        });
        page.unwrap().entries
    }

    /// Runs a script; what its commands say, a line each.
    pub fn run(&mut self, script: &str) -> String {
        let mut out = String::new();
        let mut rest = script.lines().peekable();
        while let Some(line) = rest.next() {
            if line.trim().is_empty() {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            if self.opened.is_none() && self.prepare(line.trim()) {
                continue;
            }
            self.tick();
            let mut block = Vec::new();
            while let Some(next) = rest.next_if(|next| words[0] == "publish" && is_change(next)) {
                block.push(next.trim_start());
            }
            let said = self
                .command(&words, &block)
                .unwrap_or_else(|refusal| refused(&refusal));
            writeln!(out, "{said}").unwrap();
        }
        out
    }

    /// A line of the content to import; anything else runs `init`.
    fn prepare(&mut self, line: &str) -> bool {
        let mut words = line.splitn(3, ' ');
        let (verb, path) = (words.next().unwrap(), words.next().unwrap_or_default());
        let text = unescape(words.next().unwrap_or_default());
        let place = self.root.join(path);
        match verb {
            "names" => {
                self.names = Some(match path {
                    "native" => NamePolicy::Native,
                    _ => NamePolicy::Portable,
                });
                return true;
            }
            "file" | "exec" => {
                self.write(path, &text);
                if verb == "exec" {
                    use std::os::unix::fs::PermissionsExt as _;
                    std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o755))
                        .unwrap();
                }
                return true;
            }
            "link" => {
                std::fs::create_dir_all(place.parent().unwrap()).unwrap();
                std::os::unix::fs::symlink(text, place).unwrap();
                return true;
            }
            _ => {}
        }
        self.init().unwrap();
        false
    }

    fn command(&mut self, words: &[&str], block: &[&str]) -> Result<String, Refusal> {
        let options = Options::of(&words[1..]);
        let argument = |index: usize| options.plain.get(index).copied();
        let revision = |index: usize| argument(index).map(str::to_owned);
        Ok(match words[0] {
            "publish" => self.run_publish(&options, block)?,
            "rollback" => {
                let request = Rollback {
                    revision: revision(0).unwrap(),
                    attribution: options.attribution(),
                    options: options.publish(),
                };
                receipt(&self.perform_as(request, options.id(), Uploads::new())?)
            }
            "revert" => {
                let request = Revert {
                    seq: argument(0).unwrap().parse().unwrap(),
                    attribution: options.attribution(),
                    options: options.publish(),
                };
                receipt(&self.perform_as(request, options.id(), Uploads::new())?)
            }
            "undo" => {
                let request = Undo {
                    attribution: options.attribution(),
                    options: options.publish(),
                };
                receipt(&self.perform_as(request, options.id(), Uploads::new())?)
            }
            "cat" => {
                let (revision, path) = match words[1].split_once(':') {
                    Some((revision, path)) => (Some(revision), path),
                    None => (None, words[1]),
                };
                escape(&self.content(revision, path)?)
            }
            "tree" => self.show_tree(argument(0).unwrap_or("@"))?,
            "stamps" => self.show_stamps(argument(0))?,
            "show" => {
                let shown = self.ask(Show {
                    revision: revision(0).unwrap(),
                })?;
                format!("@{} {}", shown.seq, changes(&shown.changes))
            }
            "diff" => {
                let request = Diff {
                    from: revision(0).unwrap(),
                    to: revision(1),
                };
                changes(&self.ask(request)?.changes)
            }
            "log" => self.show_log(&options)?,
            "blame" => {
                let request = BlameParams {
                    path: argument(0).unwrap().to_owned(),
                    revision: revision(1),
                };
                let lines = self.ask(request)?.lines;
                let owners: Vec<String> = lines.iter().map(|line| line.seq.to_string()).collect();
                owners.join(" ")
            }
            _ => return self.command_of_upkeep(words[0], &options),
        })
    }

    fn command_of_upkeep(&mut self, verb: &str, options: &Options<'_>) -> Result<String, Refusal> {
        let argument = |index: usize| options.plain.get(index).copied();
        let revision = |index: usize| argument(index).map(str::to_owned);
        Ok(match verb {
            "lease" => {
                let name = argument(0).unwrap().to_owned();
                let grant = match options.seconds("ttl") {
                    None => self.acquire(argument(1))?,
                    Some(ttl) => self.perform(LeaseAcquire {
                        revision: revision(1),
                        ttl_ms: Some(ttl * 1000),
                        owner: "script".to_owned(),
                    })?,
                };
                let seq = grant.seq;
                self.leases.insert(name, grant);
                format!("leased @{seq}")
            }
            "release" => {
                let lease = self.leases[argument(0).unwrap()].lease;
                self.release(lease)?;
                "released".to_owned()
            }
            "gc" => self.show_collection(options)?,
            "why" => {
                let why = self.ask(WhyParams {
                    revision: revision(0).unwrap(),
                })?;
                let reasons: Vec<&str> = why.reasons.iter().map(|reason| reason.word()).collect();
                let tree = if why.materialized { "tree" } else { "no-tree" };
                format!("{tree} {}", reasons.join(" "))
                    .trim_end()
                    .to_owned()
            }
            "pin" => {
                let request = Pin {
                    revision: revision(0).unwrap(),
                    reason: String::new(),
                };
                format!("pinned {}", self.perform(request)?.pinned)
            }
            "unpin" => {
                let request = Unpin {
                    revision: revision(0).unwrap(),
                };
                format!("pinned {}", self.perform(request)?.pinned)
            }
            "verify" | "repair" => verification(&self.verify(true, verb == "repair")),
            "clock" => {
                let seconds: i64 = argument(0).unwrap().parse().unwrap();
                match u64::try_from(seconds) {
                    Ok(seconds) => self.test.clock.advance(Duration::from_secs(seconds)),
                    Err(_) => self.test.clock.set_wall_by(seconds),
                }
                "-".to_owned()
            }
            "idle" => {
                self.writer().idle();
                "-".to_owned()
            }
            "reopen" => {
                self.close();
                self.open()?;
                "-".to_owned()
            }
            "events" => {
                let since: Seq = argument(0).unwrap().parse().unwrap();
                let events = self.workspace().events_after(since, 100)?;
                let shown: Vec<String> = events
                    .iter()
                    .map(|event| {
                        let changed = event.changes.as_deref().unwrap_or_default();
                        format!("@{} {}", event.seq, changes(changed))
                    })
                    .collect();
                shown.join("; ")
            }
            other => panic!("the script has no command `{other}`"),
        })
    }

    /// Ends a lease of either kind.
    pub fn release(&mut self, lease: LeaseId) -> Result<(), Refusal> {
        if self.workspace().release(lease).is_none() {
            self.perform(LeaseRelease { lease })?;
        }
        Ok(())
    }

    fn run_publish(&mut self, options: &Options<'_>, block: &[&str]) -> Result<String, Refusal> {
        let (changes, reads) = parse_changes(block);
        let on_stale = match options.plain.as_slice() {
            plain if plain.contains(&"merge") => OnStale::Merge,
            plain if plain.contains(&"rebase") => OnStale::Rebase,
            _ => OnStale::Reject,
        };
        let submission = Submission {
            schema: SchemaTag::new(),
            id: options.id(),
            base: options.value("base").map(str::to_owned),
            on_stale,
            author: options.value("by").unwrap_or_default().to_owned(),
            message: options.value("message").unwrap_or_default().to_owned(),
            reads,
            changes,
        };
        self.submit(submission, options.plain.contains(&"dry"))
            .map(|found| receipt(&found))
    }

    fn show_tree(&self, revision: &str) -> Result<String, Refusal> {
        let shown: Vec<String> = self
            .stored(revision)?
            .iter()
            .map(|(path, (kind, bytes))| match kind {
                EntryKind::File => format!("{path}={}", escape(bytes)),
                EntryKind::Executable => format!("{path}*={}", escape(bytes)),
                EntryKind::Symlink => format!("{path}->{}", escape(bytes)),
            })
            .collect();
        Ok(shown.join(" "))
    }

    /// Each path with the number of the publication that last changed it, by the store and by the
    /// time its file carries.
    fn show_stamps(&self, revision: Option<&str>) -> Result<String, Refusal> {
        let listing = self.ask(List {
            revision: revision.map(str::to_owned),
            prefix: None,
            after: None,
            limit: None,
        })?;
        let files = self.files_of(&listing.revision);
        let mut shown = Vec::new();
        for entry in listing.entries {
            let published = self.ask(Show {
                revision: format!("@{}", entry.seq),
            })?;
            let found = oracle::mtime(&files.join(entry.path.as_str()));
            assert_eq!(
                found,
                published.published_at.as_nanos(),
                "the time of `{}` is that of @{}",
                entry.path,
                entry.seq
            );
            shown.push(format!("{}@{}", entry.path, entry.seq));
        }
        Ok(shown.join(" "))
    }

    fn show_log(&self, options: &Options<'_>) -> Result<String, Refusal> {
        let page = self.ask(Log {
            limit: options.seconds("limit"),
            before: options.value("before").map(|text| text.parse().unwrap()),
            path: options.value("path").map(str::to_owned),
            author: options.value("by").map(str::to_owned),
        })?;
        let mut shown: Vec<String> = page
            .entries
            .iter()
            .map(|entry| format!("@{}({})", entry.seq, entry.changes))
            .collect();
        if page.truncated {
            shown.push("...".to_owned());
        }
        Ok(shown.join(" "))
    }

    fn show_collection(&mut self, options: &Options<'_>) -> Result<String, Refusal> {
        let collection = self.perform(Collect {
            dry_run: options.plain.contains(&"dry"),
            min_age_ms: options.seconds("age").map(|age| age * 1000),
            keep: options.seconds("keep"),
        })?;
        let seq_of = |fixture: &Self, revision: &Revision| {
            let revision = revision.to_string();
            fixture.ask(Show { revision }).map(|shown| shown.seq.get())
        };
        let mut removed = Vec::new();
        for revision in &collection.removed {
            removed.push(seq_of(self, revision).unwrap_or(0));
        }
        removed.sort_unstable();
        let removed: Vec<String> = removed.iter().map(|seq| format!("@{seq}")).collect();
        let mut shown = format!("removed {}", removed.join(" "))
            .trim_end()
            .to_owned();
        if collection.content_collected > 0 {
            write!(shown, " content {}", collection.content_collected).unwrap();
        }
        Ok(shown)
    }
}

/// Whether a line belongs to the submission above it.
fn is_change(line: &str) -> bool {
    let verbs = [
        "put", "putx", "putf", "edit", "delete", "delete!", "move", "move!", "link", "chmod",
        "read", "expect",
    ];
    line.split_whitespace()
        .next()
        .is_some_and(|word| verbs.contains(&word))
}

/// A submission of these changes, bound to nothing.
pub fn submission(changes: Vec<Change>) -> Submission {
    Submission {
        schema: SchemaTag::new(),
        id: None,
        base: None,
        on_stale: OnStale::Reject,
        author: String::new(),
        message: String::new(),
        reads: Vec::new(),
        changes,
    }
}

/// A put of text.
pub fn put(path: &str, content: &str) -> Change {
    Change::Put {
        path: path.to_owned(),
        content: Some(content.to_owned()),
        content_base64: None,
        content_blob: None,
        mode: None,
        expect: None,
        reason: None,
    }
}

struct Options<'words> {
    plain: Vec<&'words str>,
    pairs: BTreeMap<&'words str, &'words str>,
}

impl<'words> Options<'words> {
    fn of(words: &[&'words str]) -> Self {
        let mut options = Self {
            plain: Vec::new(),
            pairs: BTreeMap::new(),
        };
        for word in words {
            match word.split_once('=') {
                Some((key, value)) => drop(options.pairs.insert(key, value)),
                None => options.plain.push(word),
            }
        }
        options
    }

    fn value(&self, key: &str) -> Option<&'words str> {
        self.pairs.get(key).copied()
    }

    fn seconds(&self, key: &str) -> Option<u64> {
        self.value(key).map(|text| text.parse().unwrap())
    }

    fn id(&self) -> Option<SubmissionId> {
        self.seconds("id").map(id)
    }

    fn attribution(&self) -> Attribution {
        Attribution {
            id: self.id(),
            author: self.value("by").unwrap_or_default().to_owned(),
            message: self.value("message").unwrap_or_default().to_owned(),
        }
    }

    fn publish(&self) -> PublishOptions {
        PublishOptions {
            dry_run: self.plain.contains(&"dry"),
            ..PublishOptions::default()
        }
    }
}

/// `\n` and its kin become what they stand for.
pub fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        out.push(match characters.next() {
            Some('n') => '\n',
            Some('0') => '\0',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('s') => ' ',
            Some('\\') => '\\',
            other => panic!("`\\{other:?}` stands for nothing"),
        });
    }
    out
}

/// The other way round.
pub fn escape(bytes: &[u8]) -> String {
    let mut out = String::new();
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\0' => out.push_str("\\0"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            ' ' => out.push_str("\\s"),
            '\\' => out.push_str("\\\\"),
            other => out.push(other),
        }
    }
    out
}

fn expectation(text: &str) -> Expect {
    match text {
        "-" => Expect {
            sha256: None,
            absent: Some(true),
        },
        text => Expect {
            sha256: Some(sha256(unescape(text).as_bytes())),
            absent: None,
        },
    }
}

/// Reads the indented lines of a submission.
pub fn parse_changes(block: &[&str]) -> (Vec<Change>, Vec<Read>) {
    let (mut changes, mut reads): (Vec<Change>, Vec<Read>) = (Vec::new(), Vec::new());
    for line in block {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let path = unescape(path);
        match verb {
            "expect" => set_expect(changes.last_mut().unwrap(), expectation(rest)),
            "read" => {
                let Expect { sha256, absent } = expectation(text);
                reads.push(Read {
                    path,
                    sha256,
                    absent,
                });
            }
            // The same file as before, with one more replacement.
            "edit" => {
                let (old, new) = text.split_once(" => ").unwrap_or_else(|| {
                    (
                        text.strip_suffix(" =>").expect("`edit PATH OLD => NEW`"),
                        "",
                    )
                });
                let edit = Edit {
                    old: unescape(old),
                    new: unescape(new),
                };
                changes.push(Change::Edit {
                    path,
                    edits: vec![edit],
                    expect: None,
                    reason: None,
                });
            }
            _ => changes.push(parse_change(verb, path, text)),
        }
    }
    (changes, reads)
}

fn parse_change(verb: &str, path: String, text: &str) -> Change {
    match verb {
        "put" | "putx" | "putf" => Change::Put {
            path,
            content: Some(unescape(text)),
            content_base64: None,
            content_blob: None,
            mode: match verb {
                "putx" => Some(FileMode::Executable),
                "putf" => Some(FileMode::File),
                _ => None,
            },
            expect: None,
            reason: None,
        },
        "delete" | "delete!" => Change::Delete {
            path,
            recursive: verb.ends_with('!'),
            expect: None,
            reason: None,
        },
        "move" | "move!" => Change::Move {
            from: path,
            to: unescape(text),
            recursive: verb.ends_with('!'),
            expect: None,
            reason: None,
        },
        "link" => Change::Symlink {
            path,
            target: unescape(text),
            expect: None,
            reason: None,
        },
        "chmod" => Change::Chmod {
            path,
            mode: match text {
                "executable" => FileMode::Executable,
                _ => FileMode::File,
            },
            expect: None,
            reason: None,
        },
        other => panic!("a submission has no change `{other}`"),
    }
}

fn set_expect(change: &mut Change, new: Expect) {
    match change {
        Change::Put { expect, .. }
        | Change::Edit { expect, .. }
        | Change::Delete { expect, .. }
        | Change::Move { expect, .. }
        | Change::Symlink { expect, .. }
        | Change::Chmod { expect, .. } => *expect = Some(new),
    }
}

/// A receipt in a line.
pub fn receipt(receipt: &Receipt) -> String {
    let mut shown = match receipt.status {
        semaprax_protocol::documents::ReceiptStatus::Published => "published",
        semaprax_protocol::documents::ReceiptStatus::Unchanged => "unchanged",
        semaprax_protocol::documents::ReceiptStatus::Ready => "ready",
        semaprax_protocol::documents::ReceiptStatus::AwaitingApproval => "awaiting-approval",
    }
    .to_owned();
    if let Some(seq) = receipt.seq {
        write!(shown, " @{seq}").unwrap();
    }
    if receipt.replayed {
        shown.push_str(" replayed");
    }
    if receipt.rebased {
        shown.push_str(" rebased");
    }
    if !receipt.merged.is_empty() {
        let merged: Vec<&str> = receipt.merged.iter().map(|path| path.as_str()).collect();
        write!(shown, " merged={}", merged.join(",")).unwrap();
    }
    if !receipt.changes.is_empty() {
        write!(shown, ": {}", changes(&receipt.changes)).unwrap();
    }
    shown
}

/// Changes in a line.
pub fn changes(changes: &[PathChange]) -> String {
    let shown: Vec<String> = changes
        .iter()
        .map(|change| match &change.from {
            Some(from) => format!("{} {from} -> {}", change.kind.word(), change.path),
            None => format!("{} {}", change.kind.word(), change.path),
        })
        .collect();
    shown.join(", ")
}

/// A refusal in a line.
pub fn refused(refusal: &Refusal) -> String {
    let status = match refusal.status {
        Status::Rejected => "rejected",
        Status::Failed => "failed",
        Status::InDoubt => "in-doubt",
    };
    let shown: Vec<String> = refusal.diagnostics.iter().map(diagnostic).collect();
    format!("{status} {}", shown.join("; "))
}

fn diagnostic(diagnostic: &Diagnostic) -> String {
    let mut shown = diagnostic.code.word().to_owned();
    if let Some(change) = diagnostic.change {
        write!(shown, " #{change}").unwrap();
    }
    if let Some(path) = &diagnostic.path {
        write!(shown, " {}", path.escape_debug()).unwrap();
    }
    if let Some(active) = &diagnostic.active {
        write!(shown, " active=@{}", active.seq).unwrap();
    }
    if !diagnostic.paths.is_empty() {
        let paths: Vec<&str> = diagnostic.paths.iter().map(|path| path.as_str()).collect();
        write!(shown, " moved={}", paths.join(",")).unwrap();
    } else if let Some(count) = diagnostic.count {
        write!(shown, " count={count}").unwrap();
    }
    if !diagnostic.lines.is_empty() {
        let lines: Vec<String> = diagnostic.lines.iter().map(u64::to_string).collect();
        write!(shown, " lines={}", lines.join(",")).unwrap();
    }
    if let Some(conflict) = &diagnostic.conflict {
        let side = |side: &Option<Sha256>| if side.is_some() { "x" } else { "-" };
        write!(
            shown,
            " sides={}{}{}",
            side(&conflict.base),
            side(&conflict.ours),
            side(&conflict.theirs)
        )
        .unwrap();
        for range in &conflict.ranges {
            let text = |(first, last): (u64, u64)| format!("{first}-{last}");
            write!(
                shown,
                " lines={}|{}|{}",
                text(range.base),
                text(range.ours),
                text(range.theirs)
            )
            .unwrap();
        }
    } else if let Some(found) = &diagnostic.found {
        let found = if found.len() == 64 { "other" } else { found };
        write!(shown, " found={found}").unwrap();
    }
    shown
}

/// A verification in a line.
pub fn verification(found: &Verification) -> String {
    let status = match found.status {
        semaprax_protocol::documents::VerificationStatus::Ok => "ok",
        semaprax_protocol::documents::VerificationStatus::Damaged => "damaged",
        semaprax_protocol::documents::VerificationStatus::Repaired => "repaired",
    };
    let shown: Vec<String> = found
        .damage
        .iter()
        .map(|damage| match &damage.path {
            Some(path) if path.len() < 64 => format!("{} {path}", damage.kind),
            _ => damage.kind.clone(),
        })
        .collect();
    if shown.is_empty() {
        status.to_owned()
    } else {
        format!("{status}: {}", shown.join(", "))
    }
}
