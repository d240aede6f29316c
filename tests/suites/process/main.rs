//! Real daemons and real clients, real kills: what only processes can show.
//!
//! Owns: the suites of the running binary. Every test has a world of its own (`semaprax_tests::process`)
//! and runs as root and as an ordinary user (`.ci/as-ordinary-user`).
//! Never: waits for time to pass; waits are on conditions.

mod init;
mod init_race;
mod kill;
mod places;
mod privacy;
mod queue;
mod readers;
mod start;
mod two;
mod watch;
mod wire;
mod with;
mod workspace;

use semaprax_tests::process::World;

/// A world with an empty workspace directory.
fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_semaprax-under-test"))
}

/// A world with a workspace of a few files, and its daemon.
fn seeded() -> World {
    let world = world();
    world.seed();
    world
}

/// Whether this run is that of root, who may do what others may not.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
