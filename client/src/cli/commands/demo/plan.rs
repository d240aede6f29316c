//! Which files belong together: real identifiers found in the first generation.
//!
//! Owns: the choice of groups, and the publication that lays out their markers.
//! Never: takes an identifier that is used all over a package: a rename stays a change of a few files.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use semaprax_protocol::Refusal;
use semaprax_protocol::documents::ListingEntry;
use semaprax_protocol::submission::{Change, EntryKind};

use super::chance::Chance;
use super::group::{Contents, Group, Member, bound};
use super::words;
use crate::{error, files, put};

/// Groups in all.
const GROUPS: usize = 24;
/// Markers of a group.
const MARKERS: usize = 6;
/// Files of more bytes are not looked into.
const FILE_BYTES: u64 = 128 << 10;
/// Files of a package that are looked into.
const PACKAGE_FILES: usize = 400;
/// The fewest and the most files an identifier may be used in, and the number that is best.
const USERS: (usize, usize, usize) = (2, 8, 5);
/// The most uses of an identifier.
const USES: usize = 60;
/// The shortest identifier.
const NAME_BYTES: usize = 6;
/// Groups of one package that share files, so that there is something to merge.
const PER_PACKAGE: usize = 4;
/// The number every group starts with.
const FIRST: u64 = 1;

/// The texts of a package, by path.
type Texts = BTreeMap<String, String>;

/// The groups of the demo, and what the files of their members hold.
#[derive(Debug)]
pub(super) struct Plan {
    /// The groups.
    pub(super) groups: Vec<Group>,
    /// The directories at the top of the tree.
    pub(super) packages: Vec<String>,
    contents: Contents,
}

impl Plan {
    /// Looks for identifiers in a tree.
    pub(super) fn find(tree: &Utf8Path, entries: &[ListingEntry]) -> Result<Self, Refusal> {
        let mut packages = packages_of(entries);
        Chance::new(1).shuffle(&mut packages);
        let per_package = PER_PACKAGE.max(GROUPS.div_ceil(packages.len().max(1)));
        let mut groups: Vec<Group> = Vec::new();
        let mut contents = Contents::new();
        for package in packages {
            let wanted = per_package.min(GROUPS - groups.len());
            if wanted == 0 {
                break;
            }
            let texts = read_texts(tree, &package)?;
            for (name, members) in identifiers(&texts, wanted) {
                for member in &members {
                    if let Some(text) = texts.get(&member.path) {
                        contents.insert(member.path.clone(), text.clone().into_bytes());
                    }
                }
                groups.push(Group {
                    index: groups.len(),
                    name,
                    members,
                    markers: Vec::new(),
                });
            }
        }
        // A tree without identifiers has markers all the same.
        while groups.len() < GROUPS {
            groups.push(Group {
                index: groups.len(),
                name: String::new(),
                members: Vec::new(),
                markers: Vec::new(),
            });
        }
        lay_markers(&mut groups, entries);
        let tops: BTreeSet<&str> = entries
            .iter()
            .map(|entry| top_of(entry.path.as_str()))
            .filter(|top| !top.is_empty())
            .collect();
        Ok(Self {
            groups,
            packages: tops.into_iter().map(str::to_owned).collect(),
            contents,
        })
    }

    /// How many groups have an identifier.
    pub(super) fn identifiers(&self) -> usize {
        let named = self.groups.iter().filter(|group| !group.name.is_empty());
        named.count()
    }

    /// The changes that bring every group to its first number and lay out the markers.
    pub(super) fn first_changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut renamed = self.contents.clone();
        for group in &self.groups {
            for path in &group.markers {
                let marker = put(path.clone(), group.marker_at(FIRST).into_bytes());
                changes.push(bound(marker, None));
            }
            for member in &group.members {
                if let Some(bytes) = renamed.get_mut(&member.path) {
                    let text = String::from_utf8_lossy(bytes);
                    *bytes = words::rename(&text, &group.name, &group.name_at(FIRST)).into_bytes();
                }
            }
        }
        for (path, bytes) in renamed {
            let before = self.contents.get(&path);
            changes.push(bound(put(path, bytes), before));
        }
        changes
    }
}

/// The directory at the top that a path lies in; empty for a file at the top.
pub(super) fn top_of(path: &str) -> &str {
    path.split_once('/').map_or("", |(top, _)| top)
}

/// The files that may be looked into, by the directory at the top that they lie in.
fn packages_of(entries: &[ListingEntry]) -> Vec<Vec<String>> {
    let mut packages: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for entry in entries {
        if entry.kind != EntryKind::Symlink && entry.bytes <= FILE_BYTES {
            let path = entry.path.as_str();
            packages
                .entry(top_of(path))
                .or_default()
                .push(path.to_owned());
        }
    }
    packages.into_values().collect()
}

fn read_texts(tree: &Utf8Path, paths: &[String]) -> Result<Texts, Refusal> {
    let mut texts = Texts::new();
    for path in paths.iter().take(PACKAGE_FILES) {
        let bytes = files::read(tree.join(path))
            .map_err(|source| error::of_io("read", tree.join(path), &source))?;
        if let Ok(text) = String::from_utf8(bytes)
            && !text.contains('\0')
        {
            texts.insert(path.clone(), text);
        }
    }
    Ok(texts)
}

/// Up to `wanted` identifiers with the files that use them: first the one with the best number of
/// files, then those that share a file with one before.
fn identifiers(texts: &Texts, wanted: usize) -> Vec<(String, Vec<Member>)> {
    let defined: BTreeSet<&str> = texts
        .values()
        .flat_map(|text| words::defined(text))
        .collect();
    let mut uses: BTreeMap<&str, Vec<Member>> = BTreeMap::new();
    for (path, text) in texts {
        for (_, word) in words::words(text) {
            if word.len() < NAME_BYTES || !defined.contains(word) {
                continue;
            }
            let members = uses.entry(word).or_default();
            match members.last_mut() {
                Some(member) if member.path == *path => member.uses += 1,
                _ => members.push(Member {
                    path: path.clone(),
                    uses: 1,
                }),
            }
        }
    }
    let numbered = numbered_words(texts);
    let mut usable: Vec<(&str, Vec<Member>)> = uses
        .into_iter()
        .filter(|(word, members)| is_usable(members) && !numbered.contains(word))
        .collect();
    usable.sort_by_key(|(_, members)| members.len().abs_diff(USERS.2));
    let mut chosen: Vec<(String, Vec<Member>)> = Vec::new();
    while chosen.len() < wanted && !usable.is_empty() {
        let shares = |members: &[Member]| {
            let mut taken = chosen.iter().flat_map(|(_, members)| members);
            taken.any(|member| members.iter().any(|other| other.path == member.path))
        };
        let place = usable.iter().position(|(_, members)| shares(members));
        let (word, members) = usable.remove(place.unwrap_or(0));
        chosen.push((word.to_owned(), members));
    }
    chosen
}

fn is_usable(members: &[Member]) -> bool {
    let uses: usize = members.iter().map(|member| member.uses).sum();
    (USERS.0..=USERS.1).contains(&members.len()) && uses <= USES
}

/// Identifiers that already occur with what a rename appends: they could not be told apart.
fn numbered_words(texts: &Texts) -> BTreeSet<&str> {
    let all = texts.values().flat_map(|text| words::words(text));
    all.filter_map(|(_, word)| {
        let (name, digits) = word.rsplit_once("_g")?;
        (!digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())).then_some(name)
    })
    .collect()
}

/// Spreads the markers of every group evenly over the directories of the tree.
fn lay_markers(groups: &mut [Group], entries: &[ListingEntry]) {
    let directories: BTreeSet<&str> = entries
        .iter()
        .map(|entry| entry.path.as_str())
        .map(|path| path.rsplit_once('/').map_or("", |(parent, _)| parent))
        .collect();
    let directories: Vec<&str> = directories.into_iter().collect();
    let slots = groups.len() * MARKERS;
    let count = groups.len();
    for group in groups {
        for marker in 0..MARKERS {
            let slot = marker * count + group.index;
            let directory = directories.get(slot * directories.len() / slots);
            let name = format!("semaprax-demo-{:02}-{marker}.txt", group.index);
            group.markers.push(match directory {
                Some(&directory) if !directory.is_empty() => format!("{directory}/{name}"),
                _ => name,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_of_several_files_are_found() {
        let texts = Texts::from([
            (
                "p/a.rs".to_owned(),
                "fn shared_one() {}\nfn lonely_one() {}\n".to_owned(),
            ),
            (
                "p/b.rs".to_owned(),
                "shared_one(); fn shared_two() { other_g5() }".to_owned(),
            ),
            (
                "p/c.rs".to_owned(),
                "shared_one(shared_two()); fn other() {}".to_owned(),
            ),
            (
                "p/d.rs".to_owned(),
                "short(); other(); fn short() {} never_defined()".to_owned(),
            ),
        ]);
        let found = identifiers(&texts, 5);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["shared_one", "shared_two"]);
        let paths: Vec<&str> = found[0]
            .1
            .iter()
            .map(|member| member.path.as_str())
            .collect();
        assert_eq!(paths, ["p/a.rs", "p/b.rs", "p/c.rs"]);
    }

    #[test]
    fn a_plan_begins_with_whole_groups() {
        let place = tempfile::tempdir().unwrap();
        let tree = Utf8Path::from_path(place.path()).unwrap();
        let mut entries: Vec<ListingEntry> = Vec::new();
        for (path, text) in [
            ("one/a.rs", "fn shared_name() { more_names() }\n"),
            ("one/b.rs", "shared_name();\nfn more_names() {}\n"),
            ("two/x.txt", "nothing"),
        ] {
            std::fs::create_dir_all(tree.join(path).parent().unwrap()).unwrap();
            files::write(tree.join(path), text);
            let entry = serde_json::json!({
                "path": path, "kind": "file", "bytes": text.len(), "sha256": "00".repeat(32), "seq": 1
            });
            entries.push(serde_json::from_value(entry).unwrap());
        }
        let plan = Plan::find(tree, &entries).unwrap();
        assert_eq!((plan.groups.len(), plan.identifiers()), (GROUPS, 2));
        let mut contents = Contents::new();
        for change in plan.first_changes() {
            let Change::Put { path, content, .. } = change else {
                panic!("{change:?}");
            };
            let twice = contents.insert(path, content.unwrap().into_bytes());
            assert_eq!(twice, None);
        }
        for group in &plan.groups {
            assert_eq!(group.number(&contents), Ok(FIRST), "{group:?}");
            assert_eq!(group.markers.len(), MARKERS);
        }
    }
}
