//! What a person may set: limits, retention, idle time-out.
//!
//! Owns: the form of `config.toml` and its defaults; reading the two files in order, each only when it
//! belongs to this user and nobody else may write it.

use std::time::Duration;

use semaprax_protocol::Limits;

/// How long what is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Content of at least this many of the newest publications is kept.
    pub content_publications: u64,
    /// Content of publications younger than this is kept.
    pub content_age: Duration,
    /// When set: older content beyond both goes, newest first, only while the store is larger.
    pub content_bytes: Option<u64>,
    /// Trees of this many of the newest publications are kept.
    pub trees: u64,
    /// Trees younger than this are kept.
    pub young: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            content_publications: 1000,
            content_age: Duration::from_secs(30 * 24 * 3600),
            content_bytes: None,
            trees: 4,
            young: Duration::from_secs(600),
        }
    }
}

/// All settings of the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Bounds.
    pub limits: Limits,
    /// How long what is kept.
    pub retention: Retention,
    /// A daemon without clients, connection leases or work leaves after this long.
    pub idle_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            retention: Retention::default(),
            idle_timeout: Duration::from_secs(30 * 60),
        }
    }
}
