//! What is asked after each restart.
//!
//! Owns: the questions, in order: is what was acknowledged there and nothing that was refused; what
//! became of the unknown, by repeating it; is the journal whole; are the trees, leases and pins what they
//! were; is nothing left over; does `verify --deep` agree.
//! Never: asks while others work.

use std::collections::BTreeSet;

use semaprax_client::Client;
use semaprax_protocol::documents::{EventKind, JournalEntry, VerificationStatus};
use semaprax_protocol::request::{Journal, List, StatusParams, Verify};

use super::account::{Account, Fate, Seen};
use super::history::History;
use super::lab::{Lab, read_tree, send};
use super::readers::{Guard, active};
use super::story;
use super::{During as _, Outcome, violation};
use crate::oracle::are_spares;

/// The names a state directory may hold.
const STATE_NAMES: [&str; 16] = [
    "LOCK",
    "ACTIVE",
    "store.db",
    "store.db-wal",
    "store.db-shm",
    "objects",
    "generations",
    "staging",
    "trash",
    "changes",
    ".gitignore",
    ".ignore",
    "CACHEDIR.TAG",
    "reserve",
    "index.db",
    "config.toml",
];

/// What a client without a daemon sees of the workspace of a dead one.
pub fn look_from_disk(lab: &Lab, account: &mut Account) -> Outcome<()> {
    let (seq, revision) = active(lab).map_err(violation)?;
    let mut client = lab
        .modest_client()
        .during(|| "reading from disk".to_owned())?;
    if client.daemon().is_some() {
        return Ok(());
    }
    let status = client
        .call(StatusParams {
            drift: false,
            limits: false,
        })
        .during(|| "status from disk".to_owned())?;
    let told = (status.active.seq.get(), status.active.revision);
    if told != (seq, revision) {
        return Err(violation(format!(
            "ACTIVE says @{seq} {revision}, status says {told:?}"
        )));
    }
    account.seen.push(Seen {
        seq,
        revision,
        state: None,
    });
    Ok(())
}

/// One check.
#[derive(Debug)]
pub struct Check<'lab> {
    /// Where.
    pub lab: &'lab Lab,
    /// What was promised.
    pub account: &'lab mut Account,
    /// What was there before.
    pub history: &'lab mut History,
    /// The client that asks.
    pub client: Client,
    /// How many publications were known before this check.
    pub known: usize,
    /// Of how many of the newest publications content is kept; of all without it.
    pub kept: Option<u64>,
}

impl Check<'_> {
    /// Asks everything. `fresh` when the daemon has just been started and nothing was done with it yet.
    pub(crate) fn everything(&mut self, fresh: bool, guards: &[Guard]) -> Outcome<()> {
        if let Some(first) = self.account.violations.first() {
            return Err(violation(first.clone()));
        }
        self.known = self.history.len();
        if fresh {
            self.nothing_staged()?;
        }
        self.publications()?;
        self.leases(fresh)?;
        self.unknown()?;
        self.readers()?;
        self.journal()?;
        self.trees()?;
        self.pins()?;
        self.subscriber()?;
        self.garbage()?;
        self.held_trees(guards)?;
        self.verify()
    }

    fn nothing_staged(&self) -> Outcome<()> {
        let left = self.lab.names("staging");
        if !are_spares(&left) {
            return Err(violation(format!("recovery left {left:?} in staging")));
        }
        let names = self.lab.names("");
        match names
            .iter()
            .find(|name| !STATE_NAMES.contains(&name.as_str()))
        {
            None => Ok(()),
            Some(name) => Err(violation(format!("recovery left `{name}`"))),
        }
    }

    /// Everything acknowledged is there, and everything there was sent and not refused.
    fn publications(&mut self) -> Outcome<()> {
        self.history.extend(&mut self.client, self.account)?;
        for (id, sent) in &self.account.sent {
            if let Fate::Published(seq, revision) = sent.fate {
                match self.history.at(seq) {
                    Some((found, submission, _)) if (found, submission) == (revision, *id) => {}
                    found => {
                        return Err(violation(format!(
                            "@{seq} {revision} of {id} was acknowledged; there is {found:?}"
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    /// Repeats what has no known outcome: in effect once, whichever way it went.
    fn unknown(&mut self) -> Outcome<()> {
        for id in self.account.unknown() {
            let Some(sent) = self.account.sent.get(&id).cloned() else {
                continue;
            };
            let found = self.history.find(id);
            let answer = send(&mut self.client, &sent.request);
            if !self.account.answered(id, &answer) {
                return Err(violation(format!("repeating {id}: {answer:?}")));
            }
            let fate = self.account.sent.get(&id).map(|sent| sent.fate.clone());
            let replayed = answer.as_ref().is_ok_and(|receipt| receipt.replayed);
            match (found, fate) {
                (Some((seq, revision)), Some(Fate::Published(now, other)))
                    if replayed && (seq, revision) == (now, other) =>
                {
                    self.account.counts.found_published += 1;
                }
                (None, Some(Fate::Published(..))) if !replayed => {
                    self.account.counts.found_unpublished += 1;
                }
                (None, Some(Fate::Unchanged | Fate::Refused(_))) => {
                    self.account.counts.found_unpublished += 1;
                }
                (found, fate) => {
                    return Err(violation(format!(
                        "{id} was published as {found:?}; repeated it is {fate:?}, replayed: {replayed}"
                    )));
                }
            }
            self.history.extend(&mut self.client, self.account)?;
        }
        self.publications()
    }

    /// What was seen was published, and stays so.
    fn readers(&mut self) -> Outcome<()> {
        for seen in std::mem::take(&mut self.account.seen) {
            let seq = seen.seq;
            match self.history.at(seq) {
                Some((revision, ..)) if revision != seen.revision => {
                    return Err(violation(format!(
                        "a reader saw {} as @{seq}, which is {revision}",
                        seen.revision
                    )));
                }
                Some((_, _, state)) if seen.state.as_ref().is_none_or(|seen| seen == state) => {}
                Some((_, _, state)) => {
                    let seen = seen.state;
                    return Err(violation(format!(
                        "a reader saw {seen:?} as @{seq}, which is {state:?}"
                    )));
                }
                None => {
                    return Err(violation(format!(
                        "a reader saw @{seq}, which is not there"
                    )));
                }
            }
        }
        Ok(())
    }

    /// The chain goes on where it was, and tells every refusal.
    fn journal(&mut self) -> Outcome<()> {
        loop {
            let last = self.account.journal;
            let since = last.map_or(0, |(entry, _)| entry - 1);
            let page = self
                .client
                .call(Journal {
                    since,
                    limit: None,
                    wait_ms: None,
                })
                .during(|| "journal".to_owned())?;
            if let Some((entry, digest)) = last {
                let again = page.entries.first();
                if again.map(|found| (found.entry, found.digest)) != Some((entry, digest)) {
                    return Err(violation(format!(
                        "journal entry {entry} was {digest}, is {again:?}"
                    )));
                }
            }
            for entry in page.entries.iter().skip(usize::from(last.is_some())) {
                self.journal_entry(entry)?;
            }
            if !page.more {
                break;
            }
        }
        let told = &self.account.told;
        match self.account.refusals.iter().find(|id| !told.contains(id)) {
            None => Ok(()),
            Some(id) => Err(violation(format!(
                "the refusal of {id} is not in the journal"
            ))),
        }
    }

    fn journal_entry(&mut self, entry: &JournalEntry) -> Outcome<()> {
        let (number, prev) = match self.account.journal {
            Some((number, digest)) => (number + 1, Some(digest)),
            None => (1, None),
        };
        if (entry.entry, entry.prev) != (number, prev) {
            return Err(violation(format!(
                "journal entry {} with {:?} follows {:?}",
                entry.entry, entry.prev, self.account.journal
            )));
        }
        self.account.journal = Some((entry.entry, entry.digest));
        if entry.kind == "refused"
            && let Some(id) = entry.detail["submission"].as_str()
            && let Ok(id) = id.parse()
        {
            self.account.told.insert(id);
        }
        Ok(())
    }

    /// A subscriber that goes on from its token gets every publication once, in order, with the exact
    /// paths.
    fn subscriber(&mut self) -> Outcome<()> {
        let token = self.account.token.take();
        let client = self.lab.client().during(|| "subscribing".to_owned())?;
        let mut watch = client.watch(token.clone()).during(|| "watch".to_owned())?;
        let mut next = || watch.next_event().during(|| "watch".to_owned());
        let start = next()?;
        let tip = self.history.len() as u64;
        // Where old content is let go of, a subscriber may be told to begin afresh.
        if token.is_some() && self.kept.is_none() && start.event != EventKind::Snapshot {
            return Err(violation(format!("{token:?} is answered with {start:?}")));
        }
        let mut last = start.token;
        for seq in start.seq.get() + 1..=tip {
            let event = next()?;
            let Some((revision, _, state)) = self.history.at(seq) else {
                return Err(violation(format!("there is no @{seq}")));
            };
            if (event.seq.get(), event.revision) != (seq, revision) {
                return Err(violation(format!(
                    "a subscriber is told {event:?} as @{seq}"
                )));
            }
            let before = self.history.at(seq - 1).map(|(_, _, state)| state);
            let expected = before.map(|before| story::changed(before, state));
            let told: Option<BTreeSet<String>> = event.changes.map(|changes| {
                let paths = changes.into_iter().flat_map(|change| {
                    [
                        Some(change.path.to_string()),
                        change.from.map(|from| from.to_string()),
                    ]
                });
                paths.flatten().collect()
            });
            if told != expected {
                return Err(violation(format!(
                    "@{seq} changed {expected:?}, told is {told:?}"
                )));
            }
            last = event.token;
        }
        self.account.token = Some(last);
        Ok(())
    }

    /// The trees of what is new, and of ACTIVE on disk.
    fn trees(&mut self) -> Outcome<()> {
        let tip = self.history.len() as u64;
        let mut first = (self.known as u64 + 1).min(tip);
        if let Some(kept) = self.kept {
            first = first.max((tip + 1).saturating_sub(kept));
        }
        for seq in first..=tip {
            let listing = self
                .client
                .call(List {
                    revision: Some(format!("@{seq}")),
                    prefix: None,
                    after: None,
                    limit: None,
                })
                .during(|| format!("ls @{seq}"))?;
            let Some((_, _, state)) = self.history.at(seq) else {
                continue;
            };
            let expected: BTreeSet<_> = story::render(state)
                .into_iter()
                .map(|(path, (kind, content))| (path, kind, semaprax_client::sha256_of(&content)))
                .collect();
            let found: BTreeSet<_> = listing
                .entries
                .into_iter()
                .map(|entry| (entry.path.to_string(), entry.kind, entry.sha256))
                .collect();
            if expected != found {
                let wrong: Vec<_> = expected.symmetric_difference(&found).collect();
                return Err(violation(format!("@{seq} holds something else: {wrong:?}")));
            }
        }
        let held = self
            .client
            .hold(None, "check")
            .during(|| "holding the tip".to_owned())?;
        self.tree_of(held.seq.get(), &held.tree)
    }

    pub(super) fn tree_of(&self, seq: u64, tree: &camino::Utf8Path) -> Outcome<()> {
        let files = read_tree(tree).during(|| format!("the tree of @{seq}"))?;
        let Some((_, _, state)) = self.history.at(seq) else {
            return Err(violation(format!("there is no @{seq}")));
        };
        match story::difference(&story::render(state), &files) {
            None => Ok(()),
            Some(difference) => Err(violation(format!("the tree of @{seq}: {difference}"))),
        }
    }

    fn verify(&mut self) -> Outcome<()> {
        let found = self
            .client
            .call(Verify {
                deep: true,
                repair: false,
                directory: None,
            })
            .during(|| "verify".to_owned())?;
        if found.status != VerificationStatus::Ok {
            return Err(violation(format!("verify --deep: {:?}", found.damage)));
        }
        Ok(())
    }
}
