//! Where the model checker may take turns in the client, and the step that it leaves out.
//!
//! Only with the feature `interleavings`, for the suite of that name: a client has no threads of its
//! own, but what it does to a LEASE is one half of a protocol between processes.

use std::cell::Cell;

thread_local! {
    static TRUSTS_ITS_LOCK: Cell<bool> = const { Cell::new(false) };
}

/// Leaves out, on this thread, the look whether the locked LEASE is still the one at its path.
pub fn trust_the_lock(trusts: bool) {
    TRUSTS_ITS_LOCK.set(trusts);
}

pub(crate) fn trusts_the_lock() -> bool {
    TRUSTS_ITS_LOCK.get()
}

/// Another may go on here.
pub(crate) fn step() {
    shuttle::sync::atomic::AtomicBool::new(false).load(std::sync::atomic::Ordering::SeqCst);
}

/// Another has to go on here.
pub(crate) fn wait() {
    shuttle::thread::yield_now();
}
