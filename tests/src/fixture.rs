//! A workspace in a temporary directory, opened in this process.
//!
//! Owns: `Fixture`, and every way of asking the writer and the shared handle. `fixture/script.rs` runs
//! scenarios in a small text form, `changes.rs` reads the submissions in them, `said.rs` puts answers in a
//! line.

mod changes;
mod said;
mod script;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use camino::{Utf8Path, Utf8PathBuf};
use semaprax_daemon::config::Config;
use semaprax_daemon::workspace::{
    Acquired, Holder, Job, Uploads, Workspace, Writer, initialize, open,
};
use semaprax_protocol::documents::{
    Initialized, JournalEntry, LeaseGrant, Receipt, Verification, WorkspaceStatus,
};
use semaprax_protocol::request::{
    Attribution, Content as ContentParams, Export, Init, Journal, LeaseAcquire, LeaseRelease, List,
    Method, Publish, PublishDirectory, PublishOptions, Request, Response, Show, StatusParams,
    Verify,
};
use semaprax_protocol::submission::{Change, OnStale, Submission};
use semaprax_protocol::{
    LeaseId, NamePolicy, Refusal, Revision, SchemaTag, Seq, Sha256, SubmissionId,
};
use sha2::Digest as _;

use crate::model::Content;
use crate::world::TestWorld;

pub use changes::{escape, parse_changes, unescape};
pub use said::{changes, receipt, refused, verification};
pub use script::{check, check_on, indented};

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
        Self::below(&std::env::temp_dir())
    }

    /// The same below this directory.
    pub fn below(place: &std::path::Path) -> Self {
        let directory = tempfile::tempdir_in(place).unwrap();
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

    /// The two halves of the open workspace, for threads of the caller.
    pub fn take(&mut self) -> (Arc<Workspace>, Writer) {
        self.opened.take().expect("the workspace is open")
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

    /// Asks the writer for all of these at once; an answer to each.
    pub fn perform_together(
        &mut self,
        requests: Vec<(Request, SubmissionId)>,
    ) -> Vec<Result<Response, Refusal>> {
        let jobs: Vec<Job> = requests
            .into_iter()
            .map(|(request, id)| Job {
                request,
                submission: Some(id),
                uploads: Uploads::new(),
                pid: Some(7),
            })
            .collect();
        let mut answers = Vec::new();
        self.writer().perform_all(&jobs, &mut |index, answer| {
            assert_eq!(index, answers.len(), "answers come in order");
            answers.push(answer);
        });
        answers
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
    pub fn journal(&self, since: u64) -> Vec<JournalEntry> {
        let page = self.ask(Journal {
            since,
            limit: None,
            wait_ms: None,
        });
        page.unwrap().entries
    }

    /// Ends a lease of either kind.
    pub fn release(&mut self, lease: LeaseId) -> Result<(), Refusal> {
        if self.workspace().release(lease).is_none() {
            self.perform(LeaseRelease { lease })?;
        }
        Ok(())
    }
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
