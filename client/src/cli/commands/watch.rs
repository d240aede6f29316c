//! `watch`.

use semaprax_protocol::documents::{EventKind, WatchEvent};

use crate::cli::args::WatchArguments;
use crate::cli::exit::{CommandResult, Exit, Failure};
use crate::cli::output::Output;
use crate::cli::render::event_line;
use crate::cli::settings::Settings;

pub(super) fn watch(settings: &Settings, arguments: WatchArguments) -> CommandResult {
    let mut watch = settings.client()?.watch(arguments.since)?;
    print(settings.output, &watch.next_event()?)?;
    let mut told = 0;
    while arguments.limit.is_none_or(|limit| told < limit) {
        let event = watch.next_event()?;
        print(settings.output, &event)?;
        if event.event == EventKind::Published {
            told += 1;
        }
    }
    Ok(Exit::DONE)
}

fn print(output: Output, event: &WatchEvent) -> Result<(), Failure> {
    if output.is_json() {
        output.json(event)?;
    } else {
        output.text(|out| event_line(out, event))?;
    }
    Ok(())
}
