//! One sequence: each step is asked of the workspace and of the model, and both are compared.

use std::collections::{BTreeMap, BTreeSet};

use semaprax_protocol::documents::{Receipt, ReceiptStatus};
use semaprax_protocol::request::{
    Attribution, Collect, LeaseAcquire, Pin, PublishOptions, Revert, Rollback, Undo, Unpin,
};
use semaprax_protocol::submission::Submission;
use semaprax_protocol::{Code, LeaseId, Refusal, SubmissionId};
use semaprax_tests::fixture::{Fixture, id, submission, verification};
use semaprax_tests::model::{Content, Verdict, combine, submit};
use semaprax_tests::oracle;

use crate::step::{Step, lines};

struct Held {
    lease: LeaseId,
    /// Index of the publication, from 0.
    publication: usize,
    /// When it ends, in seconds of the model's clock; `None` with its connection.
    end: Option<u64>,
}

struct Sent {
    submission: Submission,
    /// The receipt, when it bound its id.
    outcome: Option<Receipt>,
}

/// A workspace and the model of it.
pub struct Run {
    fixture: Fixture,
    publications: Vec<Content>,
    held: Vec<Held>,
    sent: Vec<Sent>,
    pinned: BTreeSet<usize>,
    seconds: u64,
    ids: u64,
}

impl Run {
    pub fn new() -> Self {
        let whole = lines(None);
        let fixture = Fixture::with_files(&[("a", &whole), ("d/x", &whole), ("t", "t\n")]);
        let content = fixture.stored("@").unwrap();
        Self {
            fixture,
            publications: vec![content],
            held: Vec::new(),
            sent: Vec::new(),
            pinned: BTreeSet::new(),
            seconds: 0,
            ids: 0,
        }
    }

    fn tip(&self) -> &Content {
        self.publications.last().unwrap()
    }

    /// The publication this many before ACTIVE, or the first.
    fn back(&self, steps: usize) -> usize {
        (self.publications.len() - 1).saturating_sub(steps)
    }

    fn next_id(&mut self) -> SubmissionId {
        self.ids += 1;
        id(self.ids)
    }

    /// Takes a step, and checks everything.
    pub fn take(&mut self, step: &Step) {
        self.fixture.tick();
        self.seconds += 1;
        self.held
            .retain(|held| held.end.is_none_or(|end| end > self.seconds));
        self.carry_out(step);
        self.check(step);
    }

    fn carry_out(&mut self, step: &Step) {
        match step {
            Step::Submit {
                base,
                on_stale,
                changes,
                dry_run,
            } => {
                let base = base.map(|steps| self.back(steps));
                let mut sent = submission(changes.clone());
                sent.id = Some(self.next_id());
                sent.base = base.map(|index| format!("@{}", index + 1));
                sent.on_stale = *on_stale;
                let content = base.map_or(self.tip(), |index| &self.publications[index]);
                let verdict = submit(content, self.tip(), changes, *on_stale);
                let outcome = self.fixture.submit(sent.clone(), *dry_run);
                self.judge(verdict, &outcome, *dry_run);
                let outcome = outcome.ok().filter(|_| !dry_run);
                self.sent.push(Sent {
                    submission: sent,
                    outcome,
                });
            }
            Step::Repeat(back) => self.repeat(*back),
            Step::Rollback(back) => {
                let index = self.back(*back);
                let verdict = Verdict::Becomes(self.publications[index].clone());
                let outcome = self.fixture.perform(Rollback {
                    revision: format!("@{}", index + 1),
                    attribution: Attribution::default(),
                    options: PublishOptions::default(),
                });
                self.judge(verdict, &outcome, false);
            }
            Step::Revert(back) => {
                let index = self.back(*back);
                let verdict = self.reverted(index);
                let outcome = self.fixture.perform(Revert {
                    seq: (index as u64 + 1).to_string().parse().unwrap(),
                    attribution: Attribution::default(),
                    options: PublishOptions::default(),
                });
                self.judge(verdict, &outcome, false);
            }
            Step::Undo => {
                let verdict = self.reverted(self.publications.len() - 1);
                let outcome = self.fixture.perform(Undo {
                    attribution: Attribution::default(),
                    options: PublishOptions::default(),
                });
                self.judge(verdict, &outcome, false);
            }
            _ => self.keep_house(step),
        }
    }

    fn reverted(&self, index: usize) -> Verdict {
        if index == 0 {
            return Verdict::Refused(Code::NotFound);
        }
        let (before, after) = (&self.publications[index - 1], &self.publications[index]);
        combine(after, self.tip(), before)
    }

    fn repeat(&mut self, back: usize) {
        let Some(place) = self.sent.len().checked_sub(back + 1) else {
            return;
        };
        let Sent {
            submission: sent,
            outcome: Some(first),
        } = &self.sent[place]
        else {
            return;
        };
        let again = self.fixture.submit(sent.clone(), false).unwrap();
        assert!(again.replayed);
        assert_eq!(again.seq, first.seq);
        assert_eq!(again.revision, first.revision);
        assert_eq!(again.changes, first.changes);
        let mut other = sent.clone();
        other.message.push('!');
        let refusal = self.fixture.submit(other, false).unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidSubmission);
    }

    fn keep_house(&mut self, step: &Step) {
        match step {
            Step::Lease(back) => {
                let publication = self.back(*back);
                let revision = format!("@{}", publication + 1);
                let grant = self.fixture.acquire(Some(&revision)).unwrap();
                self.held.push(Held {
                    lease: grant.lease,
                    publication,
                    end: None,
                });
            }
            Step::LeaseDetached(back, ttl) => {
                let publication = self.back(*back);
                let grant = self.fixture.perform(LeaseAcquire {
                    revision: Some(format!("@{}", publication + 1)),
                    ttl_ms: Some(ttl * 1000),
                    owner: String::new(),
                });
                self.held.push(Held {
                    lease: grant.unwrap().lease,
                    publication,
                    end: Some(self.seconds + ttl),
                });
            }
            Step::Release(index) if *index < self.held.len() => {
                let held = self.held.remove(*index);
                self.fixture.release(held.lease).unwrap();
            }
            Step::Pin(back) => {
                let publication = self.back(*back);
                let revision = format!("@{}", publication + 1);
                let request = Pin {
                    revision,
                    reason: String::new(),
                };
                self.fixture.perform(request).unwrap();
                self.pinned.insert(publication);
            }
            Step::Unpin(back) => {
                let publication = self.back(*back);
                let revision = format!("@{}", publication + 1);
                self.fixture.perform(Unpin { revision }).unwrap();
                self.pinned.remove(&publication);
            }
            Step::Collect { keep, min_age } => self.collect(*keep, *min_age),
            Step::Advance(seconds) => {
                self.fixture
                    .test
                    .clock
                    .advance(std::time::Duration::from_secs(*seconds));
                self.seconds += seconds;
                self.held
                    .retain(|held| held.end.is_none_or(|end| end > self.seconds));
            }
            Step::Idle => drop(self.fixture.writer().idle()),
            Step::Reopen => {
                self.fixture.close();
                self.reopen();
            }
            Step::Kill => {
                self.fixture.kill();
                self.reopen();
            }
            Step::Reboot => {
                self.fixture.kill();
                let boot = format!("boot of second {}", self.seconds);
                self.fixture.test.clock.reboot(Some(&boot));
                self.reopen();
            }
            _ => {}
        }
    }

    /// The leases of connections end with the daemon.
    fn reopen(&mut self) {
        self.held.retain(|held| held.end.is_some());
        self.fixture.open().unwrap();
    }

    fn kept(&self) -> BTreeSet<usize> {
        let leased = self.held.iter().map(|held| held.publication);
        let active = self.publications.len() - 1;
        self.pinned
            .iter()
            .copied()
            .chain(leased)
            .chain([active])
            .collect()
    }

    fn collect(&mut self, keep: u64, min_age: u64) {
        let collection = self
            .fixture
            .perform(Collect {
                dry_run: false,
                min_age_ms: Some(min_age * 1000),
                keep: Some(keep),
            })
            .unwrap();
        let revisions: BTreeMap<_, usize> = (0..self.publications.len())
            .map(|index| (self.fixture.revision(index as u64 + 1), index))
            .collect();
        let kept = self.kept();
        let newest = self
            .publications
            .len()
            .saturating_sub(usize::try_from(keep).unwrap());
        for revision in &collection.removed {
            let index = revisions[revision];
            assert!(!kept.contains(&index), "@{} was kept", index + 1);
            assert!(index < newest, "@{} is one of the newest {keep}", index + 1);
            assert!(!self.fixture.files_of(revision).exists());
        }
        for revision in &collection.kept {
            assert!(!revision.reasons.is_empty());
        }
    }

    /// Compares an outcome with what the model says, and takes a publication into the model.
    fn judge(&mut self, verdict: Verdict, outcome: &Result<Receipt, Refusal>, dry_run: bool) {
        let expect = match (verdict, outcome) {
            (Verdict::Refused(code), Err(refusal)) => {
                assert_eq!(refusal.code(), code, "{refusal}");
                return;
            }
            (Verdict::Refused(code), Ok(receipt)) => {
                panic!("the model refuses with {code}; got {receipt:?}")
            }
            (Verdict::Becomes(content), Ok(_)) => content,
            (Verdict::Becomes(_), Err(refusal)) => panic!("the model accepts; got {refusal:?}"),
            (Verdict::Undecided(..), Err(refusal)) => {
                assert!(
                    matches!(refusal.code(), Code::MergeConflict | Code::PathCollision),
                    "{refusal}"
                );
                return;
            }
            (Verdict::Undecided(..), Ok(_)) if dry_run => return,
            (Verdict::Undecided(mut content, doubtful), Ok(receipt)) => {
                // What only one side changed is decided; the rest is as the workspace has it.
                let found = self.fixture.stored("@").unwrap();
                for path in &doubtful {
                    match found.get(path) {
                        Some(leaf) => drop(content.insert(path.clone(), leaf.clone())),
                        None => drop(content.remove(path)),
                    }
                }
                for path in &receipt.merged {
                    assert!(
                        doubtful.contains(path.as_str()),
                        "`{path}` had nothing to merge"
                    );
                }
                content
            }
        };
        let receipt = outcome.as_ref().unwrap();
        let is_new = expect != *self.tip();
        let status = match (dry_run, is_new) {
            (_, false) => ReceiptStatus::Unchanged,
            (true, true) => ReceiptStatus::Ready,
            (false, true) => ReceiptStatus::Published,
        };
        assert_eq!(receipt.status, status, "{receipt:?}");
        if status == ReceiptStatus::Published {
            self.publications.push(expect);
            assert_eq!(receipt.seq.unwrap().get(), self.publications.len() as u64);
            assert_eq!(receipt.file_count, self.tip().len() as u64);
        }
    }

    fn check(&mut self, step: &Step) {
        oracle::check_active(&self.fixture, self.tip());
        for held in &self.held {
            let revision = self.fixture.revision(held.publication as u64 + 1);
            let found = oracle::tree_on_disk(&self.fixture.files_of(&revision));
            assert_eq!(
                oracle::shown(&found),
                oracle::shown(&self.publications[held.publication]),
                "the tree of @{} under lease, after {step:?}",
                held.publication + 1
            );
        }
        for (index, content) in self.publications.iter().enumerate() {
            let stored = self.fixture.stored(&format!("@{}", index + 1)).unwrap();
            assert_eq!(
                oracle::shown(&stored),
                oracle::shown(content),
                "@{}",
                index + 1
            );
        }
        let found = self.fixture.verify(true, false);
        assert_eq!(verification(&found), "ok", "after {step:?}");
    }
}
