//! The lock of the lease protocol, and the steps of that protocol by name.
//!
//! Owns: which mutual exclusion guards the table of leases. It is the standard library's; the suite
//! `interleavings` builds the daemon with the feature of that name and then it is the model
//! checker's, which decides who gets it and when. That suite also leaves out steps, one at a time, to
//! see that it notices.
//! Never: anything else of a feature: what runs is the same code.
//!
//! Keeps invariant 7.

#[cfg(not(feature = "interleavings"))]
pub use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(feature = "interleavings")]
pub use shuttle::sync::{Mutex, MutexGuard, PoisonError};

/// A step without which the protocol would be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The collector looks at the reasons once more, with the table of leases held.
    LookAgain,
    /// The collector holds the table of leases until the tree is in the trash.
    HoldTable,
    /// The collector holds LEASE exclusively until the tree is in the trash.
    HoldLease,
    /// A tree that was ever leased is not made another one.
    NeverLeased,
    /// A lease is in the table before anyone looks whether its tree is there.
    LeaseFirst,
}

/// Whether this step is left out in this run: never, but in the suite that tries it.
#[cfg(not(feature = "interleavings"))]
pub(crate) const fn is_left_out(_step: Step) -> bool {
    false
}

#[cfg(feature = "interleavings")]
pub(crate) use mutated::is_left_out;
#[cfg(feature = "interleavings")]
mod mutated;
#[cfg(feature = "interleavings")]
pub use mutated::leave_out;
