//! Ctrl-C and its like.
//!
//! Owns: turning the first one into a clean end, and the second one into an end at once.
//! Never: stops anything itself.

use std::sync::Arc;

use semaprax_protocol::Refusal;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::course::Course;
use crate::error;

/// The exit code of a program that was interrupted: 128 and the number of the signal.
pub(super) const INTERRUPTED: i32 = 130;

/// From now on an interrupt ends the demo cleanly.
pub(super) fn heed(course: &Arc<Course>) -> Result<(), Refusal> {
    let failed = |source: std::io::Error| error::of_io("listen for", "signals", &source);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let listen = || -> std::io::Result<[Signal; 2]> {
        Ok([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        ])
    };
    let [mut interrupt, mut terminate] = {
        let _inside = runtime.enter();
        listen().map_err(failed)?
    };
    let course = Arc::clone(course);
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            course.interrupt();
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            // The daemon is idle then, and goes by itself.
            std::process::exit(INTERRUPTED);
        });
    });
    Ok(())
}
