//! Where log lines go: to standard error, or to `daemon.log`.

use std::fs::File;
use std::io::stderr;
use std::sync::Mutex;

use rustix::fs::{Mode, OFlags};
use semaprax_protocol::Refusal;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::options::{LogFormat, Options};
use super::place::Place;
use crate::world::{Disk, WorldError};

/// The variable that says what is logged.
const FILTER: &str = "SEMAPRAX_LOG";

/// Starts logging. A second daemon in one process keeps the first one's log.
pub(super) fn start(options: &Options, disk: &dyn Disk, place: &Place) -> Result<(), Refusal> {
    if options.foreground {
        install(options.log_format, stderr);
    } else {
        place.rotate_log(disk)?;
        install(options.log_format, Mutex::new(append(place)?));
    }
    Ok(())
}

/// Opened here and not through `world`: a log is written, not kept, and appending is all it needs.
fn append(place: &Place) -> Result<File, Refusal> {
    let path = place.log();
    let flags =
        OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path.as_std_path(), flags, Mode::RUSR | Mode::WUSR)
        .map_err(|error| WorldError::new("open", &path, error.into()))?;
    Ok(File::from(file))
}

fn install<Writer>(format: LogFormat, writer: Writer)
where
    Writer: for<'line> MakeWriter<'line> + Send + Sync + 'static,
{
    let filter = EnvFilter::try_from_env(FILTER).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(false)
        .with_target(false);
    let installed = match format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    if installed.is_err() {
        tracing::debug!("logging was started before");
    }
}
