//! Binary patches of git.
//!
//! Owns: their text form, and inflating no more than the patch declares and the limits allow.
//!
//! Never: applies a delta.

use std::io::Read as _;

use flate2::read::ZlibDecoder;

use super::base85;
use super::model::BinaryChange;
use super::parse::{Limits, ParseError, ParseErrorKind};
use super::reader::{Reader, trimmed};

/// Reads the forward half, and the backward half after it, which is checked and dropped. The
/// reader stands at `GIT binary patch`.
pub(super) fn parse(reader: &mut Reader<'_>, limits: Limits) -> Result<BinaryChange, ParseError> {
    reader.next();
    let at = reader.line();
    let forward = half(reader, limits)?.ok_or(ParseErrorKind::MalformedBinary.at(at))?;
    half(reader, limits)?;
    Ok(forward)
}

/// One half, with the empty line that ends it; `None` if none begins here.
fn half(reader: &mut Reader<'_>, limits: Limits) -> Result<Option<BinaryChange>, ParseError> {
    let at = reader.line();
    let text = reader.peek().map(trimmed).unwrap_or_default();
    let (is_literal, size) = match (text.strip_prefix(b"literal "), text.strip_prefix(b"delta ")) {
        (Some(size), _) => (true, size),
        (_, Some(size)) => (false, size),
        (None, None) => return Ok(None),
    };
    let size: u64 = std::str::from_utf8(size)
        .ok()
        .and_then(|size| size.parse().ok())
        .ok_or(ParseErrorKind::MalformedBinary.at(at))?;
    let max = limits.binary_bytes.min(limits.binary_bytes_total);
    if size > max {
        return Err(ParseErrorKind::BinaryTooLarge { max }.at(at));
    }
    reader.next();
    let mut deflated = Vec::new();
    while let Some(line) = reader.peek().map(trimmed).filter(|line| !line.is_empty()) {
        base85::decode_line(line, &mut deflated)
            .ok_or(ParseErrorKind::MalformedBinary.at(reader.line()))?;
        reader.next();
    }
    reader.next();
    let content = inflate(&deflated, size).ok_or(ParseErrorKind::MalformedBinary.at(at))?;
    Ok(Some(if is_literal {
        BinaryChange::Literal(content)
    } else {
        BinaryChange::Delta(content)
    }))
}

/// Exactly `size` bytes, or nothing.
fn inflate(deflated: &[u8], size: u64) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let mut decoder = ZlibDecoder::new(deflated).take(size + 1);
    decoder.read_to_end(&mut content).ok()?;
    (content.len() as u64 == size).then_some(content)
}
