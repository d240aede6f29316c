//! The lines of a patch, with their numbers.
//!
//! Owns: the place in the patch, and the view of a header line without its line end.
//!
//! Never: interprets a line.

/// A place in a patch, between two lines.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    line: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self {
            rest: input,
            line: 1,
        }
    }

    /// The number of the next line, from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The next line, with its line end if it has one.
    pub(super) fn peek(&self) -> Option<&'a [u8]> {
        first_line(self.rest).map(|(line, _)| line)
    }

    /// The line `ahead` lines after the next one.
    pub(super) fn peek_ahead(&self, ahead: usize) -> Option<&'a [u8]> {
        let mut rest = self.rest;
        for _ in 0..ahead {
            rest = first_line(rest)?.1;
        }
        first_line(rest).map(|(line, _)| line)
    }

    /// Goes past the next line and gives it.
    pub(super) fn next(&mut self) -> Option<&'a [u8]> {
        let (line, rest) = first_line(self.rest)?;
        self.rest = rest;
        self.line += 1;
        Some(line)
    }
}

fn first_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if text.is_empty() {
        return None;
    }
    let end = text.iter().position(|&byte| byte == b'\n');
    text.split_at_checked(end.map_or(text.len(), |end| end + 1))
}

/// A header line without its line end; a header that went through a mail may end in `\r\n`.
pub(super) fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
