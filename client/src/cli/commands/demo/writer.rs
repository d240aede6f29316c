//! A writer: renames identifiers, again and again, each across all the files that use it.
//!
//! Owns: read under a lease, change, submit; when refused as stale, read again and try again.
//! Never: gives up a rename because another writer was faster, or submits what it has not read.

use std::sync::Arc;

use semaprax_protocol::request::PublishOptions;
use semaprax_protocol::submission::{OnStale, Read, Submission};
use semaprax_protocol::{Code, Refusal, Revision, SchemaTag};

use super::chance::Chance;
use super::course::{Allowance, Course};
use super::group::{Contents, Group};
use super::reader::read_paths;
use crate::files::Stopwatch;
use crate::{Client, Held, error, sha256_of};

/// What a writer does when it is late, in turn.
const POLICIES: [OnStale; 5] = [
    OnStale::Rebase,
    OnStale::Merge,
    OnStale::Reject,
    OnStale::Rebase,
    OnStale::Merge,
];

/// Refusals after which a writer lets its change be merged.
const PATIENCE: usize = 2;

/// One writer.
#[derive(Debug)]
pub(super) struct Writer {
    name: String,
    client: Client,
    course: Arc<Course>,
    groups: Arc<[Group]>,
    chance: Chance,
    turn: usize,
}

/// What a writer has read.
struct Work {
    revision: Revision,
    contents: Contents,
    number: u64,
}

impl Writer {
    pub(super) fn new(
        index: usize,
        client: Client,
        course: &Arc<Course>,
        groups: &Arc<[Group]>,
    ) -> Self {
        Self {
            name: format!("writer-{}", index + 1),
            client,
            course: Arc::clone(course),
            groups: Arc::clone(groups),
            chance: Chance::new(100 + index as u64),
            turn: index,
        }
    }

    /// Writes for as long as the demo goes on.
    pub(super) fn run(mut self, allowance: Allowance) -> Result<(), Refusal> {
        let groups = Arc::clone(&self.groups);
        while let Some(group) = self.chance.pick(&groups) {
            // Every second one also relies on a file that it does not change.
            let relied_on = self.chance.pick(&groups).filter(|other| *other != group);
            let relied_on = relied_on.filter(|_| self.turn.is_multiple_of(2));
            let policy = POLICIES.get(self.turn % POLICIES.len()).copied();
            let mut policy = policy.unwrap_or_default();
            self.turn += 1;
            let mut tries = 0;
            while self.course.goes_on(allowance) && !self.attempt(group, relied_on, policy)? {
                tries += 1;
                // Among busy others, whoever insists on an unmoved tree is late every time.
                if tries == PATIENCE {
                    policy = OnStale::Merge;
                }
            }
            if !self.course.goes_on(allowance) {
                break;
            }
        }
        Ok(())
    }

    /// One rename; `false`: another writer was faster.
    fn attempt(
        &mut self,
        group: &Group,
        relied_on: Option<&Group>,
        policy: OnStale,
    ) -> Result<bool, Refusal> {
        let Some(work) = self.read(group, relied_on)? else {
            return Ok(true);
        };
        let submission = self.compose(group, relied_on, &work, policy)?;
        let taken = Stopwatch::start();
        match self
            .client
            .publish(submission, PublishOptions::default(), &mut |_| {})
        {
            Ok(receipt) => {
                self.course.note_receipt(&receipt, taken);
                Ok(true)
            }
            Err(refusal) if refusal.code() == Code::StaleBase => {
                self.course.note(|tally| tally.stale += 1);
                Ok(false)
            }
            Err(refusal) if refusal.code() == Code::MergeConflict && policy == OnStale::Merge => {
                self.course.note(|tally| tally.conflicts += 1);
                Ok(false)
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Reads the files of the group, and those relied on, from the newest generation. `None` when it
    /// was a mix, which the course has taken down.
    fn read(&mut self, group: &Group, relied_on: Option<&Group>) -> Result<Option<Work>, Refusal> {
        let held = self.client.hold(None, &self.name)?;
        let relied_on = relied_on.and_then(|other| other.markers.first());
        let paths = group.paths().chain(relied_on.map(String::as_str));
        let contents = read_paths(&held.tree, paths);
        let Held { revision, seq, .. } = held;
        self.client.release(held)?;
        let contents = contents?;
        match group.number(&contents) {
            Ok(number) => Ok(Some(Work {
                revision,
                contents,
                number,
            })),
            Err(detail) => {
                self.course
                    .note_mix(format!("@{seq}, read by {}: {detail}", self.name));
                Ok(None)
            }
        }
    }

    fn compose(
        &self,
        group: &Group,
        relied_on: Option<&Group>,
        work: &Work,
        policy: OnStale,
    ) -> Result<Submission, Refusal> {
        let number = self.course.fresh_number();
        let changes = group
            .changes(&work.contents, work.number, number)
            .map_err(error::internal)?;
        let reads = relied_on
            .and_then(|other| other.markers.first())
            .and_then(|path| Some((path, work.contents.get(path)?)))
            .map(|(path, bytes)| Read {
                path: path.clone(),
                sha256: Some(sha256_of(bytes)),
                absent: None,
            });
        Ok(Submission {
            schema: SchemaTag::new(),
            id: None,
            base: Some(work.revision.to_string()),
            on_stale: policy,
            author: self.name.clone(),
            message: format!(
                "rename {} to {} in {} files",
                group.name_at(work.number),
                group.name_at(number),
                group.members.len()
            ),
            reads: reads.into_iter().collect(),
            changes,
        })
    }
}
