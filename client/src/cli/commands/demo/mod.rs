//! `demo`: the main job on real files, with everything at once.
//!
//! Owns: the order of it: copy, start a daemon, import, lay out the groups, let writers, readers, a
//! watcher and a collector loose on it, and hold what they saw against the log.
//! Never: reaches the daemon other than through the client library, as any program would.
//!
//! What it proves is in `group.rs` (no tree is a mix), `reader.rs` (no file is of another revision
//! than the lease says), `outcome.rs` (every publication told once, in order, as it was promised) and
//! `verify --deep` (nothing was damaged on the way).

mod chance;
mod collector;
mod course;
mod generated;
mod group;
mod material;
mod outcome;
mod place;
mod plan;
mod reader;
mod report;
mod screen;
mod signals;
mod stage;
mod watcher;
mod words;
mod writer;

use std::sync::Arc;

use semaprax_protocol::{Code, Refusal};

use crate::cli::args::DemoArguments;
use crate::cli::exit::{CommandResult, Exit, Failure};
use crate::cli::settings::Settings;
use course::Course;
use material::Material;
use place::Place;
use screen::Screen;
use stage::Stage;

pub(super) fn demo(settings: &Settings, arguments: &DemoArguments) -> CommandResult {
    let course = Arc::new(Course::new());
    signals::heed(&course)?;
    let directory = arguments
        .directory
        .as_ref()
        .map(|directory| settings.directory().join(directory));
    let material = Material::find(directory.as_deref())?;
    let place = Place::new(arguments.keep_daemon)?;
    let mut stage = Stage::new(&course, &place, Screen::new(settings.output));
    let performed = stage.perform(&material);
    let closed = place.close();
    let report = performed.and_then(|performance| {
        let daemon = closed?;
        Ok(report::compose(&course, &place, performance, daemon))
    });
    drop(stage);
    match report {
        Ok(report) => {
            settings.output.show(&report)?;
            Ok(report::exit(&report))
        }
        Err(refusal) => {
            let (base, log) = (place.base(), place.log());
            settings.output.remark(&format!(
                "left for inspection: {base} (the daemon's log: {log})"
            ));
            Err(failure(refusal))
        }
    }
}

fn failure(refusal: Refusal) -> Failure {
    if refusal.code() == Code::Cancelled {
        Failure::RefusedWith(Exit::of_command(signals::INTERRUPTED), refusal)
    } else {
        Failure::Refused(refusal)
    }
}
