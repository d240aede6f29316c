//! Documents as text for people.
//!
//! Owns: wording, layout and colour of the human output, which carries no promise.
//! Never: asks a daemon, or prints: text goes to a buffer that `output.rs` prints.

mod demo;
mod history;
mod refusal;
mod upkeep;
mod values;
mod workspace;

use std::io::{self, Write};

pub(super) use history::{blame_line, event_line, journal_line};
pub(super) use refusal::refusal_text;
pub(super) use values::{bytes, change_line, clean, moment, plural, span};

/// A document that people can read.
pub(in crate::cli) trait Human {
    /// Writes it as text.
    fn human(&self, out: &mut Vec<u8>) -> io::Result<()>;
}

/// Colours, by what they say.
pub(super) mod style {
    use anstyle::{AnsiColor, Style};

    /// Done, as it should be, added.
    pub(in crate::cli) const GOOD: Style = AnsiColor::Green.on_default();
    /// Not as it should be, removed.
    pub(in crate::cli) const BAD: Style = AnsiColor::Red.on_default();
    /// The word of an error.
    pub(in crate::cli) const ERROR: Style = AnsiColor::Red.on_default().bold();
    /// The word of a warning.
    pub(in crate::cli) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
    /// A publication number or revision.
    pub(in crate::cli) const NAME: Style = AnsiColor::Yellow.on_default();
    /// A place in a file, a path.
    pub(in crate::cli) const PLACE: Style = AnsiColor::Cyan.on_default();
    /// What matters most on a line.
    pub(in crate::cli) const STRONG: Style = Style::new().bold();
    /// What matters least.
    pub(in crate::cli) const FAINT: Style = Style::new().dimmed();
}

/// `text` in a style.
pub(super) fn styled(style: anstyle::Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Writes a message, each line indented.
fn message(out: &mut Vec<u8>, text: &str) -> io::Result<()> {
    for line in text.lines() {
        writeln!(out, "    {}", clean(line))?;
    }
    Ok(())
}
