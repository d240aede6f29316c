//! A reader: reads trees under a lease, slowly, and proves that each is one generation.
//!
//! Owns: the proof. Every group must agree on one number, and every file that is read must have the
//! digest that `ls` of exactly that revision gives. Files are read from disk in an order of chance,
//! and halfway the reader waits until more has been published, so that a tree which changes under a
//! reader, or a lease which does not hold, would be seen.
//! Never: trusts the daemon for what the disk says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{Refusal, Revision, Sha256};

use super::chance::Chance;
use super::course::{Allowance, Course};
use super::group::{Contents, Group};
use super::plan::top_of;
use crate::{Client, Held, error, files, sha256_of};

/// Groups whose source files are read, each time.
const GROUPS: usize = 4;
/// Packages of which files are read besides, each time.
const PACKAGES: usize = 6;
/// Files that are read of a package.
const PACKAGE_FILES: usize = 8;
/// One of so many reads is of the whole tree, by one listing.
const WHOLE: usize = 16;
/// Files that are read of a whole tree.
const WHOLE_FILES: usize = 400;
/// One of so many reads is of the publication before the newest.
const OLDER: usize = 4;
/// How many publications a reader waits for halfway, and for how long.
const HALFWAY: (u64, Duration) = (2, Duration::from_secs(2));

/// One reader.
#[derive(Debug)]
pub(super) struct Reader {
    name: String,
    client: Client,
    course: Arc<Course>,
    groups: Arc<[Group]>,
    /// The directories at the top of the tree.
    packages: Arc<[String]>,
    chance: Chance,
}

/// What `ls` says of a part of a generation.
#[derive(Debug, Default)]
struct Listed {
    /// The directories at the top that were listed; `None`: the whole tree was.
    packages: Option<BTreeSet<String>>,
    files: BTreeMap<String, Sha256>,
}

impl Listed {
    fn covers(&self, path: &str) -> bool {
        let packages = self.packages.as_ref();
        packages.is_none_or(|packages| packages.contains(top_of(path)))
    }
}

impl Reader {
    pub(super) fn new(
        index: usize,
        client: Client,
        course: &Arc<Course>,
        groups: &Arc<[Group]>,
        packages: &Arc<[String]>,
    ) -> Self {
        Self {
            name: format!("reader-{}", index + 1),
            client,
            course: Arc::clone(course),
            groups: Arc::clone(groups),
            packages: Arc::clone(packages),
            chance: Chance::new(200 + index as u64),
        }
    }

    /// Reads for as long as the demo goes on.
    pub(super) fn run(mut self, allowance: Allowance) -> Result<(), Refusal> {
        while self.course.goes_on(allowance) {
            // Before the first two publications there is nothing older that has the groups.
            let older = self.chance.below(OLDER) == 0 && self.course.publications() > 1;
            let held = self.client.hold(older.then_some("@-1"), &self.name)?;
            let before = self.course.publications();
            let found = self.prove(&held, before);
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

    /// Reads a sample of the tree; at most one thing that shows it to be a mix.
    fn prove(&mut self, held: &Held, before: u64) -> Result<Option<String>, Refusal> {
        let mut order: Vec<usize> = (0..self.groups.len()).collect();
        self.chance.shuffle(&mut order);
        order.truncate(GROUPS);
        let listed = self.list(held.revision, &order)?;
        let mut paths = self.sample(&order, &listed);
        self.chance.shuffle(&mut paths);
        let (first, second) = paths.split_at(paths.len() / 2);
        let mut contents = read_slowly(&held.tree, first)?;
        let (publications, patience) = HALFWAY;
        self.course.await_more(before + publications - 1, patience);
        contents.extend(read_slowly(&held.tree, second)?);
        Ok(self.judge(&paths, &contents, &order, &listed).err())
    }

    /// What a generation holds, by its own revision: all of it, or the packages of some groups and a
    /// few more.
    fn list(&mut self, revision: Revision, order: &[usize]) -> Result<Listed, Refusal> {
        let mut listed = Listed::default();
        if self.chance.below(WHOLE) == 0 {
            self.list_below(revision, None, &mut listed)?;
            return Ok(listed);
        }
        let groups = order.iter().filter_map(|index| self.groups.get(*index));
        let mut packages: BTreeSet<String> = groups
            .flat_map(Group::paths)
            .map(|path| top_of(path).to_owned())
            .collect();
        for _ in 0..PACKAGES {
            packages.extend(self.chance.pick(&self.packages).cloned());
        }
        // Files at the top are in no package.
        packages.remove("");
        for package in &packages {
            self.list_below(revision, Some(package), &mut listed)?;
        }
        listed.packages = Some(packages);
        Ok(listed)
    }

    fn list_below(
        &mut self,
        revision: Revision,
        package: Option<&str>,
        listed: &mut Listed,
    ) -> Result<(), Refusal> {
        let listing = self.client.listing(Some(revision.to_string()), package)?;
        for entry in listing.entries {
            if entry.kind != EntryKind::Symlink {
                listed
                    .files
                    .insert(entry.path.as_str().to_owned(), entry.sha256);
            }
        }
        Ok(())
    }

    /// All markers, the source files of some groups, and files of the listed packages.
    fn sample(&mut self, order: &[usize], listed: &Listed) -> Vec<String> {
        let mut paths: BTreeSet<&str> = BTreeSet::new();
        for group in self.groups.iter() {
            paths.extend(group.markers.iter().map(String::as_str));
        }
        for group in order.iter().filter_map(|index| self.groups.get(*index)) {
            paths.extend(group.paths());
        }
        let all: Vec<&str> = listed.files.keys().map(String::as_str).collect();
        let count = match &listed.packages {
            Some(packages) => packages.len() * PACKAGE_FILES,
            None => WHOLE_FILES,
        };
        for _ in 0..count {
            paths.extend(self.chance.pick(&all));
        }
        paths.into_iter().map(str::to_owned).collect()
    }

    fn judge(
        &self,
        paths: &[String],
        contents: &Contents,
        order: &[usize],
        listed: &Listed,
    ) -> Result<(), String> {
        for path in paths.iter().filter(|path| listed.covers(path)) {
            let found = contents.get(path).map(|bytes| sha256_of(bytes));
            let expected = listed.files.get(path).copied();
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
