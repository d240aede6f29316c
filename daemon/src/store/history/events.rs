//! The event journal: a hash-chained list of what was asked and what became of it, refusals included.
//!
//! Owns: the table `events` and its chain. An entry is never changed, removed or inserted before
//! another one.
//!
//! Keeps invariant 11: every refusal is recorded with the same care as every success.

use semaprax_protocol::documents::JournalEntry;
use semaprax_protocol::{EventDigest, Refusal, SchemaTag, SubmissionId, Timestamp};
use serde_json::{Value, json};

use super::super::database::Database;
use super::super::{StoreError, StoreResult};
use super::record::StoredRecord;

const CONTEXT: &str = "semaprax 1 journal entry";

/// What happened.
#[derive(Debug)]
pub enum EventDetail<'event> {
    /// The workspace was made.
    Initialized(&'event StoredRecord),
    /// A generation became ACTIVE (the entry is written in the transaction before the flip).
    Published(&'event StoredRecord),
    /// A record beyond ACTIVE was found: it was never published.
    Voided {
        /// The record.
        record: &'event StoredRecord,
        /// What brought it to light: `recovery` or `failed-flip`.
        cause: &'static str,
    },
    /// A submission equalled what is ACTIVE.
    Unchanged {
        /// The submission.
        submission: SubmissionId,
        /// Who.
        author: &'event str,
    },
    /// A submission was turned down.
    Refused {
        /// The submission.
        submission: Option<SubmissionId>,
        /// Who.
        author: &'event str,
        /// Why.
        refusal: &'event Refusal,
    },
    /// Anything else, by its name.
    Other {
        /// A kebab-case word.
        kind: &'static str,
        /// What it was about.
        detail: Value,
    },
}

/// An event about to be written.
#[derive(Debug)]
pub struct Event<'event> {
    /// When.
    pub at: Timestamp,
    /// What.
    pub detail: EventDetail<'event>,
}

impl EventDetail<'_> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Initialized(_) => "initialized",
            Self::Published(_) => "published",
            Self::Voided { .. } => "publication-voided",
            Self::Unchanged { .. } => "unchanged",
            Self::Refused { .. } => "refused",
            Self::Other { kind, .. } => kind,
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Initialized(stored) | Self::Published(stored) => record_value(stored),
            Self::Voided { record, cause } => {
                let mut value = record_value(record);
                if let Some(fields) = value.as_object_mut() {
                    fields.insert("cause".to_owned(), json!(cause));
                }
                value
            }
            Self::Unchanged { submission, author } => {
                json!({ "submission": submission, "author": author })
            }
            Self::Refused {
                submission,
                author,
                refusal,
            } => json!({
                "submission": submission,
                "author": author,
                "status": refusal.status,
                "diagnostics": refusal.diagnostics,
            }),
            Self::Other { detail, .. } => detail.clone(),
        }
    }
}

fn record_value(stored: &StoredRecord) -> Value {
    let record = &stored.record;
    json!({
        "seq": record.seq,
        "revision": record.revision,
        "tree": record.tree,
        "record": stored.digest,
        "parent": record.parent,
        "submission": record.submission,
        "author": record.author,
        "message": record.message,
        "changes": record.changes,
    })
}

/// The digest of an entry: of its number, time, kind, the entry before, and its detail as written.
pub(super) fn digest_of(
    entry: u64,
    at: i64,
    kind: &str,
    prev: Option<&EventDigest>,
    detail: &str,
) -> EventDigest {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(&entry.to_le_bytes());
    hasher.update(&at.to_le_bytes());
    hasher.update(&(kind.len() as u64).to_le_bytes());
    hasher.update(kind.as_bytes());
    hasher.update(&[u8::from(prev.is_some())]);
    hasher.update(prev.map_or(&[][..], |prev| prev.as_bytes()));
    hasher.update(detail.as_bytes());
    EventDigest::from_bytes(*hasher.finalize().as_bytes())
}

struct EventRow {
    entry: i64,
    at: i64,
    kind: String,
    prev: Option<[u8; 32]>,
    digest: [u8; 32],
    detail: String,
}

fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<EventRow> {
    Ok(EventRow {
        entry: row.get(0)?,
        at: row.get(1)?,
        kind: row.get(2)?,
        prev: row.get(3)?,
        digest: row.get(4)?,
        detail: row.get(5)?,
    })
}

fn checked(row: EventRow) -> StoreResult<JournalEntry> {
    let entry = row.entry.cast_unsigned();
    let prev = row.prev.map(EventDigest::from_bytes);
    let digest = EventDigest::from_bytes(row.digest);
    if digest_of(entry, row.at, &row.kind, prev.as_ref(), &row.detail) != digest {
        return Err(StoreError::damaged(format!(
            "journal entry {entry} does not match its digest"
        )));
    }
    let detail = serde_json::from_str(&row.detail).map_err(|error| {
        StoreError::damaged(format!("journal entry {entry} cannot be read: {error}"))
    })?;
    Ok(JournalEntry {
        schema: SchemaTag::new(),
        entry,
        at: Timestamp::from_nanos(row.at),
        kind: row.kind,
        prev,
        digest,
        detail,
    })
}

const COLUMNS: &str = "SELECT entry, at, kind, prev, digest, detail FROM events";

/// The key of the end of the journal. A page that lost its last rows looks like a shorter one.
const END: &str = "journal";

impl Database {
    /// Number and digest of the newest entry, as they were written beside it; `None` before the first.
    pub fn journal_end(&self) -> StoreResult<Option<(u64, EventDigest)>> {
        let Some(text) = self.meta(END)? else {
            return match self.last_row()? {
                None => Ok(None),
                Some(_) => Err(StoreError::damaged("the end of the journal is not known")),
            };
        };
        let end = text
            .split_once(' ')
            .and_then(|(entry, digest)| Some((entry.parse().ok()?, digest.parse().ok()?)));
        let unreadable = || StoreError::damaged(format!("the journal cannot end at `{text}`"));
        end.map(Some).ok_or_else(unreadable)
    }

    fn set_journal_end(&self, entry: u64, digest: &EventDigest) -> StoreResult<()> {
        self.set_meta(END, &format!("{entry} {digest}"))
    }

    /// Lets the journal end where its rows do, inside a transaction of a repair.
    pub fn reset_journal_end(&self) -> StoreResult<()> {
        match self.last_row()? {
            Some((entry, digest)) => self.set_journal_end(entry, &digest),
            None => self.delete_meta(END),
        }
    }

    fn last_row(&self) -> StoreResult<Option<(u64, EventDigest)>> {
        let sql = "SELECT entry, digest FROM events ORDER BY entry DESC LIMIT 1";
        let last = self.query_one(sql, [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, [u8; 32]>(1)?))
        })?;
        Ok(last.map(|(entry, digest)| (entry.cast_unsigned(), EventDigest::from_bytes(digest))))
    }

    /// Appends to the journal, inside a transaction. It goes on from its end also where that was lost.
    pub fn append_event(&self, event: &Event<'_>) -> StoreResult<()> {
        let last = self.journal_end()?;
        let entry = last.map_or(1, |(entry, _)| entry + 1);
        let prev = last.map(|(_, digest)| digest);
        let (kind, at) = (event.detail.kind(), event.at.as_nanos());
        let detail = event.detail.value().to_string();
        let digest = digest_of(entry, at, kind, prev.as_ref(), &detail);
        let sql = "INSERT INTO events (entry, at, kind, prev, digest, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let prev = prev.as_ref().map(EventDigest::as_bytes);
        self.execute(
            sql,
            rusqlite::params![
                entry.cast_signed(),
                at,
                kind,
                prev,
                digest.as_bytes(),
                detail
            ],
        )?;
        self.set_journal_end(entry, &digest)
    }

    /// At most `limit` entries after number `since`, oldest first, each checked against its digest, without
    /// a gap, and up to the end when there are fewer.
    pub fn events(&self, since: u64, limit: usize) -> StoreResult<Vec<JournalEntry>> {
        let sql = format!("{COLUMNS} WHERE entry > ?1 ORDER BY entry LIMIT ?2");
        let params = (
            i64::try_from(since).unwrap_or(i64::MAX),
            i64::try_from(limit).unwrap_or(i64::MAX),
        );
        let rows = self.query_all(&sql, params, read_row)?;
        let entries: Vec<JournalEntry> =
            rows.into_iter().map(checked).collect::<StoreResult<_>>()?;
        let mut last = None;
        for entry in &entries {
            let follows = match last {
                None => entry.entry == since.saturating_add(1),
                Some((number, digest)) => entry.entry == number + 1 && entry.prev == Some(digest),
            };
            if !follows {
                return Err(StoreError::damaged(format!(
                    "journal entry {} does not follow the one before",
                    entry.entry
                )));
            }
            last = Some((entry.entry, entry.digest));
        }
        if entries.len() < limit {
            self.check_end(since, last)?;
        }
        Ok(entries)
    }

    /// Refuses an end of the rows that is not the end of the journal.
    fn check_end(&self, since: u64, last: Option<(u64, EventDigest)>) -> StoreResult<()> {
        let Some(end) = self.journal_end()? else {
            return Ok(());
        };
        let is_end = last.map_or(since >= end.0, |last| last == end);
        if is_end {
            return Ok(());
        }
        Err(StoreError::damaged(format!(
            "the journal ends at entry {}, and the last that is there is {}",
            end.0,
            last.map_or(since, |(entry, _)| entry)
        )))
    }

    /// The newest entry.
    pub fn newest_event(&self) -> StoreResult<Option<JournalEntry>> {
        let sql = format!("{COLUMNS} ORDER BY entry DESC LIMIT 1");
        let newest = self
            .query_one(&sql, [], read_row)?
            .map(checked)
            .transpose()?;
        self.check_end(0, newest.as_ref().map(|entry| (entry.entry, entry.digest)))?;
        Ok(newest)
    }
}
