//! What the demo works on: a copy of real files.
//!
//! Owns: which files (a directory of the user's, or whole packages of cargo's registry cache in name
//! order), the bounds that keep the demo short, and copying them.
//! Never: changes what it copies from, or takes what `init` would ignore.

use std::fs::FileType;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use ignore::WalkBuilder;
use semaprax_protocol::{Code, Diagnostic, Refusal};

use super::generated;
use crate::files::Stopwatch;
use crate::{env, error, files};

/// Packages are taken until there are this many files.
const ENOUGH_FILES: usize = 3_000;
/// No more files than this.
const MOST_FILES: usize = 4_000;
/// No more bytes than this.
const MOST_BYTES: u64 = 48 << 20;
/// Files of more bytes are left out.
const FILE_BYTES: u64 = 2 << 20;
/// Packages of more files, or more bytes, are left out: one of them would be the whole demo.
const PACKAGE: (usize, u64) = (1_000, 8 << 20);
/// A cache with fewer files than this is as good as none.
const FEW: usize = 500;

/// On a machine that is slow today fewer packages are copied: no more once this time is over, and
/// there are that many files.
const SLOW: (Duration, usize) = (Duration::from_millis(1500), 800);

/// A file or symlink to copy.
#[derive(Debug)]
struct Item {
    /// Whether it is the first of its package.
    first: bool,
    from: PathBuf,
    to: Utf8PathBuf,
    bytes: u64,
    kind: FileType,
}

/// What to copy.
#[derive(Debug)]
pub(super) struct Material {
    /// Whose files, for people.
    pub(super) source: String,
    items: Vec<Item>,
    /// Files left out because of the bounds.
    left_out: u64,
    /// Whether what is left to copy may be left out when time runs short.
    elastic: bool,
}

impl Material {
    /// The files of `directory`, or of the registry cache, or ones to be made up.
    pub(super) fn find(directory: Option<&Path>) -> Result<Self, Refusal> {
        if let Some(directory) = directory {
            return of_directory(directory);
        }
        let cached = registry();
        if cached.items.len() >= FEW {
            return Ok(cached);
        }
        Ok(Self {
            source: "a generated tree: cargo has no sources in its cache".to_owned(),
            items: Vec::new(),
            left_out: 0,
            elastic: false,
        })
    }

    /// How many files there are, and what was left out, for people.
    pub(super) fn summary(&self) -> String {
        match self.left_out {
            0 => String::new(),
            left_out => format!("; {left_out} files left out, to keep this short"),
        }
    }

    /// Puts the files into `target`, an empty directory. `check` ends it early; it is told how many
    /// are done.
    pub(super) fn copy_to(
        &self,
        target: &Utf8Path,
        check: &mut dyn FnMut(usize) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        if self.items.is_empty() {
            return generated::write_to(target, check);
        }
        let clock = Stopwatch::start();
        for (done, item) in self.items.iter().enumerate() {
            check(done)?;
            let slow = done >= SLOW.1 && clock.elapsed() > SLOW.0;
            if self.elastic && item.first && slow {
                break;
            }
            copy(item, &target.join(&item.to))?;
        }
        Ok(())
    }
}

fn copy(item: &Item, to: &Utf8Path) -> Result<(), Refusal> {
    let failed = |source: std::io::Error| error::of_io("copy", item.from.display(), &source);
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    if item.kind.is_symlink() {
        let link = item.from.read_link().map_err(failed)?;
        return symlink(link, to).map_err(failed);
    }
    match files::copy(&item.from, to) {
        Ok(_) => Ok(()),
        // It went meanwhile, or is not for this user: the demo does without.
        Err(skipped)
            if matches!(
                skipped.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied
            ) && !to.as_std_path().exists() =>
        {
            Ok(())
        }
        Err(source) => Err(failed(source)),
    }
}

fn of_directory(directory: &Path) -> Result<Material, Refusal> {
    let root = crate::cli::settings::absolute(directory)?;
    let mut material = Material {
        source: root.to_string(),
        items: Vec::new(),
        left_out: 0,
        elastic: false,
    };
    let mut bytes = 0;
    for item in walk(root.as_std_path(), Utf8Path::new("")) {
        let fits = material.items.len() < MOST_FILES && bytes + item.bytes <= MOST_BYTES;
        if fits && item.bytes <= FILE_BYTES {
            bytes += item.bytes;
            material.items.push(item);
        } else {
            material.left_out += 1;
        }
    }
    if material.items.is_empty() {
        let message = format!("`{root}` holds no files to copy");
        return Err(Diagnostic::new(Code::Usage, message)
            .at(root.as_str())
            .hint("name a directory with source files, or none")
            .into());
    }
    Ok(material)
}

/// Whole packages of the registry cache, in name order.
fn registry() -> Material {
    let mut material = Material {
        source: "no registry cache".to_owned(),
        items: Vec::new(),
        left_out: 0,
        elastic: true,
    };
    let Some(sources) = registry_sources() else {
        return material;
    };
    let (mut bytes, mut packages) = (0, 0);
    for (name, directory) in packages_of(&sources) {
        let mut items: Vec<Item> = walk(&directory, Utf8Path::new(&name)).collect();
        if let Some(item) = items.first_mut() {
            item.first = true;
        }
        let package: u64 = items.iter().map(|item| item.bytes).sum();
        let fits = items.len() <= PACKAGE.0
            && package <= PACKAGE.1
            && items.iter().all(|item| item.bytes <= FILE_BYTES)
            && material.items.len() + items.len() <= MOST_FILES
            && bytes + package <= MOST_BYTES;
        if fits {
            bytes += package;
            packages += 1;
            material.items.extend(items);
        }
        if material.items.len() >= ENOUGH_FILES {
            break;
        }
    }
    material.source = format!("up to {packages} packages of `{}`", sources.display());
    material
}

/// Where cargo keeps the unpacked sources of what it has built.
fn registry_sources() -> Option<PathBuf> {
    let home = env::value(env::CARGO_HOME)
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::value(env::HOME)?).join(".cargo")))?;
    Some(home.join("registry/src"))
}

/// The packages of all registries, by name; one that cannot be looked at is none.
fn packages_of(sources: &Path) -> Vec<(String, PathBuf)> {
    let registries = sources.read_dir().into_iter().flatten().flatten();
    let mut packages: Vec<(String, PathBuf)> = registries
        .flat_map(|registry| registry.path().read_dir().into_iter().flatten().flatten())
        .filter(|package| package.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|package| Some((package.file_name().into_string().ok()?, package.path())))
        .collect();
    packages.sort();
    packages.dedup_by(|one, other| one.0 == other.0);
    packages
}

/// The files and symlinks below a directory, in path order, by the ignore rules of `init`.
fn walk(root: &Path, below: &Utf8Path) -> impl Iterator<Item = Item> {
    let walker = WalkBuilder::new(root)
        .standard_filters(false)
        .git_ignore(true)
        .require_git(false)
        .sort_by_file_name(std::ffi::OsStr::cmp)
        .filter_entry(|entry| entry.depth() == 0 || !is_state(entry.file_name()))
        .build();
    let (root, below) = (root.to_owned(), below.to_owned());
    walker.flatten().filter_map(move |entry| {
        let kind = entry.file_type()?;
        let wanted = entry.depth() > 0 && (kind.is_file() || kind.is_symlink());
        let relative = entry.path().strip_prefix(&root).ok().filter(|_| wanted)?;
        Some(Item {
            first: false,
            to: below.join(Utf8Path::from_path(relative)?),
            bytes: entry.metadata().map_or(0, |found| found.len()),
            from: entry.into_path(),
            kind,
        })
    })
}

fn is_state(name: &std::ffi::OsStr) -> bool {
    name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case(crate::layout::STATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_copied_without_what_is_ignored() {
        let place = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(place.path()).unwrap();
        let (from, to) = (root.join("from"), root.join("to"));
        for directory in ["from/src", "from/target", "from/.git", "to"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        for file in ["src/a.rs", "target/big", ".git/HEAD", ".hidden"] {
            files::write(from.join(file), file);
        }
        files::write(from.join(".gitignore"), "target\n");
        symlink("src/a.rs", from.join("link")).unwrap();
        let material = Material::find(Some(from.as_std_path())).unwrap();
        material.copy_to(&to, &mut |_| Ok(())).unwrap();
        let check = |path: &str, there: bool| {
            assert_eq!(to.join(path).symlink_metadata().is_ok(), there, "{path}");
        };
        check("src/a.rs", true);
        check(".hidden", true);
        check("link", true);
        check("target", false);
        check(".git", false);
        let empty = Material::find(Some(root.join("from/.git/none").as_std_path()));
        assert_eq!(empty.unwrap_err().code(), Code::NotFound);
    }
}
