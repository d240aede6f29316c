//! Fixed scripts, and the one that plays them.
//!
//! Owns: `Step`, `Script`, and `Player`: a daemon's part without sockets, on a simulated machine. It
//! keeps what is known after each answer.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_daemon::config::Config;
use semaprax_daemon::workspace::{
    Acquired, Holder, Job, Uploads, Workspace, Writer, initialize, open, verify_unopened,
};
use semaprax_protocol::documents::{ReceiptStatus, Verification, VerificationStatus};
use semaprax_protocol::request::{
    Collect, Init, LeaseAcquire, LeaseRelease, Pin, Request, Response, Unpin, Verify,
};
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{Code, LeaseId, Refusal, Status};
use semaprax_tests::sim::Sim;
use semaprax_tests::sim::clock::Times;

use crate::known::{Content, Fate, Known, Plan, Publication};

/// One thing that is asked of a workspace.
#[derive(Debug, Clone)]
pub enum Step {
    /// Makes the workspace.
    Init,
    /// A daemon starts.
    Open,
    /// A daemon leaves.
    Close,
    /// A submission that is published.
    Publish(Plan),
    /// Submissions that come at once and are all published.
    Together(Vec<Plan>),
    /// A submission that is refused.
    Refused(Plan),
    /// A submission that was decided before.
    Repeat(Plan),
    /// A detached lease: owner, publication.
    Lease(&'static str, u64),
    /// The end of a detached lease.
    Release(&'static str),
    /// A lease that ends with its connection.
    ConnectionLease(u64),
    /// A pin.
    Pin(u64),
    /// The end of a pin.
    Unpin(u64),
    /// The collector, with this many trees kept whatever their age.
    Collect(u64),
    /// Someone writes into a file of the tree of ACTIVE.
    Damage(&'static str),
    /// Mends what can be mended.
    Repair,
    /// An idle moment.
    Idle,
}

impl Step {
    /// The word under which the syncs of this step are known.
    pub fn phase(&self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Open => "open",
            Self::Close => "close",
            Self::Publish(_) | Self::Together(_) | Self::Refused(_) | Self::Repeat(_) => "publish",
            Self::Lease(..) | Self::Release(_) | Self::ConnectionLease(_) => "lease",
            Self::Pin(_) | Self::Unpin(_) => "pin",
            Self::Collect(_) => "gc",
            Self::Damage(_) | Self::Repair => "repair",
            Self::Idle => "idle",
        }
    }
}

/// A script.
#[derive(Debug, Clone)]
pub struct Script {
    /// Its name.
    pub name: &'static str,
    /// What is imported.
    pub source: Content,
    /// The settings.
    pub config: Config,
    /// Where it starts.
    pub times: Times,
    /// Whether trouble in `init`, its first step, is tried, too.
    pub tries_init: bool,
    /// What is done.
    pub steps: Vec<Step>,
}

/// A workspace being played with.
pub struct Player {
    /// The machine.
    pub sim: Sim,
    /// What is known.
    pub known: Known,
    /// What was known before each step.
    pub notes: Vec<Known>,
    /// The open workspace.
    pub open: Option<(Arc<Workspace>, Writer)>,
    config: Config,
    lease_ids: BTreeMap<String, LeaseId>,
}

/// Puts the directory to be imported at `root`.
pub fn write_source(root: &Utf8Path, source: &Content) {
    for (path, (kind, bytes)) in source {
        let place = root.join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        if *kind == EntryKind::Symlink {
            let target = std::str::from_utf8(bytes).unwrap();
            std::os::unix::fs::symlink(target, &place).unwrap();
        } else {
            std::fs::write(&place, bytes).unwrap();
            let mode = if *kind == EntryKind::Executable {
                0o755
            } else {
                0o644
            };
            std::fs::set_permissions(&place, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

fn holder() -> Holder {
    Holder {
        socket: Utf8PathBuf::from("/run/nobody"),
        pid: 1,
    }
}

impl Player {
    /// A player on this machine who knows this much.
    pub fn new(sim: Sim, known: Known, config: &Config) -> Self {
        Self {
            sim,
            known,
            notes: Vec::new(),
            open: None,
            config: config.clone(),
            lease_ids: BTreeMap::new(),
        }
    }

    /// Takes a step; the outer error says that an answer was wrong.
    pub fn play(&mut self, step: &Step, source: &Content) -> Result<Result<(), Refusal>, String> {
        match step {
            Step::Publish(plan) => {
                self.known.pending = Some((vec![self.known.outcome(plan)], Fate::Unknown));
            }
            Step::Together(plans) => {
                self.known.pending = Some((self.known.outcomes(plans), Fate::Unknown));
            }
            Step::Lease(owner, _) | Step::Release(owner) => {
                self.known.lease_under_way = Some((*owner).to_owned());
            }
            Step::Init => {
                let first = Publication {
                    plan: None,
                    content: source.clone(),
                    revision: None,
                };
                self.known.pending = Some((vec![first], Fate::Unknown));
            }
            _ => {}
        }
        self.notes.push(self.known.clone());
        self.sim.begin(step.phase(), self.notes.len() - 1);
        let outcome = self.take(step);
        self.notes.push(self.known.clone());
        self.sim.begin(step.phase(), self.notes.len() - 1);
        outcome
    }

    fn take(&mut self, step: &Step) -> Result<Result<(), Refusal>, String> {
        Ok(match step {
            Step::Init => self.initialize(),
            Step::Open => self.open(),
            Step::Close => {
                if let Some((_, writer)) = self.open.take() {
                    writer.close();
                }
                Ok(())
            }
            Step::Publish(plan) => return self.publish(plan),
            Step::Together(plans) => return self.publish_together(plans),
            Step::Refused(plan) => match self.submit(plan) {
                Ok(response) => return Err(format!("not refused: {response:?}")),
                Err(refusal) if refusal.status == Status::Rejected => {
                    self.known.refused.push(plan.id);
                    Ok(())
                }
                Err(refusal) => Err(refusal),
            },
            Step::Repeat(plan) => match self.submit(plan) {
                Ok(Response::Publish(receipt) | Response::Rollback(receipt))
                    if receipt.replayed =>
                {
                    Ok(())
                }
                Ok(response) => return Err(format!("not replayed: {response:?}")),
                Err(refusal) => Err(refusal),
            },
            Step::Lease(owner, seq) => self.lease(owner, *seq),
            Step::Release(owner) => self.release(owner),
            Step::ConnectionLease(seq) => self.connection_lease(*seq),
            Step::Pin(seq) => self.ask(Request::Pin(Pin {
                revision: format!("@{seq}"),
                reason: "script".to_owned(),
            })),
            Step::Unpin(seq) => self.ask(Request::Unpin(Unpin {
                revision: format!("@{seq}"),
            })),
            Step::Collect(keep) => self.ask(Request::Collect(Collect {
                dry_run: false,
                min_age_ms: Some(0),
                keep: Some(*keep),
            })),
            Step::Damage(path) => {
                let revision = self.known.history.last().unwrap().revision.unwrap();
                let path = format!(".semaprax-workspace/generations/{revision}/files/{path}");
                self.sim.damage(&path, b"scribble");
                self.known.is_damaged = true;
                Ok(())
            }
            Step::Repair => self.repair(),
            Step::Idle => {
                self.open.as_mut().unwrap().1.idle();
                Ok(())
            }
        })
    }

    /// Makes the workspace.
    pub fn initialize(&mut self) -> Result<(), Refusal> {
        let params = Init {
            directory: self.sim.root().to_owned(),
            names: None,
            force: false,
            shared: false,
            author: "crash".to_owned(),
            message: "number 0".to_owned(),
        };
        let world = self.sim.world();
        let made = initialize(&world, &params, &self.config, &mut |_, _| true)?;
        let (mut first, _) = self.known.pending.take().unwrap();
        self.acknowledge(first.remove(0), made.revision);
        Ok(())
    }

    fn acknowledge(&mut self, publication: Publication, revision: semaprax_protocol::Revision) {
        self.known.history.push(Publication {
            revision: Some(revision),
            ..publication
        });
    }

    /// Starts the daemon's part.
    pub fn open(&mut self) -> Result<(), Refusal> {
        let world = self.sim.world();
        self.open = Some(open(&world, self.sim.root(), &holder(), &self.config)?);
        Ok(())
    }

    /// `verify --deep --repair` of a workspace that cannot be opened.
    pub fn restore(&mut self) -> Result<Verification, Refusal> {
        let params = Verify {
            deep: true,
            repair: true,
            directory: Some(self.sim.root().to_owned()),
        };
        verify_unopened(&self.sim.world(), self.sim.root(), &holder(), &params)
    }

    /// Asks the writer.
    pub fn submit(&mut self, plan: &Plan) -> Result<Response, Refusal> {
        self.perform(plan.request.clone(), Some(plan.id))
    }

    /// Asks the writer.
    pub fn perform(
        &mut self,
        request: Request,
        submission: Option<semaprax_protocol::SubmissionId>,
    ) -> Result<Response, Refusal> {
        let job = Job {
            request,
            submission,
            uploads: Uploads::new(),
            pid: Some(7),
        };
        self.open.as_mut().unwrap().1.perform(&job)
    }

    /// Mends what can be mended.
    pub fn repair(&mut self) -> Result<(), Refusal> {
        let request = Request::Verify(Verify {
            deep: true,
            repair: true,
            directory: None,
        });
        if let Response::Verify(found) = self.perform(request, None)? {
            self.known.is_damaged &= found.status == VerificationStatus::Damaged;
        }
        Ok(())
    }

    fn ask(&mut self, request: Request) -> Result<(), Refusal> {
        self.perform(request, None).map(drop)
    }

    /// Publishes, and keeps what is known then.
    pub fn publish(&mut self, plan: &Plan) -> Result<Result<(), Refusal>, String> {
        let outcome = self.known.outcome(plan);
        match self.submit(plan) {
            Ok(Response::Publish(receipt) | Response::Rollback(receipt)) => {
                let expect = self.known.history.len() as u64 + 1;
                let seq = receipt.seq.map(semaprax_protocol::Seq::get);
                if receipt.status != ReceiptStatus::Published
                    || receipt.replayed
                    || seq != Some(expect)
                {
                    return Err(format!("not published as @{expect}: {receipt:?}"));
                }
                self.known.pending = None;
                self.acknowledge(outcome, receipt.revision.unwrap());
                Ok(Ok(()))
            }
            Ok(response) => Err(format!("another answer: {response:?}")),
            Err(refusal) => {
                let fate = if refusal.code() == Code::InDoubt {
                    Fate::Unknown
                } else {
                    Fate::Refused
                };
                self.known.pending = Some((vec![outcome], fate));
                Ok(Err(refusal))
            }
        }
    }

    /// Publishes several at once. Those that share a turn are published all, or none of them.
    fn publish_together(&mut self, plans: &[Plan]) -> Result<Result<(), Refusal>, String> {
        let job = |plan: &Plan| Job {
            request: plan.request.clone(),
            submission: Some(plan.id),
            uploads: Uploads::new(),
            pid: Some(7),
        };
        let jobs: Vec<Job> = plans.iter().map(job).collect();
        let mut answers = Vec::new();
        let writer = &mut self.open.as_mut().unwrap().1;
        writer.perform_all(&jobs, &mut |_, answer| answers.push(answer));
        let outcomes = self.known.outcomes(plans);
        let (mut in_doubt, mut refused) = (Vec::new(), None);
        self.known.pending = None;
        for ((plan, expect), answer) in plans.iter().zip(outcomes).zip(answers) {
            match answer {
                Ok(Response::Publish(receipt)) => {
                    let outcome = self.known.outcome(plan);
                    self.acknowledge(outcome, receipt.revision.unwrap());
                }
                Ok(other) => return Err(format!("another answer: {other:?}")),
                Err(refusal) => {
                    if refusal.code() == Code::InDoubt {
                        in_doubt.push(expect);
                    } else {
                        self.known.given_up.push(plan.id);
                    }
                    refused = Some(refusal);
                }
            }
        }
        if !in_doubt.is_empty() {
            self.known.pending = Some((in_doubt, Fate::Unknown));
        }
        Ok(refused.map_or(Ok(()), Err))
    }

    fn lease(&mut self, owner: &str, seq: u64) -> Result<(), Refusal> {
        let request = Request::LeaseAcquire(LeaseAcquire {
            revision: Some(format!("@{seq}")),
            ttl_ms: Some(240 * 3_600_000),
            owner: owner.to_owned(),
        });
        if let Response::LeaseAcquire(grant) = self.perform(request, None)? {
            self.lease_ids.insert(owner.to_owned(), grant.lease);
        }
        self.known.leases.insert(owner.to_owned(), seq);
        self.known.lease_under_way = None;
        Ok(())
    }

    fn release(&mut self, owner: &str) -> Result<(), Refusal> {
        let lease = match self.lease_ids.get(owner) {
            Some(lease) => *lease,
            // Taken by an earlier daemon.
            None => crate::oracle::leases(&self.open.as_ref().unwrap().0)
                .into_iter()
                .find(|entry| entry.owner == owner)
                .map(|entry| entry.lease)
                .unwrap(),
        };
        self.ask(Request::LeaseRelease(LeaseRelease { lease }))?;
        self.known.leases.remove(owner);
        self.known.lease_under_way = None;
        Ok(())
    }

    fn connection_lease(&mut self, seq: u64) -> Result<(), Refusal> {
        let params = LeaseAcquire {
            revision: Some(format!("@{seq}")),
            ttl_ms: None,
            owner: "connection".to_owned(),
        };
        let (workspace, writer) = self.open.as_mut().unwrap();
        match workspace.acquire(&params, None)? {
            Acquired::Ready(_) => Ok(()),
            Acquired::NeedsTree(lease, revision) => {
                writer.materialize(revision)?;
                workspace.grant(lease).map(drop)
            }
        }
    }
}
