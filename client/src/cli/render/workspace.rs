//! The workspace as a whole, its leases, its queue and its daemon, as text.

use std::io::{self, Write};

use semaprax_protocol::documents::{
    Cancelled, DaemonStatus, Exported, Initialized, LeaseGrant, LeaseList, LeaseReleased, Queue,
    WorkspaceStatus,
};
use semaprax_protocol::{Limits, NamePolicy};

use super::{Human, bytes, change_line, clean, message, moment, plural, span, style, styled};

/// The most things that were not imported which are listed by name.
const SKIPPED_LISTED: usize = 20;

impl Human for Initialized {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        writeln!(
            out,
            "{} {}  ({}, {})",
            styled(style::GOOD, "initialized"),
            styled(
                style::NAME,
                format_args!("@{} {}", self.seq, self.revision.short())
            ),
            plural(self.files, "file"),
            bytes(self.bytes),
        )?;
        writeln!(out, "workspace {}", self.workspace)?;
        let names = match self.names {
            NamePolicy::Portable => "portable: every common file system can hold them",
            NamePolicy::Native => "native: some would not fit on other systems",
        };
        writeln!(out, "names     {names}")?;
        for skipped in self.skipped.iter().take(SKIPPED_LISTED) {
            writeln!(
                out,
                "  {} {}",
                styled(style::WARNING, skipped.reason.word()),
                clean(&skipped.path)
            )?;
        }
        if self.skipped_total > 0 {
            // Said in this form whatever the number: programs look for it.
            writeln!(out, "{} files not imported", self.skipped_total)?;
        }
        Ok(())
    }
}

impl Human for WorkspaceStatus {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let active = &self.active;
        writeln!(
            out,
            "{}  {}, {}  {}  {}",
            styled(
                style::NAME,
                format_args!("@{} {}", active.seq, active.revision.short())
            ),
            plural(active.files, "file"),
            bytes(active.bytes),
            clean(&active.author),
            styled(style::FAINT, moment(active.published_at)),
        )?;
        message(out, &active.message)?;
        writeln!(
            out,
            "workspace    {} ({} names)",
            self.workspace, self.names
        )?;
        writeln!(
            out,
            "generations  {}, {} on disk",
            plural(self.generations.total, "publication"),
            plural(self.generations.materialized, "tree"),
        )?;
        writeln!(out, "leases       {}", self.leases)?;
        writeln!(
            out,
            "queue        {} waiting, {} running",
            self.queue.waiting, self.queue.running
        )?;
        match &self.daemon {
            Some(daemon) => writeln!(
                out,
                "daemon       process {}, version {}",
                daemon.pid,
                clean(&daemon.version)
            )?,
            None => writeln!(out, "daemon       none: read from disk")?,
        }
        if let Some(drift) = &self.drift {
            let count = drift.len() as u64;
            writeln!(
                out,
                "drift        {}",
                if count == 0 {
                    "none".to_owned()
                } else {
                    plural(count, "path")
                }
            )?;
            for change in drift {
                writeln!(out, "  {}", change_line(change))?;
            }
            if self.truncated {
                writeln!(out, "  ... and more")?;
            }
        }
        self.limits.iter().try_for_each(|found| limits(out, found))
    }
}

fn limits(out: &mut Vec<u8>, limits: &Limits) -> io::Result<()> {
    writeln!(out, "limits       file {}", bytes(limits.file_bytes))?;
    writeln!(
        out,
        "             submission {}, {}",
        bytes(limits.submission_bytes),
        plural(limits.changes, "change")
    )?;
    writeln!(
        out,
        "             queue {}, {}",
        plural(limits.queue, "submission"),
        bytes(limits.queue_bytes)
    )?;
    writeln!(out, "             message {}", bytes(limits.message_bytes))?;
    writeln!(
        out,
        "             {}, {} held for them",
        plural(limits.connections, "connection"),
        bytes(limits.client_bytes)
    )
}

impl Human for LeaseGrant {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        writeln!(out, "{}", self.path)?;
        let until = self.expires.map_or_else(
            || "held while this runs".to_owned(),
            |at| format!("until {}", moment(at)),
        );
        writeln!(
            out,
            "lease {} of {}, {until}",
            self.lease,
            styled(
                style::NAME,
                format_args!("@{} {}", self.seq, self.revision.short())
            ),
        )
    }
}

impl Human for LeaseList {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        for lease in &self.leases {
            let until = lease
                .expires
                .map_or_else(|| "with its connection".to_owned(), moment);
            writeln!(
                out,
                "{} {}  {}  held for {}, ends {until}{}",
                lease.lease,
                styled(
                    style::NAME,
                    format_args!("@{} {}", lease.seq, lease.revision.short())
                ),
                clean(&lease.owner),
                span(lease.age),
                lease
                    .pid
                    .map_or_else(String::new, |pid| format!(", process {pid}")),
            )?;
        }
        Ok(())
    }
}

impl Human for LeaseReleased {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        writeln!(
            out,
            "released {} of {}",
            self.released,
            styled(style::NAME, self.revision.short())
        )
    }
}

impl Human for Queue {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        for entry in self.running.iter().chain(&self.waiting) {
            let place = if entry.position == 0 {
                "running".to_owned()
            } else {
                format!("place {}", entry.position)
            };
            writeln!(
                out,
                "{}  {place}  {}  for {}",
                entry.submission,
                clean(&entry.author),
                span(entry.since_ms)
            )?;
        }
        if self.running.is_empty() && self.waiting.is_empty() {
            writeln!(out, "nothing waits")?;
        }
        Ok(())
    }
}

impl Human for Cancelled {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        writeln!(out, "cancelled {}", self.cancelled)
    }
}

impl Human for Exported {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        writeln!(
            out,
            "exported {} to {}  ({})",
            styled(
                style::NAME,
                format_args!("@{} {}", self.seq, self.revision.short())
            ),
            self.path,
            plural(self.files, "file"),
        )
    }
}

impl Human for DaemonStatus {
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()> {
        match &self.daemon {
            Some(daemon) if self.running => writeln!(
                out,
                "running      process {}, version {}",
                daemon.pid,
                clean(&daemon.version)
            )?,
            _ if self.running => writeln!(out, "running")?,
            _ => writeln!(out, "not running")?,
        }
        writeln!(out, "socket       {}", self.socket)?;
        if let Some(log) = &self.log {
            writeln!(out, "log          {log}")?;
        }
        if let Some(uptime) = self.uptime_ms {
            writeln!(out, "up for       {}", span(uptime))?;
        }
        if self.running {
            writeln!(out, "connections  {}", self.connections)?;
        }
        for workspace in &self.workspaces {
            writeln!(out, "workspace    {workspace}")?;
        }
        Ok(())
    }
}
