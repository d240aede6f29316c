//! The rows.

mod cold;
pub mod crowd;
pub mod edit;
mod growth;
mod history;
mod idle;
mod import;
mod lease;
mod others;
pub mod scale;
mod subscribers;
mod wide;

use std::collections::BTreeSet;
use std::time::Duration;

use super::report::Finding;
use super::{Measured, Row, Settings};
use crate::process::within;

/// Lets a daemon alone for so long: that nothing happens cannot be waited for otherwise.
fn pause(time: Duration) {
    let _nothing: Option<()> = within(time, || None);
}

/// A measurement, and the rows it is made for.
type Run = (
    &'static [Row],
    fn(&Settings, &BTreeSet<Row>) -> Measured<Vec<Finding>>,
);

const RUNS: [Run; 12] = [
    (&[Row::P1, Row::P3], |settings, _| edit::measure(settings)),
    (&[Row::P2, Row::P8, Row::P11, Row::Reads], scale::measure),
    (&[Row::P4], |settings, _| {
        Ok(vec![crowd::measure(settings)?])
    }),
    (&[Row::P5], |settings, _| {
        Ok(vec![import::measure(settings)?])
    }),
    (&[Row::P6, Row::Lease], |settings, _| {
        lease::measure(settings)
    }),
    (&[Row::P7], |settings, _| subscribers::measure(settings)),
    (&[Row::P9], |settings, _| growth::measure(settings)),
    (&[Row::P10], |settings, _| {
        Ok(vec![cold::measure(settings)?])
    }),
    (&[Row::Wide], |settings, _| {
        Ok(vec![wide::measure(settings)?])
    }),
    (&[Row::History], |settings, _| {
        Ok(vec![history::measure(settings)?])
    }),
    (&[Row::Idle], |settings, _| {
        Ok(vec![idle::measure(settings)?])
    }),
    (&[Row::Ostree, Row::Watchman], |settings, rows| {
        let mut found = Vec::new();
        if rows.contains(&Row::Ostree) {
            found.push(others::ostree(settings)?);
        }
        if rows.contains(&Row::Watchman) {
            found.push(others::watchman(settings)?);
        }
        Ok(found)
    }),
];

/// Measures every row that was asked for; rows that share a run are measured in one.
pub fn measure(settings: &Settings) -> Measured<Vec<Finding>> {
    let rows: BTreeSet<Row> = settings.rows.iter().copied().collect();
    let mut found = Vec::new();
    for (made_for, run) in RUNS {
        if made_for.iter().any(|row| rows.contains(row)) {
            found.extend(run(settings, &rows)?);
        }
    }
    found.retain(|finding| rows.contains(&finding.row));
    found.sort_by_key(|finding| finding.row);
    Ok(found)
}
