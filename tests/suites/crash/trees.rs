//! A tree on disk, read without the daemon.
//!
//! Owns: the comparison with what a publication must hold: names, kinds, bytes, modes, and what lies
//! beside the tree.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use camino::Utf8Path;
use semaprax_protocol::Revision;
use semaprax_protocol::submission::EntryKind;

use crate::known::{Content, Publication};
use crate::oracle::{Verdict, ensure};

/// The tree of `publication` below the state directory `root` is whole.
pub fn check(root: &Utf8Path, publication: &Publication) -> Verdict {
    let revision = publication.revision.unwrap();
    let generation = root.join(format!("generations/{revision}"));
    let mut content = Content::new();
    walk(&generation.join("files"), "", &mut content)?;
    for (path, expect) in &publication.content {
        match content.get(path) {
            None => return Err(format!("`{path}` is missing on disk")),
            Some(found) if found != expect => return Err(format!("`{path}` is wrong on disk")),
            Some(_) => {}
        }
    }
    let extra = content
        .keys()
        .find(|path| !publication.content.contains_key(*path));
    ensure!(extra.is_none(), "`{extra:?}` is too much on disk");
    let manifest = std::fs::read(generation.join("manifest.json")).map_err(|e| e.to_string())?;
    ensure!(
        Revision::from_bytes(blake3::derive_key("semaprax 1 revision", &manifest)) == revision,
        "manifest.json is not that of the revision: {:?}",
        String::from_utf8_lossy(&manifest)
    );
    for name in ["manifest.json", "LEASE", "BOOT"] {
        let found = std::fs::symlink_metadata(generation.join(name))
            .map_err(|error| format!("{name}: {error}"))?;
        let mode = found.mode() & 0o7777;
        ensure!(mode == 0o444, "{name} has mode {mode:o}");
    }
    Ok(())
}

fn walk(directory: &Utf8Path, prefix: &str, content: &mut Content) -> Verdict {
    let error = |error: std::io::Error| format!("`{directory}`: {error}");
    let mode = std::fs::symlink_metadata(directory)
        .map_err(error)?
        .permissions()
        .mode();
    ensure!(
        mode & 0o7777 == 0o555,
        "`{directory}` has mode {:o}",
        mode & 0o7777
    );
    for entry in directory.read_dir_utf8().map_err(error)? {
        let entry = entry.map_err(error)?;
        let place = entry.path();
        let path = format!("{prefix}{}", entry.file_name());
        let found = std::fs::symlink_metadata(place).map_err(error)?;
        if found.is_dir() {
            walk(place, &format!("{path}/"), content)?;
        } else if found.is_symlink() {
            let target = place.read_link_utf8().map_err(error)?;
            let entry = (EntryKind::Symlink, target.as_str().as_bytes().to_vec());
            content.insert(path, entry);
        } else {
            let kind = match found.permissions().mode() & 0o7777 {
                0o444 => EntryKind::File,
                0o555 => EntryKind::Executable,
                mode => return Err(format!("`{path}` has mode {mode:o}")),
            };
            content.insert(path, (kind, std::fs::read(place).map_err(error)?));
        }
    }
    Ok(())
}
