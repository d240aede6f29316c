//! `lease acquire`, `renew`, `list`, `release`.

use std::io::Read;
use std::sync::mpsc;

use semaprax_protocol::Refusal;
use semaprax_protocol::request::{LeaseAcquire, LeaseListParams, LeaseRelease, LeaseRenew};

use crate::cli::args::{LeaseAcquireArguments, LeaseCommand};
use crate::cli::exit::{CommandResult, Exit};
use crate::cli::settings::{self, Settings};
use crate::{Client, error};

pub(super) fn lease(settings: &Settings, command: LeaseCommand) -> CommandResult {
    match command {
        LeaseCommand::Acquire(arguments) => return acquire(settings, arguments),
        LeaseCommand::Renew(arguments) => {
            let answer = settings.client()?.call(LeaseRenew {
                lease: arguments.lease,
                ttl_ms: arguments.ttl.map(|ttl| ttl.0),
            })?;
            settings.output.show(&answer)?;
        }
        LeaseCommand::List => {
            let answer = settings.client()?.call(LeaseListParams {})?;
            settings.output.show(&answer)?;
        }
        LeaseCommand::Release(arguments) => {
            let answer = settings.client()?.call(LeaseRelease {
                lease: arguments.lease,
            })?;
            settings.output.show(&answer)?;
        }
    }
    Ok(Exit::DONE)
}

fn acquire(settings: &Settings, arguments: LeaseAcquireArguments) -> CommandResult {
    let mut client = settings.client()?;
    let grant = client.call(LeaseAcquire {
        revision: arguments.revision,
        ttl_ms: (!arguments.hold).then_some(arguments.ttl.0),
        owner: arguments.owner.unwrap_or_else(|| settings::author(None)),
    })?;
    settings.output.show(&grant)?;
    if arguments.hold {
        hold(client)?;
    }
    Ok(Exit::DONE)
}

/// What ends a held lease.
enum End {
    /// Standard input closed, as it was asked for.
    Input,
    /// The daemon went away, and the lease with it.
    Daemon,
}

fn hold(mut client: Client) -> Result<(), Refusal> {
    let (report, ended) = mpsc::channel();
    let from_daemon = report.clone();
    std::thread::spawn(move || {
        client.await_end(None);
        drop(from_daemon.send(End::Daemon));
    });
    std::thread::spawn(move || {
        await_end_of_input();
        drop(report.send(End::Input));
    });
    match ended.recv() {
        Ok(End::Daemon) => Err(error::unreachable(
            "the daemon went away, and the lease ended with its connection",
        )),
        Ok(End::Input) | Err(_) => Ok(()),
    }
}

fn await_end_of_input() {
    let mut input = std::io::stdin().lock();
    let mut ignored = [0; 4096];
    loop {
        match input.read(&mut ignored) {
            Ok(0) => return,
            Ok(_) => {}
            Err(again) if again.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
