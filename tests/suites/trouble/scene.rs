//! A workspace with something on every kind of page, and what its readers say of it.
//!
//! Owns: the script that makes it, the questions, and the comparison of their answers with those that were
//! given before the damage. An answer is right when it is the same, or a refusal with a code that says
//! what is wrong.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_daemon::reader::Offline;
use semaprax_protocol::request::{
    Content, Diff, Journal, List, Log, Request, Resolve, Response, Show, StatusParams,
};
use semaprax_protocol::{Code, Refusal};
use semaprax_tests::fixture::Fixture;
use semaprax_tests::sim::Chance;

/// Files of the state directory that a daemon is not needed for.
pub const DATABASE: &str = "store.db";
pub const LOG: &str = "store.db-wal";
pub const LOG_INDEX: &str = "store.db-shm";

/// A damaged workspace may answer with these, and with what it answered before.
const NAMED: [Code; 4] = [
    Code::WorkspaceDamaged,
    Code::StoreVersion,
    Code::Io,
    Code::NotAWorkspace,
];

/// Bytes that do not get smaller.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    Chance::new(seed).bytes(bytes)
}

/// A workspace closed in good order: no log beside the database.
pub fn made() -> Fixture {
    let mut fixture = Fixture::new();
    for number in 0..260 {
        let path = format!("d{}/e{}/f{number}", number % 7, number % 3);
        fixture.write(&path, &format!("file {number}\n"));
    }
    for (name, bytes) in [("large", 200_000), ("other", 150_000), ("row", 50_000)] {
        std::fs::write(fixture.root.join(name), noise(bytes as u64, bytes)).unwrap();
    }
    for number in 0..6 {
        let name = format!("row{number}");
        std::fs::write(fixture.root.join(name), noise(number, 20_000)).unwrap();
    }
    std::os::unix::fs::symlink("large", fixture.root.join("link")).unwrap();
    fixture.config.retention.content_publications = 3;
    fixture.config.retention.content_age = std::time::Duration::ZERO;
    fixture.init().unwrap();
    let long = "x".repeat(4_000);
    for number in 0..6 {
        let said = fixture.run(&format!(
            "publish message={long}{number}\n  delete row{number}\n  put d1/new{number} {number}\n  put d1/e0/f7 seven{number}"
        ));
        assert!(said.starts_with("published"), "{said}");
    }
    fixture.run("lease kept @6 ttl=100000\npin @6\ngc age=0 keep=1\nidle");
    fixture.run("publish\n  put d0/e0/f0 zero\n  put last word\nidle");
    fixture.close();
    assert!(!fixture.state(LOG).exists());
    fixture
}

/// A smaller one, for many cases: three publications, a large file, a lease and a pin.
pub fn small() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.write("small", "small\n");
    fixture.write("d/b", "two\n");
    std::fs::write(fixture.root.join("large"), noise(1, 100_000)).unwrap();
    std::fs::write(fixture.root.join("row"), noise(2, 20_000)).unwrap();
    std::os::unix::fs::symlink("large", fixture.root.join("link")).unwrap();
    fixture.init().unwrap();
    fixture.run("publish\n  put d/b three\n  delete row\nlease kept @2 ttl=100000\npin @1");
    fixture.run("publish\n  put d/c four\nidle");
    fixture.close();
    fixture
}

/// What is asked of it.
pub fn questions() -> Vec<(String, Request)> {
    let mut list: Vec<(String, Request)> = Vec::new();
    let mut ask = |name: &str, request| list.push((name.to_owned(), request));
    ask(
        "status",
        Request::Status(StatusParams {
            drift: false,
            limits: false,
        }),
    );
    let log = |path: Option<&str>| {
        Request::Log(Log {
            limit: None,
            before: None,
            path: path.map(str::to_owned),
            author: None,
        })
    };
    ask("log", log(None));
    ask("log of a path", log(Some("d1/e0/f7")));
    ask(
        "journal",
        Request::Journal(Journal {
            since: 0,
            limit: None,
            wait_ms: None,
        }),
    );
    for seq in [1, 3, 6, 8] {
        let revision = format!("@{seq}");
        ask(
            &format!("resolve {revision}"),
            Request::Resolve(Resolve {
                revision: revision.clone(),
            }),
        );
        ask(
            &format!("show {revision}"),
            Request::Show(Show {
                revision: revision.clone(),
            }),
        );
        ask(
            &format!("ls {revision}"),
            Request::List(List {
                revision: Some(revision.clone()),
                prefix: None,
                after: None,
                limit: None,
            }),
        );
        ask(
            &format!("diff {revision} @"),
            Request::Diff(Diff {
                from: revision.clone(),
                to: None,
            }),
        );
    }
    for path in ["d1/e0/f7", "large", "row", "link", "row5", "d/b", "small"] {
        for revision in ["@1", "@2", "@6", "@"] {
            ask(
                &format!("cat {revision}:{path}"),
                Request::Content(Content {
                    revision: Some(revision.to_owned()),
                    path: path.to_owned(),
                    offset: 0,
                    length: None,
                }),
            );
        }
    }
    list
}

/// The answers, by the name of the question.
pub type Answers = BTreeMap<String, Result<String, Code>>;

fn told(outcome: Result<Response, Refusal>) -> Result<String, Code> {
    outcome
        .map(|mut response| {
            if let Response::Status(status) = &mut response {
                // How many trees are on disk is no matter of what was published.
                status.generations.materialized = 0;
            }
            match response {
                Response::Journal(page) => format!("{:?}", page.entries),
                response => format!("{response:?}"),
            }
        })
        .map_err(|refusal| refusal.code())
}

/// What a reader without a daemon says.
pub fn from_disk(fixture: &Fixture) -> Answers {
    let opened = Offline::open(&fixture.test.world, &fixture.root);
    answers(|request| match &opened {
        Ok(offline) => offline.answer(request),
        Err(refusal) => Err(refusal.clone()),
    })
}

/// What a daemon says. It must be open.
pub fn from_daemon(fixture: &Fixture) -> Answers {
    let workspace = fixture.workspace();
    answers(|request| workspace.answer(request))
}

fn answers(mut ask: impl FnMut(&Request) -> Result<Response, Refusal>) -> Answers {
    questions()
        .into_iter()
        .map(|(name, request)| (name, told(ask(&request))))
        .collect()
}

/// What is wrong with the answers after damage, if anything; and how many were refused.
pub fn compare(before: &Answers, after: &Answers) -> Result<usize, String> {
    let mut refused = 0;
    for (name, right) in before {
        match (right, &after[name]) {
            (right, found) if right == found => {}
            // It grows, also by what a repair tells of itself.
            (Ok(right), Ok(found))
                if name == "journal" && found.starts_with(right.trim_end_matches(']')) => {}
            (_, Err(code)) if NAMED.contains(code) => refused += 1,
            (right, found) => {
                let shown = |answer: &Result<String, Code>| {
                    let text = format!("{answer:?}");
                    text.chars().take(1500).collect::<String>()
                };
                return Err(format!(
                    "{name}:\n  before {}\n  after  {}",
                    shown(right),
                    shown(found)
                ));
            }
        }
    }
    Ok(refused)
}

/// A copy of some files, to put them back.
#[derive(Debug)]
pub struct Kept {
    files: Vec<(Utf8PathBuf, Option<Vec<u8>>)>,
}

impl Kept {
    /// Takes the files as they are now.
    pub fn of(places: impl IntoIterator<Item = Utf8PathBuf>) -> Self {
        let files = places.into_iter().map(|place| {
            let content = std::fs::read(&place).ok();
            (place, content)
        });
        Self {
            files: files.collect(),
        }
    }

    /// The database with its log and index.
    pub fn database(fixture: &Fixture) -> Self {
        Self::of([DATABASE, LOG, LOG_INDEX].map(|name| fixture.state(name)))
    }

    /// Puts them back.
    pub fn restore(&self) {
        for (place, content) in &self.files {
            match content {
                Some(content) => write_over(place, content),
                None => drop(std::fs::remove_file(place)),
            }
        }
    }
}

/// Writes a file whatever its mode, which it keeps.
pub fn write_over(place: &Utf8Path, content: &[u8]) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(place)
        .ok()
        .map(|found| found.permissions());
    if mode.is_some() {
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    std::fs::write(place, content).unwrap();
    if let Some(mode) = mode {
        std::fs::set_permissions(place, mode).unwrap();
    }
}
