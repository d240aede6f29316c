//! `ostree` and `watchman`: the same work by other programs, where they are installed. Not judged: neither
//! promises what a publication promises.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::super::peers::{Ostree, Watchman};
use super::super::place::{Place, publish, submission};
use super::super::report::{Finding, Target, note};
use super::super::samples::{Samples, ratio};
use super::super::{Measured, Row, Settings};
use super::edit::{EDITS, WARM_UP};

/// Rounds, at most: they take long.
const ROUNDS: usize = 20;

fn write(place: &Place, edits: &[(String, String)]) -> Measured<()> {
    for (path, content) in edits {
        std::fs::write(place.root().join(path), content)?;
    }
    Ok(())
}

fn finding(row: Row, work: String, against: &str, times: Option<(Samples, Samples)>) -> Finding {
    let (ratio, details) = match times {
        Some((ours, theirs)) => (
            Some(ratio(theirs.median(), ours.median())),
            json!({"ours": ours.document(), "theirs": theirs.document()}),
        ),
        None => (None, Value::Null),
    };
    Finding {
        row,
        work,
        against: against.to_owned(),
        ratio,
        target: Target::Any,
        details,
    }
}

/// A publication of five files against `ostree commit` of the whole directory.
pub(super) fn ostree(settings: &Settings) -> Measured<Finding> {
    let work = format!("publish of {EDITS} of {} files", settings.files);
    let against = "ostree commit";
    note("making two trees");
    // Of its own: a state directory would be committed with the rest.
    let other = Place::new(settings)?;
    let Some(ostree) = Ostree::new(&other.beside("repository"), &other.root())? else {
        return Ok(finding(Row::Ostree, work, against, None));
    };
    let mut place = Place::new(settings)?;
    place.init()?;
    let mut client = place.client()?;
    for _ in 0..WARM_UP {
        publish(&mut client, submission(&place.edits(EDITS)))?;
    }
    place.settle();
    note("publishing in turn with ostree");
    let [mut ours, mut theirs] = [(); 2].map(|()| Samples::default());
    for _ in 0..settings.rounds.min(ROUNDS) {
        let edits = place.edits(EDITS);
        let sent = submission(&edits);
        ours.take(|| publish(&mut client, sent))?;
        write(&other, &edits)?;
        theirs.take(|| ostree.publish())?;
    }
    Ok(finding(Row::Ostree, work, against, Some((ours, theirs))))
}

/// What changed since the last look, each asked by a command of its own.
pub(super) fn watchman(settings: &Settings) -> Measured<Finding> {
    let work = format!("diff of {EDITS} of {} files", settings.files);
    let against = "watchman since";
    note("making two trees");
    let other = Place::new(settings)?;
    let Some(watchman) = Watchman::new(&other.beside("watchman"), &other.root())? else {
        return Ok(finding(Row::Watchman, work, against, None));
    };
    let mut place = Place::new(settings)?;
    place.init()?;
    let mut client = place.client()?;
    note("asking in turn with watchman");
    let [mut ours, mut theirs] = [(); 2].map(|()| Samples::default());
    for _ in 0..settings.rounds.min(ROUNDS) {
        let edits = place.edits(EDITS);
        publish(&mut client, submission(&edits))?;
        ours.take(|| diff(&place))?;
        let clock = watchman.clock()?;
        write(&other, &edits)?;
        let seen = theirs.take(|| watchman.since(&clock))?;
        if seen as u64 != EDITS {
            return Err(format!("watchman tells of {seen} files, and {EDITS} changed").into());
        }
    }
    Ok(finding(Row::Watchman, work, against, Some((ours, theirs))))
}

/// `diff` of the newest publication, by the command.
fn diff(place: &Place) -> Measured<()> {
    let status = Command::new(place.program())
        .env("SEMAPRAX_RUNTIME_DIR", place.beside("run"))
        .current_dir(place.root())
        .args(["diff", "@-1", "--json"])
        .stdout(Stdio::null())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("diff ended with {status}").into())
    }
}
