//! P1 and P3: a durable publication of five files over the socket, in turn with git and with the floor.

use serde_json::json;

use super::super::peers::{Floor, Git};
use super::super::place::{Place, publish, submission};
use super::super::report::{Finding, Target, note};
use super::super::samples::{Samples, ratio};
use super::super::{Measured, Row, Settings};

/// Files of an edit.
pub const EDITS: u64 = 5;
/// Publications before anything is timed.
pub(super) const WARM_UP: usize = 3;

pub(super) fn measure(settings: &Settings) -> Measured<Vec<Finding>> {
    note("making the tree");
    let mut place = Place::new(settings)?;
    let git = Git::new(&place.root())?;
    place.init()?;
    let mut floor = Floor::new(&place.beside("floor"))?;
    let mut client = place.client()?;
    for _ in 0..WARM_UP {
        publish(&mut client, submission(&place.edits(EDITS)))?;
    }
    let has_spares = place.settle();
    note("publishing in turn with git and the floor");
    let [mut ours, mut floors, mut commits] = [(); 3].map(|()| Samples::default());
    for _ in 0..settings.rounds {
        let edits = place.edits(EDITS);
        let sent = submission(&edits);
        ours.take(|| publish(&mut client, sent))?;
        floors.take(|| floor.publish())?;
        if let Some(git) = &git {
            git.edit(&edits)?;
            commits.take(|| git.publish(&edits))?;
        }
    }
    note("publishing without a pause");
    let mut without_pause = Samples::default();
    for _ in 0..settings.rounds {
        let sent = submission(&place.edits(EDITS));
        without_pause.take(|| publish(&mut client, sent))?;
    }
    let work = format!(
        "publish of {EDITS} of {} files, {} a directory",
        settings.files, settings.in_directory
    );
    let details = json!({
        "publish": ours.document(),
        "withoutPause": without_pause.document(),
        "floor": floors.document(),
        "git": git.is_some().then(|| commits.document()),
        "gitToFloor": git.is_some().then(|| ratio(commits.median(), floors.median())),
        "spares": has_spares,
    });
    let against_git = git
        .is_some()
        .then(|| ratio(commits.median(), ours.median()));
    let against_floor = ratio(ours.median(), floors.median());
    Ok(vec![
        Finding {
            row: Row::P1,
            work: work.clone(),
            against: "git add + git commit".to_owned(),
            ratio: against_git,
            target: Target::AtLeast(20.0),
            details: details.clone(),
        },
        Finding {
            row: Row::P3,
            work,
            against: "the same bytes and syncs".to_owned(),
            ratio: Some(against_floor),
            target: Target::AtMost(3.0),
            details,
        },
    ])
}
