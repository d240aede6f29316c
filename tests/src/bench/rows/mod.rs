//! The rows.

mod crowd;
mod edit;

use std::collections::BTreeSet;

use super::report::Finding;
use super::{Measured, Row, Settings};

/// Measures every row that was asked for; rows that share a run are measured in one.
pub fn measure(settings: &Settings) -> Measured<Vec<Finding>> {
    let rows: BTreeSet<Row> = settings.rows.iter().copied().collect();
    let mut found = Vec::new();
    if rows.contains(&Row::P1) || rows.contains(&Row::P3) {
        found.extend(edit::measure(settings)?);
    }
    if rows.contains(&Row::P4) {
        found.push(crowd::measure(settings)?);
    }
    found.retain(|finding| rows.contains(&finding.row));
    Ok(found)
}
