//! What is read from the disk.

use semaprax_daemon::store::active::Active;
use semaprax_daemon::store::history::Record;
use semaprax_daemon::store::tree::node_rewritten;
use semaprax_daemon::world::source::paths_of_index;
use semaprax_protocol::limits::PATH_BYTES;

/// ACTIVE has one spelling.
pub(crate) fn active(bytes: &[u8]) {
    if let Ok(active) = Active::decode(bytes) {
        assert_eq!(active.encode().unwrap(), bytes);
    }
}

/// A record has one spelling.
pub(crate) fn record(bytes: &[u8]) {
    if let Ok(record) = Record::decode(bytes) {
        assert_eq!(record.encode().unwrap(), bytes);
    }
}

/// A node has one spelling.
pub(crate) fn node(bytes: &[u8]) {
    if let Some(again) = node_rewritten(bytes) {
        assert_eq!(again, bytes);
    }
}

/// The index of a foreign git work tree, and the shared one it builds on: the first two bytes say how
/// long the latter is.
pub(crate) fn git_index(bytes: &[u8]) {
    let Some((&[high, low], rest)) = bytes.split_first_chunk() else {
        return;
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let (shared, index) = rest.split_at(length.min(rest.len()));
    let mut asked = false;
    let paths = paths_of_index(index, &mut |name| {
        asked = true;
        assert!(name.bytes().all(|byte| byte.is_ascii_hexdigit()));
        Some(shared.to_vec())
    });
    let paths = paths.unwrap_or_default();
    // An entry has 62 bytes at least.
    let most = index.len() / 62 + usize::from(asked) * (shared.len() / 62);
    assert!(paths.len() <= most, "{} of {most}", paths.len());
    assert!(
        paths
            .iter()
            .all(|path| (1..=PATH_BYTES).contains(&path.len()))
    );
}
