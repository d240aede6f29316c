//! P5: `init` against git, until the tree of the first generation can be read.

use serde_json::json;

use super::super::peers::{Git, is_installed};
use super::super::place::Place;
use super::super::report::{Finding, Target, note};
use super::super::samples::{Samples, ratio};
use super::super::{Measured, Row, Settings};

pub(super) fn measure(settings: &Settings) -> Measured<Finding> {
    let [mut ours, mut commits, mut worktrees] = [(); 3].map(|()| Samples::default());
    let mut both = Samples::default();
    // Removed at the end: many unlinks make new inodes slow on some file systems.
    let mut places = Vec::new();
    for round in 0..settings.long_rounds {
        note("making the tree");
        let place = Place::new(settings)?;
        note("importing it");
        if round % 2 == 0 {
            ours.take(|| place.init())?;
        }
        if is_installed("git") {
            let git = commits
                .take(|| Git::new(&place.root()))?
                .ok_or("git went away")?;
            let worktree = place.beside("worktree");
            worktrees.take(|| git.worktree(&worktree, "HEAD"))?;
            both.add(commits.last() + worktrees.last());
        }
        if round % 2 == 1 {
            ours.take(|| place.init())?;
        }
        places.push(place);
    }
    drop(places);
    Ok(Finding {
        row: Row::P5,
        work: format!("init of {} files", settings.files),
        against: "git init, add, commit, worktree add".to_owned(),
        ratio: (both.count() > 0).then(|| ratio(both.median(), ours.median())),
        target: Target::AtLeast(2.0),
        details: json!({
            "init": ours.document(),
            "gitCommit": commits.document(),
            "gitWorktree": worktrees.document(),
        }),
    })
}
