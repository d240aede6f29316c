//! A database whose structure is damaged, made anew from what its tables still give.
//!
//! Owns: copying table by table into a new file that then takes the name. Never: invents a row, and never
//! leaves one out: when a table cannot be read to its end, nothing is changed.

use camino::Utf8PathBuf;

use super::database::{Database, TABLE_NAMES};
use super::{Layout, StoreResult, trash};
use crate::world::{EntryType, World};

/// Makes the database of a workspace anew. Nobody may have it open; the one given is closed, and in any case
/// one is answered.
pub fn rebuild(world: &World, layout: &Layout, damaged: Database) -> StoreResult<Database> {
    let place = layout.database();
    // What is in the log belongs to it.
    let folded = damaged.fold_in();
    damaged.close()?;
    let staged = layout.staging().join("rebuilt.db");
    let made = folded.and_then(|()| copy(layout, &staged));
    match made {
        Ok(()) => {
            let disk = &world.disk;
            let mode = disk.metadata(&place)?.map_or(0o600, |found| found.mode);
            disk.set_mode(&staged, mode)?;
            disk.sync_file(&staged)?;
            disk.rename(&staged, &place)?;
            disk.sync_directory(layout.state())?;
        }
        Err(error) => {
            tracing::warn!(%error, root = %layout.root(), "the database cannot be made anew");
        }
    }
    for suffix in ["", "-wal", "-shm"] {
        let left = Utf8PathBuf::from(format!("{staged}{suffix}"));
        if world.disk.metadata(&left)?.is_some() {
            trash::remove(world, &left, EntryType::File)?;
        }
    }
    Database::open_writer(&place)
}

fn copy(layout: &Layout, staged: &camino::Utf8Path) -> StoreResult<()> {
    let mut database = Database::create(staged)?;
    database.execute("ATTACH ?1 AS damaged", [layout.database().as_str()])?;
    database.transaction(|database| {
        TABLE_NAMES.iter().try_for_each(|table| {
            let columns = database.columns(table)?.join(", ");
            // Without its indexes: they may be what is damaged.
            let sql = format!(
                "INSERT INTO main.{table} ({columns}) SELECT {columns} FROM damaged.{table} NOT INDEXED"
            );
            database.execute(&sql, ()).map(drop)
        })
    })?;
    database.execute("DETACH damaged", ())?;
    database.fold_in()?;
    database.close()
}
