//! The publications as the log tells them, and what each made of the story.
//!
//! Owns: reading the log on from where it was, and that each publication is of a submission somebody sent,
//! not refused, and not published before.

use std::collections::BTreeSet;

use semaprax_client::Client;
use semaprax_protocol::request::Log;
use semaprax_protocol::{Revision, SubmissionId};

use super::account::{Account, Fate};
use super::story::{self, Effect, State};
use super::{During as _, Outcome, violation};

/// Publications asked for at once.
const PAGE: u64 = 500;

/// The publications, as the log told them, and the words of each.
#[derive(Debug)]
pub struct History {
    entries: Vec<(Revision, SubmissionId)>,
    states: Vec<State>,
}

impl History {
    /// A history without publications.
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
            states: Vec::new(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The revision, submission and words of a publication.
    pub(super) fn at(&self, seq: u64) -> Option<(Revision, SubmissionId, &State)> {
        let index = usize::try_from(seq.checked_sub(1)?).ok()?;
        let (revision, submission) = self.entries.get(index)?;
        Some((*revision, *submission, self.states.get(index)?))
    }

    /// The publication of a submission.
    pub(super) fn find(&self, id: SubmissionId) -> Option<(u64, Revision)> {
        let position = self.entries.iter().position(|(_, other)| *other == id)?;
        let (revision, _) = self.entries.get(position)?;
        Some((position as u64 + 1, *revision))
    }

    /// All words that something ever had.
    pub(super) fn words_of(&self, what: &str) -> BTreeSet<&String> {
        let words = self.states.iter();
        words.filter_map(|state| state.get(what)).collect()
    }

    /// Reads the publications that are new.
    pub(super) fn extend(&mut self, client: &mut Client, account: &Account) -> Outcome<()> {
        let known = self.len() as u64;
        let mut fresh = Vec::new();
        let mut before = None;
        loop {
            let page = client
                .call(Log {
                    limit: Some(PAGE),
                    before,
                    path: None,
                    author: None,
                })
                .during(|| "log".to_owned())?;
            let enough = page.entries.iter().any(|entry| entry.seq.get() <= known);
            before = page.entries.last().map(|entry| entry.seq);
            let last = page.entries.len() < usize::try_from(PAGE).unwrap_or(0);
            fresh.extend(page.entries);
            if enough || last {
                break;
            }
        }
        fresh.reverse();
        for entry in fresh {
            let seq = entry.seq.get();
            if let Some((revision, submission, _)) = self.at(seq) {
                if (revision, submission) != (entry.revision, entry.submission) {
                    return Err(violation(format!(
                        "@{seq} was {revision} of {submission}, and is {} of {}",
                        entry.revision, entry.submission
                    )));
                }
                continue;
            }
            if seq != self.len() as u64 + 1 {
                return Err(violation(format!("@{seq} follows @{}", self.len())));
            }
            let state = self.state_after(account, seq, entry.submission)?;
            self.entries.push((entry.revision, entry.submission));
            self.states.push(state);
        }
        Ok(())
    }

    fn state_after(&self, account: &Account, seq: u64, submission: SubmissionId) -> Outcome<State> {
        if seq == 1 {
            return Ok(story::first());
        }
        let Some(sent) = account.sent.get(&submission) else {
            return Err(violation(format!(
                "@{seq} is of {submission}, which nobody sent"
            )));
        };
        if self.entries.iter().any(|(_, other)| *other == submission) {
            return Err(violation(format!(
                "{submission} was published twice, again as @{seq}"
            )));
        }
        match &sent.fate {
            Fate::Unknown => {}
            Fate::Published(acknowledged, _) if *acknowledged == seq => {}
            fate => {
                return Err(violation(format!(
                    "@{seq} is of {submission}, which was {fate:?}"
                )));
            }
        }
        let mut state = self.states.last().cloned().unwrap_or_default();
        match &sent.effect {
            Effect::Set(of, word) => {
                state.insert(of.clone(), word.clone());
            }
            Effect::Rollback(to) => {
                let (_, _, old) = self
                    .at(*to)
                    .ok_or_else(|| violation(format!("@{seq} goes back to @{to}")))?;
                state = old.clone();
            }
        }
        Ok(state)
    }
}

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}
