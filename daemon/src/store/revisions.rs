//! Revision arguments: what `@`, `@7`, `@-1` and `a1b2c3` name.
//!
//! Owns: the grammar, and the look-up up to ACTIVE: what is beyond was never published.

use semaprax_protocol::{Code, Diagnostic, Refusal, Revision, Seq};

use super::database::Database;
use super::history::StoredRecord;
use super::{StoreError, StoreResult};

/// Digits that are too few could name too much.
const LEAST_DIGITS: usize = 6;

/// The publication that `text` names, seen from a tip of number `tip`.
pub fn resolve(database: &Database, tip: Seq, text: &str) -> StoreResult<StoredRecord> {
    let by_seq = |number: Option<u64>| -> StoreResult<StoredRecord> {
        let seq = number
            .and_then(Seq::new)
            .filter(|&seq| seq <= tip)
            .ok_or_else(|| unknown(text))?;
        database
            .record(seq)?
            .ok_or_else(|| StoreError::damaged(format!("the record of @{seq} is missing")))
    };
    if let Some(rest) = text.strip_prefix('@') {
        if rest.is_empty() {
            return by_seq(Some(tip.get()));
        }
        if let Some(back) = rest.strip_prefix('-') {
            let back = digits(back).ok_or_else(|| unknown(text))?;
            return by_seq(tip.get().checked_sub(back));
        }
        return by_seq(Some(digits(rest).ok_or_else(|| unknown(text))?));
    }
    by_prefix(database, tip, text)
}

fn digits(text: &str) -> Option<u64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

fn by_prefix(database: &Database, tip: Seq, text: &str) -> StoreResult<StoredRecord> {
    let is_hex = text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_hex || !(LEAST_DIGITS..=64).contains(&text.len()) {
        return Err(unknown(text));
    }
    let fill = |digit: &str| -> Result<Revision, StoreError> {
        let whole = format!("{text}{}", digit.repeat(64 - text.len()));
        whole.parse().map_err(|_| unknown(text))
    };
    let found = database.revisions_from(&fill("0")?, &fill("f")?, tip, 3)?;
    match found.as_slice() {
        [] => Err(unknown(text)),
        [(seq, _)] => database
            .record(*seq)?
            .ok_or_else(|| StoreError::damaged(format!("the record of @{seq} is missing"))),
        several => {
            let names: Vec<String> = several
                .iter()
                .map(|(seq, revision)| format!("@{seq} ({})", revision.short()))
                .collect();
            let message = format!("`{text}` could be {}", names.join(", "));
            Err(Refusal::from(Diagnostic::new(Code::AmbiguousRevision, message)).into())
        }
    }
}

fn unknown(text: &str) -> StoreError {
    let shown: String = text.chars().take(80).collect();
    let message = format!("no publication is named `{shown}`");
    Refusal::from(Diagnostic::new(Code::UnknownRevision, message)).into()
}
