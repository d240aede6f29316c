//! The one place that prints.
//!
//! Owns: standard output (results) and standard error (diagnostics), colour, and the choice between
//! JSON and text. Never: knows what a document means.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use semaprax_protocol::Refusal;
use serde::Serialize;

use super::args::ColorWhen;
use super::render::{Human, refusal_text};

/// How results and diagnostics are printed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    json: bool,
}

#[expect(
    clippy::unused_self,
    reason = "printing is for whoever was handed the output, also where no setting of it matters"
)]
impl Output {
    /// Settles colour for the whole process.
    pub(super) fn new(json: bool, color: ColorWhen) -> Self {
        match color {
            // The default also heeds NO_COLOR, CLICOLOR, CLICOLOR_FORCE and TERM.
            ColorWhen::Auto => {}
            ColorWhen::Always => ColorChoice::Always.write_global(),
            ColorWhen::Never => ColorChoice::Never.write_global(),
        }
        Self { json }
    }

    /// Whether results are JSON.
    pub(super) const fn is_json(self) -> bool {
        self.json
    }

    /// Whether text on standard output is coloured.
    pub(super) fn is_colored(self) -> bool {
        !self.json && AutoStream::choice(&io::stdout()) != ColorChoice::Never
    }

    /// How many columns a table may have.
    pub(super) fn width(self) -> usize {
        let columns = std::env::var("COLUMNS")
            .ok()
            .and_then(|text| text.parse().ok());
        columns.unwrap_or(80)
    }

    /// Prints a document: one line of JSON, or its text.
    pub(super) fn show<T: Serialize + Human>(self, document: &T) -> io::Result<()> {
        if self.json {
            self.json(document)
        } else {
            self.text(|out| document.human(out))
        }
    }

    /// Prints a document as one line of JSON.
    pub(super) fn json<T: Serialize>(self, document: &T) -> io::Result<()> {
        let mut line = serde_json::to_vec(document).map_err(io::Error::other)?;
        line.push(b'\n');
        self.raw(&line)
    }

    /// Prints text with styles, which are taken out where no colour is wanted.
    pub(super) fn text(self, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        let mut text = Vec::new();
        write(&mut text)?;
        let mut out = AutoStream::auto(io::stdout().lock());
        out.write_all(&text)?;
        out.flush()
    }

    /// Prints bytes as they are.
    pub(super) fn raw(self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    /// Prints a remark for people, to standard error.
    pub(super) fn remark(self, text: &str) {
        // There is nobody to tell when standard error is gone.
        drop(writeln!(anstream::stderr(), "{text}"));
    }

    /// Prints a refusal where its reader looks for it: JSON on standard output, text on standard
    /// error.
    pub(super) fn refusal(self, refusal: Refusal) -> io::Result<()> {
        if self.json {
            return self.json(&refusal.document());
        }
        self.diagnostics_to_stderr(&refusal);
        Ok(())
    }

    /// Prints the diagnostics of a refusal to standard error.
    pub(super) fn diagnostics_to_stderr(self, refusal: &Refusal) {
        drop(write!(anstream::stderr(), "{}", refusal_text(refusal)));
    }

    /// Whether a person watches standard error.
    pub(super) fn has_audience(self) -> bool {
        io::stderr().is_terminal()
    }
}
