//! What goes on while a command waits, for a person at a terminal.
//!
//! Owns: one line on standard error that comes and goes. Never: shown where nobody looks.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use semaprax_protocol::rpc::Notice;

use super::output::Output;

/// A line that says how far a request is.
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A line for what is going on; nothing is shown where standard error is no terminal.
    pub(super) fn new(output: Output, message: &'static str) -> Self {
        let bar = ProgressBar::no_length().with_message(message);
        if !output.has_audience() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Self { bar }
    }

    /// Takes in a notice of the request under way.
    pub(super) fn notice(&self, notice: &Notice) {
        match notice {
            Notice::Progress { done, total, .. } => {
                if let Some(total) = total
                    && self.bar.length().is_none()
                {
                    self.bar.set_style(counting());
                    self.bar.set_length(*total);
                }
                self.bar.set_position(*done);
            }
            Notice::Queued { position, .. } => {
                self.bar.set_message(format!("waiting, place {position}"));
                self.bar.tick();
            }
            Notice::Event { .. } => {}
        }
    }
}

fn counting() -> ProgressStyle {
    ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
