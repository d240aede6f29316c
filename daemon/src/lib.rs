//! The Semaprax daemon: it turns a multi-file edit into one immutable, verified generation and flips
//! one pointer.
//!
//! ```text
//! submission -> admit -> build -> verify -> gate -> flip ACTIVE -> notify
//! ```
//!
//! Modules, from the ground up: [`world`] (disk, clock, entropy), [`store`] (what is on disk),
//! [`leases`] (who pins what), [`pipeline`] (the six stages), [`reader`] (answers that need no
//! writer), [`workspace`] (one open workspace: the shared handle and the one writer),
//! `engine`/`session` (queue and connection as pure machines), [`server`] (tokio and sockets).

pub mod config;
pub mod engine;
pub mod import;
pub mod leases;
pub mod pipeline;
pub mod reader;
pub mod server;
pub mod session;
pub mod store;
pub mod sync;
pub mod text;
pub mod uploads;
pub mod workspace;
pub mod world;
