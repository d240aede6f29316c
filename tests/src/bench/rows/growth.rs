//! P9: what the state directory grows by, against the bytes that were published.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use camino::Utf8Path;
use semaprax_protocol::request::Collect;
use serde_json::json;

use super::super::place::{Place, publish, submission};
use super::super::report::{Finding, Target, note};
use super::super::samples::rounded;
use super::super::tree::{Shape, Sizes};
use super::super::{Measured, Row, Settings};
use super::edit::EDITS;
use super::pause;

/// Files in a directory, in the two forms.
const FORMS: [u64; 2] = [20, 1_000];
/// An idle daemon folds its log in and makes its spares within this time.
const IDLE: Duration = Duration::from_secs(3);

pub(super) fn measure(settings: &Settings) -> Measured<Vec<Finding>> {
    FORMS
        .map(|form| measure_form(settings, form))
        .into_iter()
        .collect()
}

fn measure_form(settings: &Settings, in_directory: u64) -> Measured<Finding> {
    note("making the tree");
    let shape = Shape {
        files: settings.files,
        in_directory,
        sizes: Sizes::Even,
    };
    let mut place = Place::shaped(settings, shape)?;
    place.init()?;
    let state = place.root().join(".semaprax-workspace");
    // Spares that were begun already are growth.
    let before = allocated(&state, Some("staging"))?;
    let mut client = place.client()?;
    note("publishing");
    let mut changed = 0;
    for _ in 0..settings.publications {
        let edits = place.edits(EDITS);
        changed += edits
            .iter()
            .map(|(_, content)| content.len() as u64)
            .sum::<u64>();
        publish(&mut client, submission(&edits))?;
    }
    client.call(Collect {
        dry_run: false,
        min_age_ms: None,
        keep: None,
    })?;
    place.settle();
    pause(settings.idle.min(IDLE));
    let after = allocated(&state, None)?;
    let by_part: serde_json::Map<_, _> = ["generations", "staging", "trash", "objects"]
        .into_iter()
        .map(|part| Ok((part.to_owned(), json!(allocated(&state.join(part), None)?))))
        .collect::<Measured<_>>()?;
    let log = fs::metadata(state.join("store.db-wal")).map_or(0, |found| found.blocks() * 512);
    let grown = after.saturating_sub(before);
    #[expect(clippy::cast_precision_loss, reason = "bytes of disk, for people")]
    let times = grown as f64 / changed.max(1) as f64;
    Ok(Finding {
        row: Row::P9,
        work: format!(
            "growth over {} publications, {in_directory} a directory",
            settings.publications
        ),
        against: "the bytes that were published".to_owned(),
        ratio: Some(rounded(times)),
        target: Target::AtMost(4.0),
        details: json!({
            "changedBytes": changed,
            "grownBytes": grown,
            "logBytes": log,
            "parts": by_part,
        }),
    })
}

/// Bytes that a directory takes on disk, without what is below a name in it. What has several names
/// counts once.
fn allocated(directory: &Utf8Path, without: Option<&str>) -> Measured<u64> {
    let mut seen = BTreeSet::new();
    let mut open = vec![directory.to_owned()];
    let mut bytes = 0;
    while let Some(place) = open.pop() {
        let Ok(names) = place.read_dir_utf8() else {
            continue;
        };
        for entry in names {
            let entry = entry?;
            if place == directory && Some(entry.file_name()) == without {
                continue;
            }
            // The daemon may be removing it.
            let Ok(found) = fs::symlink_metadata(entry.path()) else {
                continue;
            };
            if seen.insert(found.ino()) {
                bytes += found.blocks() * 512;
            }
            if found.is_dir() {
                open.push(entry.into_path());
            }
        }
    }
    Ok(bytes)
}
