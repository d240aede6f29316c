//! What happens on the stage: the demo from the first copied file to the last check.
//!
//! Owns: the order of the acts, and the threads. Never: judges.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use semaprax_protocol::documents::{Initialized, LogEntry, Verification};
use semaprax_protocol::request::{Init, Log, PublishOptions, Verify};
use semaprax_protocol::rpc::Notice;
use semaprax_protocol::submission::{Change, OnStale, Submission};
use semaprax_protocol::{Refusal, SchemaTag, Seq};

use super::collector;
use super::course::{Allowance, Course};
use super::group::Group;
use super::material::Material;
use super::place::Place;
use super::plan::Plan;
use super::reader::Reader;
use super::screen::Screen;
use super::watcher::{Told, Watcher};
use super::writer::Writer;
use crate::cli::render::bytes;
use crate::files::Stopwatch;
use crate::{Client, error, put};

/// Writers at once.
pub(super) const WRITERS: usize = 4;
/// Readers at once.
pub(super) const READERS: usize = 4;
/// How often the progress is shown.
const SHOW: Duration = Duration::from_millis(100);
/// The author of what the demo itself publishes.
const AUTHOR: &str = "demo";
/// The file of the last publication.
const LAST: &str = "semaprax-demo.txt";

/// What can be judged when all is over.
#[derive(Debug)]
pub(super) struct Performance {
    /// Whose files.
    pub(super) source: String,
    /// The first import.
    pub(super) initialized: Initialized,
    /// A file with a history worth looking at.
    pub(super) file: String,
    /// The log, newest first.
    pub(super) log: Vec<LogEntry>,
    /// What the watcher was told.
    pub(super) told: Vec<Told>,
    /// What `verify --deep` said.
    pub(super) verification: Verification,
    /// How long it all took.
    pub(super) taken: Duration,
}

/// What takes part.
struct Cast {
    groups: Arc<[Group]>,
    packages: Arc<[String]>,
}

/// The stage.
pub(super) struct Stage<'demo> {
    course: &'demo Arc<Course>,
    place: &'demo Place,
    screen: Screen,
    clock: Stopwatch,
}

impl<'demo> Stage<'demo> {
    pub(super) fn new(course: &'demo Arc<Course>, place: &'demo Place, screen: Screen) -> Self {
        Self {
            course,
            place,
            screen,
            clock: Stopwatch::start(),
        }
    }

    /// All of it.
    pub(super) fn perform(&mut self, material: &Material) -> Result<Performance, Refusal> {
        self.copy(material)?;
        let initialized = self.import()?;
        let mut client = self.place.client()?;
        let watcher = Watcher::start(self.place.client()?, self.course)?;
        let cast = self.lay_out(&mut client)?;
        self.play(&cast)?;
        let last = self.end(&mut client)?;
        let told = watcher.finish(last)?;
        let log = client.history(&Log {
            limit: None,
            before: None,
            path: None,
            author: None,
        })?;
        let verification = self.verify(&mut client)?;
        let member = cast.groups.iter().find_map(|group| group.members.first());
        Ok(Performance {
            source: material.source.clone(),
            initialized,
            file: member.map_or_else(|| LAST.to_owned(), |member| member.path.clone()),
            log: log.entries,
            told,
            verification,
            taken: self.clock.elapsed(),
        })
    }

    fn copy(&mut self, material: &Material) -> Result<(), Refusal> {
        let workspace = self.place.workspace();
        self.screen.say(&format!(
            "copying {}{}\n     to {workspace}",
            material.source,
            material.summary()
        ));
        let Self { course, screen, .. } = self;
        material.copy_to(&workspace, &mut |done| {
            screen.moving(|| format!("copied {done} files"));
            course.check()
        })
    }

    fn import(&mut self) -> Result<Initialized, Refusal> {
        let clock = Stopwatch::start();
        let mut client = self.place.start()?;
        let screen = &mut self.screen;
        let initialized = client.call_noticing(
            Init {
                directory: self.place.workspace(),
                names: None,
                force: false,
                shared: false,
                author: AUTHOR.to_owned(),
                message: "the files as they were copied".to_owned(),
            },
            &mut |notice| progress(screen, "imported", notice),
        )?;
        self.screen.say(&format!(
            "imported {} files, {}, as publication 1 in {} ms",
            initialized.files,
            bytes(initialized.bytes),
            clock.elapsed().as_millis()
        ));
        self.course.check()?;
        Ok(initialized)
    }

    /// Finds the groups and publishes their first number.
    fn lay_out(&mut self, client: &mut Client) -> Result<Cast, Refusal> {
        let held = client.hold(None, AUTHOR)?;
        let listing = client.listing(Some(held.revision.to_string()), None)?;
        let plan = Plan::find(&held.tree, &listing.entries)?;
        let base = held.revision.to_string();
        client.release(held)?;
        let changes = plan.first_changes();
        self.screen.say(&format!(
            "found {} identifiers to rename; {} files take part",
            plan.identifiers(),
            changes.len()
        ));
        self.publish(
            client,
            Some(base),
            "lay out the groups of the demo",
            changes,
        )?;
        self.course.check()?;
        Ok(Cast {
            groups: plan.groups.into(),
            packages: plan.packages.into(),
        })
    }

    /// Writers, readers and a collector, until it is enough.
    fn play(&mut self, cast: &Cast) -> Result<(), Refusal> {
        let Cast { groups, packages } = cast;
        self.screen.say(&format!(
            "{WRITERS} writers, {READERS} readers, a watcher and a collector are at work"
        ));
        let allowance = Allowance::start();
        let mut threads = Vec::new();
        for index in 0..WRITERS {
            let writer = Writer::new(index, self.place.client()?, self.course, groups);
            threads.push(self.spawn(move |_| writer.run(allowance)));
        }
        for index in 0..READERS {
            let reader = Reader::new(index, self.place.client()?, self.course, groups, packages);
            threads.push(self.spawn(move |_| reader.run(allowance)));
        }
        let client = self.place.client()?;
        // Nobody waits for its end: how long a file system takes to remove trees is not the matter.
        drop(self.spawn(move |course| collector::run(client, course, allowance)));
        while self.course.goes_on(allowance) {
            let tally = self.course.await_until(SHOW, |_| false);
            self.screen.counts(&tally);
        }
        for thread in threads {
            if thread.join().is_err() {
                self.course
                    .fail(error::internal("a thread of the demo panicked"));
            }
        }
        self.course.check()
    }

    fn spawn(
        &self,
        work: impl FnOnce(&Arc<Course>) -> Result<(), Refusal> + Send + 'static,
    ) -> JoinHandle<()> {
        let course = Arc::clone(self.course);
        std::thread::spawn(move || {
            if let Err(refusal) = work(&course) {
                course.fail(refusal);
            }
        })
    }

    /// The last publication: when the watcher was told of it, it was told of all.
    fn end(&mut self, client: &mut Client) -> Result<Seq, Refusal> {
        let text = "The demo ended here. `semaprax log` tells what went before.\n";
        let change = put(LAST, text.as_bytes().to_vec());
        self.publish(client, None, "the end of the demo", vec![change])
    }

    fn publish(
        &mut self,
        client: &mut Client,
        base: Option<String>,
        message: &str,
        changes: Vec<Change>,
    ) -> Result<Seq, Refusal> {
        let submission = Submission {
            schema: SchemaTag::new(),
            id: None,
            base,
            on_stale: OnStale::Reject,
            author: AUTHOR.to_owned(),
            message: message.to_owned(),
            reads: Vec::new(),
            changes,
        };
        let taken = Stopwatch::start();
        let receipt = client.publish(submission, PublishOptions::default(), &mut |_| {})?;
        self.course.note_receipt(&receipt, taken);
        let none = || error::internal("a publication was answered without its number");
        receipt.seq.ok_or_else(none)
    }

    fn verify(&mut self, client: &mut Client) -> Result<Verification, Refusal> {
        self.screen
            .say("verifying the store and every tree, byte by byte");
        let params = Verify {
            deep: true,
            repair: false,
            directory: None,
        };
        let screen = &mut self.screen;
        client.call_noticing(params, &mut |notice| progress(screen, "verified", notice))
    }
}

fn progress(screen: &mut Screen, word: &str, notice: &Notice) {
    if let Notice::Progress { done, total, .. } = notice {
        screen.moving(|| match total {
            Some(total) => format!("{word} {done} of {total}"),
            None => format!("{word} {done}"),
        });
    }
}
