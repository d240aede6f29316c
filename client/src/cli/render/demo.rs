//! The report of the demo, as text.

use std::io::{self, Write};

use semaprax_protocol::documents::{DemoReport, DemoStatus, VerificationStatus};

use super::{Human, bytes, clean, plural, style, styled};

impl Human for DemoReport {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        writeln!(
            out,
            "{}  {}, {}, in {}.{} s",
            match self.status {
                DemoStatus::Ok => styled(style::GOOD, "ok"),
                DemoStatus::Failed => styled(style::ERROR, "failed"),
            },
            plural(self.files, "file"),
            bytes(self.bytes),
            self.duration_ms / 1000,
            self.duration_ms % 1000 / 100,
        )?;
        for problem in &self.problems {
            writeln!(
                out,
                "    {} {}",
                styled(style::ERROR, "problem:"),
                clean(problem)
            )?;
        }
        for (name, text) in rows(self) {
            writeln!(out, "  {name:14} {text}")?;
        }
        writeln!(out, "\nLeft for inspection: {}", self.workspace)?;
        for command in &self.inspect {
            writeln!(out, "  {}", styled(style::PLACE, command))?;
        }
        Ok(())
    }
}

/// What was counted, each with its name.
fn rows(report: &DemoReport) -> [(&'static str, String); 8] {
    let verified = match report.verified {
        VerificationStatus::Ok => "ok: every record, node, blob and file has its digest",
        VerificationStatus::Damaged => "damaged",
        VerificationStatus::Repaired => "repaired",
    };
    let published = format!(
        "{} by {} writers; median {}, 99 of 100 under {}",
        styled(style::STRONG, report.publications),
        report.writers,
        time(report.median_publish_us),
        time(report.slow_publish_us),
    );
    let refused = format!(
        "{} stale, {} in conflict; each read again and tried again",
        report.stale, report.conflicts
    );
    let read = format!(
        "{} whole trees by {} readers, {} of them while something was published",
        report.reads, report.readers, report.spanned
    );
    let watched = format!(
        "{} of {}, once each, in order",
        report.watched, report.publications
    );
    let moved = format!(
        "{} rebased, of these {} merged",
        report.rebases, report.merges
    );
    let is_verified = report.verified == VerificationStatus::Ok;
    [
        ("publications", published),
        ("refusals", refused),
        ("moved", moved),
        ("reads", read),
        (
            "mixes",
            judged(report.mixes == 0, &report.mixes.to_string()),
        ),
        (
            "watched",
            judged(report.watched == report.publications, &watched),
        ),
        ("collected", plural(report.collected, "tree")),
        ("verify --deep", judged(is_verified, verified)),
    ]
}

fn judged(holds: bool, text: &str) -> String {
    styled(if holds { style::GOOD } else { style::BAD }, text)
}

/// A short time, in milliseconds.
fn time(micros: u64) -> String {
    format!("{}.{:02} ms", micros / 1000, micros % 1000 / 10)
}
