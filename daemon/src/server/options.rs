//! What `daemon run` and `semapraxd` are told, and where things are without being told.

use std::time::Duration;

use camino::Utf8PathBuf;

use crate::config::parse_duration;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The settings of one run.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Options {
    /// The directory of the socket, the lock and the log [default: `$XDG_RUNTIME_DIR/semaprax`]
    #[arg(long, value_name = "DIR", env = "SEMAPRAX_RUNTIME_DIR")]
    pub runtime_dir: Option<Utf8PathBuf>,
    /// The directory of the user's settings [default: `~/.config`]
    #[arg(long, value_name = "DIR", env = "XDG_CONFIG_HOME")]
    pub config_home: Option<Utf8PathBuf>,
    /// Leave after this long without clients or work, such as `30m`
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub idle_timeout: Option<Duration>,
    /// Clients served at once; more are told so and turned away [default: 4096]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_connections: Option<u64>,
    /// How log lines look
    #[arg(long, value_enum, default_value_t)]
    pub log_format: LogFormat,
    /// Log to standard error and not to the file
    #[arg(long)]
    pub foreground: bool,
}

impl Options {
    /// The directory of the socket. Clients have to find the same one.
    pub fn runtime_directory(&self, uid: u32) -> Utf8PathBuf {
        if let Some(directory) = self
            .runtime_dir
            .clone()
            .filter(|directory| !directory.as_str().is_empty())
        {
            return directory;
        }
        match variable("XDG_RUNTIME_DIR") {
            Some(directory) => directory.join("semaprax"),
            None => temporary().join(format!("semaprax-{uid}")),
        }
    }

    /// The directory of the user's settings; `None` for a user without a home.
    pub fn config_home(&self) -> Option<Utf8PathBuf> {
        let absolute = |directory: &Utf8PathBuf| directory.is_absolute();
        self.config_home
            .clone()
            .filter(absolute)
            .or_else(|| variable("HOME").map(|home| home.join(".config")))
    }
}

/// A variable that holds an absolute path.
fn variable(name: &str) -> Option<Utf8PathBuf> {
    let value = std::env::var(name).ok()?;
    Some(Utf8PathBuf::from(value)).filter(|path| path.is_absolute())
}

fn temporary() -> Utf8PathBuf {
    Utf8PathBuf::from_path_buf(std::env::temp_dir()).unwrap_or_else(|_| "/tmp".into())
}
