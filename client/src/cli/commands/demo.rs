//! `demo`.

use crate::cli::args::DemoArguments;
use crate::cli::exit::CommandResult;
use crate::cli::settings::Settings;
use crate::error;

/// Not there yet: the command is, so that its name and place are settled.
pub(super) fn demo(_: &Settings, arguments: &DemoArguments) -> CommandResult {
    let place = arguments.directory.as_ref().map_or_else(
        || "a temporary directory".to_owned(),
        |directory| format!("`{}`", directory.display()),
    );
    Err(error::internal(format!(
        "the demo is not part of this build; nothing was done in {place}"
    ))
    .into())
}
