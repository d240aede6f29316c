//! What is on disk: the database, the blobs, the trees, the pointer.
//!
//! Owns: every path and every byte of the state directory. `database.rs` is the one place that talks
//! to SQLite; all other io goes through [`crate::world`].
//! Never: decides what may be published; that is the pipeline's.
//!
//! Keeps invariants 1-5, 7, 9 and 10 of docs/invariants.md.

pub mod active;
pub mod changes;
pub mod check;
pub mod checkout;
pub mod collect;
pub mod database;
pub mod error;
pub mod generation;
pub mod guard;
pub mod history;
pub mod identity;
pub mod layout;
pub mod objects;
pub mod own;
pub mod rebuild;
pub mod recover;
pub mod repair;
pub mod reserve;
pub mod restore;
pub mod retention;
pub mod revisions;
pub mod spares;
pub mod trash;
pub mod tree;

pub use error::{StoreError, StoreResult};
pub use layout::Layout;

use crate::world::World;
use database::Database;

/// The store of one workspace: the world, where things lie, and one connection.
#[derive(Debug)]
pub struct Store {
    /// The world.
    pub world: World,
    /// Where things lie.
    pub layout: Layout,
    /// The database.
    pub database: Database,
}
