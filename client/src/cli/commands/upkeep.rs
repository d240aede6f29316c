//! `pin`, `unpin`, `gc`, `why`, `verify`, `doctor`.

use semaprax_protocol::documents::{FindingStatus, Health, VerificationStatus};
use semaprax_protocol::request::{Collect, Doctor, Pin, Unpin, Verify, WhyParams};
use semaprax_protocol::{Code, Refusal};

use crate::Client;
use crate::cli::args::{
    DoctorArguments, GcArguments, PinArguments, RevisionArguments, VerifyArguments,
};
use crate::cli::exit::{CommandResult, Exit};
use crate::cli::progress::Progress;
use crate::cli::settings::{self, Settings};

pub(super) fn pin(settings: &Settings, arguments: PinArguments) -> CommandResult {
    let answer = settings.client()?.call(Pin {
        revision: arguments.revision,
        reason: arguments.reason,
    })?;
    settings.output.show(&answer)?;
    Ok(Exit::DONE)
}

pub(super) fn unpin(settings: &Settings, arguments: RevisionArguments) -> CommandResult {
    let answer = settings.client()?.call(Unpin {
        revision: arguments.revision,
    })?;
    settings.output.show(&answer)?;
    Ok(Exit::DONE)
}

pub(super) fn gc(settings: &Settings, arguments: &GcArguments) -> CommandResult {
    let answer = settings.client()?.call(Collect {
        dry_run: arguments.dry_run,
        min_age_ms: arguments.min_age.map(|age| age.0),
        keep: arguments.keep,
    })?;
    settings.output.show(&answer)?;
    Ok(Exit::DONE)
}

pub(super) fn why(settings: &Settings, arguments: RevisionArguments) -> CommandResult {
    let answer = settings.client()?.call(WhyParams {
        revision: arguments.revision,
    })?;
    settings.output.show(&answer)?;
    Ok(Exit::DONE)
}

pub(super) fn verify(settings: &Settings, arguments: &VerifyArguments) -> CommandResult {
    let workspace = settings.workspace()?;
    let params = |directory| Verify {
        deep: arguments.deep,
        repair: arguments.repair,
        directory,
    };
    let progress = Progress::new(settings.output, "verifying");
    let ask = |client: &mut Client, params: Verify| {
        client.call_noticing(params, &mut |notice| progress.notice(notice))
    };
    let answer = match settings.client() {
        Ok(mut client) => ask(&mut client, params(None)),
        // One that cannot be opened is verified from outside, on a connection that names none.
        Err(refusal) if cannot_be_opened(&refusal) => {
            let mut client = Client::connect(settings.options(None)?)?;
            ask(&mut client, params(Some(workspace)))
        }
        Err(refusal) => Err(refusal),
    };
    drop(progress);
    let answer = answer?;
    settings.output.show(&answer)?;
    let is_damaged = answer.status == VerificationStatus::Damaged;
    if is_damaged && !arguments.repair && !settings.output.is_json() {
        settings
            .output
            .remark("`semaprax verify --deep --repair` mends what the store can give back");
    }
    Ok(match answer.status {
        VerificationStatus::Damaged => Exit::FINDINGS,
        VerificationStatus::Ok | VerificationStatus::Repaired => Exit::DONE,
    })
}

/// Works for a workspace, for one that cannot be opened, and for a directory that is none (yet).
pub(super) fn doctor(settings: &Settings, arguments: &DoctorArguments) -> CommandResult {
    let repair = arguments.repair;
    let answer = match examine_workspace(settings, repair) {
        Err(refusal) if cannot_be_opened(&refusal) || refusal.code() == Code::NotAWorkspace => {
            let directory = match settings.workspace() {
                Ok(workspace) => workspace,
                Err(_) => settings::absolute(&settings.directory())?,
            };
            Client::connect(settings.options(None)?)?.call(Doctor {
                directory: Some(directory),
                repair,
            })?
        }
        other => other?,
    };
    settings.output.show(&answer)?;
    let problem = answer
        .findings
        .iter()
        .any(|finding| finding.status == FindingStatus::Problem);
    Ok(if problem { Exit::FINDINGS } else { Exit::DONE })
}

/// Whether it is the workspace itself that keeps a daemon from opening it.
fn cannot_be_opened(refusal: &Refusal) -> bool {
    matches!(
        refusal.code(),
        Code::WorkspaceDamaged
            | Code::RecoveryNeeded
            | Code::StoreVersion
            | Code::NoSpace
            | Code::Io
    )
}

fn examine_workspace(settings: &Settings, repair: bool) -> Result<Health, Refusal> {
    settings.client()?.call(Doctor {
        directory: None,
        repair,
    })
}
