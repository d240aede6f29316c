//! Commands whose every step is a place to die.
//!
//! Owns: for each scene what has to be there before it, the command itself, and what mends its traces.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use semaprax_client::Client;
use semaprax_protocol::documents::VerificationStatus;
use semaprax_protocol::request::{Collect, DaemonStop, LeaseAcquire, Verify};
use semaprax_protocol::{Code, Refusal};

use super::account::is_unknown;
use super::chance::Chance;
use super::deeds::{Deed, Writer};
use super::lab::Lab;
use super::plan::Plan;
use super::readers::active;
use super::rounds::Place;
use super::tally::Tally;
use super::{During as _, Outcome, locked, violation};
use crate::process::PATIENCE;

/// A scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scene {
    /// Publishes a rename across files.
    Publish,
    /// Publishes a file too large for the database.
    Large,
    /// Publishes old content again.
    Rollback,
    /// Collects trees, and an object nobody has.
    Collect,
    /// Starts on what a death in the middle of a flip left behind.
    Recover,
    /// Takes a detached lease of a generation that has no tree any more.
    Lease,
    /// Leaves in good order.
    Stop,
    /// Mends a tree.
    Repair,
    /// Imports a directory.
    Init,
}

impl Scene {
    /// All of them.
    pub(super) const ALL: [Self; 9] = [
        Self::Publish,
        Self::Large,
        Self::Rollback,
        Self::Collect,
        Self::Recover,
        Self::Lease,
        Self::Stop,
        Self::Repair,
        Self::Init,
    ];

    /// Its name in reports.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Large => "publish a large file",
            Self::Rollback => "rollback",
            Self::Collect => "collect",
            Self::Recover => "recover",
            Self::Lease => "lease",
            Self::Stop => "stop",
            Self::Repair => "repair",
            Self::Init => "init",
        }
    }

    /// What has to be there before.
    pub(super) fn prepare(
        self,
        place: &mut Place,
        chance: &mut Chance,
        tally: &mut Tally,
    ) -> Outcome<()> {
        match self {
            Self::Publish | Self::Large | Self::Init => Ok(()),
            Self::Rollback | Self::Stop => writer(place, chance, Deed::Rename),
            Self::Collect => {
                die(place, chance, "before:create:staging/U/BOOT:1", tally)?;
                drop(
                    place
                        .lab
                        .client()
                        .during(|| "restarting after a kill".to_owned())?,
                );
                writer(place, chance, Deed::Rename)?;
                writer(place, chance, Deed::Fight)
            }
            Self::Recover => {
                die(place, chance, "before:rename:ACTIVE.next>ACTIVE:1", tally)?;
                let left = place.lab.state().join("staging/left/files/deep");
                fs::create_dir_all(&left)
                    .and_then(|()| fs::write(left.join("file"), "x"))
                    .and_then(|()| fs::set_permissions(&left, fs::Permissions::from_mode(0o555)))
                    .during(|| "planting in staging".to_owned())
            }
            Self::Lease => {
                writer(place, chance, Deed::Rename)?;
                let mut client = modest(place)?;
                collect(&mut client).during(|| "gc".to_owned())
            }
            Self::Repair => damage(place),
        }
    }

    /// The command. It is refused in no way but by a death.
    pub(super) fn act(self, place: &Place, chance: &mut Chance) -> Outcome<()> {
        let answer = match self {
            Self::Publish => return writer(place, chance, Deed::Rename),
            Self::Large => return writer(place, chance, Deed::Enlarge),
            Self::Rollback => return writer(place, chance, Deed::StepBack),
            Self::Collect => modest(place).map(|mut client| collect(&mut client))?,
            Self::Recover => place.lab.client().map(drop),
            Self::Lease => modest(place)?
                .call(LeaseAcquire {
                    revision: Some("@-1".to_owned()),
                    ttl_ms: Some(3_600_000),
                    owner: "scene".to_owned(),
                })
                .map(drop),
            Self::Stop => {
                let mut client = modest(place)?;
                let answer = client.call(DaemonStop { if_idle: false });
                client.await_end(Some(PATIENCE));
                answer.map(drop)
            }
            Self::Repair => modest(place)?.call(repair()).map(drop),
            Self::Init => place.lab.init(),
        };
        match answer {
            Err(refusal) if !is_unknown(refusal.code()) => {
                Err(violation(format!("{}: {refusal}", self.name())))
            }
            _ => Ok(()),
        }
    }

    /// What its own traces need before the check.
    pub(super) fn mend(self, place: &Place) -> Outcome<()> {
        match self {
            Self::Repair => {
                let mut client = place
                    .lab
                    .client()
                    .during(|| "restarting after a kill".to_owned())?;
                let found = client
                    .call(repair())
                    .during(|| "verify --repair".to_owned())?;
                if found.status == VerificationStatus::Damaged {
                    return Err(violation(format!("it stays damaged: {:?}", found.damage)));
                }
                Ok(())
            }
            Self::Init if place.lab.state().join("store.db").exists() => match place.lab.init() {
                Err(refusal) if refusal.code() == Code::AlreadyAWorkspace => Ok(()),
                other => Err(violation(format!("init of a workspace: {other:?}"))),
            },
            Self::Init => place.lab.init().during(|| "init after a death".to_owned()),
            _ => Ok(()),
        }
    }
}

fn repair() -> Verify {
    Verify {
        deep: true,
        repair: true,
        directory: None,
    }
}

fn collect(client: &mut Client) -> Result<(), Refusal> {
    let collect = Collect {
        dry_run: false,
        min_age_ms: Some(0),
        keep: Some(1),
    };
    client.call(collect).map(drop)
}

fn modest(place: &Place) -> Outcome<Client> {
    place.lab.modest_client().during(|| "connecting".to_owned())
}

/// One deed of a writer. Whether it was answered is the account's to know.
fn writer(place: &Place, chance: &mut Chance, deed: Deed) -> Outcome<()> {
    let mut writer = Writer {
        number: usize::try_from(chance.below(super::story::WRITERS as u64)).unwrap_or(0),
        chance: chance.part(7),
        client: modest(place)?,
        account: &place.account,
    };
    match writer.perform(deed) {
        Err(refusal) if !is_unknown(refusal.code()) => Err(violation(refusal.to_string())),
        _ => Ok(()),
    }
}

/// Dies at a step of publishing a large file; nothing of it may stay but an object without an owner.
fn die(place: &mut Place, chance: &mut Chance, plan: &str, tally: &mut Tally) -> Outcome<()> {
    let daemon = place.running()?;
    let plan: Plan = plan.parse().map_err(violation)?;
    place.lab.order(&plan)?;
    writer(place, chance, Deed::Enlarge)?;
    Lab::await_death(daemon)?;
    place
        .lab
        .death()
        .ok_or_else(|| violation(format!("it did not die {plan}")))?;
    tally.kill("to prepare a scene");
    // What was not answered is not repeated: it must not be there.
    let unknown = locked(&place.account).unknown();
    locked(&place.account).abandoned.extend(unknown);
    Ok(())
}

/// Changes a file of the tree that is ACTIVE, as someone might who has the rights.
fn damage(place: &Place) -> Outcome<()> {
    let (_, revision) = active(&place.lab).map_err(violation)?;
    let files = place
        .lab
        .state()
        .join(format!("generations/{revision}/files"));
    let file = files.join("shared/0.txt");
    let directory = files.join("merged");
    let damage = || -> std::io::Result<()> {
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644))?;
        fs::write(&file, "someone was here\n")?;
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755))?;
        fs::remove_file(directory.join("0.txt"))?;
        fs::write(directory.join("foreign"), "foreign\n")
    };
    damage().during(|| "damaging a tree".to_owned())
}
