//! The database itself, and the rows that only their check sums cover.
//!
//! Owns: what SQLite finds wrong with its own structure, damaged pins, leases and settings, and putting right
//! what can be: indexes are made anew, a row that cannot be believed is taken away and named. Never: content.

use semaprax_protocol::documents::Damage;
use semaprax_protocol::request::Verify;
use semaprax_protocol::{NamePolicy, WorkspaceId};

use super::damage;
use crate::store::database::Database;
use crate::store::{Store, StoreResult, identity, restore, retention};

/// What SQLite says of its file. In a repair what can be made anew with the database open is, and
/// `is_sound` tells whether that was all.
pub(super) struct Structure {
    pub(super) wrong: Vec<String>,
    /// Rows that only an index still knows of.
    lost: Vec<(&'static str, u64)>,
    pub(super) is_sound: bool,
}

impl Structure {
    pub(super) fn of(database: &Database, params: &Verify) -> Self {
        // It reads the whole file.
        let wrong = if params.deep || params.repair {
            wrong_with(database)
        } else {
            Vec::new()
        };
        let mut is_sound = wrong.is_empty();
        // Asked before the indexes are made anew: then nothing tells any more.
        let lost = if is_sound {
            Vec::new()
        } else {
            database.lost_rows()
        };
        if !is_sound && params.repair {
            // Indexes from their tables; then a file without what nothing uses.
            let mend: [fn(&Database) -> StoreResult<()>; 2] = [Database::reindex, Database::vacuum];
            is_sound = mend
                .iter()
                .any(|mend| mend(database).is_ok() && wrong_with(database).is_empty());
        }
        Self {
            wrong,
            lost,
            is_sound,
        }
    }

    /// Names what was wrong.
    pub(super) fn tell(&self, repair: bool, found: &mut Vec<Damage>) {
        for line in &self.wrong {
            note(found, "database", line.clone(), repair && self.is_sound);
        }
        for (table, count) in &self.lost {
            let what = format!("rows of the table `{table}` that only its index knows: {count}");
            note(found, "database", what, false);
        }
    }
}

/// What SQLite finds wrong with the structure of its file.
pub(super) fn wrong_with(database: &Database) -> Vec<String> {
    match database.integrity() {
        Ok(wrong) => wrong,
        Err(error) => vec![error.to_string()],
    }
}

/// Looks at the rows, and in a repair mends.
pub(super) fn check(store: &mut Store, repair: bool, found: &mut Vec<Damage>) -> StoreResult<()> {
    holds(store, repair, found)?;
    settings(store, repair, found)
}

fn note(found: &mut Vec<Damage>, kind: &str, detail: String, repaired: bool) {
    found.push(damage(kind, None, None, detail, repaired));
}

fn holds(store: &mut Store, repair: bool, found: &mut Vec<Damage>) -> StoreResult<()> {
    for (kind, unreadable) in [
        ("lease", store.database.unreadable_leases()),
        ("pin", store.database.unreadable_pins()),
    ] {
        let rows = match unreadable {
            Ok(rows) => rows,
            Err(error) if error.is_damage() => {
                note(found, kind, error.to_string(), false);
                continue;
            }
            Err(error) => return Err(error),
        };
        for row in rows {
            if repair {
                store
                    .database
                    .transaction(|database| database.drop_hold(kind, row))?;
            }
            let what = if repair {
                "it was taken away"
            } else {
                "it cannot be believed"
            };
            note(
                found,
                kind,
                format!("row {row} of the {kind}s does not match its check sum; {what}"),
                repair,
            );
        }
    }
    Ok(())
}

fn settings(store: &mut Store, repair: bool, found: &mut Vec<Damage>) -> StoreResult<()> {
    let id = WorkspaceId::from_uuid(store.world.entropy.uuid());
    if let Some(what) = damaged(identity::workspace_id(&store.database))? {
        if repair {
            store
                .database
                .transaction(|database| identity::write_id(database, id))?;
        }
        note(
            found,
            "identity",
            format!("{what}{}", given(repair, "a new identity")),
            repair,
        );
    }
    if let Some(what) = damaged(identity::name_policy(&store.database))? {
        if repair {
            store
                .database
                .transaction(|database| identity::write_names(database, NamePolicy::Native))?;
        }
        note(
            found,
            "identity",
            format!("{what}{}", given(repair, "the policy `native`")),
            repair,
        );
    }
    if let Some(what) = damaged(store.database.journal_end())? {
        if repair {
            store.database.transaction(Database::reset_journal_end)?;
        }
        note(found, "database", what, repair);
    }
    if let Some(what) = damaged(retention::is_unswept(&store.database))? {
        if repair {
            store.database.transaction(retention::leave_unswept)?;
        }
        note(found, "database", what, repair);
    }
    if let Some(what) = damaged(restore::is_noted(&store.database))? {
        if repair {
            store.database.transaction(restore::forget)?;
        }
        note(found, "database", what, repair);
    }
    Ok(())
}

fn given(repair: bool, what: &str) -> String {
    if repair {
        format!("; it was given {what}")
    } else {
        String::new()
    }
}

/// What is wrong, where it is damage; other errors are errors.
fn damaged<T>(outcome: StoreResult<T>) -> StoreResult<Option<String>> {
    match outcome {
        Ok(_) => Ok(None),
        Err(error) if error.is_damage() => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}
