//! The log, single publications, and the journal.

use semaprax_protocol::documents::{JournalEntry, LogEntry, LogPage, PathChange, Publication};
use semaprax_protocol::limits::PAGE_ENTRIES;
use semaprax_protocol::request::{Journal, JournalPage, Log, Show};
use semaprax_protocol::{LogicalPath, Refusal, SchemaTag, Seq};

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

/// Entries of a log, as many as fit.
struct Page {
    entries: Vec<LogEntry>,
    limit: usize,
    bytes: usize,
    truncated: bool,
}

impl Page {
    /// Takes one more; `false` when there is no room for it.
    fn take(&mut self, stored: StoredRecord) -> bool {
        self.bytes += LOG_ENTRY_BYTES + stored.record.message.len() + stored.record.author.len();
        self.truncated = self.entries.len() == self.limit || self.bytes > LOG_BYTES;
        if !self.truncated {
            self.entries.push(log_entry(stored));
        }
        !self.truncated
    }
}

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
        let tip = self.tip.record.seq.get();
        let high = params
            .before
            .map_or(tip, |before| tip.min(before.get() - 1));
        let mut page = Page {
            entries: Vec::new(),
            limit: limit.min(LOG_ENTRIES),
            bytes: 0,
            truncated: false,
        };
        let is_by = |stored: &StoredRecord| {
            let author = params.author.as_deref();
            author.is_none_or(|author| author == stored.record.author)
        };
        match path {
            Some(path) => self.log_of_path(&path, high, &is_by, &mut page)?,
            None => self.log_of_all(high, &is_by, &mut page)?,
        }
        Ok(LogPage {
            schema: SchemaTag::new(),
            entries: page.entries,
            truncated: page.truncated,
        })
    }

    fn log_of_all(
        &self,
        mut high: u64,
        is_by: &dyn Fn(&StoredRecord) -> bool,
        page: &mut Page,
    ) -> StoreResult<()> {
        // The one after what comes next. From ACTIVE on down each names the one before.
        let (tip, mut after) = (self.tip.record.seq.get(), None::<StoredRecord>);
        while high > 0 {
            let records = self.database.records(1, high, RECORDS_AT_ONCE, true)?;
            let newest = records.first().filter(|first| match &after {
                Some(after) => after.follows(first),
                None => first.record.seq.get() == high && (high != tip || **first == self.tip),
            });
            let (Some(_), Some(last)) = (newest, records.last()) else {
                return Err(StoreError::damaged(format!(
                    "the record of @{high} is missing"
                )));
            };
            high = last.record.seq.get() - 1;
            after = Some(last.clone());
            for stored in records {
                if is_by(&stored) && !page.take(stored) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// From stamp to stamp: only publications that changed the path are read, and while it is not there,
    /// those that changed the directory it would be in. Where content was collected, what changed is not
    /// known any more.
    fn log_of_path(
        &self,
        path: &LogicalPath,
        mut high: u64,
        is_by: &dyn Fn(&StoredRecord) -> bool,
        page: &mut Page,
    ) -> StoreResult<()> {
        while let Some(seq) = Seq::new(high) {
            let stored = self.known_record(seq)?;
            if stored.collected {
                high -= 1;
                continue;
            }
            let (found, since) = stored.tree()?.trace(path, self.database)?;
            let since = since.map_or(high, |since| since.min(high));
            let Some(changed) = Seq::new(since) else {
                break;
            };
            high = since - 1;
            let was_there = match found {
                Found::Leaf(_) | Found::Directory(_) => true,
                Found::Nothing | Found::Blocked(..) => self.is_there(path, high)?,
            };
            if was_there {
                let stored = self.known_record(changed)?;
                if is_by(&stored) && !page.take(stored) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether a publication has the path; not known, and so not, when its content was collected.
    fn is_there(&self, path: &LogicalPath, seq: u64) -> StoreResult<bool> {
        let Some(seq) = Seq::new(seq) else {
            return Ok(false);
        };
        let stored = self.known_record(seq)?;
        if stored.collected {
            return Ok(false);
        }
        let (found, _) = stored.tree()?.trace(path, self.database)?;
        Ok(matches!(found, Found::Leaf(_) | Found::Directory(_)))
    }

    /// The record of a publication that there must be.
    pub(super) fn known_record(&self, seq: Seq) -> StoreResult<StoredRecord> {
        let missing = || StoreError::damaged(format!("the record of @{seq} is missing"));
        self.database.record(seq)?.ok_or_else(missing)
    }

    /// The tree of the publication before; the empty one before the first.
    pub(super) fn parent_tree(&self, stored: &StoredRecord) -> StoreResult<Tree> {
        let Some(previous) = stored.record.seq.previous() else {
            return Ok(Tree::empty());
        };
        self.known_record(previous)?.tree()
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
        if let Some(first) = entries.first()
            && first.entry != params.since + 1
        {
            let missing = params.since + 1;
            return Err(StoreError::damaged(format!("journal entry {missing} is missing")).into());
        }
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
