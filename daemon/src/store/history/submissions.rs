//! Outcomes of submissions, so that repeating an id returns the first one.
//!
//! Owns: the table `submissions` and the digest that an id binds.
//!
//! Keeps invariant 8: a submission id takes effect at most once.

use semaprax_protocol::documents::Receipt;
use semaprax_protocol::submission::{Change, OnStale, Read, Submission};
use semaprax_protocol::{Seq, SubmissionId, Timestamp};
use serde::Serialize;

use super::super::database::Database;
use super::super::guard::GuardedRow;
use super::super::{StoreError, StoreResult};

const CONTEXT: &str = "semaprax 1 submission";
const TABLE: &str = "submissions";
/// An `unchanged` outcome binds its id this long: 30 days.
const UNCHANGED_BINDS_NANOS: i64 = 30 * 24 * 3600 * 1_000_000_000;

/// What an id is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The submission.
    pub id: SubmissionId,
    /// The digest of {base as sent, onStale, author, message, reads, changes}.
    pub digest: [u8; 32],
}

/// The outcome that an id has, if it has one.
#[derive(Debug)]
pub enum Outcome {
    /// None yet.
    Free,
    /// The same submission was decided before.
    Decided(Box<Receipt>),
    /// The id belongs to another submission.
    OtherContent,
}

/// What an id binds, in this order: the digest is that of these bytes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bound<'submission> {
    base: &'submission Option<String>,
    on_stale: OnStale,
    author: &'submission str,
    message: &'submission str,
    reads: &'submission [Read],
    changes: &'submission [Change],
}

/// The digest that the id of `submission` binds.
pub fn submission_digest(submission: &Submission) -> StoreResult<[u8; 32]> {
    let bound = Bound {
        base: &submission.base,
        on_stale: submission.on_stale,
        author: &submission.author,
        message: &submission.message,
        reads: &submission.reads,
        changes: &submission.changes,
    };
    let bytes = serde_json::to_vec(&bound)
        .map_err(|error| StoreError::damaged(format!("a submission cannot be written: {error}")))?;
    Ok(blake3::derive_key(CONTEXT, &bytes))
}

fn row(binding: &Binding, at: i64, seq: Option<i64>, receipt: &str) -> GuardedRow {
    GuardedRow::of(TABLE)
        .bytes(binding.id.to_string().as_bytes())
        .bytes(&binding.digest)
        .number(at)
        // No publication has the number 0.
        .number(seq.unwrap_or(0))
        .bytes(receipt.as_bytes())
}

impl Database {
    /// Binds an id to its outcome, inside a transaction. `seq` is that of a publication; an
    /// `unchanged` outcome has none and may be bound anew later.
    pub fn bind_submission(
        &self,
        binding: &Binding,
        at: Timestamp,
        seq: Option<Seq>,
        receipt: &Receipt,
    ) -> StoreResult<()> {
        let text = serde_json::to_string(receipt).map_err(|error| {
            StoreError::damaged(format!("a receipt cannot be written: {error}"))
        })?;
        let sql =
            "INSERT INTO submissions (id, digest, at, seq, receipt, guard) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                   ON CONFLICT (id) DO UPDATE SET digest = excluded.digest, at = excluded.at,
                   seq = excluded.seq, receipt = excluded.receipt, guard = excluded.guard
                   WHERE submissions.seq IS NULL";
        let seq = seq.map(|seq| seq.get().cast_signed());
        let at = at.as_nanos();
        let guard = row(binding, at, seq, &text).guard();
        let params =
            rusqlite::params![binding.id.to_string(), binding.digest, at, seq, text, guard];
        self.execute(sql, params).map(drop)
    }

    /// The outcome that `binding` has by now.
    pub fn outcome(&self, binding: &Binding, now: Timestamp) -> StoreResult<Outcome> {
        let sql = "SELECT digest, at, seq, receipt, guard FROM submissions WHERE id = ?1";
        let row = self.query_one(sql, [binding.id.to_string()], |row| {
            Ok((
                row.get::<_, [u8; 32]>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, Option<i64>>(2)?,
                row.get::<_, String>(3)?,
                row.get(4)?,
            ))
        })?;
        let Some((digest, at, seq, receipt, guard)) = row else {
            let id = binding.id.to_string();
            return self.check_missing(TABLE, "id", &id).map(|()| Outcome::Free);
        };
        let found = Binding {
            id: binding.id,
            digest,
        };
        self::row(&found, at, seq, &receipt).check(guard)?;
        if seq.is_none() && now.as_nanos().saturating_sub(at) > UNCHANGED_BINDS_NANOS {
            return Ok(Outcome::Free);
        }
        if digest != binding.digest {
            return Ok(Outcome::OtherContent);
        }
        let mut receipt: Receipt = serde_json::from_str(&receipt).map_err(|error| {
            StoreError::damaged(format!(
                "the receipt of submission {} cannot be read: {error}",
                binding.id
            ))
        })?;
        receipt.replayed = true;
        Ok(Outcome::Decided(Box::new(receipt)))
    }

    /// Frees the ids of a publication that never was, inside a transaction.
    pub fn unbind_submissions(&self, seq: Seq) -> StoreResult<()> {
        self.execute(
            "DELETE FROM submissions WHERE seq = ?1",
            [seq.get().cast_signed()],
        )
        .map(drop)
    }

    /// Forgets outcomes that bind no longer, inside a transaction.
    pub fn forget_unchanged(&self, now: Timestamp) -> StoreResult<()> {
        let sql = "DELETE FROM submissions WHERE seq IS NULL AND at < ?1";
        self.execute(sql, [now.as_nanos().saturating_sub(UNCHANGED_BINDS_NANOS)])
            .map(drop)
    }
}
