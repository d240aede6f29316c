//! Whether all promises were kept.
//!
//! Owns: comparing what writers, readers, the watcher and the log say, and the report.
//! Never: asks the daemon; what is compared is handed in.

use std::collections::BTreeMap;

use semaprax_protocol::Seq;
use semaprax_protocol::documents::{LogEntry, Verification, VerificationStatus};

use super::course::{PUBLICATIONS, Published, READS, Tally};
use super::watcher::Told;

/// The log against the receipts: every promise is in the log, and nothing else but the first import.
pub(super) fn compare_log(tally: &mut Tally, log: &[LogEntry]) {
    let mut recorded: BTreeMap<Seq, Published> = BTreeMap::new();
    for entry in log.iter().filter(|entry| entry.seq != Seq::FIRST) {
        let published = Published {
            revision: entry.revision,
            changes: entry.changes,
        };
        recorded.insert(entry.seq, published);
    }
    for (seq, published) in tally.published.clone() {
        match recorded.remove(&seq) {
            Some(found) if found == published => {}
            Some(_) => tally.problem(format!(
                "the log has publication {seq} otherwise than its receipt"
            )),
            None => tally.problem(format!("publication {seq} is not in the log")),
        }
    }
    for seq in recorded.into_keys() {
        tally.problem(format!(
            "publication {seq} is in the log and was promised to nobody"
        ));
    }
}

/// The events against the receipts: each publication once, in order, whole.
pub(super) fn compare_events(tally: &mut Tally, told: &[Told]) {
    let mut expected = tally.published.clone().into_iter();
    for event in told {
        let found = (
            event.seq,
            Published {
                revision: event.revision,
                changes: event.changes,
            },
        );
        match expected.next() {
            Some(next) if next == found => {}
            Some((seq, _)) => {
                return tally.problem(format!(
                    "the watcher was told of publication {} with {} changes where {seq} was due",
                    event.seq, event.changes
                ));
            }
            None => {
                return tally.problem(format!(
                    "the watcher was told of publication {} once too often",
                    event.seq
                ));
            }
        }
    }
    if let Some((seq, _)) = expected.next() {
        tally.problem(format!("the watcher was not told of publication {seq}"));
    }
}

/// What verification found.
pub(super) fn take_verification(tally: &mut Tally, verification: &Verification) {
    if verification.status == VerificationStatus::Ok {
        return;
    }
    for damage in &verification.damage {
        let path = damage.path.as_deref().unwrap_or_default();
        tally.problem(format!(
            "damaged {} `{path}`: {}",
            damage.kind, damage.detail
        ));
    }
    if verification.damage.is_empty() {
        tally.problem("verification found damage".to_owned());
    }
}

/// Whether enough was done to tell.
pub(super) fn check_amounts(tally: &mut Tally) {
    let publications = tally.publications();
    if publications < PUBLICATIONS {
        tally.problem(format!(
            "only {publications} publications were made in time, not {PUBLICATIONS}"
        ));
    }
    // A slow machine may read less; next to nothing would prove nothing.
    if tally.reads < READS / 10 {
        tally.problem(format!("only {} trees were read in time", tally.reads));
    }
}

/// The value below which a share of all values lies, in hundredths.
pub(super) fn percentile(values: &[u64], hundredths: usize) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let place = sorted.len().saturating_sub(1) * hundredths / 100;
    sorted.get(place).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use semaprax_protocol::Revision;

    use super::*;

    fn told(number: u64) -> Told {
        Told {
            seq: Seq::new(number).unwrap(),
            revision: Revision::from_bytes([u8::try_from(number).unwrap(); 32]),
            changes: number,
        }
    }

    fn tally(numbers: std::ops::RangeInclusive<u64>) -> Tally {
        let mut tally = Tally::default();
        for event in numbers.map(told) {
            let published = Published {
                revision: event.revision,
                changes: event.changes,
            };
            tally.published.insert(event.seq, published);
        }
        tally
    }

    #[test]
    fn every_event_once_and_in_order() {
        let check = |numbers: &[u64], good: bool| {
            let mut tally = tally(2..=5);
            let events: Vec<Told> = numbers.iter().map(|&number| told(number)).collect();
            compare_events(&mut tally, &events);
            assert_eq!(
                tally.problems.is_empty(),
                good,
                "{numbers:?}: {:?}",
                tally.problems
            );
        };
        check(&[2, 3, 4, 5], true);
        check(&[2, 3, 5], false);
        check(&[2, 3, 4], false);
        check(&[2, 3, 3, 4, 5], false);
        check(&[2, 4, 3, 5], false);
        check(&[2, 3, 4, 5, 5], false);
        check(&[], false);
    }

    #[test]
    fn percentiles() {
        let check = |values: &[u64], hundredths, expect| {
            assert_eq!(percentile(values, hundredths), expect);
        };
        check(&[], 50, 0);
        check(&[7], 50, 7);
        check(&[3, 1, 2], 50, 2);
        check(&(1..=101).collect::<Vec<_>>(), 99, 100);
    }
}
