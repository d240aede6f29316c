//! The one path of a directory: absolute, without symlinks.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use semaprax_protocol::{Code, Diagnostic, Refusal};

use crate::world::{Disk, EntryType};

/// Symlinks that are followed on the way to one directory.
const LINKS: usize = 40;

/// Resolves every symlink of a path that exists.
pub(super) fn canonical(disk: &dyn Disk, path: &Utf8Path) -> Result<Utf8PathBuf, Refusal> {
    if !path.is_absolute() {
        return Err(refuse(path, "is not absolute"));
    }
    let mut rest: Vec<String> = components(path);
    let mut done = Utf8PathBuf::from("/");
    let mut links = 0;
    while let Some(name) = rest.pop() {
        if name == ".." {
            done.pop();
            continue;
        }
        let next = done.join(&name);
        match disk.metadata(&next)?.map(|found| found.kind) {
            None => return Err(refuse(path, "does not exist")),
            Some(EntryType::Symlink) => {
                links += 1;
                if links > LINKS {
                    return Err(refuse(path, "leads through too many symlinks"));
                }
                let target = String::from_utf8(disk.read_link(&next)?)
                    .map_err(|_| refuse(path, "leads through a symlink that is not UTF-8"))?;
                let target = Utf8Path::new(&target);
                if target.is_absolute() {
                    done = Utf8PathBuf::from("/");
                }
                rest.extend(components(target));
            }
            Some(_) => done = next,
        }
    }
    Ok(done)
}

/// The names of a path, last one first.
fn components(path: &Utf8Path) -> Vec<String> {
    let names = path.components().filter_map(|component| match component {
        Utf8Component::Normal(name) => Some(name.to_owned()),
        Utf8Component::ParentDir => Some("..".to_owned()),
        Utf8Component::Prefix(_) | Utf8Component::RootDir | Utf8Component::CurDir => None,
    });
    let mut names: Vec<String> = names.collect();
    names.reverse();
    names
}

fn refuse(path: &Utf8Path, reason: &str) -> Refusal {
    Diagnostic::new(
        Code::NotAWorkspace,
        format!("`{path}` is no workspace: it {reason}"),
    )
    .at(path.as_str())
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;

    #[test]
    fn symlinks_are_resolved() {
        let directory = tempfile::tempdir().unwrap();
        let world = World::real();
        let disk = &*world.disk;
        let root = Utf8Path::from_path(directory.path()).unwrap();
        let root = canonical(disk, root).unwrap();
        disk.create_directory(&root.join("a"), 0o700).unwrap();
        disk.create_directory(&root.join("a/b"), 0o700).unwrap();
        disk.symlink("a/b", &root.join("l")).unwrap();
        disk.symlink(root.join("l").as_str(), &root.join("a/abs"))
            .unwrap();
        disk.symlink("loop", &root.join("loop")).unwrap();
        let check = |path: &str, expected: Option<&str>| {
            let found = canonical(disk, &root.join(path)).ok();
            assert_eq!(
                found,
                expected.map(|expected| root.join(expected)),
                "{path}"
            );
        };
        check("a/b", Some("a/b"));
        check("l", Some("a/b"));
        check("a/abs", Some("a/b"));
        check("l/../abs", Some("a/b"));
        check("a/./b/../../l/", Some("a/b"));
        check("nothing", None);
        check("loop", None);
        assert!(canonical(disk, Utf8Path::new("a")).is_err());
        assert_eq!(canonical(disk, Utf8Path::new("/..")).unwrap(), "/");
    }
}
