//! What a run found: one JSON document, and a table for people.

use std::process::Command;

use serde_json::{Value, json};

use super::{Row, Settings};

/// What a ratio is to be.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// Anything: it is measured, and not judged.
    Any,
}

/// One row, measured.
#[derive(Debug)]
pub struct Finding {
    /// Which.
    pub row: Row,
    /// What was done.
    pub work: String,
    /// Against what.
    pub against: String,
    /// By how much; `None` where the peer is not there.
    pub ratio: Option<f64>,
    /// By how much it is to be.
    pub target: Target,
    /// The times.
    pub details: Value,
}

impl Target {
    fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(least) => ratio >= least,
            Self::AtMost(most) => ratio <= most,
            Self::Any => true,
        }
    }

    fn words(self) -> String {
        match self {
            Self::AtLeast(least) => format!(">= {least}"),
            Self::AtMost(most) => format!("<= {most}"),
            Self::Any => "-".to_owned(),
        }
    }
}

impl Finding {
    fn verdict(&self) -> &'static str {
        match self.ratio {
            None => "skipped: the peer is not installed",
            Some(_) if matches!(self.target, Target::Any) => "not judged",
            Some(ratio) if self.target.is_met(ratio) => "met",
            Some(_) => "not met",
        }
    }

    fn document(&self) -> Value {
        json!({
            "row": self.row.name(),
            "work": self.work,
            "against": self.against,
            "ratio": self.ratio,
            "target": self.target.words(),
            "verdict": self.verdict(),
            "details": self.details,
        })
    }
}

/// Everything, as one document.
pub fn document(settings: &Settings, findings: &[Finding]) -> Value {
    let rows: Vec<Value> = findings.iter().map(Finding::document).collect();
    json!({
        "schema": "semaprax.bench/1",
        "seed": settings.seed,
        "rounds": settings.rounds,
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "filesystem": file_system(settings),
        "rows": rows,
    })
}

/// The kind of file system, and whether it keeps a journal: the ratios differ.
fn file_system(settings: &Settings) -> String {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    };
    let directory = settings.directory.as_str();
    let find = |column: &str| said("findmnt", &["-n", "-o", column, "--target", directory]);
    let kind = find("FSTYPE").unwrap_or_else(|| "unknown".to_owned());
    let features = find("SOURCE").and_then(|device| said("dumpe2fs", &["-h", &device]));
    match features {
        Some(features) if features.contains("has_journal") => format!("{kind} with a journal"),
        Some(_) => format!("{kind} without a journal"),
        None => kind,
    }
}

/// The table.
pub fn table(findings: &[Finding]) -> String {
    let mut lines = vec![format!(
        "{:<8} {:<58} {:<40} {:>8} {:>8}  {}",
        "row", "work", "against", "ratio", "target", "verdict"
    )];
    for finding in findings {
        let ratio = finding
            .ratio
            .map_or("-".to_owned(), |ratio| ratio.to_string());
        lines.push(format!(
            "{:<8} {:<58} {:<40} {ratio:>8} {:>8}  {}",
            finding.row.name(),
            finding.work,
            finding.against,
            finding.target.words(),
            finding.verdict()
        ));
        if let Value::Object(details) = &finding.details {
            let named = details
                .iter()
                .map(|(name, value)| format!("         {name}: {value}"));
            lines.extend(named);
        }
    }
    lines.join("\n")
}

/// Says what is being done.
pub fn note(text: &str) {
    eprintln!("semaprax-bench: {text}");
}
