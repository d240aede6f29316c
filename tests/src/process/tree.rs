//! Directories as the suites compare them.
//!
//! Owns: reading a tree as a map, and taking a sealed one apart. Never: follows a link.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sha2::{Digest, Sha256};

/// Path -> bytes of every file below `root`, and the target of every symlink; `.git` and state
/// directories are left out.
pub fn contents(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    collect(root, root, &mut found);
    found
}

fn collect(root: &Path, directory: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if [".semaprax-workspace", ".git"]
            .iter()
            .any(|&name| entry.file_name() == name)
        {
            continue;
        }
        let name = path
            .strip_prefix(root)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        if kind.is_dir() {
            collect(root, &path, found);
        } else if kind.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            found.insert(name, target.as_os_str().as_encoded_bytes().to_vec());
        } else if kind.is_file() {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
}

/// Gives the owner all rights to the directories below `path`, so that they can be removed.
pub fn make_writable(path: &Path) {
    let Ok(found) = fs::symlink_metadata(path) else {
        return;
    };
    if !found.is_dir() {
        return;
    }
    drop(fs::set_permissions(path, fs::Permissions::from_mode(0o700)));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        make_writable(&entry.path());
    }
}

/// The SHA-256 of bytes, in hex.
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes.as_ref()) {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}
