//! The figures of a run.

use std::collections::BTreeMap;
use std::fmt;

use super::account::Counts;

/// The figures.
#[derive(Debug, Default, Clone)]
pub struct Tally {
    /// Daemons killed, by how.
    pub kills: BTreeMap<String, u64>,
    /// Steps at which a daemon died, by scene and step.
    pub steps: BTreeMap<String, u64>,
    /// Steps that did not come when they were waited for.
    pub missed: u64,
    /// Checks made.
    pub checks: u64,
    /// Workspaces used.
    pub workspaces: u64,
    /// What the clients did.
    pub counts: Counts,
}

impl Tally {
    /// A daemon died.
    pub fn kill(&mut self, how: &str) {
        *self.kills.entry(how.to_owned()).or_default() += 1;
    }

    /// A daemon died at a step.
    pub fn step(&mut self, step: String) {
        *self.steps.entry(step).or_default() += 1;
    }

    /// All daemons killed.
    pub fn killed(&self) -> u64 {
        self.kills.values().sum()
    }

    /// Takes the counts of a workspace over.
    pub fn add(&mut self, counts: &Counts) {
        let own = &mut self.counts;
        own.published += counts.published;
        own.refused += counts.refused;
        own.found_published += counts.found_published;
        own.found_unpublished += counts.found_unpublished;
        own.replayed += counts.replayed;
        own.trees_read += counts.trees_read;
        own.collections += counts.collections;
        own.collected += counts.collected;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            published,
            refused,
            found_published,
            found_unpublished,
            replayed,
            trees_read,
            collections,
            collected,
        } = self.counts;
        writeln!(
            out,
            "{} kills {:?}, {} different steps ({} did not come), {} checks, {} workspaces",
            self.killed(),
            self.kills,
            self.steps.len(),
            self.missed,
            self.checks,
            self.workspaces
        )?;
        writeln!(
            out,
            "{published} published, {refused} refused, {} unknown ({found_published} had been published), {replayed} replayed",
            found_published + found_unpublished
        )?;
        write!(
            out,
            "{trees_read} trees read whole, {collections} collections of {collected} trees"
        )
    }
}
