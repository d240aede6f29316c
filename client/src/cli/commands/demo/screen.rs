//! What a person sees while the demo runs.
//!
//! Owns: one moving line on a terminal, plain lines now and then elsewhere; both on standard error.
//! Never: writes to standard output.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::course::Tally;
use crate::cli::output::Output;
use crate::cli::render::plural;
use crate::files::Deadline;

/// How often a line is printed where it cannot move.
const PLAIN: Duration = Duration::from_secs(3);

/// The progress.
pub(super) struct Screen {
    output: Output,
    bar: Option<ProgressBar>,
    quiet_until: Deadline,
}

impl Screen {
    pub(super) fn new(output: Output) -> Self {
        let bar = output.has_audience().then(|| {
            let style = ProgressStyle::with_template("{spinner} {wide_msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            ProgressBar::no_length().with_style(style)
        });
        Self {
            output,
            bar,
            quiet_until: Deadline::after(PLAIN),
        }
    }

    /// Says what was done or comes next; it stays.
    pub(super) fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.output.remark(text)),
            None => self.output.remark(text),
        }
    }

    /// Says how far something is: it moves, or is said now and then.
    pub(super) fn moving(&mut self, text: impl FnOnce() -> String) {
        match &self.bar {
            Some(bar) => {
                bar.set_message(text());
                bar.tick();
            }
            None if self.quiet_until.remaining().is_none() => {
                self.quiet_until = Deadline::after(PLAIN);
                self.output.remark(&format!("  {}", text()));
            }
            None => {}
        }
    }

    /// Says how far the main part is.
    pub(super) fn counts(&mut self, tally: &Tally) {
        self.moving(|| {
            format!(
                "{}, {}, {} stale, {} rebased, {} merged, {} collected, {} mixed",
                plural(tally.publications(), "publication"),
                plural(tally.reads, "read"),
                tally.stale,
                tally.rebases,
                tally.merges,
                tally.collected,
                tally.mixes,
            )
        });
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
