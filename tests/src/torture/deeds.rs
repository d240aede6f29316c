//! What a writer does, one submission at a time.
//!
//! Owns: making the submissions of the story, with the base they were made from and what they expect of
//! it, and sending them so that the account knows of each before the daemon does.

use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use semaprax_client::{Client, sha256_of};
use semaprax_protocol::request::{Content, Request, StatusParams};
use semaprax_protocol::submission::{Change, Edit, Expect, OnStale, Read, Submission};
use semaprax_protocol::{Refusal, Revision, SchemaTag, SubmissionId};

use super::account::{Account, publish, rollback};
use super::chance::Chance;
use super::story::{self, BIG, Effect, SHARED};
use super::{lab, locked};

/// A writer: its number, its chance, its client.
#[derive(Debug)]
pub(crate) struct Writer<'account> {
    pub(crate) number: usize,
    pub(crate) chance: Chance,
    pub(crate) client: Client,
    pub(crate) account: &'account Mutex<Account>,
}

/// Whether the daemon answered at all, yes or no.
pub(crate) type Answered = bool;

/// What it may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Renames its own family, files and uses together.
    Rename,
    /// Takes the family that all want.
    Fight,
    /// Writes its line in the files that are merged.
    Merge,
    /// Replaces the large file, whatever it is.
    Enlarge,
    /// Publishes something old again.
    RollBack,
    /// Publishes what was before ACTIVE again.
    StepBack,
    /// Sends again what it sent before.
    Repeat,
}

impl Writer<'_> {
    /// One deed, chosen by chance.
    pub(super) fn act(&mut self) -> Result<Answered, Refusal> {
        let deed = match self.chance.below(100) {
            0..45 => Deed::Rename,
            45..65 => Deed::Fight,
            65..82 => Deed::Merge,
            82..88 => Deed::Enlarge,
            88..93 => Deed::RollBack,
            _ => Deed::Repeat,
        };
        self.perform(deed)
    }

    /// One deed.
    pub(crate) fn perform(&mut self, deed: Deed) -> Result<Answered, Refusal> {
        match deed {
            Deed::Rename => self.rename(),
            Deed::Fight => self.fight(),
            Deed::Merge => self.merge(),
            Deed::Enlarge => Ok(self.enlarge()),
            Deed::RollBack => {
                let back = self.chance.below(5);
                self.roll_back(back)
            }
            Deed::StepBack => self.roll_back(1),
            Deed::Repeat => self.repeat(),
        }
    }

    fn rename(&mut self) -> Result<Answered, Refusal> {
        let (_, base) = self.tip()?;
        let a_file = format!("{}/a.rs", story::own(self.number));
        let text = self.text(&base, &a_file)?;
        let old = word_after(&text, "fn ").trim_end_matches("() {").to_owned();
        let new = self.new_word();
        let before = story::own_files(self.number, &old);
        let after = story::own_files(self.number, &new);
        let mut changes = Vec::new();
        for (index, ((from, _, content), (to, _, next))) in before.iter().zip(&after).enumerate() {
            if from != to {
                changes.push(Change::Move {
                    from: from.clone(),
                    to: to.clone(),
                    recursive: false,
                    expect: None,
                    reason: None,
                });
            }
            changes.push(if index == 3 {
                put(to, next, Some(content))
            } else {
                Change::Edit {
                    path: to.clone(),
                    edits: vec![Edit {
                        old: format!("fn {old}()"),
                        new: format!("fn {new}()"),
                    }],
                    expect: (from == to).then(|| digest(content)),
                    reason: None,
                }
            });
        }
        let mut submission = self.submission(Some(base), OnStale::Rebase, changes);
        submission.reads.push(Read {
            path: "still/d0/f0.txt".to_owned(),
            sha256: Some(sha256_of(b"the 0. of those that stay\r\n")),
            absent: None,
        });
        Ok(self.publish(submission, Effect::Set(story::own(self.number), new)))
    }

    fn fight(&mut self) -> Result<Answered, Refusal> {
        let (_, base) = self.tip()?;
        let text = self.text(&base, "shared/0.txt")?;
        let old = story::shared_files(&word_after(&text, "owner: "));
        let new = self.new_word();
        let changes = story::shared_files(&new)
            .iter()
            .zip(&old)
            .map(|((path, content), (_, before))| put(path, content, Some(before)))
            .collect();
        let submission = self.submission(Some(base), OnStale::Reject, changes);
        Ok(self.publish(submission, Effect::Set(SHARED.to_owned(), new)))
    }

    fn merge(&mut self) -> Result<Answered, Refusal> {
        let (_, base) = self.tip()?;
        let text = self.text(&base, "merged/0.txt")?;
        let mut state = story::State::new();
        for writer in 0..story::WRITERS {
            let word = word_after(&text, &format!("{writer}: "));
            state.insert(story::merged(writer), word);
        }
        let old = story::merged_files(&state);
        let new = self.new_word();
        let of = story::merged(self.number);
        state.insert(of.clone(), new.clone());
        let changes = story::merged_files(&state)
            .iter()
            .zip(&old)
            .map(|((path, content), (_, before))| put(path, content, Some(before)))
            .collect();
        let submission = self.submission(Some(base), OnStale::Merge, changes);
        Ok(self.publish(submission, Effect::Set(of, new)))
    }

    fn enlarge(&mut self) -> Answered {
        let new = self.new_word();
        let change = Change::Put {
            path: "big.bin".to_owned(),
            content: None,
            content_base64: Some(BASE64.encode(story::large(&new))),
            content_blob: None,
            mode: None,
            expect: None,
            reason: None,
        };
        let submission = self.submission(None, OnStale::Reject, vec![change]);
        self.publish(submission, Effect::Set(BIG.to_owned(), new))
    }

    fn roll_back(&mut self, back: u64) -> Result<Answered, Refusal> {
        let (tip, _) = self.tip()?;
        let seq = tip.saturating_sub(back).max(1);
        let id = self.chance.submission();
        let request = rollback(seq, id, self.author());
        Ok(self.send(id, &request, Effect::Rollback(seq)))
    }

    fn repeat(&mut self) -> Result<Answered, Refusal> {
        let known: Vec<SubmissionId> = {
            let account = locked(self.account);
            let recent = account
                .sent
                .iter()
                .filter(|(_, sent)| matches!(sent.fate, super::account::Fate::Published(..)));
            recent.map(|(id, _)| *id).collect()
        };
        let Some(&id) = self.chance.pick(&known) else {
            return self.rename();
        };
        let request = {
            let account = locked(self.account);
            account.sent.get(&id).map(|sent| sent.request.clone())
        };
        let Some(request) = request else {
            return Ok(true);
        };
        let answer = lab::send(&mut self.client, &request);
        Ok(locked(self.account).answered(id, &answer))
    }

    fn publish(&mut self, submission: Submission, effect: Effect) -> Answered {
        let Some(id) = submission.id else {
            return true;
        };
        self.send(id, &publish(submission), effect)
    }

    fn send(&mut self, id: SubmissionId, request: &Request, effect: Effect) -> Answered {
        locked(self.account).send(id, request.clone(), effect);
        let answer = lab::send(&mut self.client, request);
        locked(self.account).answered(id, &answer)
    }

    fn submission(
        &mut self,
        base: Option<Revision>,
        on_stale: OnStale,
        changes: Vec<Change>,
    ) -> Submission {
        Submission {
            schema: SchemaTag::new(),
            id: Some(self.chance.submission()),
            base: base.map(|base| base.to_string()),
            on_stale,
            author: self.author(),
            message: "torture".to_owned(),
            reads: Vec::new(),
            changes,
        }
    }

    fn author(&self) -> String {
        format!("writer-{}", self.number)
    }

    fn new_word(&mut self) -> String {
        format!("w{}x{:x}", self.number, self.chance.number())
    }

    fn tip(&mut self) -> Result<(u64, Revision), Refusal> {
        let status = self.client.call(StatusParams {
            drift: false,
            limits: false,
        })?;
        Ok((status.active.seq.get(), status.active.revision))
    }

    fn text(&mut self, revision: &Revision, path: &str) -> Result<String, Refusal> {
        let chunk = self.client.call(Content {
            revision: Some(revision.to_string()),
            path: path.to_owned(),
            offset: 0,
            length: None,
        })?;
        let content = BASE64.decode(&chunk.data).unwrap_or_default();
        Ok(String::from_utf8_lossy(&content).into_owned())
    }
}

fn word_after(text: &str, start: &str) -> String {
    let found = text.lines().find_map(|line| line.strip_prefix(start));
    found.unwrap_or_default().to_owned()
}

fn digest(content: &[u8]) -> Expect {
    Expect {
        sha256: Some(sha256_of(content)),
        absent: None,
    }
}

fn put(path: &str, content: &[u8], before: Option<&[u8]>) -> Change {
    Change::Put {
        path: path.to_owned(),
        content: Some(String::from_utf8_lossy(content).into_owned()),
        content_base64: None,
        content_blob: None,
        mode: None,
        expect: before.map(digest),
        reason: None,
    }
}
