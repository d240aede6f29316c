//! P4: clients that publish disjoint edits of one file at once, against one that does it in turn.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use semaprax_client::Client;
use serde_json::json;

use super::super::peers::Git;
use super::super::place::{Place, publish, submission};
use super::super::report::{Finding, Target, note};
use super::super::samples::{Samples, ratio};
use super::super::{Measured, Row, Settings};

/// Rounds of all clients at once.
const CROWDS: usize = 8;
/// Commits of git.
const COMMITS: usize = 10;

pub(super) fn measure(settings: &Settings) -> Measured<Finding> {
    let count = settings.clients;
    note("making the tree");
    let mut place = Place::new(settings)?;
    let git = Git::new(&place.root())?;
    place.init()?;
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(place.client()?);
    }
    place.settle();
    note("all at once, in turn with as many one after the other");
    let [mut crowds, mut queues, mut commits] = [(); 3].map(|()| Samples::default());
    for _ in 0..settings.rounds.min(CROWDS) {
        place.settle();
        crowds.add(at_once(&mut place, &mut clients)?);
        place.settle();
        let all: Vec<_> = (0..count).map(|_| submission(&place.edits(1))).collect();
        let first = clients.first_mut().ok_or("no client")?;
        queues.take(|| -> Measured<()> {
            for sent in all {
                publish(first, sent)?;
            }
            Ok(())
        })?;
    }
    if let Some(git) = &git {
        for _ in 0..settings.rounds.min(COMMITS) {
            let edits = place.edits(1);
            git.edit(&edits)?;
            commits.take(|| git.publish(&edits))?;
        }
    }
    let each = crowds.median() / u32::try_from(count)?;
    Ok(Finding {
        row: Row::P4,
        work: format!(
            "{count} clients, one file each, of {} files",
            settings.files
        ),
        against: "one client, one after the other".to_owned(),
        ratio: Some(ratio(queues.median(), crowds.median())),
        target: Target::AtLeast(5.0),
        details: json!({
            "allAtOnce": crowds.document(),
            "oneAfterTheOther": queues.document(),
            "git": git.is_some().then(|| commits.document()),
            "timesGit": git.is_some().then(|| ratio(commits.median(), each)),
            "timesGitTarget": 100,
        }),
    })
}

/// How long it takes until the last of all clients has its receipt.
pub fn at_once(place: &mut Place, clients: &mut [Client]) -> Measured<Duration> {
    let edits = place.edits(clients.len() as u64);
    let barrier = Barrier::new(clients.len() + 1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .iter_mut()
            .zip(edits)
            .map(|(client, edit)| {
                let barrier = &barrier;
                let sent = submission(&[edit]);
                scope.spawn(move || {
                    barrier.wait();
                    publish(client, sent).map(drop)
                })
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        for thread in threads {
            thread.join().map_err(|_| "a client panicked")??;
        }
        Ok(start.elapsed())
    })
}
