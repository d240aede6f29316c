//! The log, single publications, and the journal.

use semaprax_protocol::documents::{JournalEntry, LogEntry, LogPage, PathChange, Publication};
use semaprax_protocol::limits::PAGE_ENTRIES;
use semaprax_protocol::request::{Journal, JournalPage, Log, Show};
use semaprax_protocol::{LogicalPath, Refusal, SchemaTag};

use super::{View, path_of};
use crate::store::changes::{fitting, path_changes};
use crate::store::history::{NamedMove, StoredRecord};
use crate::store::tree::{Found, Tree, differences};
use crate::store::{StoreError, StoreResult};

/// Entries of one answer of `log`, and bytes after which it ends, so that it fits in a line.
const LOG_ENTRIES: usize = 1000;
const LOG_BYTES: usize = 2 << 20;
/// Bytes of an entry beside its texts, roughly.
const LOG_ENTRY_BYTES: usize = 600;
/// Entries of one answer of `journal`, and bytes after which it ends.
const JOURNAL_ENTRIES: usize = 500;
const JOURNAL_BYTES: usize = 2 << 20;
/// Records read at once while looking for those that match.
const RECORDS_AT_ONCE: usize = 256;

impl View<'_> {
    pub(super) fn log(&self, params: &Log) -> Result<LogPage, Refusal> {
        let path = params
            .path
            .as_deref()
            .map(|path| path_of(path.trim_end_matches('/')))
            .transpose()?;
        let limit = params.limit.map_or(LOG_ENTRIES, |limit| {
            usize::try_from(limit).unwrap_or(LOG_ENTRIES)
        });
        let limit = limit.min(LOG_ENTRIES);
        let tip = self.tip.record.seq.get();
        let mut high = params
            .before
            .map_or(tip, |before| tip.min(before.get() - 1));
        let mut entries = Vec::new();
        let mut bytes = 0;
        let mut truncated = false;
        'pages: while high > 0 {
            let records = self.database.records(1, high, RECORDS_AT_ONCE, true)?;
            let Some(last) = records.last() else { break };
            high = last.record.seq.get() - 1;
            for stored in records {
                if !self.matches(&stored, params.author.as_deref(), path.as_ref())? {
                    continue;
                }
                bytes += LOG_ENTRY_BYTES + stored.record.message.len() + stored.record.author.len();
                if entries.len() == limit || bytes > LOG_BYTES {
                    truncated = true;
                    break 'pages;
                }
                entries.push(log_entry(stored));
            }
        }
        Ok(LogPage {
            schema: SchemaTag::new(),
            entries,
            truncated,
        })
    }

    fn matches(
        &self,
        stored: &StoredRecord,
        author: Option<&str>,
        path: Option<&LogicalPath>,
    ) -> StoreResult<bool> {
        if author.is_some_and(|author| author != stored.record.author) {
            return Ok(false);
        }
        let Some(path) = path else { return Ok(true) };
        // The content may be gone: then what it changed is not known any more.
        let (before, after) = match (self.parent_tree(stored), stored.tree()) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(StoreError::Collected { .. }), _) | (_, Err(StoreError::Collected { .. })) => {
                return Ok(false);
            }
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        let is = |tree: &Tree| -> StoreResult<Found> {
            Ok(match tree.find(path, self.database)? {
                Found::Blocked(..) => Found::Nothing,
                found => found,
            })
        };
        Ok(!is(&before)?.same(&is(&after)?))
    }

    /// The tree of the publication before; the empty one before the first.
    pub(super) fn parent_tree(&self, stored: &StoredRecord) -> StoreResult<Tree> {
        let Some(previous) = stored.record.seq.previous() else {
            return Ok(Tree::empty());
        };
        let missing = || StoreError::damaged(format!("the record of @{previous} is missing"));
        self.database.record(previous)?.ok_or_else(missing)?.tree()
    }

    /// What a publication changed.
    pub(super) fn changes_of(&self, stored: &StoredRecord) -> StoreResult<(Vec<PathChange>, bool)> {
        let (before, after) = (self.parent_tree(stored)?, stored.tree()?);
        self.changes_between(&before, &after, &stored.record.moves)
    }

    pub(super) fn changes_between(
        &self,
        before: &Tree,
        after: &Tree,
        moves: &[NamedMove],
    ) -> StoreResult<(Vec<PathChange>, bool)> {
        let differences = differences(before, after, self.database)?;
        let sha256 = |blob: &_| self.database.known_blob(blob).map(|info| info.sha256);
        path_changes(&differences, moves, sha256).map(fitting)
    }

    pub(super) fn show(&self, params: &Show) -> Result<Publication, Refusal> {
        let stored = self.resolve(Some(&params.revision))?;
        let (changes, truncated) = self.changes_of(&stored)?;
        let record = stored.record;
        Ok(Publication {
            schema: SchemaTag::new(),
            seq: record.seq,
            revision: record.revision,
            tree: record.tree,
            parent: record.parent,
            base: record.base,
            submission: record.submission,
            record: stored.digest,
            rebased: record.rebased,
            merged: record.merged,
            author: record.author,
            message: record.message,
            published_at: record.published_at,
            files: record.files,
            bytes: record.bytes,
            changes,
            truncated,
        })
    }

    pub(super) fn journal(&self, params: &Journal) -> Result<JournalPage, Refusal> {
        let wanted = params.limit.and_then(|limit| usize::try_from(limit).ok());
        let limit = wanted
            .unwrap_or(JOURNAL_ENTRIES)
            .min(JOURNAL_ENTRIES)
            .min(PAGE_ENTRIES);
        let mut entries = self.database.events(params.since, limit + 1)?;
        let mut bytes = 0;
        let fits = entries.iter().take(limit).take_while(|entry| {
            bytes += entry.detail.to_string().len() + 300;
            bytes <= JOURNAL_BYTES
        });
        // One entry always goes, or a large one would end the journal.
        let count = fits.count().max(1).min(entries.len());
        let more = entries.len() > count;
        entries.truncate(count);
        Ok(JournalPage { entries, more })
    }

    pub(super) fn journal_head(&self) -> Result<JournalEntry, Refusal> {
        let newest = self.database.newest_event()?;
        newest.ok_or_else(|| StoreError::damaged("the journal is empty").into())
    }
}

fn log_entry(stored: StoredRecord) -> LogEntry {
    let record = stored.record;
    LogEntry {
        seq: record.seq,
        revision: record.revision,
        tree: record.tree,
        parent: record.parent,
        base: record.base,
        submission: record.submission,
        author: record.author,
        message: record.message,
        published_at: record.published_at,
        changes: record.changes,
    }
}
