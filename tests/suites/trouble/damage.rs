//! One kind of damage after the other to a workspace that nobody has open.
//!
//! Owns: how a row of the tables in `cases/` is tried. For each: what the readers say, what `verify --deep` finds,
//! whether a daemon can open it, what the repair finds, and that afterwards all is as it was before.

use std::sync::Mutex;

use rayon::prelude::*;
use semaprax_daemon::workspace::{Holder, doctor_unopened, verify_unopened};
use semaprax_protocol::Refusal;
use semaprax_protocol::documents::{Health, Verification};
use semaprax_protocol::request::Verify;
use semaprax_tests::fixture::{Fixture, refused, verification};
use semaprax_tests::oracle::check_whole;

use crate::cases;
use crate::scene::{self, Answers, compare, from_daemon, from_disk};

/// A row of a table.
pub struct Case {
    /// What is damaged.
    pub name: &'static str,
    /// Does it.
    pub damage: fn(&Fixture),
    /// What is expected: `reads` right or refused; what `verify --deep` says; what opening says.
    pub expect: [&'static str; 3],
    /// How it is put right, what that says, and how it is afterwards: `as before`, or `partly`, when
    /// what was lost stays lost and the rest is right.
    pub repair: (Repair, &'static str, &'static str),
}

/// The ways to put it right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Opening does it.
    Open,
    /// `verify --deep --repair`.
    Verify,
    /// `doctor --repair`.
    Doctor,
}

fn holder() -> Holder {
    Holder {
        socket: "/nowhere/socket".into(),
        pid: 1,
    }
}

fn verify(fixture: &Fixture, repair: bool) -> Result<Verification, Refusal> {
    let params = Verify {
        deep: true,
        repair,
        directory: None,
    };
    verify_unopened(&fixture.test.world, &fixture.root, &holder(), &params)
}

fn shown(outcome: &Result<Verification, Refusal>) -> String {
    let text = match outcome {
        Ok(found) => verification(found),
        Err(refusal) => refused(refusal),
    };
    summary(&text)
}

/// Without what differs from run to run, and each thing once.
fn summary(text: &str) -> String {
    let text = text.split(" /").next().unwrap();
    let (status, rest) = text.split_once(": ").unwrap_or((text, ""));
    let mut kinds: Vec<&str> = Vec::new();
    for kind in rest.split(", ").filter(|kind| !kind.is_empty()) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        status.to_owned()
    } else {
        format!("{status}: {}", kinds.join(", "))
    }
}

/// The same whatever the order: trees are looked at by their revisions.
fn sorted(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = text.split([':', ',']).map(str::trim).collect();
    words.sort_unstable();
    words
}

fn mended(health: &Result<Health, Refusal>) -> String {
    match health {
        Ok(health) => {
            let repaired = health.findings.iter().filter(|finding| finding.repaired);
            let checks: Vec<&str> = repaired.map(|finding| finding.check.as_str()).collect();
            checks.join(", ")
        }
        Err(refusal) => summary(&refused(refusal)),
    }
}

/// Each finding of `doctor` that is no praise has a code, and says what to do.
fn told_well(health: &Health) -> Result<(), String> {
    use semaprax_protocol::documents::FindingStatus;
    for finding in &health.findings {
        let is_ours = matches!(
            finding.check.as_str(),
            "state-directory" | "store" | "lock-holder"
        );
        if finding.status != FindingStatus::Ok && is_ours {
            let has_hint = finding.fix.is_some()
                || finding
                    .code
                    .and_then(semaprax_protocol::Code::hint)
                    .is_some();
            if finding.code.is_none() || !has_hint {
                return Err(format!("{finding:?}"));
            }
        }
    }
    Ok(())
}

fn try_case(case: &Case) -> Result<(), String> {
    let mut fixture = scene::small();
    let before = from_disk(&fixture);
    (case.damage)(&fixture);
    let after = from_disk(&fixture);
    let reads = match compare(&before, &after)? {
        0 => "right",
        _ => "refused",
    };
    let looked = shown(&verify(&fixture, false));
    let health = semaprax_daemon::workspace::doctor(
        &fixture.test.world,
        &fixture.root,
        "/nowhere/socket".into(),
    );
    told_well(&health)?;
    let opened = opening(&mut fixture, &before)?;
    let found = [reads, looked.as_str(), opened.as_str()];
    if found.map(sorted) != case.expect.map(sorted) {
        return Err(format!("found {found:?}"));
    }
    let said = match case.repair.0 {
        Repair::Open => String::new(),
        Repair::Verify => shown(&verify(&fixture, true)),
        Repair::Doctor => mended(&doctor_unopened(
            &fixture.test.world,
            &fixture.root,
            &holder(),
            true,
        )),
    };
    if sorted(&said) != sorted(case.repair.1) {
        return Err(format!("the repair said {said:?}"));
    }
    settled(&mut fixture, &before, case.repair.2)?;
    cases::is_untouched(&fixture)
}

/// A daemon tries to open it; when it can, its answers must be right.
fn opening(fixture: &mut Fixture, before: &Answers) -> Result<String, String> {
    match fixture.open() {
        Ok(()) => {
            compare(before, &from_daemon(fixture))?;
            fixture.close();
            Ok("opens".to_owned())
        }
        Err(refusal) => Ok(refusal.code().word().to_owned()),
    }
}

fn settled(fixture: &mut Fixture, before: &Answers, state: &str) -> Result<(), String> {
    if state == "gone" {
        return Ok(());
    }
    let opened = fixture.open();
    opened.map_err(|refusal| format!("not opened after the repair: {refusal}"))?;
    let mut before = before.clone();
    if state == "changed" {
        // Of what was taken away or given anew only the state of the workspace tells.
        before.remove("status");
    }
    let lost = compare(&before, &from_daemon(fixture))?;
    match (state, lost) {
        ("as before" | "changed", 0) => {
            let again = verification(&fixture.verify(true, false));
            if again != "ok" {
                return Err(format!("after the repair: {again}"));
            }
            check_whole(fixture);
        }
        ("partly", lost) if lost > 0 => {}
        _ => return Err(format!("{lost} answers are refused, not {state}")),
    }
    // It goes on.
    let said = fixture.run("publish\n  put after repair");
    if !said.starts_with("published") {
        return Err(format!("after the repair: {said}"));
    }
    fixture.close();
    Ok(())
}

#[test]
fn each_kind_of_damage_is_named_and_put_right() {
    let all = cases::all();
    let wrong = Mutex::new(Vec::new());
    all.par_iter().for_each(|case| {
        let tried = std::panic::catch_unwind(|| try_case(case));
        let outcome = tried.unwrap_or_else(|_| Err("a panic".to_owned()));
        if let Err(what) = outcome {
            wrong.lock().unwrap().push(format!("{}: {what}", case.name));
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    for case in &all {
        println!(
            "{} | {} | {:?}",
            case.name,
            case.expect.join(" | "),
            case.repair
        );
    }
    println!("{} cases", all.len());
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(all.len() >= 100, "only {} cases", all.len());
}

/// While a writer has it open it knows what ACTIVE was, and puts it back without losing anything.
#[test]
fn a_pointer_lost_under_a_writer_is_written_anew() {
    let check = |name: &str, lose: &dyn Fn(&Fixture)| {
        let mut fixture = scene::small();
        fixture.open().unwrap();
        assert!(
            fixture
                .run("publish\n  put d/c five")
                .starts_with("published")
        );
        let before = from_daemon(&fixture);
        lose(&fixture);
        assert_eq!(
            compare(&before, &from_daemon(&fixture)).map(|lost| lost > 0),
            Ok(true)
        );
        assert_eq!(fixture.run("verify"), "damaged: active\n", "{name}");
        assert_eq!(fixture.run("repair"), "repaired: active\n", "{name}");
        assert_eq!(compare(&before, &from_daemon(&fixture)), Ok(0), "{name}");
        check_whole(&mut fixture);
    };
    check("gone", &|fixture| cases::remove(&fixture.state("ACTIVE")));
    check("a FIFO", &|fixture| cases::fifo(&fixture.state("ACTIVE")));
    check("a directory", &|fixture| {
        cases::directory(&fixture.state("ACTIVE"));
    });
}

/// A receipt that was changed in the store is not given out as the first outcome.
#[test]
fn a_changed_receipt_is_named() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    assert!(
        fixture
            .run("publish id=7\n  put a 2")
            .starts_with("published")
    );
    fixture.close();
    cases::sql(
        &fixture,
        "UPDATE submissions SET receipt = replace(receipt, '\"seq\":2', '\"seq\":1')",
    );
    fixture.open().unwrap();
    assert_eq!(
        fixture.run("publish id=7\n  put a 2"),
        "failed workspace-damaged\n"
    );
    assert!(
        fixture
            .run("publish id=8\n  put a 3")
            .starts_with("published")
    );
}
