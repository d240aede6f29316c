//! What is known of a workspace from its answers alone.
//!
//! Owns: `Known`: what was acknowledged, what was refused, and what is under way; the content that
//! each publication must have, from a model that shares no code with the daemon.

use std::collections::BTreeMap;

use semaprax_protocol::request::{Attribution, Publish, PublishOptions, Request, Rollback};
use semaprax_protocol::submission::{Change, EntryKind, FileMode, OnStale, Submission};
use semaprax_protocol::{Revision, SchemaTag, SubmissionId};

/// A whole tree: path, kind, bytes.
pub type Content = BTreeMap<String, (EntryKind, Vec<u8>)>;

/// A submission and what it makes of the tree.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its name.
    pub id: SubmissionId,
    /// What is asked.
    pub request: Request,
}

/// A publication, or one that may come to be.
#[derive(Debug, Clone)]
pub struct Publication {
    /// What asked for it; `None` for the first.
    pub plan: Option<Plan>,
    /// The whole tree.
    pub content: Content,
    /// Its revision; `None` while it is not acknowledged.
    pub revision: Option<Revision>,
}

/// What became of a submission that was not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Nobody knows.
    Unknown,
    /// The answer was that nothing changed.
    Refused,
}

/// What is known.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The acknowledged publications, in order.
    pub history: Vec<Publication>,
    /// One that was asked for and not acknowledged, or several at once: all or none came to be.
    pub pending: Option<(Vec<Publication>, Fate)>,
    /// Submissions that were refused as they should be.
    pub refused: Vec<SubmissionId>,
    /// Submissions that failed and were given up.
    pub given_up: Vec<SubmissionId>,
    /// Someone wrote into the tree of ACTIVE, and it was not mended yet.
    pub is_damaged: bool,
    /// Detached leases by owner, and the publication each holds.
    pub leases: BTreeMap<String, u64>,
    /// The owner of a lease that is being taken or given back.
    pub lease_under_way: Option<String>,
}

impl Known {
    /// The content of the newest acknowledged publication.
    pub fn tip(&self) -> Content {
        self.history
            .last()
            .map(|publication| publication.content.clone())
            .unwrap_or_default()
    }

    /// What `plan` makes of the tip.
    pub fn outcome(&self, plan: &Plan) -> Publication {
        self.outcome_on(self.tip(), plan)
    }

    /// What each of `plans` makes of what the one before it made.
    pub fn outcomes(&self, plans: &[Plan]) -> Vec<Publication> {
        let mut tip = self.tip();
        let mut outcome = |plan| {
            let outcome = self.outcome_on(tip.clone(), plan);
            tip.clone_from(&outcome.content);
            outcome
        };
        plans.iter().map(&mut outcome).collect()
    }

    fn outcome_on(&self, tip: Content, plan: &Plan) -> Publication {
        let content = match &plan.request {
            Request::Publish(params) => {
                let mut content = tip;
                for change in &params.submission.changes {
                    apply(&mut content, change);
                }
                content
            }
            Request::Rollback(params) => {
                let seq: usize = params.revision[1..].parse().unwrap();
                self.history[seq - 1].content.clone()
            }
            other => panic!("no script has {other:?}"),
        };
        Publication {
            plan: Some(plan.clone()),
            content,
            revision: None,
        }
    }
}

fn apply(content: &mut Content, change: &Change) {
    match change {
        Change::Put {
            path,
            content: Some(text),
            mode,
            ..
        } => {
            let kind = match (mode, content.get(path)) {
                (Some(FileMode::Executable), _) | (None, Some((EntryKind::Executable, _))) => {
                    EntryKind::Executable
                }
                _ => EntryKind::File,
            };
            content.insert(path.clone(), (kind, text.clone().into_bytes()));
        }
        Change::Delete { path, .. } => {
            let below = format!("{path}/");
            content.retain(|name, _| name != path && !name.starts_with(&below));
        }
        Change::Move { from, to, .. } => {
            let below = format!("{from}/");
            let moved: Vec<String> = content
                .keys()
                .filter(|name| *name == from || name.starts_with(&below))
                .cloned()
                .collect();
            for name in moved {
                let entry = content.remove(&name).unwrap();
                content.insert(format!("{to}{}", &name[from.len()..]), entry);
            }
        }
        Change::Symlink { path, target, .. } => {
            let entry = (EntryKind::Symlink, target.clone().into_bytes());
            content.insert(path.clone(), entry);
        }
        Change::Chmod { path, mode, .. } => content.get_mut(path).unwrap().0 = (*mode).into(),
        other => panic!("no script has {other:?}"),
    }
}

/// The submission id of this number.
pub fn id(number: u128) -> SubmissionId {
    SubmissionId::from_uuid(uuid::Uuid::from_u128(0x8000 << 64 | number))
}

/// A submission.
pub fn publish(number: u128, base: Option<&str>, stale: OnStale, changes: Vec<Change>) -> Plan {
    let id = id(number);
    let submission = Submission {
        schema: SchemaTag::new(),
        id: Some(id),
        base: base.map(str::to_owned),
        on_stale: stale,
        author: "crash".to_owned(),
        message: format!("number {number}"),
        reads: Vec::new(),
        changes,
    };
    let options = PublishOptions::default();
    Plan {
        id,
        request: Request::Publish(Publish {
            submission,
            options,
        }),
    }
}

/// Going back to publication `seq`.
pub fn rollback(number: u128, seq: u64) -> Plan {
    let id = id(number);
    let attribution = Attribution {
        id: Some(id),
        author: "crash".to_owned(),
        message: format!("number {number}"),
    };
    Plan {
        id,
        request: Request::Rollback(Rollback {
            revision: format!("@{seq}"),
            attribution,
            options: PublishOptions::default(),
        }),
    }
}

/// Sets the content of a file.
pub fn put(path: &str, text: &str) -> Change {
    Change::Put {
        path: path.to_owned(),
        content: Some(text.to_owned()),
        content_base64: None,
        content_blob: None,
        mode: None,
        expect: None,
        reason: None,
    }
}

/// Sets a file to content that is too large for the database; it begins with `text`.
pub fn put_large(path: &str, text: &str) -> Change {
    put(path, &large(text))
}

/// Content that is too large for the database.
pub fn large(text: &str) -> String {
    let line = format!("{text} ").repeat(10) + "\n";
    line.repeat((66 << 10) / line.len() + 1)
}

/// Removes a file or directory.
pub fn delete(path: &str) -> Change {
    Change::Delete {
        path: path.to_owned(),
        recursive: !path.contains('.'),
        expect: None,
        reason: None,
    }
}

/// Moves a file or directory.
pub fn move_to(from: &str, to: &str) -> Change {
    Change::Move {
        from: from.to_owned(),
        to: to.to_owned(),
        recursive: !from.contains('.'),
        expect: None,
        reason: None,
    }
}

/// Makes a symlink.
pub fn symlink(path: &str, target: &str) -> Change {
    Change::Symlink {
        path: path.to_owned(),
        target: target.to_owned(),
        expect: None,
        reason: None,
    }
}

/// Makes a file executable.
pub fn executable(path: &str) -> Change {
    Change::Chmod {
        path: path.to_owned(),
        mode: FileMode::Executable,
        expect: None,
        reason: None,
    }
}
