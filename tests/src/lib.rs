//! What the suites share: a world with a clock moved by hand, scenarios in a small text form, a
//! reference model, the oracle that compares a workspace on disk with it, a world of real
//! processes, and one whose daemons die at chosen moments; a disk that loses what was not synced;
//! file systems in images.
//!
//! Owns: everything that more than one suite needs. Suites lie in `suites/<name>/`, one binary each.
//! Never: a sleep, or a wait for anything but a condition.

pub mod bench;
pub mod corpus;
pub mod cuts;
pub mod fixture;
pub mod images;
pub mod model;
pub mod oracle;
pub mod process;
pub mod sim;
pub mod torture;
pub mod world;
