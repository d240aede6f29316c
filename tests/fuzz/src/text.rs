//! What people write, and what is made of texts.

use std::time::Duration;

use semaprax_client::patch::{self, FileMode, FileSide, Limits};
use semaprax_daemon::config::{Config, read_settings};
use semaprax_daemon::text::{Blame, ConflictRange, three_way};
use semaprax_daemon::world::source::rules_ignore;
use semaprax_protocol::{LogicalPath, NamePolicy, check_symlink_target};

use crate::parts;

/// Settings are read, or refused with a message.
pub(crate) fn config(bytes: &[u8]) {
    let whole_daemon = bytes.len().is_multiple_of(2);
    match read_settings(Config::default(), bytes, "config.toml".into(), whole_daemon) {
        Ok(config) => {
            // What is set in one file only is not set by the other.
            let same = config.idle_timeout == Config::default().idle_timeout;
            assert!(whole_daemon || same);
            assert!(config.retention.young <= Duration::MAX);
        }
        Err(refusal) => assert!(!refusal.diagnostics[0].message.is_empty()),
    }
}

/// A path is what it is written as, and a target is judged from where the link is.
pub(crate) fn path(bytes: &[u8]) {
    let [first, second] = parts(bytes);
    let (Ok(first), Ok(second)) = (str::from_utf8(first), str::from_utf8(second)) else {
        return;
    };
    let Ok(path) = first.parse::<LogicalPath>() else {
        return;
    };
    assert_eq!(path.as_str(), first);
    assert!(path.segments().all(LogicalPath::is_segment));
    assert_eq!(path.segments().collect::<Vec<_>>().join("/"), first);
    if let Some(parent) = path.parent() {
        assert!(path.is_below(&parent));
        assert_eq!(parent.join(path.name()).unwrap(), path);
    }
    if path.check(NamePolicy::Portable).is_ok() {
        assert!(!first.contains(['\\', ':']));
        // What is equal after folding stays so.
        let folded = path.folded();
        assert_eq!(LogicalPath::fold_segment(&folded), folded, "{first:?}");
    }
    if let Ok(other) = second.parse::<LogicalPath>() {
        assert!(!(path.is_below(&other) && other.is_below(&path)));
    }
    if check_symlink_target(&path, second).is_ok() {
        // Resolved step by step, it never leaves.
        let start = path.segments().count() - 1;
        let end = second
            .split('/')
            .try_fold(start, |depth, segment| match segment {
                "" | "." => Some(depth),
                ".." => depth.checked_sub(1),
                _ => Some(depth + 1),
            });
        assert!(end.is_some(), "{first} -> {second}");
    }
}

/// The rules of a foreign directory are matched, whatever they are.
pub(crate) fn ignore(bytes: &[u8]) {
    let [path, rules] = parts(bytes);
    if let Ok(path) = str::from_utf8(path)
        && path.parse::<LogicalPath>().is_ok()
    {
        let as_file = rules_ignore(rules, path, false);
        let as_directory = rules_ignore(rules, path, true);
        // No rules speak of nothing.
        if rules.is_empty() {
            assert_eq!((as_file, as_directory), (Some(None), Some(None)));
        }
    }
}

/// A merge does not depend on who is ours, takes the side that changed, and a conflict is a place in all
/// three. Blame gives each line one owner.
pub(crate) fn merge(bytes: &[u8]) {
    let [base, ours, theirs] = parts(bytes);
    let there = three_way(base, ours, theirs);
    let back = three_way(base, theirs, ours);
    let swap = |range: ConflictRange| ConflictRange {
        base: range.base,
        ours: range.theirs,
        theirs: range.ours,
    };
    let swapped = back.map_err(|conflicts| conflicts.into_iter().map(swap).collect::<Vec<_>>());
    assert_eq!(there, swapped);
    assert_eq!(three_way(base, base, theirs).unwrap(), theirs);
    assert_eq!(three_way(base, ours, ours).unwrap(), ours);
    let lines = |text: &[u8]| text.split_inclusive(|&byte| byte == b'\n').count() as u64;
    match &there {
        Ok(merged) => {
            // Every line of the result is a line of one of the three.
            let known: Vec<&[u8]> = [base, ours, theirs]
                .iter()
                .flat_map(|text| text.split(|&byte| byte == b'\n'))
                .collect();
            // A last line without its end may be joined to no other.
            for line in merged.split(|&byte| byte == b'\n') {
                assert!(known.contains(&line), "{line:?}");
            }
        }
        Err(conflicts) => {
            assert!(!conflicts.is_empty());
            for range in conflicts {
                for ((first, last), text) in [
                    (range.base, base),
                    (range.ours, ours),
                    (range.theirs, theirs),
                ] {
                    assert!(first >= 1 && last + 1 >= first && last <= lines(text));
                }
            }
        }
    }
    let mut blame = Blame::new(theirs);
    blame.step(ours, 3);
    blame.step(base, 2);
    assert_eq!(blame.finish(1).len() as u64, lines(theirs));
}

/// A patch is read, or refused with a line that it has; what is applied is bounded; and the difference of
/// any two texts, written as a patch, leads from the one to the other.
pub(crate) fn patch(bytes: &[u8]) {
    let [text, old, new] = parts(bytes);
    let limits = Limits {
        files: 100,
        binary_bytes: 1 << 16,
        binary_bytes_total: 1 << 17,
    };
    let lines = text.split(|&byte| byte == b'\n').count() as u64;
    match patch::parse_within(text, limits) {
        Ok(files) => {
            assert!(files.len() <= limits.files);
            for file in &files {
                assert!(file.line >= 1 && file.line <= lines);
                for content in [Some(old), Some(new), None] {
                    if let Ok(made) = patch::apply(file, content) {
                        let most = text.len() + old.len().max(new.len()) + (64 << 20);
                        assert!(made.len() <= most);
                    }
                }
            }
        }
        Err(error) => assert!(error.line <= lines + 1, "{error}"),
    }
    let side = |content: &[u8]| FileSide {
        mode: FileMode::File,
        content: content.to_vec(),
    };
    let (before, after) = (side(old), side(new));
    let mut written = Vec::new();
    patch::render_file(&mut written, Some(("a", &before)), Some(("a", &after))).unwrap();
    if old == new {
        assert!(written.is_empty());
        return;
    }
    let read = patch::parse(&written).unwrap();
    assert_eq!(read.len(), 1);
    assert_eq!(patch::apply(&read[0], Some(old)).unwrap(), new);
}
