//! What must be true after a crash, judged from the directory and from answers.
//!
//! Owns: `judge`: opens what a crash left and goes through every promise. It reads the trees itself.

use std::collections::BTreeSet;

use camino::Utf8Path;
use semaprax_daemon::store::database::{Database, ReadMode};
use semaprax_daemon::workspace::Workspace;
use semaprax_protocol::documents::{LeaseEntry, LogEntry, VerificationStatus};
use semaprax_protocol::request::{
    Collect, Journal, LeaseListParams, Log, Request, Response, Verify,
};
use semaprax_protocol::submission::OnStale;
use semaprax_protocol::{BlobDigest, Code};
use semaprax_tests::oracle::are_spares;

use crate::known::{Fate, publish, put, put_large};
use crate::script::Player;
use crate::trees;

/// A broken promise, in words.
pub type Verdict<T = ()> = Result<T, String>;

macro_rules! ensure {
    ($condition:expr, $($words:tt)*) => {
        if !$condition {
            return Err(format!($($words)*));
        }
    };
}
pub(crate) use ensure;

fn failed(what: &'static str) -> impl Fn(semaprax_protocol::Refusal) -> String {
    move |refusal| format!("{what}: {refusal} ({:?})", refusal.code())
}

/// The leases there are.
pub fn leases(workspace: &Workspace) -> Vec<LeaseEntry> {
    match workspace.answer(&Request::LeaseList(LeaseListParams {})) {
        Ok(Response::LeaseList(list)) => list.leases,
        other => panic!("no list of leases: {other:?}"),
    }
}

/// Starts a daemon on what a crash left: a workspace as it was or as it was to be, or none while it
/// was being made, and then it can be made again.
pub fn restart(player: &mut Player) -> Verdict {
    match player.open() {
        Ok(()) if player.known.is_damaged => {
            player.repair().map_err(failed("repair"))?;
            ensure!(!player.known.is_damaged, "damage that was not mended");
            Ok(())
        }
        Ok(()) => Ok(()),
        Err(refusal)
            if refusal.code() == Code::NotAWorkspace && player.known.history.is_empty() =>
        {
            player.initialize().map_err(failed("init again"))?;
            player.open().map_err(failed("open after init again"))
        }
        Err(refusal) => Err(failed("open")(refusal)),
    }
}

/// Every promise, from a daemon that has just started to one that has left.
pub fn judge(player: &mut Player) -> Verdict {
    check_tip(player)?;
    check_leases(player)?;
    check_verify(player)?;
    settle(player)?;
    check_replays(player)?;
    go_on(player)?;
    check_journal(player)?;
    check_leftovers(player)
}

fn log(player: &Player) -> Verdict<Vec<LogEntry>> {
    let request = Request::Log(Log {
        limit: None,
        before: None,
        path: None,
        author: None,
    });
    match player.open.as_ref().unwrap().0.answer(&request) {
        Ok(Response::Log(mut page)) => {
            page.entries.reverse();
            Ok(page.entries)
        }
        other => Err(format!("no log: {other:?}")),
    }
}

/// ACTIVE is old or new and whole; what was acknowledged is there, what was refused is not.
pub fn check_tip(player: &mut Player) -> Verdict {
    let entries = log(player)?;
    let known = &mut player.known;
    let acknowledged = known.history.len();
    if entries.len() > acknowledged {
        match known.pending.take() {
            Some((publications, Fate::Unknown)) => known.history.extend(publications),
            Some((publications, Fate::Refused)) => {
                let first = publications.into_iter().next();
                let id = first.and_then(|publication| publication.plan);
                let id = id.map(|plan| plan.id);
                return Err(format!("refused, and yet published: {id:?}"));
            }
            None => return Err("a publication nobody asked for".to_owned()),
        }
    }
    ensure!(
        entries.len() == known.history.len(),
        "{} publications, {acknowledged} acknowledged",
        entries.len()
    );
    for (entry, publication) in entries.iter().zip(&mut known.history) {
        let revision = *publication.revision.get_or_insert(entry.revision);
        ensure!(
            entry.revision == revision,
            "@{} is another publication",
            entry.seq
        );
        if let Some(plan) = &publication.plan {
            ensure!(
                entry.submission == plan.id,
                "@{} is of another submission",
                entry.seq
            );
        }
    }
    for id in &known.given_up {
        ensure!(
            entries.iter().all(|entry| entry.submission != *id),
            "given up, and yet published: {id}"
        );
    }
    let tip = known.history.last().ok_or("there is no publication")?;
    let root = player.sim.root().join(".semaprax-workspace");
    let active = std::fs::read_to_string(root.join("ACTIVE")).map_err(|error| error.to_string())?;
    let revision = tip.revision.unwrap();
    ensure!(
        active.contains(&format!("\"revision\":\"{revision}\"")),
        "ACTIVE says {active}, not {revision}"
    );
    trees::check(&root, tip).map_err(|fault| format!("ACTIVE: {fault}"))?;
    let boot = root.join(format!("generations/{revision}/BOOT"));
    let boot = std::fs::read_to_string(boot).unwrap_or_default();
    let now = semaprax_daemon::world::Clock::boot_id(&player.sim);
    let now = now.as_deref().unwrap_or("unknown");
    ensure!(boot == now, "BOOT says {boot:?}");
    Ok(())
}

/// Connection leases are gone, detached ones live, and what they hold is whole.
pub fn check_leases(player: &mut Player) -> Verdict {
    let root = player.sim.root().join(".semaprax-workspace");
    let found = leases(&player.open.as_ref().unwrap().0);
    let known = &mut player.known;
    let under_way = known.lease_under_way.take();
    for entry in &found {
        let is_under_way = under_way.as_deref() == Some(entry.owner.as_str());
        match known.leases.get(&entry.owner) {
            Some(seq) => ensure!(entry.seq.get() == *seq, "a lease holds @{}", entry.seq),
            None => ensure!(is_under_way, "a lease of `{}` nobody has", entry.owner),
        }
        let index = usize::try_from(entry.seq.get()).unwrap() - 1;
        let publication = &known.history[index];
        trees::check(&root, publication)
            .map_err(|fault| format!("@{}, leased by `{}`: {fault}", entry.seq, entry.owner))?;
    }
    for owner in known.leases.keys() {
        ensure!(
            under_way.as_ref() == Some(owner) || found.iter().any(|entry| entry.owner == *owner),
            "the lease of `{owner}` is gone"
        );
    }
    known.leases = found
        .iter()
        .map(|entry| (entry.owner.clone(), entry.seq.get()))
        .collect();
    Ok(())
}

pub fn check_verify(player: &mut Player) -> Verdict {
    if semaprax_daemon::world::Clock::boot_id(&player.sim).is_none() {
        // Nobody can tell that a tree is of an earlier boot: what a power cut left of it is damage.
        player.repair().map_err(failed("repair"))?;
    }
    let request = Request::Verify(Verify {
        deep: true,
        repair: false,
        directory: None,
    });
    match player.perform(request, None) {
        Ok(Response::Verify(found)) => {
            ensure!(
                found.status == VerificationStatus::Ok,
                "verify --deep: {:?}",
                found.damage
            );
            Ok(())
        }
        other => Err(format!("verify --deep: {other:?}")),
    }
}

/// A submission whose outcome was unknown takes effect exactly once when it is repeated.
fn settle(player: &mut Player) -> Verdict {
    let Some((publications, _)) = player.known.pending.take() else {
        return Ok(());
    };
    for plan in publications.into_iter().filter_map(|one| one.plan) {
        player
            .publish(&plan)?
            .map_err(failed("a submission sent again"))?;
    }
    Ok(())
}

/// Every id of a publication answers with that publication.
fn check_replays(player: &mut Player) -> Verdict {
    for (index, publication) in player.known.history.clone().into_iter().enumerate() {
        let Some(plan) = publication.plan else {
            continue;
        };
        match player.submit(&plan) {
            Ok(Response::Publish(receipt) | Response::Rollback(receipt)) => {
                ensure!(
                    receipt.replayed
                        && receipt.revision == publication.revision
                        && receipt.seq.is_some_and(|seq| seq.get() == index as u64 + 1),
                    "the id of @{} answers {receipt:?}",
                    index + 1
                );
            }
            other => return Err(format!("the id of @{} answers {other:?}", index + 1)),
        }
    }
    Ok(())
}

/// Publishing goes on, with content that an interrupted submission may have left behind, too.
fn go_on(player: &mut Player) -> Verdict {
    let changes = vec![put("after.txt", "after\n"), put_large("after.bin", "big")];
    let plan = publish(9_000_000, None, OnStale::Reject, changes);
    player
        .publish(&plan)?
        .map_err(failed("a further publication"))?;
    check_tip(player)
}

/// Every refusal is in the journal, and every publication in it is either there or voided.
fn check_journal(player: &Player) -> Verdict {
    let request = Request::Journal(Journal {
        since: 0,
        limit: Some(1000),
        wait_ms: None,
    });
    let entries = match player.open.as_ref().unwrap().0.answer(&request) {
        Ok(Response::Journal(page)) => page.entries,
        other => return Err(format!("no journal: {other:?}")),
    };
    let mut standing: Vec<String> = Vec::new();
    for entry in &entries {
        let record = entry.detail["record"].as_str().unwrap_or_default();
        let record = record.to_owned();
        match entry.kind.as_str() {
            "initialized" | "published" => standing.push(record),
            "publication-voided" => {
                let place = standing.iter().position(|standing| *standing == record);
                let place = place.ok_or(format!("{record} is voided, but never was published"))?;
                standing.remove(place);
            }
            _ => {}
        }
    }
    let there = player.known.history.len();
    ensure!(
        standing.len() == there,
        "the journal has {} publications, there are {there}",
        standing.len()
    );
    for id in &player.known.refused {
        let is_there = entries.iter().any(|entry| {
            entry.kind == "refused" && entry.detail["submission"] == id.to_string().as_str()
        });
        ensure!(is_there, "the refusal of {id} is not in the journal");
    }
    Ok(())
}

/// Nothing that a crash left behind stays for ever.
fn check_leftovers(player: &mut Player) -> Verdict {
    player.sim.advance(std::time::Duration::from_hours(1));
    let request = Request::Collect(Collect {
        dry_run: false,
        min_age_ms: Some(0),
        keep: Some(1),
    });
    player.perform(request, None).map_err(failed("gc"))?;
    player.open.as_mut().unwrap().1.idle();
    let root = player.sim.root().join(".semaprax-workspace");
    let staged = names(&root.join("staging"))?;
    ensure!(are_spares(&staged), "left in staging: {staged:?}");
    let trash = names(&root.join("trash"))?;
    ensure!(trash.is_empty(), "left in trash: {trash:?}");
    let expected = "ACTIVE LOCK store.db store.db-wal store.db-shm objects generations staging trash \
                    reserve .gitignore .ignore CACHEDIR.TAG";
    let expected: BTreeSet<&str> = expected.split(' ').collect();
    for name in names(&root)? {
        ensure!(
            expected.contains(name.as_str()),
            "left in the state directory: {name}"
        );
    }
    check_named(player, &root)
}

fn names(place: &Utf8Path) -> Verdict<Vec<String>> {
    let entries = place
        .read_dir_utf8()
        .map_err(|error| format!("{place}: {error}"))?;
    Ok(entries
        .map(|entry| entry.unwrap().file_name().to_owned())
        .collect())
}

/// `generations/` and `objects/` hold what the store names, and nothing else.
fn check_named(player: &Player, root: &Utf8Path) -> Verdict {
    let revisions: BTreeSet<String> = log(player)?
        .iter()
        .map(|entry| entry.revision.to_string())
        .collect();
    for name in names(&root.join("generations"))? {
        ensure!(revisions.contains(&name), "left in generations: {name}");
    }
    let database = Database::open_reader(&root.join("store.db"), ReadMode::Shared)
        .map_err(|error| error.to_string())?;
    for head in names(&root.join("objects"))? {
        for tail in names(&root.join("objects").join(&head))? {
            let digest: Result<BlobDigest, _> = format!("{head}{tail}").parse();
            let is_named =
                digest.is_ok_and(|digest| matches!(database.blob_info(&digest), Ok(Some(_))));
            ensure!(is_named, "left in objects: {head}/{tail}");
        }
    }
    Ok(())
}
