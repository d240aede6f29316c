//! Room kept back for the moment when the disk is full: without any, nothing could be opened, and nothing
//! removed to make some.
//!
//! Owns: the directory `reserve/`, some files of bytes that do not get smaller; when it is made and when it is
//! given back. Never: decides what the room is used for. Nothing here is synced or read: what is lost of it is
//! made again.

use super::Layout;
use crate::world::{EntryType, World, WorldResult};

/// Files of the reserve: as many names can be made anew when it is given back.
const FILES: usize = 8;
/// Bytes of each.
const FILE_BYTES: usize = 128 << 10;
/// All of it.
pub const BYTES: u64 = (FILES * FILE_BYTES) as u64;
/// It is made when this many times as much is free.
const PLENTY: u64 = 4;
const CONTEXT: &str = "semaprax 1 reserve";

/// Whether there is less free than the reserve would give back: what is tried now may well fail.
pub fn is_low(world: &World, layout: &Layout) -> bool {
    let free = world.disk.free_space(layout.state());
    free.is_ok_and(|(bytes, inodes)| bytes < BYTES || inodes < FILES as u64)
}

/// Makes what is missing of it, when there is plenty of room; whether all of it is there.
pub fn keep(world: &World, layout: &Layout) -> WorldResult<bool> {
    let (disk, place) = (&world.disk, layout.reserve());
    let is_there = match disk.metadata(&place)? {
        Some(found) if found.kind != EntryType::Directory => return Ok(false),
        found => found.is_some(),
    };
    let names = if is_there {
        disk.read_directory(&place)?
    } else {
        Vec::new()
    };
    let is_taken = |number: &usize| {
        let number = number.to_string();
        names.iter().any(|(name, _)| *name == number)
    };
    let missing: Vec<usize> = (0..FILES).filter(|number| !is_taken(number)).collect();
    if missing.is_empty() {
        return Ok(true);
    }
    let (bytes, inodes) = disk.free_space(layout.state())?;
    if bytes < PLENTY * BYTES || inodes < PLENTY * FILES as u64 {
        return Ok(false);
    }
    if !is_there {
        // As open to others as what lies beside it, which `init --shared` widens.
        let mode = disk.metadata(&layout.objects())?;
        disk.create_directory(&place, mode.map_or(0o700, |found| found.mode))?;
    }
    for number in missing {
        let name = number.to_string();
        disk.create(&place.join(&name), &filler(&name), 0o400)?;
    }
    Ok(true)
}

/// Gives it back; whether there was anything. What else lies there is not ours, and where a link in its place
/// leads neither.
pub fn release(world: &World, layout: &Layout) -> WorldResult<bool> {
    let place = layout.reserve();
    let found = world.disk.metadata(&place)?;
    if found.is_none_or(|found| found.kind != EntryType::Directory) {
        return Ok(false);
    }
    let is_ours = |name: &str| name.parse().is_ok_and(|number: usize| number < FILES);
    let mut any = false;
    for (name, kind) in world.disk.read_directory(&place)? {
        if kind == EntryType::File && is_ours(&name) {
            world.disk.remove_file(&place.join(&name))?;
            any = true;
        }
    }
    if any {
        tracing::warn!(root = %layout.root(), "the disk is full: the room that was kept back is given up");
    }
    Ok(any)
}

/// Bytes that no file system packs.
fn filler(name: &str) -> Vec<u8> {
    let mut bytes = vec![0; FILE_BYTES];
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(name.as_bytes());
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}
