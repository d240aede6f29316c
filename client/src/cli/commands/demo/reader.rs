//! A reader: reads whole trees under a lease, slowly, and proves that each is one generation.
//!
//! Owns: the proof. Every group must agree on one number, and every file that is read must have the
//! digest that `ls` of exactly that revision gives. Files are read from disk in an order of chance,
//! and halfway the reader waits until something has been published, so that a tree which changes
//! under a reader, or a lease which does not hold, would be seen.
//! Never: trusts the daemon for what the disk says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use semaprax_protocol::documents::ListingEntry;
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{Refusal, Revision, Sha256};

use super::chance::Chance;
use super::course::{Allowance, Course};
use super::group::{Contents, Group};
use crate::{Client, Held, error, files, sha256_of};

/// Groups whose source files are read, each time.
const GROUPS: usize = 4;
/// Files of no group that are read, each time.
const OTHERS: usize = 40;
/// How long a reader waits halfway for a publication.
const HALFWAY: Duration = Duration::from_secs(1);
/// One of so many reads is of the publication before the newest.
const OLDER: usize = 4;

/// One reader.
#[derive(Debug)]
pub(super) struct Reader {
    name: String,
    client: Client,
    course: Arc<Course>,
    groups: Arc<[Group]>,
    chance: Chance,
}

impl Reader {
    pub(super) fn new(
        index: usize,
        client: Client,
        course: &Arc<Course>,
        groups: &Arc<[Group]>,
    ) -> Self {
        Self {
            name: format!("reader-{}", index + 1),
            client,
            course: Arc::clone(course),
            groups: Arc::clone(groups),
            chance: Chance::new(200 + index as u64),
        }
    }

    /// Reads for as long as the demo goes on.
    pub(super) fn run(mut self, allowance: Allowance) -> Result<(), Refusal> {
        while self.course.goes_on(allowance) {
            // Before the first two publications there is nothing older that has the groups.
            let older = self.chance.below(OLDER) == 0 && self.course.publications() > 1;
            let revision = older.then_some("@-1");
            let held = self.client.hold(revision, &self.name)?;
            let before = self.course.publications();
            let listed = self.listed(held.revision);
            let found = match &listed {
                Ok(listed) => self.prove(&held, listed, before),
                Err(refusal) => Err(refusal.clone()),
            };
            let Held { seq, revision, .. } = held;
            self.client.release(held)?;
            let spanned = self.course.publications() > before;
            if let Some(detail) = found? {
                let reader = &self.name;
                self.course.note_mix(format!(
                    "@{seq} {}, read by {reader}: {detail}",
                    revision.short()
                ));
            }
            self.course.note(|tally| {
                tally.reads += 1;
                tally.spanned += u64::from(spanned);
            });
        }
        Ok(())
    }

    /// What a generation holds, by its own revision.
    fn listed(&mut self, revision: Revision) -> Result<BTreeMap<String, ListingEntry>, Refusal> {
        let listing = self.client.listing(Some(revision.to_string()), None)?;
        let entries = listing.entries.into_iter();
        Ok(entries
            .map(|entry| (entry.path.as_str().to_owned(), entry))
            .collect())
    }

    /// Reads a sample of the tree; at most one thing that shows it to be a mix.
    fn prove(
        &mut self,
        held: &Held,
        listed: &BTreeMap<String, ListingEntry>,
        before: u64,
    ) -> Result<Option<String>, Refusal> {
        let mut order: Vec<usize> = (0..self.groups.len()).collect();
        self.chance.shuffle(&mut order);
        order.truncate(GROUPS);
        let mut paths = self.sample(&order, listed);
        self.chance.shuffle(&mut paths);
        let (first, second) = paths.split_at(paths.len() / 2);
        let mut contents = read_slowly(&held.tree, first)?;
        self.course.await_more(before, HALFWAY);
        contents.extend(read_slowly(&held.tree, second)?);
        Ok(self.judge(&paths, &contents, &order, listed).err())
    }

    /// All markers, the source files of some groups, and files of no group.
    fn sample(&mut self, order: &[usize], listed: &BTreeMap<String, ListingEntry>) -> Vec<String> {
        let mut paths: BTreeSet<&str> = BTreeSet::new();
        for group in self.groups.iter() {
            paths.extend(group.markers.iter().map(String::as_str));
        }
        for group in order.iter().filter_map(|index| self.groups.get(*index)) {
            paths.extend(group.paths());
        }
        let all: Vec<&ListingEntry> = listed.values().collect();
        for _ in 0..OTHERS {
            if let Some(entry) = self.chance.pick(&all)
                && entry.kind != EntryKind::Symlink
            {
                paths.insert(entry.path.as_str());
            }
        }
        paths.into_iter().map(str::to_owned).collect()
    }

    fn judge(
        &self,
        paths: &[String],
        contents: &Contents,
        order: &[usize],
        listed: &BTreeMap<String, ListingEntry>,
    ) -> Result<(), String> {
        for path in paths {
            let found = contents.get(path).map(|bytes| sha256_of(bytes));
            let expected = listed.get(path).map(|entry| entry.sha256);
            if found != expected {
                return Err(format!(
                    "`{path}` is {} on disk and {} in the listing",
                    word(found),
                    word(expected)
                ));
            }
        }
        for group in self.groups.iter() {
            if order.contains(&group.index) {
                group.number(contents)?;
            } else {
                group.number_of_markers(contents)?;
            }
        }
        Ok(())
    }
}

fn word(digest: Option<Sha256>) -> String {
    digest.map_or_else(|| "missing".to_owned(), |digest| digest.short())
}

fn read_slowly(tree: &Utf8Path, paths: &[String]) -> Result<Contents, Refusal> {
    let paths = paths.iter().map(String::as_str).inspect(|_| {
        std::thread::yield_now();
    });
    read_paths(tree, paths)
}

/// Reads files of a tree. One that is missing is left out: whoever needs it will say so.
pub(super) fn read_paths<'path>(
    tree: &Utf8Path,
    paths: impl Iterator<Item = &'path str>,
) -> Result<Contents, Refusal> {
    let mut contents = Contents::new();
    for path in paths {
        match files::read(tree.join(path)) {
            Ok(bytes) => drop(contents.insert(path.to_owned(), bytes)),
            Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(error::of_io("read", tree.join(path), &source)),
        }
    }
    Ok(contents)
}
