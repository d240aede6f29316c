//! Sockets and threads: the only home of tokio and interprocess.
//!
//! ```text
//! listen -> connection -> serve -> hosted (engine) -> writer thread
//!                 ^ outbox <- answers, notices, events <-'
//! ```
//!
//! Owns: the runtime directory, the socket, the tasks of connections and subscribers, the writer
//! threads, and the life of the daemon from its lock to its last answer.
//! Never: decides what `engine` and `session` decide, or touches the store but through `workspace`.
//! Invariants: one daemon per runtime directory; memory of every connection is bounded; an idle daemon
//! makes no wake-ups.

mod canonical;
mod connection;
mod daemon;
mod hosted;
mod import;
mod leases;
mod listen;
mod logging;
mod options;
mod outbox;
mod place;
mod registry;
mod serve;
mod subscription;
#[cfg(test)]
mod tests;
mod unopened;
mod writer;

use semaprax_protocol::{Code, Diagnostic, Refusal};

use crate::config::{self, Config};
use crate::workspace::STACK_BYTES;
use crate::world::World;

pub use options::{LogFormat, Options};

use daemon::Daemon;
use place::Place;

/// Runs a daemon until it is asked to stop or has been idle for long enough. Answers at once when
/// another daemon serves the same runtime directory: that one is as good.
pub fn run(options: &Options) -> Result<(), Refusal> {
    run_in(World::real(), options)
}

/// The same in a world the caller gives: how a test puts a disk of its own under the whole daemon.
pub fn run_in(world: World, options: &Options) -> Result<(), Refusal> {
    let uid = rustix::process::geteuid().as_raw();
    let mut config = Config::default();
    if let Some(home) = options.config_home() {
        config = config::load(config, &*world.disk, uid, &config::user_file(&home), true)?;
    }
    if let Some(idle_timeout) = options.idle_timeout {
        config.idle_timeout = idle_timeout;
    }
    if let Some(connections) = options.max_connections {
        config.limits.connections = connections;
    }
    let place = Place::prepare(&*world.disk, uid, &options.runtime_directory(uid))?;
    logging::start(options, &*world.disk, &place)?;
    bound_connections(&mut config.limits.connections, raise_open_files());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("server")
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .map_err(|error| failed("cannot start the server's threads", &error))?;
    let result = runtime.block_on(listen::serve(Daemon::new(world, config, place, uid)));
    // What is still blocked holds nothing that a restart would miss.
    runtime.shutdown_background();
    result
}

/// Threads that serve sockets. Two, so that one slow step on one connection stops no other; more make
/// every hand-over slower (measured, see the facts page).
const WORKERS: usize = 2;

/// Open files that are not for clients: databases, locks, what is read and written.
const FILES_OF_ITS_OWN: u64 = 256;

/// Each connection is a file, and so is each open database: takes what the system allows, and answers
/// how many that is.
fn raise_open_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "cannot raise the number of open files");
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Clients may not take the last open file: without one nothing can be published, for nobody.
fn bound_connections(connections: &mut u64, open_files: u64) {
    let most = open_files - FILES_OF_ITS_OWN.min(open_files / 2);
    if *connections > most {
        tracing::warn!(
            open_files,
            wanted = *connections,
            "the system allows few open files: no more than {most} clients are served at once"
        );
        *connections = most;
    }
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> Refusal {
    Diagnostic::new(Code::Io, format!("{what}: {error}")).into()
}

fn internal(what: &str) -> Refusal {
    let message = format!("{what} failed with a defect; the log of the daemon has more");
    Diagnostic::new(Code::Internal, message).into()
}

/// Runs blocking work on a thread of its own; a panic of it is a refusal.
async fn blocking<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, what, "a request panicked");
        internal(what)
    })
}

/// Runs short work in place; a panic of it is a refusal.
fn guarded<T>(what: &str, work: impl FnOnce() -> T) -> Result<T, Refusal> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(|panic| {
        // A panic's own drop may panic again.
        std::mem::forget(panic);
        tracing::error!(what, "a request panicked");
        internal(what)
    })
}

/// A lock whose holder may have panicked: what it guards is whole at every step.
fn locked<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
