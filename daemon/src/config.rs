//! What a person may set: limits, retention, idle time-out.
//!
//! Owns: the form of `config.toml` and its defaults; reading the two files in order, each only when it
//! belongs to this user and nobody else may write it.
//!
//! ```toml
//! idle-timeout = "30m"          # only in the user's own file
//!
//! [limits]                      # bytes and counts
//! file-bytes = 67108864
//! submission-bytes = 268435456
//! changes = 10000
//! queue = 1024
//! queue-bytes = 1073741824
//! message-bytes = 4096
//! connections = 4096
//! client-bytes = 1073741824
//!
//! [retention]
//! content-publications = 1000
//! content-age = "30d"
//! content-bytes = 10737418240   # older content stays too while all content fits in this
//! trees = 4
//! young = "10m"
//! young-trees = 6
//! ```

mod file;

use std::time::Duration;

use semaprax_protocol::Limits;

pub use file::{load, parse_duration, read_settings, user_file, workspace_file};

/// How long what is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Content of at least this many of the newest publications is kept.
    pub content_publications: u64,
    /// Content of publications younger than this is kept.
    pub content_age: Duration,
    /// When set: content beyond both goes, the oldest first, only while all content takes more
    /// bytes than this.
    pub content_bytes: Option<u64>,
    /// Trees of this many of the newest publications are kept.
    pub trees: u64,
    /// Trees younger than this are kept.
    pub young: Duration,
    /// As many as this of the newest trees; one with more after it is young no longer.
    pub young_trees: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            content_publications: 1000,
            content_age: Duration::from_hours(30 * 24),
            content_bytes: None,
            trees: 4,
            young: Duration::from_mins(10),
            young_trees: 6,
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
            idle_timeout: Duration::from_mins(30),
        }
    }
}
