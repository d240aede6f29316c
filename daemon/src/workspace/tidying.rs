//! `doctor --repair`: the state directory as it was made.
//!
//! Owns: what `doctor` tells of the state directory, and the order in which a workspace that cannot be opened is
//! put right. What the parts are, and how each is mended, is `store::own`. Never: deletes what is not ours.

use camino::Utf8Path;
use semaprax_protocol::documents::{Finding, FindingStatus, Health, VerificationStatus};
use semaprax_protocol::request::Verify;
use semaprax_protocol::{Code, Refusal};

use super::doctor;
use super::{Holder, verify_unopened};
use crate::reader::Offline;
use crate::store::own::{self, Untidiness, Untidy};
use crate::store::recover::LockContent;
use crate::store::{Layout, recover, reserve};
use crate::world::{EntryType, World};

const CHECK: &str = "state-directory";
const FIX: &str = "run `semaprax doctor --repair`";

/// What is not as it was made; with `repair`, put right. That is only for whoever holds LOCK.
pub(super) fn state_directory(world: &World, layout: &Layout, repair: bool) -> Vec<Finding> {
    let found = match own::look(world, layout) {
        Ok(found) => found,
        Err(error) => {
            let (code, detail) = (error.code(), error.to_string());
            return vec![finding(FindingStatus::Problem, Some(code), detail, false)];
        }
    };
    if found.is_empty() {
        let detail = "as it was made".to_owned();
        return vec![finding(FindingStatus::Ok, None, detail, false)];
    }
    found
        .iter()
        .map(|untidy| told(world, layout, untidy, repair))
        .collect()
}

fn told(world: &World, layout: &Layout, untidy: &Untidy, repair: bool) -> Finding {
    let mut detail = untidy.detail();
    let mut repaired = false;
    if repair {
        match own::mend(world, layout, untidy) {
            Ok(()) => repaired = true,
            Err(error) => detail = format!("{detail}; {error}"),
        }
    }
    if repaired && matches!(untidy.what, Untidiness::Foreign | Untidiness::Replaced(_)) {
        detail.push_str("; it was moved to `set-aside`");
    }
    let status = match (repaired, untidy.is_problem()) {
        (true, _) => FindingStatus::Ok,
        (_, true) => FindingStatus::Problem,
        (_, false) => FindingStatus::Warning,
    };
    finding(status, Some(Code::UntidyState), detail, repaired)
}

fn finding(status: FindingStatus, code: Option<Code>, detail: String, repaired: bool) -> Finding {
    Finding {
        check: CHECK.to_owned(),
        status,
        detail,
        code,
        fix: (status != FindingStatus::Ok).then(|| FIX.to_owned()),
        repaired,
    }
}

/// Looks at a workspace that is not open, and puts right what can be: first what keeps it from being
/// locked, then the state directory, then ACTIVE.
pub fn doctor_unopened(
    world: &World,
    root: &Utf8Path,
    holder: &Holder,
    repair: bool,
) -> Result<Health, Refusal> {
    let layout = Layout::new(root);
    let is_workspace = world.disk.metadata(&layout.database())?.is_some();
    let mut mended = Vec::new();
    if repair && is_workspace {
        make_lockable(world, &layout, &mut mended)?;
        if reserve::is_low(world, &layout) {
            reserve::release(world, &layout)?;
        }
        let held = recover::lock(world, &layout, &holder.socket, holder.pid)?;
        let tidied = state_directory(world, &layout, true);
        mended.extend(tidied.into_iter().filter(|finding| finding.repaired));
        held.write(b"")?;
        drop(held);
        mended.extend(pointer(world, root, holder));
    }
    let mut health = doctor(world, root, &holder.socket);
    mended.append(&mut health.findings);
    health.findings = mended;
    Ok(health)
}

/// LOCK must be a file before it can be locked. Whoever locked another one has lost the workspace.
fn make_lockable(world: &World, layout: &Layout, mended: &mut Vec<Finding>) -> Result<(), Refusal> {
    let place = layout.lock();
    let Some(found) = world.disk.metadata(&place)? else {
        return Ok(());
    };
    if found.kind != EntryType::File {
        let untidy = Untidy {
            path: "LOCK".to_owned(),
            what: Untidiness::Replaced(found.kind),
        };
        mended.push(told(world, layout, &untidy, true));
    } else if let Some(stale) = stale_lock(world, layout) {
        // Taking the lock writes it anew.
        mended.push(finding(
            FindingStatus::Ok,
            Some(Code::UntidyState),
            stale,
            true,
        ));
    }
    Ok(())
}

/// What is wrong with the text of LOCK, when nobody holds it and it names somebody.
pub(super) fn stale_lock(world: &World, layout: &Layout) -> Option<String> {
    let text = world.disk.read(&layout.lock()).ok()?;
    // Asked for without being made: a lock that is held is not stale.
    let free = world.disk.try_lock(&layout.lock(), true, false).ok()??;
    drop(free);
    if text.is_empty() {
        return None;
    }
    Some(match serde_json::from_slice::<LockContent>(&text) {
        Ok(holder) => format!(
            "LOCK names process {} on `{}`, which does not hold it",
            holder.pid, holder.socket
        ),
        Err(_) => "LOCK holds what no daemon wrote".to_owned(),
    })
}

/// Restores a lost ACTIVE; answers what was done.
fn pointer(world: &World, root: &Utf8Path, holder: &Holder) -> Vec<Finding> {
    let is_damaged = Offline::open(world, root)
        .and_then(|offline| offline.published_at())
        .is_err_and(|refusal| refusal.code() == Code::WorkspaceDamaged);
    if !is_damaged {
        return Vec::new();
    }
    let params = Verify {
        deep: false,
        repair: true,
        directory: None,
    };
    let verification = match verify_unopened(world, root, holder, &params) {
        Ok(verification) => verification,
        // What cannot be put right is told by the look that follows.
        Err(refusal) => {
            tracing::warn!(%refusal, %root, "the workspace cannot be repaired");
            return Vec::new();
        }
    };
    let of = |damage: semaprax_protocol::documents::Damage| Finding {
        check: "store".to_owned(),
        status: if damage.repaired {
            FindingStatus::Ok
        } else {
            FindingStatus::Problem
        },
        detail: format!("{}: {}", damage.kind, damage.detail),
        code: Some(Code::WorkspaceDamaged),
        fix: (verification.status == VerificationStatus::Damaged)
            .then(|| "run `semaprax verify --deep --repair`".to_owned()),
        repaired: damage.repaired,
    };
    verification.damage.into_iter().map(of).collect()
}
