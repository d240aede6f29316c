//! What Semaprax reads from others, as functions of bytes.
//!
//! Owns: the targets: each takes any bytes, and panics when what holds of every input does not hold. The
//! program `semaprax-fuzz` looks for such bytes with the coverage as its guide (`.ci/fuzz`); the suite
//! `fuzz` runs every target on the committed corpus and on mutations of it in each run of the tests.
//! Never: a disk, a socket, a clock.

mod stored;
mod text;
mod wire;

/// Takes any bytes; panics on a finding.
pub type Target = fn(&[u8]);

/// All targets by name; the corpus of each is `corpus/<name>/`.
pub const TARGETS: [(&str, Target); 14] = [
    ("active", stored::active),
    ("config", text::config),
    ("frame", wire::frame),
    ("git-index", stored::git_index),
    ("ignore", text::ignore),
    ("merge", text::merge),
    ("node", stored::node),
    ("patch", text::patch),
    ("path", text::path),
    ("record", stored::record),
    ("reply", wire::reply),
    ("request", wire::request),
    ("session", wire::session),
    ("submission", wire::submission),
];

/// The target with this name.
pub fn by_name(name: &str) -> Option<Target> {
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    found.map(|(_, target)| *target)
}

/// The input cut at the first `N - 1` NULs; what is missing is empty.
fn parts<const N: usize>(bytes: &[u8]) -> [&[u8]; N] {
    let mut parts = [&bytes[..0]; N];
    for (place, part) in bytes.splitn(N, |&byte| byte == 0).enumerate() {
        parts[place] = part;
    }
    parts
}
