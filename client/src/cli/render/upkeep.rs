//! Upkeep (gc, why, pin, verify, doctor) and the program itself, as text.

use std::io::{self, Write};

use semaprax_protocol::Status;
use semaprax_protocol::documents::{
    Collection, Explanation, FindingStatus, Health, Pinned, SchemaList, Verification,
    VerificationStatus, Why,
};

use super::{Human, bytes, clean, plural, style, styled};

impl Human for Collection {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let word = if self.dry_run {
            "would remove"
        } else {
            "removed"
        };
        for revision in &self.removed {
            writeln!(
                out,
                "{} {}",
                styled(style::BAD, word),
                styled(style::NAME, revision.short())
            )?;
        }
        for kept in &self.kept {
            let reasons: Vec<&str> = kept.reasons.iter().map(|reason| reason.word()).collect();
            writeln!(
                out,
                "kept {}  {}",
                styled(style::NAME, kept.revision.short()),
                reasons.join(", ")
            )?;
        }
        let trees = plural(self.removed.len() as u64, "tree");
        let freed = bytes(self.freed_bytes);
        if self.dry_run {
            writeln!(out, "would remove {trees} and free {freed}")?;
        } else {
            writeln!(out, "removed {trees}, freed {freed}")?;
        }
        if self.content_collected > 0 {
            writeln!(
                out,
                "the content of {} was collected",
                plural(self.content_collected, "publication")
            )?;
        }
        Ok(())
    }
}

impl Human for Why {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let reasons: Vec<&str> = self.reasons.iter().map(|reason| reason.word()).collect();
        let what = styled(style::NAME, self.revision.short());
        match (self.materialized, reasons.is_empty()) {
            (false, true) => writeln!(out, "{what} has no tree on disk"),
            (true, true) => writeln!(
                out,
                "{what} is kept by nothing: the next collection may take its tree"
            ),
            (_, false) => writeln!(out, "{what} is kept: {}", reasons.join(", ")),
        }
    }
}

impl Human for Pinned {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let word = if self.pinned {
            "pinned"
        } else {
            "not pinned any more"
        };
        writeln!(out, "{} {word}", styled(style::NAME, self.revision.short()))
    }
}

impl Human for Verification {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        for damage in &self.damage {
            let mut place = damage
                .revision
                .map_or_else(String::new, |revision| revision.short());
            if let Some(path) = &damage.path {
                place = format!("{place}:{}", clean(path));
            }
            let word = if damage.repaired {
                styled(style::GOOD, "repaired")
            } else {
                styled(style::ERROR, "damaged")
            };
            writeln!(
                out,
                "{word} {} {place}: {}",
                clean(&damage.kind),
                clean(&damage.detail)
            )?;
        }
        let checked = &self.checked;
        let word = match self.status {
            VerificationStatus::Ok => styled(style::GOOD, "ok"),
            VerificationStatus::Damaged => styled(style::ERROR, "damaged"),
            VerificationStatus::Repaired => styled(style::GOOD, "repaired"),
        };
        writeln!(
            out,
            "{word}  checked {}, {} journal entries, {}, {}, {} with {}",
            plural(checked.records, "record"),
            checked.events,
            plural(checked.nodes, "node"),
            plural(checked.blobs, "blob"),
            plural(checked.generations, "tree"),
            plural(checked.files, "file"),
        )
    }
}

impl Human for Health {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        for finding in &self.findings {
            let word = match finding.status {
                _ if finding.repaired => styled(style::GOOD, "mended "),
                FindingStatus::Ok => styled(style::GOOD, "ok     "),
                FindingStatus::Warning => styled(style::WARNING, "warning"),
                FindingStatus::Problem => styled(style::ERROR, "problem"),
            };
            writeln!(
                out,
                "{word} {}: {}",
                clean(&finding.check),
                clean(&finding.detail)
            )?;
            if let Some(code) = finding.code.filter(|_| !finding.repaired) {
                writeln!(out, "        {} {code}", styled(style::STRONG, "code:"))?;
            }
            if let Some(fix) = &finding.fix {
                writeln!(
                    out,
                    "        {} {}",
                    styled(style::STRONG, "fix:"),
                    clean(fix)
                )?;
            }
        }
        Ok(())
    }
}

impl Human for Explanation {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let status = match self.status {
            Status::Rejected => "rejected",
            Status::Failed => "failed",
            Status::InDoubt => "in doubt",
        };
        writeln!(
            out,
            "{}  ({status}, exit code {})",
            styled(style::STRONG, self.code),
            self.exit_code
        )?;
        writeln!(out, "\n{}", self.meaning)?;
        if let Some(hint) = &self.hint {
            writeln!(out, "\n{} {hint}", styled(style::STRONG, "hint:"))?;
        }
        Ok(())
    }
}

impl Human for SchemaList {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        self.names
            .iter()
            .try_for_each(|name| writeln!(out, "{name}"))
    }
}
