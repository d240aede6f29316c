//! Removing whole trees: first out of sight by one rename, then for good.
//!
//! Owns: `trash/`. Makes directories writable, never files: those are shared with other trees.
//! Never: locks anything in the trash.

use camino::Utf8Path;

use super::Layout;
use crate::world::{EntryType, World, WorldResult};

/// Moves `place` into the trash.
pub fn discard(world: &World, layout: &Layout, place: &Utf8Path) -> WorldResult<()> {
    let target = layout.trash().join(world.entropy.uuid().to_string());
    match world.disk.rename(place, &target) {
        // A normal user cannot move a directory it may not write to.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            if world
                .disk
                .metadata(place)?
                .is_some_and(|found| found.kind == EntryType::Directory)
            {
                world.disk.set_mode(place, 0o755)?;
            }
            world.disk.rename(place, &target)
        }
        other => other,
    }
}

/// Removes everything in the trash, or as much as `goes_on` allows; answers the bytes of disk given
/// back.
pub fn empty(world: &World, layout: &Layout, goes_on: &dyn Fn() -> bool) -> WorldResult<u64> {
    let trash = layout.trash();
    let mut freed = 0;
    let found = world.disk.metadata(&trash)?;
    // What a link in its place leads to is not ours.
    if found.is_none_or(|found| found.kind != EntryType::Directory) {
        return Ok(0);
    }
    let mut stays = None;
    world.disk.give_names(&trash)?;
    for (name, kind) in world.disk.read_directory(&trash)? {
        // One that cannot be removed does not keep the others.
        match remove_while(world, &trash.join(name), kind, goes_on) {
            Ok(bytes) => freed += bytes,
            Err(error) => stays = Some(error),
        }
    }
    match stays {
        Some(error) if freed == 0 => Err(error),
        Some(error) => {
            tracing::warn!(%error, "something in the trash cannot be removed");
            Ok(freed)
        }
        None => Ok(freed),
    }
}

/// Removes a name and all below it, directories made writable first; answers the bytes given back.
pub fn remove(world: &World, place: &Utf8Path, kind: EntryType) -> WorldResult<u64> {
    remove_while(world, place, kind, &|| true)
}

fn remove_while(
    world: &World,
    place: &Utf8Path,
    kind: EntryType,
    goes_on: &dyn Fn() -> bool,
) -> WorldResult<u64> {
    if !goes_on() {
        return Ok(0);
    }
    let disk = &world.disk;
    if kind != EntryType::Directory {
        let found = disk.metadata(place)?;
        disk.remove_file(place)?;
        return Ok(found
            .filter(|found| found.links == 1)
            .map_or(0, |found| found.allocated));
    }
    disk.set_mode(place, 0o700)?;
    let mut freed = disk.metadata(place)?.map_or(0, |found| found.allocated);
    disk.give_names(place)?;
    for (name, kind) in disk.read_directory(place)? {
        freed += remove_while(world, &place.join(name), kind, goes_on)?;
    }
    // What was left in it keeps it.
    if goes_on() {
        disk.remove_directory(place)?;
    }
    Ok(freed)
}

/// The bytes of disk that removing a name and all below it would give back, as far as it alone holds
/// them.
pub fn measure(world: &World, place: &Utf8Path, kind: EntryType) -> WorldResult<u64> {
    let found = world.disk.metadata(place)?;
    if kind != EntryType::Directory {
        return Ok(found
            .filter(|found| found.links == 1)
            .map_or(0, |found| found.allocated));
    }
    let mut bytes = found.map_or(0, |found| found.allocated);
    for (name, kind) in world.disk.read_directory(place)? {
        bytes += measure(world, &place.join(name), kind)?;
    }
    Ok(bytes)
}
