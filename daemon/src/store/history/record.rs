//! Publication records: the hash-chained list of what was ACTIVE.
//!
//! Owns: the canonical form of a record and the table `publications`. A record names the digest of
//! the one before; ACTIVE names the newest.
//!
//! Keeps invariant 3: a record beyond ACTIVE was never published.

use std::collections::BTreeSet;

use semaprax_protocol::reading::read_json;
use semaprax_protocol::submission::OnStale;
use semaprax_protocol::{
    LogicalPath, RecordDigest, Revision, Seq, StampedDigest, SubmissionId, Timestamp, TreeDigest,
};
use serde::{Deserialize, Serialize};

use super::super::database::Database;
use super::super::tree::Tree;
use super::super::{StoreError, StoreResult};

const CONTEXT: &str = "semaprax 1 publication record";

/// A move that the submission itself named: shown as one change also where content was edited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedMove {
    /// The old path.
    pub from: LogicalPath,
    /// The new path.
    pub to: LogicalPath,
}

/// One publication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// `semaprax.record/1`.
    pub schema: String,
    /// Its number.
    pub seq: Seq,
    /// Its revision.
    pub revision: Revision,
    /// Its content.
    pub tree: TreeDigest,
    /// Its content with stamps.
    pub stamped: StampedDigest,
    /// Files of the tree.
    pub files: u64,
    /// Bytes of the tree.
    pub bytes: u64,
    /// The record before.
    pub prev: Option<RecordDigest>,
    /// The generation before.
    pub parent: Option<Revision>,
    /// The base of the submission.
    pub base: Option<Revision>,
    /// The submission.
    pub submission: SubmissionId,
    /// How it was to be judged when stale.
    pub on_stale: OnStale,
    /// Whether it was moved to a newer tip.
    pub rebased: bool,
    /// The paths merged from two sides.
    pub merged: Vec<LogicalPath>,
    /// The moves the submission named.
    pub moves: Vec<NamedMove>,
    /// How many paths changed.
    pub changes: u64,
    /// Who.
    pub author: String,
    /// What and why.
    pub message: String,
    /// When.
    pub published_at: Timestamp,
}

/// A record with its digest, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// The digest of the canonical form.
    pub digest: RecordDigest,
    /// The record.
    pub record: Record,
    /// Whether its content was collected.
    pub collected: bool,
}

/// No clock is believed that says more than this, a moment in 2230: there must be room for times after it.
const LATEST: Timestamp = Timestamp::from_nanos(i64::MAX - 1_000_000_000_000_000_000);

impl Record {
    /// The schema name of a record.
    pub const SCHEMA: &'static str = "semaprax.record/1";

    /// The time of a publication that is made `now`, after one of `last`: times strictly increase,
    /// whatever the clock does. When it was far ahead once, they go on from there.
    pub fn time(now: Timestamp, last: Option<Timestamp>) -> Timestamp {
        let now = now.min(LATEST);
        last.map_or(now, |last| now.max(last.saturating_add(1)))
    }

    /// The canonical bytes.
    pub fn encode(&self) -> StoreResult<Vec<u8>> {
        serde_json::to_vec(self)
            .map_err(|error| StoreError::damaged(format!("a record cannot be written: {error}")))
    }

    /// Reads the bytes of a record: the canonical ones and no others.
    pub fn decode(bytes: &[u8]) -> StoreResult<Self> {
        let record: Self = read_json(bytes)
            .map_err(|reason| StoreError::damaged(format!("a record cannot be read: {reason}")))?;
        if record.schema != Self::SCHEMA {
            let message = format!("a record has the schema `{}`", record.schema);
            return Err(StoreError::damaged(message));
        }
        if record.encode()? != bytes {
            return Err(StoreError::damaged(
                "a record is not written as it is written here",
            ));
        }
        Ok(record)
    }

    /// The digest of the canonical bytes.
    pub fn digest(bytes: &[u8]) -> RecordDigest {
        RecordDigest::from_bytes(blake3::derive_key(CONTEXT, bytes))
    }
}

impl StoredRecord {
    /// Whether it is the publication after `before`.
    pub fn follows(&self, before: &Self) -> bool {
        before.record.seq.next() == Some(self.record.seq)
            && self.record.prev == Some(before.digest)
            && self.record.parent == Some(before.record.revision)
    }

    /// The tree it names. Loading it fails with `content-collected` when it is gone.
    pub fn tree(&self) -> StoreResult<Tree> {
        if self.collected {
            return Err(StoreError::Collected {
                seq: self.record.seq,
            });
        }
        let record = &self.record;
        Ok(Tree::stored(
            record.tree,
            record.stamped,
            record.files,
            record.bytes,
        ))
    }
}

struct Row {
    seq: i64,
    at: i64,
    body: Vec<u8>,
    digest: [u8; 32],
    collected: bool,
}

fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        body: row.get(0)?,
        digest: row.get(1)?,
        collected: row.get::<_, i64>(2)? != 0,
        seq: row.get(3)?,
        at: row.get(4)?,
    })
}

/// A row is believed when its body has its digest and says the number under which it was found: a
/// damaged page may lead to the wrong row.
fn checked(row: &Row) -> StoreResult<StoredRecord> {
    let digest = RecordDigest::from_bytes(row.digest);
    if Record::digest(&row.body) != digest {
        return Err(StoreError::damaged(format!(
            "record {digest} does not match its digest"
        )));
    }
    let record = Record::decode(&row.body)
        .map_err(|error| StoreError::damaged(format!("record {digest}: {error}")))?;
    if record.seq.get().cast_signed() != row.seq {
        return Err(StoreError::damaged(format!(
            "record {digest} of @{} lies in the place of another",
            record.seq
        )));
    }
    if record.published_at.as_nanos() != row.at {
        return Err(StoreError::damaged(format!(
            "the time of @{} is not that of its record",
            record.seq
        )));
    }
    Ok(StoredRecord {
        digest,
        record,
        collected: row.collected,
    })
}

/// The record that was asked for, and no other.
fn if_asked_for(
    found: Option<&Row>,
    is_it: impl FnOnce(&StoredRecord) -> bool,
) -> StoreResult<Option<StoredRecord>> {
    let Some(stored) = found.map(checked).transpose()? else {
        return Ok(None);
    };
    if is_it(&stored) {
        return Ok(Some(stored));
    }
    Err(StoreError::damaged(format!(
        "an index leads to the wrong record, that of @{}",
        stored.record.seq
    )))
}

/// Neighbours of a list of records must follow each other: a damaged page may leave some out.
fn check_chain(records: &[StoredRecord], newest_first: bool) -> StoreResult<()> {
    for pair in records.windows(2) {
        let [first, second] = pair else { continue };
        let (before, after) = if newest_first {
            (second, first)
        } else {
            (first, second)
        };
        if !after.follows(before) {
            return Err(StoreError::damaged(format!(
                "the record of @{} does not follow the one before",
                after.record.seq
            )));
        }
    }
    Ok(())
}

const COLUMNS: &str = "SELECT body, record, collected, seq, at FROM publications";

impl Database {
    /// Adds a record, inside a transaction, and answers its digest.
    pub fn insert_record(&self, record: &Record) -> StoreResult<RecordDigest> {
        let body = record.encode()?;
        let digest = Record::digest(&body);
        let sql = "INSERT INTO publications (seq, record, revision, at, author, body)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let params = rusqlite::params![
            record.seq.get().cast_signed(),
            digest.as_bytes(),
            record.revision.as_bytes(),
            record.published_at.as_nanos(),
            record.author,
            body,
        ];
        self.execute(sql, params)?;
        Ok(digest)
    }

    /// The record with this number.
    pub fn record(&self, seq: Seq) -> StoreResult<Option<StoredRecord>> {
        let sql = format!("{COLUMNS} WHERE seq = ?1");
        let found = self.query_one(&sql, [seq.get().cast_signed()], read_row)?;
        if_asked_for(found.as_ref(), |stored| stored.record.seq == seq)
    }

    /// The record with this digest.
    pub fn record_by_digest(&self, digest: &RecordDigest) -> StoreResult<Option<StoredRecord>> {
        let sql = format!("{COLUMNS} WHERE record = ?1");
        let found = self.query_one(&sql, [digest.as_bytes()], read_row)?;
        if_asked_for(found.as_ref(), |stored| stored.digest == *digest)
    }

    /// The record of this generation.
    pub fn record_by_revision(&self, revision: &Revision) -> StoreResult<Option<StoredRecord>> {
        let sql = format!("{COLUMNS} WHERE revision = ?1");
        let found = self.query_one(&sql, [revision.as_bytes()], read_row)?;
        if_asked_for(found.as_ref(), |stored| stored.record.revision == *revision)
    }

    /// The number of a publication, by its revision.
    pub fn seq_of_revision(&self, revision: &Revision) -> StoreResult<Option<Seq>> {
        let sql = "SELECT seq FROM publications WHERE revision = ?1";
        let seq = self.query_one(sql, [revision.as_bytes()], |row| row.get::<_, i64>(0))?;
        Ok(seq.and_then(|seq| Seq::new(seq.cast_unsigned())))
    }

    /// At most `limit` records with numbers from `low` to `high`, both included: the oldest of them
    /// first, or the newest. Those that are answered follow each other without a gap; whether the
    /// first and the last are there is for the caller to see.
    pub fn records(
        &self,
        low: u64,
        high: u64,
        limit: usize,
        newest_first: bool,
    ) -> StoreResult<Vec<StoredRecord>> {
        let order = if newest_first { "DESC" } else { "ASC" };
        let sql = format!("{COLUMNS} WHERE seq >= ?1 AND seq <= ?2 ORDER BY seq {order} LIMIT ?3");
        let params = (
            clamp(low),
            clamp(high),
            i64::try_from(limit).unwrap_or(i64::MAX),
        );
        let found = self.query_all(&sql, params, read_row)?;
        let records: Vec<StoredRecord> = found.iter().map(checked).collect::<StoreResult<_>>()?;
        check_chain(&records, newest_first)?;
        Ok(records)
    }

    /// At most `limit` publications up to `high` whose revision starts with these digits.
    pub fn revisions_from(
        &self,
        low: &Revision,
        top: &Revision,
        high: Seq,
        limit: u64,
    ) -> StoreResult<Vec<(Seq, Revision)>> {
        let rows_of = |table: &str| -> StoreResult<Vec<(i64, [u8; 32])>> {
            let sql = format!(
                "SELECT seq, revision FROM {table}
                 WHERE revision >= ?1 AND revision <= ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4"
            );
            let (low, top) = (low.as_bytes(), top.as_bytes());
            let params = (low, top, clamp(high.get()), clamp(limit));
            self.query_all(&sql, params, |row| Ok((row.get(0)?, row.get(1)?)))
        };
        let rows = rows_of("publications")?;
        // That nothing has this name is said only when the rows themselves say so, too.
        if rows.is_empty() && !rows_of("publications NOT INDEXED")?.is_empty() {
            return Err(StoreError::damaged("the index of the revisions is damaged"));
        }
        let read = |(seq, revision): (i64, [u8; 32])| {
            Some((
                Seq::new(seq.cast_unsigned())?,
                Revision::from_bytes(revision),
            ))
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }

    /// When publication `seq` was made.
    pub fn publication_time(&self, seq: u64) -> StoreResult<Option<i64>> {
        let Some(seq) = Seq::new(seq) else {
            return Ok(None);
        };
        let stored = self.record(seq)?;
        Ok(stored.map(|stored| stored.record.published_at.as_nanos()))
    }

    /// The newest number there is, published or not.
    pub fn newest_seq(&self) -> StoreResult<Option<u64>> {
        let sql = "SELECT max(seq) FROM publications";
        let found = self.query_one(sql, [], |row| row.get::<_, Option<i64>>(0))?;
        Ok(found.flatten().map(i64::cast_unsigned))
    }

    /// The numbers from `low` on that have a record, readable or not.
    pub fn seqs_from(&self, low: u64) -> StoreResult<Vec<Seq>> {
        let sql = "SELECT seq FROM publications WHERE seq >= ?1 ORDER BY seq";
        let rows: Vec<i64> = self.query_all(sql, [clamp(low)], |row| row.get(0))?;
        let seqs = rows.into_iter().map(i64::cast_unsigned);
        Ok(seqs.filter_map(Seq::new).collect())
    }

    /// Takes away the record of a publication that never was, inside a transaction.
    pub fn delete_record(&self, seq: Seq) -> StoreResult<()> {
        self.execute(
            "DELETE FROM publications WHERE seq = ?1",
            [clamp(seq.get())],
        )
        .map(drop)
    }

    /// Marks the content of the publications before `seq` as collected, inside a transaction, unless
    /// a pin, a detached lease or one of `held` keeps it.
    pub fn mark_collected(&self, seq: u64, held: &BTreeSet<Revision>) -> StoreResult<u64> {
        let sql = "SELECT seq, revision FROM publications WHERE seq < ?1 AND collected = 0
                   AND revision NOT IN (SELECT revision FROM pins)
                   AND revision NOT IN (SELECT revision FROM leases)";
        let rows: Vec<(i64, [u8; 32])> =
            self.query_all(sql, [clamp(seq)], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut marked = 0;
        for (seq, revision) in rows {
            if held.contains(&Revision::from_bytes(revision)) {
                continue;
            }
            let sql = "UPDATE publications SET collected = 1 WHERE seq = ?1";
            marked += self.execute(sql, [seq])? as u64;
        }
        Ok(marked)
    }
}

fn clamp(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn any_record()(
            numbers in any::<[u64; 4]>(),
            bytes in any::<[u8; 6]>(),
            given in any::<[bool; 4]>(),
            at in any::<i64>(),
            author in ".{0,12}",
            message in ".{0,40}",
            paths in prop::collection::vec("[a-z\"\u{e9}\u{2028}]{1,8}(/[a-z ]{1,8}){0,2}", 0..4),
        ) -> Record {
            let revision = |place: usize| Revision::from_bytes([bytes[place]; 32]);
            let paths: Vec<LogicalPath> = paths.iter().filter_map(|path| path.parse().ok()).collect();
            let moves = paths.iter().zip(paths.iter().skip(1));
            Record {
                schema: Record::SCHEMA.to_owned(),
                seq: Seq::new(numbers[0].max(1)).unwrap(),
                revision: revision(0),
                tree: TreeDigest::from_bytes([bytes[1]; 32]),
                stamped: StampedDigest::from_bytes([bytes[2]; 32]),
                files: numbers[1],
                bytes: numbers[2],
                prev: given[0].then(|| RecordDigest::from_bytes([bytes[3]; 32])),
                parent: given[1].then(|| revision(4)),
                base: given[2].then(|| revision(5)),
                submission: SubmissionId::from_uuid(uuid::Uuid::from_u128(u128::from(numbers[3]))),
                on_stale: [OnStale::Reject, OnStale::Rebase, OnStale::Merge][usize::from(bytes[0]) % 3],
                rebased: given[3],
                moves: moves.map(|(from, to)| NamedMove { from: from.clone(), to: to.clone() }).collect(),
                merged: paths,
                changes: numbers[3],
                author,
                message,
                published_at: Timestamp::from_nanos(at),
            }
        }
    }

    proptest! {
        #[test]
        fn a_record_comes_back(record in any_record()) {
            let bytes = record.encode().unwrap();
            prop_assert_eq!(Record::decode(&bytes).unwrap(), record);
        }

        /// With a byte changed, added or left out it is another record, or none: no two spellings of one.
        #[test]
        fn there_is_one_spelling_of_a_record(
            record in any_record(),
            place in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            how in 0..3u8,
        ) {
            let mut bytes = record.encode().unwrap();
            let place = place.index(bytes.len());
            match how {
                0 => bytes[place] = byte,
                1 => drop(bytes.remove(place)),
                _ => bytes.insert(place, byte),
            }
            if let Ok(back) = Record::decode(&bytes) {
                prop_assert_eq!(back.encode().unwrap(), bytes);
            }
        }
    }
}
