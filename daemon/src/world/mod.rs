//! The outside world as three traits: disk, clock, entropy.
//!
//! Owns: the traits, and the error that names the path and the operation. `real.rs` is the only home
//! of `std::fs` and of the clock; tests put a simulated disk in its place.
//! Never: knows what a generation is.

mod disk;
mod error;
mod real;
pub mod source;

pub use disk::{Disk, EntryType, FileLock, Filesystem, Metadata, OpenedFile};
pub use error::{WorldError, WorldResult};
pub use real::RealWorld;

use std::sync::Arc;
use std::time::Duration;

use semaprax_protocol::Timestamp;

/// Reads clocks.
pub trait Clock: Send + Sync {
    /// The wall clock.
    fn now(&self) -> Timestamp;

    /// Time since boot, sleep included: never steps back while the machine runs.
    fn since_boot(&self) -> Duration;

    /// Waits this long: for the few places where another process has to be given time.
    fn pause(&self, time: Duration);

    /// Which boot this is; `None` where the system does not tell.
    fn boot_id(&self) -> Option<String>;
}

/// Gives values that nobody can foresee.
pub trait Entropy: Send + Sync {
    /// A new UUID, ordered by time.
    fn uuid(&self) -> uuid::Uuid;
}

/// The three together, shared.
#[derive(Clone)]
pub struct World {
    /// Files.
    pub disk: Arc<dyn Disk>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
}

impl World {
    /// The machine this runs on.
    pub fn real() -> Self {
        let real = Arc::new(RealWorld);
        Self {
            disk: real.clone(),
            clock: real.clone(),
            entropy: real,
        }
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("World")
    }
}
