//! What belongs in the state directory: names, kinds, modes.
//!
//! Owns: the list of what is ours, what differs from it, and putting that right. What is not ours is never
//! deleted: it is put aside, and a person decides. Something else in the place of one of our directories is
//! never followed: what a link leads to is somebody's.
//! Never: content; that is checked against digests.

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::{BlobDigest, Revision};

use super::{Layout, StoreError, StoreResult};
use crate::world::{EntryType, Metadata, World, WorldError, WorldResult};

/// Others may write: then anyone could be the author of anything.
const WRITABLE_BY_OTHERS: u32 = 0o022;
const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
# The state of a Semaprax workspace: content is in the workspace's own publications.\n";
/// The files that keep other programs out, with their content.
pub const KEEP_OUT: [(&str, &str); 3] = [
    (".gitignore", "*\n"),
    (".ignore", "*\n"),
    ("CACHEDIR.TAG", TAG),
];
/// Files that are there or not.
const FILES: [&str; 11] = [
    "ACTIVE",
    "ACTIVE.next",
    "LOCK",
    "config.toml",
    "store.db",
    "store.db-wal",
    "store.db-shm",
    "store.db-journal",
    "index.db",
    "index.db-wal",
    "index.db-shm",
];
/// Directories that are there or not.
const DIRECTORIES: [&str; 3] = ["changes", "reserve", ASIDE];
/// As much of a name as leaves room for what makes it another.
const NAME_BYTES: usize = 200;
/// Where what is not ours is put.
const ASIDE: &str = "set-aside";

/// Something in the state directory that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untidy {
    /// Its path below the state directory.
    pub path: String,
    /// What is wrong with it.
    pub what: Untidiness,
}

/// What is wrong with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untidiness {
    /// Nothing of ours has such a name.
    Foreign,
    /// Something else is in its place.
    Replaced(EntryType),
    /// It is not there, or not with its content.
    Missing,
    /// It has this mode, and others may write to it or its owner may not.
    Mode(u32),
}

impl Untidy {
    /// In words.
    pub fn detail(&self) -> String {
        let path = &self.path;
        match self.what {
            Untidiness::Foreign => format!("`{path}` does not belong to the workspace"),
            Untidiness::Replaced(kind) => {
                format!("`{path}` is a {}", word(kind))
            }
            Untidiness::Missing => format!("`{path}` is missing or has another content"),
            Untidiness::Mode(mode) => format!("`{path}` has mode {mode:o}"),
        }
    }

    /// Whether the workspace cannot do its work, or not safely, while it is so.
    pub fn is_problem(&self) -> bool {
        matches!(self.what, Untidiness::Replaced(_) | Untidiness::Mode(_))
    }
}

fn word(kind: EntryType) -> &'static str {
    match kind {
        EntryType::File => "file",
        EntryType::Directory => "directory",
        EntryType::Symlink => "symlink",
        EntryType::Other => "FIFO, socket or device",
    }
}

fn directories(layout: &Layout) -> [(&'static str, Utf8PathBuf); 4] {
    [
        ("objects", layout.objects()),
        ("generations", layout.generations()),
        ("staging", layout.staging()),
        ("trash", layout.trash()),
    ]
}

/// Refuses a state directory in which something else is in the place of a file of the database or of one of
/// our directories, before anything is opened or listed.
pub fn check(world: &World, layout: &Layout) -> StoreResult<()> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let place = Utf8PathBuf::from(format!("{}{suffix}", layout.database()));
        must_be(world, &place, EntryType::File)?;
    }
    for (_, place) in directories(layout) {
        must_be(world, &place, EntryType::Directory)?;
    }
    Ok(())
}

/// Refuses what is at `place` when it is not of this kind; nothing there is fine.
pub fn must_be(world: &World, place: &Utf8Path, kind: EntryType) -> StoreResult<()> {
    match world.disk.metadata(place)? {
        Some(found) if found.kind != kind => Err(StoreError::damaged(format!(
            "`{place}` is a {}, not a {}",
            word(found.kind),
            word(kind)
        ))),
        _ => Ok(()),
    }
}

/// Makes those of our directories that are missing. What was in them is found missing by those who look
/// for it.
pub fn make_missing(world: &World, layout: &Layout) -> StoreResult<()> {
    for (name, place) in directories(layout) {
        if world.disk.metadata(&place)?.is_none() {
            tracing::warn!(root = %layout.root(), "the directory `{name}` was missing");
            world
                .disk
                .create_directory(&place, state_mode(world, layout)?)?;
        }
    }
    Ok(())
}

/// The mode of the state directory, which `init --shared` widens; never writable by others.
fn state_mode(world: &World, layout: &Layout) -> WorldResult<u32> {
    let found = world.disk.metadata(layout.state())?;
    Ok(found.map_or(0o700, |found| {
        (found.mode | 0o700) & 0o777 & !WRITABLE_BY_OTHERS
    }))
}

/// What is not as it should be. Trees are looked at by their digests, and what lies in `staging/` and
/// `trash/` is cleared in any case.
pub fn look(world: &World, layout: &Layout) -> WorldResult<Vec<Untidy>> {
    let mut found = Vec::new();
    let state = layout.state();
    if let Some(metadata) = world.disk.metadata(state)? {
        mode(&mut found, ".", metadata, 0o700);
    }
    for (name, kind) in world.disk.read_directory(state)? {
        let is_directory = DIRECTORIES.contains(&name.as_str())
            || directories(layout).iter().any(|(own, _)| *own == name);
        let is_file =
            FILES.contains(&name.as_str()) || KEEP_OUT.iter().any(|(own, _)| *own == name);
        let (wanted, owner) = match (is_directory, is_file) {
            (true, _) => (EntryType::Directory, 0o700),
            // The database is written in place, and so is LOCK.
            (_, true) if name.starts_with("store.db") || name == "LOCK" => (EntryType::File, 0o600),
            (_, true) => (EntryType::File, 0o400),
            _ => {
                found.push(untidy(name, Untidiness::Foreign));
                continue;
            }
        };
        if kind != wanted {
            found.push(untidy(name, Untidiness::Replaced(kind)));
        } else if let Some(metadata) = world.disk.metadata(&state.join(&name))? {
            mode(&mut found, &name, metadata, owner);
        }
    }
    for (name, place) in directories(layout) {
        if world.disk.metadata(&place)?.is_none() {
            found.push(untidy(name, Untidiness::Missing));
        }
    }
    for (name, content) in KEEP_OUT {
        let place = state.join(name);
        let is_right = match world.disk.metadata(&place)? {
            None => false,
            Some(it) if it.kind != EntryType::File => true,
            Some(it) => {
                it.len == content.len() as u64 && world.disk.read(&place)? == content.as_bytes()
            }
        };
        if !is_right {
            found.push(untidy(name, Untidiness::Missing));
        }
    }
    in_objects(world, layout, &mut found)?;
    in_generations(world, layout, &mut found)?;
    Ok(found)
}

fn untidy(path: impl Into<String>, what: Untidiness) -> Untidy {
    let path = path.into();
    Untidy { path, what }
}

fn mode(found: &mut Vec<Untidy>, path: &str, metadata: Metadata, owner: u32) {
    let mode = metadata.mode;
    if mode & WRITABLE_BY_OTHERS != 0 || mode & owner != owner {
        found.push(untidy(path, Untidiness::Mode(mode)));
    }
}

fn is_directory(world: &World, place: &Utf8Path) -> WorldResult<bool> {
    let found = world.disk.metadata(place)?;
    Ok(found.is_some_and(|found| found.kind == EntryType::Directory))
}

/// Whether this could be the directory of objects with the same first two digits.
pub fn is_shard(name: &str, kind: EntryType) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    kind == EntryType::Directory && name.len() == 2 && name.bytes().all(is_digit)
}

fn in_objects(world: &World, layout: &Layout, found: &mut Vec<Untidy>) -> WorldResult<()> {
    let objects = layout.objects();
    if !is_directory(world, &objects)? {
        return Ok(());
    }
    for (head, kind) in world.disk.read_directory(&objects)? {
        if !is_shard(&head, kind) {
            found.push(untidy(format!("objects/{head}"), Untidiness::Foreign));
            continue;
        }
        for (tail, kind) in world.disk.read_directory(&objects.join(&head))? {
            let path = format!("objects/{head}/{tail}");
            if format!("{head}{tail}").parse::<BlobDigest>().is_err() {
                found.push(untidy(path, Untidiness::Foreign));
            } else if kind != EntryType::File {
                found.push(untidy(path, Untidiness::Replaced(kind)));
            }
        }
    }
    Ok(())
}

fn in_generations(world: &World, layout: &Layout, found: &mut Vec<Untidy>) -> WorldResult<()> {
    let generations = layout.generations();
    if !is_directory(world, &generations)? {
        return Ok(());
    }
    for (name, kind) in world.disk.read_directory(&generations)? {
        let path = format!("generations/{name}");
        if name.parse::<Revision>().is_err() {
            found.push(untidy(path, Untidiness::Foreign));
        } else if kind != EntryType::Directory {
            found.push(untidy(path, Untidiness::Replaced(kind)));
        }
    }
    Ok(())
}

/// Puts one of them right. Only for whoever holds LOCK.
pub fn mend(world: &World, layout: &Layout, untidy: &Untidy) -> WorldResult<()> {
    let (disk, state) = (&world.disk, layout.state());
    let place = if untidy.path == "." {
        state.to_owned()
    } else {
        state.join(&untidy.path)
    };
    match untidy.what {
        Untidiness::Foreign => set_foreign_aside(world, layout, &place),
        // All content is in it: whatever it is, a person has to look.
        Untidiness::Replaced(_) if place == layout.database() => {
            let reason = std::io::Error::other("a person has to put it right");
            Err(WorldError::new("move", &place, reason))
        }
        Untidiness::Replaced(_) => {
            set_aside(world, layout, &place)?;
            let name = untidy.path.as_str();
            let is_needed = directories(layout).iter().any(|(own, _)| *own == name)
                || KEEP_OUT.iter().any(|(own, _)| *own == name);
            if is_needed {
                mend(world, layout, &self::untidy(name, Untidiness::Missing))?;
            }
            Ok(())
        }
        Untidiness::Mode(mode) => {
            let owner = match disk.metadata(&place)?.map(|found| found.kind) {
                Some(EntryType::Directory) => 0o700,
                _ => 0o600,
            };
            disk.set_mode(&place, (mode | owner) & !WRITABLE_BY_OTHERS)
        }
        Untidiness::Missing => {
            if let Some((_, content)) = KEEP_OUT.iter().find(|(name, _)| *name == untidy.path) {
                if disk.metadata(&place)?.is_some() {
                    set_aside(world, layout, &place)?;
                }
                return disk.create(&place, content.as_bytes(), 0o644);
            }
            disk.create_directory(&place, state_mode(world, layout)?)
        }
    }
}

/// Puts what is not ours aside.
pub fn set_foreign_aside(world: &World, layout: &Layout, place: &Utf8Path) -> WorldResult<()> {
    let places = foreign_at(world, place)?;
    places
        .iter()
        .try_for_each(|place| set_aside(world, layout, place))
}

/// What is meant by a foreign name of a listing. Of a name that is not UTF-8 it is not the name: all such names
/// of its directory are given others, and go with the first.
pub fn foreign_at(world: &World, place: &Utf8Path) -> WorldResult<Vec<Utf8PathBuf>> {
    let mut places = Vec::new();
    if let Some(directory) = place.parent() {
        let given = world.disk.give_names(directory)?;
        places.extend(given.into_iter().map(|name| directory.join(name)));
    }
    if world.disk.metadata(place)?.is_some() {
        places.push(place.to_owned());
    }
    Ok(places)
}

/// Puts something where it is in nobody's way. It is kept until a person removes it.
pub fn set_aside(world: &World, layout: &Layout, place: &Utf8Path) -> WorldResult<()> {
    let disk = &world.disk;
    let aside = layout.state().join(ASIDE);
    if !is_directory(world, &aside)? {
        // What stands in its place is put aside itself, once there is where to.
        let replaced = layout
            .state()
            .join(format!("{ASIDE}.{}", world.entropy.uuid()));
        let is_taken = disk.metadata(&aside)?.is_some();
        if is_taken {
            disk.rename(&aside, &replaced)?;
        }
        disk.create_directory(&aside, state_mode(world, layout)?)?;
        if is_taken {
            set_aside(world, layout, &replaced)?;
        }
    }
    if *place == aside {
        return Ok(());
    }
    let mut name = place.file_name().unwrap_or("unnamed");
    name = name
        .get(..name.floor_char_boundary(NAME_BYTES))
        .unwrap_or(name);
    disk.rename(
        place,
        &aside.join(format!("{name}.{}", world.entropy.uuid())),
    )
}
