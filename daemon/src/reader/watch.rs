//! What a subscriber is told, from the records.
//!
//! Owns: tokens (`SEQ` or `SEQ:RECORD`) and when history no longer reaches one.

use semaprax_protocol::documents::{EventKind, WatchEvent};
use semaprax_protocol::{Code, Diagnostic, RecordDigest, Refusal, SchemaTag, Seq};

use super::View;
use crate::store::history::StoredRecord;
use crate::store::{StoreError, StoreResult};

impl View<'_> {
    /// Where a subscriber that was at `since` starts.
    pub fn watch_start(&self, since: Option<&str>) -> Result<WatchEvent, Refusal> {
        let Some(token) = since else {
            return Ok(position(EventKind::Snapshot, &self.tip));
        };
        let malformed = || -> Refusal {
            let message = format!(
                "`{}` is no token",
                token.chars().take(80).collect::<String>()
            );
            let hint = "a token is `SEQ` or `SEQ:RECORD`, as the events carry it";
            Diagnostic::new(Code::InvalidRequest, message)
                .hint(hint)
                .into()
        };
        let (seq, record) = token
            .split_once(':')
            .map_or((token, None), |(seq, record)| (seq, Some(record)));
        let seq: Seq = seq.parse().map_err(|_| malformed())?;
        let record: Option<RecordDigest> = record
            .map(|text| text.parse().map_err(|_| malformed()))
            .transpose()?;
        let known = if seq <= self.tip.record.seq {
            let missing = || StoreError::damaged(format!("the record of @{seq} is missing"));
            Some(self.database.record(seq)?.ok_or_else(missing)?)
        } else {
            None
        };
        // A number that was used again after a repair, or one from another workspace, is another
        // history; so is one whose successors can no longer be told.
        let same = known.filter(|known| record.is_none_or(|record| record == known.digest));
        match same {
            Some(stored) if self.reaches(&stored)? => Ok(position(EventKind::Snapshot, &stored)),
            _ => Ok(position(EventKind::Fresh, &self.tip)),
        }
    }

    /// Whether every publication after `stored` still has its content and that of its parent.
    fn reaches(&self, stored: &StoredRecord) -> StoreResult<bool> {
        if stored.record.seq == self.tip.record.seq {
            return Ok(true);
        }
        let sql =
            "SELECT 1 FROM publications WHERE seq >= ?1 AND seq <= ?2 AND collected = 1 LIMIT 1";
        let range = (
            stored.record.seq.get().cast_signed(),
            self.tip.record.seq.get().cast_signed(),
        );
        Ok(self.database.query_one(sql, range, |_| Ok(()))?.is_none())
    }

    /// The publications after `seq`, oldest first, at most `limit`.
    pub fn events_after(&self, seq: Seq, limit: usize) -> StoreResult<Vec<WatchEvent>> {
        let records =
            self.database
                .records(seq.get() + 1, self.tip.record.seq.get(), limit, false)?;
        let is_next = |first: &StoredRecord| first.record.seq.get() == seq.get() + 1;
        let has_more = seq < self.tip.record.seq && limit > 0;
        if has_more && !records.first().is_some_and(is_next) {
            let missing = seq.get() + 1;
            return Err(StoreError::damaged(format!(
                "the record of @{missing} is missing"
            )));
        }
        records
            .iter()
            .map(|stored| self.published_event(stored))
            .collect()
    }

    fn published_event(&self, stored: &StoredRecord) -> StoreResult<WatchEvent> {
        let (changes, truncated) = match self.changes_of(stored) {
            Ok(found) => found,
            // What it changed is not known any more; that it happened is.
            Err(StoreError::Collected { .. }) => (Vec::new(), true),
            Err(error) => return Err(error),
        };
        let record = &stored.record;
        Ok(WatchEvent {
            parent: record.parent,
            author: Some(record.author.clone()),
            message: Some(record.message.clone()),
            changes: Some(changes),
            truncated,
            ..position(EventKind::Published, stored)
        })
    }
}

fn position(event: EventKind, stored: &StoredRecord) -> WatchEvent {
    let record = &stored.record;
    WatchEvent {
        schema: SchemaTag::new(),
        event,
        seq: record.seq,
        revision: record.revision,
        token: format!("{}:{}", record.seq, stored.digest),
        parent: None,
        author: None,
        message: None,
        changes: None,
        truncated: false,
    }
}
