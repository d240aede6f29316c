//! Every environment variable the client reads or sets, in one list.
//!
//! Owns: the names and how their values are read. Never: decides what follows from them.

use std::ffi::OsString;

use camino::Utf8PathBuf;

/// Where the daemon's socket is; without it the user's runtime directory.
pub const RUNTIME_DIR: &str = "SEMAPRAX_RUNTIME_DIR";
/// `1`: no daemon is started.
pub const NO_AUTOSTART: &str = "SEMAPRAX_NO_AUTOSTART";
/// The author of what is published, where none is given.
pub const AUTHOR: &str = "SEMAPRAX_AUTHOR";
/// The filter of the daemon's log, such as `debug`; handed to a daemon where it is set.
pub const LOG: &str = "SEMAPRAX_LOG";
/// Set for the command of `with`: the whole revision it runs on.
pub const REVISION: &str = "SEMAPRAX_REVISION";
/// Set for the command of `with`: the directory of the tree it runs in.
pub const ROOT: &str = "SEMAPRAX_ROOT";
/// Set for the command of `with`: where git stops to look for a repository.
pub const GIT_CEILING_DIRECTORIES: &str = "GIT_CEILING_DIRECTORIES";
/// The runtime directory of the login session.
pub const XDG_RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";
/// Where the user's configuration is; handed to a daemon as an argument.
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// Where cargo keeps what it downloads; `demo` copies from there.
pub const CARGO_HOME: &str = "CARGO_HOME";
/// The user, as an author of last resort.
pub const USER: &str = "USER";
/// Handed to a daemon as it is.
pub const HOME: &str = "HOME";
/// Handed to a daemon as it is.
pub const LANG: &str = "LANG";
/// The search path; a daemon gets [`DAEMON_PATH`] instead.
pub const PATH: &str = "PATH";
/// The search path of a daemon.
pub const DAEMON_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Of its caller's environment, all that a daemon gets besides [`DAEMON_PATH`].
pub const DAEMON_KEEPS: [&str; 3] = [HOME, USER, LANG];

/// The value, unless it is unset or empty.
pub fn value(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The value as text, unless it is unset, empty or not UTF-8.
pub fn text(name: &str) -> Option<String> {
    value(name).and_then(|value| value.into_string().ok())
}

/// Where the configuration of the user is, as a daemon started by this user takes it.
pub fn config_home() -> Option<Utf8PathBuf> {
    let path = |text: String| Some(Utf8PathBuf::from(text)).filter(|path| path.is_absolute());
    let named = text(XDG_CONFIG_HOME).and_then(path);
    named.or_else(|| Some(text(HOME).and_then(path)?.join(".config")))
}

/// Whether a switch is on: set, and neither `0` nor `false`.
pub fn switch(name: &str) -> bool {
    value(name).is_some_and(|value| value != "0" && value != "false")
}
