//! What a workspace is called and which names it accepts.
//!
//! Owns: the keys of the table `meta` that never change after `init`.

use semaprax_protocol::{NamePolicy, WorkspaceId};

use super::database::Database;
use super::{StoreError, StoreResult};

const WORKSPACE: &str = "workspace";
const NAMES: &str = "names";

/// Writes both, inside the transaction of `init`.
pub fn write(database: &Database, id: WorkspaceId, names: NamePolicy) -> StoreResult<()> {
    write_id(database, id)?;
    write_names(database, names)
}

/// Writes the identity, also for a repair.
pub fn write_id(database: &Database, id: WorkspaceId) -> StoreResult<()> {
    database.set_meta(WORKSPACE, &id.to_string())
}

/// Writes the name policy, also for a repair.
pub fn write_names(database: &Database, names: NamePolicy) -> StoreResult<()> {
    database.set_meta(NAMES, &names.to_string())
}

/// The identity of a workspace.
pub fn workspace_id(database: &Database) -> StoreResult<WorkspaceId> {
    let text = database.meta(WORKSPACE)?.unwrap_or_default();
    text.parse()
        .map_err(|_| StoreError::damaged("the workspace has no identity"))
}

/// The name policy of a workspace.
pub fn name_policy(database: &Database) -> StoreResult<NamePolicy> {
    match database.meta(NAMES)?.as_deref() {
        Some("portable") => Ok(NamePolicy::Portable),
        Some("native") => Ok(NamePolicy::Native),
        _ => Err(StoreError::damaged("the workspace has no name policy")),
    }
}
