//! P10: making a generation readable whose tree is not on disk.

use semaprax_protocol::request::{Collect, LeaseRelease};
use serde_json::json;

use super::super::peers::Git;
use super::super::place::{Place, publish, submission};
use super::super::report::{Finding, Target, note};
use super::super::samples::{Samples, ratio};
use super::super::{Measured, Row, Settings};
use super::edit::EDITS;
use super::lease::acquire;

pub(super) fn measure(settings: &Settings) -> Measured<Finding> {
    note("making the tree");
    let mut place = Place::new(settings)?;
    let git = Git::new(&place.root())?;
    place.init()?;
    let mut client = place.client()?;
    let mut versions = Vec::new();
    for _ in 0..=settings.long_rounds {
        let edits = place.edits(EDITS);
        let receipt = publish(&mut client, submission(&edits))?;
        let commit = match &git {
            Some(git) => {
                git.edit(&edits)?;
                git.publish(&edits)?;
                git.head()?
            }
            None => String::new(),
        };
        let seq = receipt.seq.ok_or("nothing was published")?;
        versions.push((seq, commit));
    }
    // The newest one stays on disk.
    versions.pop();
    place.settle();
    client.call(Collect {
        dry_run: false,
        min_age_ms: Some(0),
        keep: Some(1),
    })?;
    note("leasing old generations in turn with git");
    let [mut ours, mut worktrees] = [(); 2].map(|()| Samples::default());
    for (seq, commit) in versions {
        let granted = ours.take(|| client.call(acquire(Some(format!("@{seq}")))))?;
        client.call(LeaseRelease {
            lease: granted.lease,
        })?;
        if let Some(git) = &git {
            let worktree = place.beside(&format!("worktree-{seq}"));
            worktrees.take(|| git.worktree(&worktree, &commit))?;
        }
    }
    Ok(Finding {
        row: Row::P10,
        work: format!("lease of an old generation of {} files", settings.files),
        against: "git worktree add".to_owned(),
        ratio: git
            .is_some()
            .then(|| ratio(worktrees.median(), ours.median())),
        target: Target::AtLeast(3.0),
        details: json!({"lease": ours.document(), "gitWorktree": worktrees.document()}),
    })
}
