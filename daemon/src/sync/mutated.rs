//! Which step of the lease protocol is left out in a checked run.
//!
//! Only with the feature `interleavings`, for the suite of that name.

use std::cell::Cell;

use super::Step;

thread_local! {
    // All threads of a checked run are turns of one thread of the system.
    static LEFT_OUT: Cell<Option<Step>> = const { Cell::new(None) };
}

/// Leaves this step out from now on, on this thread.
pub fn leave_out(step: Option<Step>) {
    LEFT_OUT.set(step);
}

pub(crate) fn is_left_out(step: Step) -> bool {
    LEFT_OUT.get() == Some(step)
}
