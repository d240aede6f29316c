//! File systems in files: made, mounted, copied at an instant, and taken away again.
//!
//! Owns: images of the kinds a workspace is tried on (`image`), the private place they lie in with
//! everything that is mounted below it (`place`), and whether this machine can do it at all.
//! Never: a loop device or a mount that is not below a place of its own. `mount` picks the loop device
//! and the kernel gives it back at the unmount, so no number of a device is ever named here.

mod image;
mod place;

use std::path::Path;

pub use image::{Image, Kind, Mounted, Shelf};
pub use place::{BASE, Place};

/// Why images of these kinds cannot be mounted here; `None` when they can.
pub fn missing(kinds: &[Kind]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root can mount".to_owned());
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some("there are no loop devices".to_owned());
    }
    let programs = kinds.iter().flat_map(|kind| kind.programs());
    let missing = programs.copied().find(|name| !is_there(name))?;
    Some(format!("the program `{missing}` is missing"))
}

/// Whether images of these kinds can be mounted here. When not, it says why in a line; on CI, where
/// everything is to be there, that is a failure.
#[track_caller]
pub fn can_mount(kinds: &[Kind]) -> bool {
    let Some(why) = missing(kinds) else {
        return true;
    };
    assert!(std::env::var_os("CI").is_none(), "not tried: {why}");
    println!("not tried: {why}");
    false
}

/// Whether a program is on the path.
pub fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
