//! The report, and how the command ends.
//!
//! Owns: putting the counts together, and the commands that show the result.
//! Never: prints.

use camino::Utf8Path;
use semaprax_protocol::SchemaTag;
use semaprax_protocol::documents::{DaemonIdentity, DemoReport, DemoStatus};

use super::course::Course;
use super::outcome;
use super::place::Place;
use super::stage::{Performance, READERS, WRITERS};
use crate::cli::exit::Exit;

/// Judges what was seen.
pub(super) fn compose(
    course: &Course,
    place: &Place,
    performance: Performance,
    daemon: Option<DaemonIdentity>,
) -> DemoReport {
    let mut tally = course.tally();
    outcome::compare_log(&mut tally, &performance.log);
    outcome::compare_events(&mut tally, &performance.told);
    outcome::take_verification(&mut tally, &performance.verification);
    outcome::check_amounts(&mut tally);
    let status = if tally.problems.is_empty() && tally.mixes == 0 {
        DemoStatus::Ok
    } else {
        DemoStatus::Failed
    };
    DemoReport {
        schema: SchemaTag::new(),
        status,
        workspace: place.workspace(),
        source: performance.source,
        files: performance.initialized.files,
        bytes: performance.initialized.bytes,
        writers: WRITERS as u64,
        readers: READERS as u64,
        publications: tally.publications(),
        reads: tally.reads,
        spanned: tally.spanned,
        stale: tally.stale,
        conflicts: tally.conflicts,
        rebases: tally.rebases,
        merges: tally.merges,
        mixes: tally.mixes,
        watched: performance.told.len() as u64,
        collected: tally.collected,
        verified: performance.verification.status,
        median_publish_us: outcome::percentile(&tally.publish_us, 50),
        slow_publish_us: outcome::percentile(&tally.publish_us, 99),
        duration_ms: u64::try_from(performance.taken.as_millis()).unwrap_or(u64::MAX),
        log: place.log(),
        inspect: inspect(place, &performance.file, daemon.is_some()),
        daemon,
        problems: tally.problems,
    }
}

/// The exit code.
pub(super) fn exit(report: &DemoReport) -> Exit {
    match report.status {
        DemoStatus::Ok => Exit::DONE,
        DemoStatus::Failed => Exit::FINDINGS,
    }
}

/// What to type to see what was done.
fn inspect(place: &Place, file: &str, daemon: bool) -> Vec<String> {
    let program = std::env::args().next().unwrap_or_default();
    let program = quoted(Utf8Path::new(&program).as_str());
    let workspace = quoted(place.workspace().as_str());
    let base = quoted(place.base().as_str());
    let command = |rest: &str| format!("{program} -C {workspace} {rest}");
    let mut commands = vec![
        command("log --limit 20"),
        command("diff @-1"),
        command(&format!("blame {}", quoted(&format!(":{file}")))),
        command("with -- ls"),
    ];
    if daemon {
        commands.push(command("daemon stop"));
    }
    // Trees are sealed: their owner has to open them first.
    commands.push(format!("chmod -R u+w {base} && rm -r {base}"));
    commands
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,=".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell() {
        let check = |word: &str, expect: &str| assert_eq!(quoted(word), expect);
        check(
            "/tmp/semaprax-demo-x1/workspace",
            "/tmp/semaprax-demo-x1/workspace",
        );
        check("/tmp/with space", "'/tmp/with space'");
        check("it's", r"'it'\''s'");
        check("", "''");
    }
}
