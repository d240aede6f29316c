//! `daemon run`, `start`, `stop`, `status`.

use std::io::Write as _;
use std::time::Duration;

use semaprax_protocol::documents::DaemonStatus;
use semaprax_protocol::request::{DaemonStatusParams, DaemonStop};
use semaprax_protocol::{Refusal, SchemaTag};

use crate::cli::args::{
    DaemonCommand, DaemonLaunchArguments, DaemonRunArguments, DaemonStartArguments,
};
use crate::cli::exit::{CommandResult, Exit, Failure};
use crate::cli::settings::{self, Settings};
use crate::{Client, Options, Start, error, start};

/// How long a daemon that was asked to leave may take to finish what runs.
const LEAVING: Duration = Duration::from_mins(2);

pub(super) fn daemon(settings: &Settings, command: DaemonCommand) -> CommandResult {
    match command {
        DaemonCommand::Run(arguments) => run(&arguments),
        DaemonCommand::Launch(arguments) => Err(launch(&arguments)),
        DaemonCommand::Start(arguments) => start(settings, &arguments),
        DaemonCommand::Stop => stop(settings),
        DaemonCommand::Status => {
            let status = match running(settings)? {
                Some(mut client) => client.call(DaemonStatusParams {})?,
                None => absent(&settings.options(None)?),
            };
            settings.output.show(&status)?;
            Ok(Exit::DONE)
        }
    }
}

/// The daemon these commands are about: that of the workspace, where there is one, else that of the
/// runtime directory. The workspace is not opened for it.
fn running(settings: &Settings) -> Result<Option<Client>, Refusal> {
    let mut options = settings.options(None)?;
    options.start = Start::Never;
    if options.follow_lock
        && let Ok(workspace) = settings.workspace()
        && let Ok(Some(holder)) = Client::find_holder(&options, &workspace)
    {
        return Ok(Some(holder));
    }
    Client::find(options)
}

fn start(settings: &Settings, arguments: &DaemonStartArguments) -> CommandResult {
    if let Some(mut client) = running(settings)? {
        let status = client.call(DaemonStatusParams {})?;
        settings.output.show(&status)?;
        return Ok(Exit::DONE);
    }
    let mut options = settings.options(None)?;
    // This is the command that starts a daemon on purpose: what forbids others to is not for it.
    options.start = Start::Program(settings::own_program());
    options.idle_timeout = arguments.idle_timeout.map(|idle| idle.to_string());
    let status = Client::connect(options)?.call(DaemonStatusParams {})?;
    settings.output.show(&status)?;
    Ok(Exit::DONE)
}

fn stop(settings: &Settings) -> CommandResult {
    let Some(mut client) = running(settings)? else {
        settings.output.show(&absent(&settings.options(None)?))?;
        return Ok(Exit::DONE);
    };
    let mut status = client.call(DaemonStop { if_idle: false })?;
    if !client.await_end(Some(LEAVING)) {
        return Err(error::unreachable(format!(
            "the daemon at `{}` has not left after {} seconds: something still runs",
            status.socket,
            LEAVING.as_secs()
        ))
        .into());
    }
    status.running = false;
    match &status.daemon {
        Some(daemon) if !settings.output.is_json() => settings
            .output
            .text(|out| writeln!(out, "stopped process {}", daemon.pid))?,
        _ => settings.output.show(&status)?,
    }
    Ok(Exit::DONE)
}

fn absent(options: &Options) -> DaemonStatus {
    DaemonStatus {
        schema: SchemaTag::new(),
        running: false,
        daemon: None,
        socket: options.runtime.socket(),
        log: Some(options.runtime.log()),
        uptime_ms: None,
        workspaces: Vec::new(),
        connections: 0,
    }
}

/// Becomes the daemon, free of everything inherited.
fn launch(arguments: &DaemonLaunchArguments) -> Failure {
    let program = settings::own_program();
    let reason = start::launch(&program, &arguments.arguments);
    Failure::Refused(error::of_io("execute", program.display(), &reason))
}

#[cfg(not(feature = "daemon"))]
fn run(_: &DaemonRunArguments) -> CommandResult {
    Err(error::internal("this build of `semaprax` does not carry the daemon").into())
}

#[cfg(feature = "daemon")]
fn run(arguments: &DaemonRunArguments) -> CommandResult {
    semaprax_daemon::server::run(arguments)?;
    Ok(Exit::DONE)
}
