//! The text of `config.toml`: what may stand in it, and whose it has to be.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::{Code, Diagnostic, Refusal};
use serde::{Deserialize, Deserializer};

use super::Config;
use crate::world::{Disk, EntryType};

/// The largest file that is read.
const FILE_BYTES: u64 = 64 << 10;

/// Where a user's own settings are, given the configuration directory of the user.
pub fn user_file(config_home: &Utf8Path) -> Utf8PathBuf {
    config_home.join("semaprax").join("config.toml")
}

/// Where the settings of a workspace are.
pub fn workspace_file(root: &Utf8Path) -> Utf8PathBuf {
    root.join(".semaprax-workspace").join("config.toml")
}

/// Lays the settings of a file over `config`. A file that is not there changes nothing. With
/// `whole_daemon`, the file may set what concerns the daemon and not one workspace.
pub fn load(
    config: Config,
    disk: &dyn Disk,
    uid: u32,
    path: &Utf8Path,
    whole_daemon: bool,
) -> Result<Config, Refusal> {
    let Some(found) = disk.metadata(path)? else {
        return Ok(config);
    };
    let suspicious = match found.kind {
        EntryType::File if found.uid != uid => Some("belongs to another user"),
        EntryType::File if found.mode & 0o022 != 0 => Some("may be written by other users"),
        EntryType::File => None,
        EntryType::Symlink => Some("is a symlink"),
        EntryType::Directory | EntryType::Other => Some("is not a file"),
    };
    if let Some(reason) = suspicious {
        let message = format!("the settings in `{path}` are not read: it {reason}");
        return Err(Diagnostic::new(Code::PermissionDenied, message)
            .at(path.as_str())
            .hint("make it a file of your own that only you may write (`chmod 600`), or remove it")
            .into());
    }
    if found.len > FILE_BYTES {
        return Err(malformed(
            path,
            &format!("it is larger than {FILE_BYTES} bytes"),
        ));
    }
    read_settings(config, &disk.read(path)?, path, whole_daemon)
}

/// Lays the settings in the bytes of a file over `config`; `path` is for the messages.
pub fn read_settings(
    mut config: Config,
    bytes: &[u8],
    path: &Utf8Path,
    whole_daemon: bool,
) -> Result<Config, Refusal> {
    let text = str::from_utf8(bytes).map_err(|error| malformed(path, &error.to_string()))?;
    let settings: Settings =
        toml::from_str(text).map_err(|error| malformed(path, &error.to_string()))?;
    if settings.idle_timeout.is_some() && !whole_daemon {
        let reason = "`idle-timeout` concerns the whole daemon: it belongs in the user's own file";
        return Err(malformed(path, reason));
    }
    settings.lay_over(&mut config);
    Ok(config)
}

/// Reads a duration such as `10s`, `5m`, `2h`, `30d` or `250ms`. A number without a unit is refused:
/// it is never clear which is meant.
///
/// ```
/// use std::time::Duration;
/// use semaprax_daemon::config::parse_duration;
/// assert_eq!(parse_duration("5m"), Ok(Duration::from_secs(300)));
/// assert!(parse_duration("5").is_err());
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let refuse =
        || format!("expected a duration such as `10s`, `5m`, `2h` or `30d`, found `{text}`");
    let digits = text.len()
        - text
            .trim_start_matches(|digit: char| digit.is_ascii_digit())
            .len();
    let (number, unit) = text.split_at_checked(digits).ok_or_else(refuse)?;
    let millis: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 3600 * 1000,
        "d" => 24 * 3600 * 1000,
        _ => return Err(refuse()),
    };
    let number: u64 = number.parse().map_err(|_| refuse())?;
    number
        .checked_mul(millis)
        .map(Duration::from_millis)
        .ok_or_else(refuse)
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Settings {
    #[serde(default, deserialize_with = "duration")]
    idle_timeout: Option<Duration>,
    #[serde(default)]
    limits: LimitSettings,
    #[serde(default)]
    retention: RetentionSettings,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct LimitSettings {
    file_bytes: Option<u64>,
    submission_bytes: Option<u64>,
    changes: Option<u64>,
    queue: Option<u64>,
    queue_bytes: Option<u64>,
    message_bytes: Option<u64>,
    connections: Option<u64>,
    client_bytes: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RetentionSettings {
    content_publications: Option<u64>,
    #[serde(default, deserialize_with = "duration")]
    content_age: Option<Duration>,
    content_bytes: Option<u64>,
    trees: Option<u64>,
    #[serde(default, deserialize_with = "duration")]
    young: Option<Duration>,
    young_trees: Option<u64>,
}

impl Settings {
    fn lay_over(self, config: &mut Config) {
        let Self {
            idle_timeout,
            limits,
            retention,
        } = self;
        set(&mut config.idle_timeout, idle_timeout);
        set(&mut config.limits.file_bytes, limits.file_bytes);
        set(&mut config.limits.submission_bytes, limits.submission_bytes);
        set(&mut config.limits.changes, limits.changes);
        set(&mut config.limits.queue, limits.queue);
        set(&mut config.limits.queue_bytes, limits.queue_bytes);
        set(&mut config.limits.message_bytes, limits.message_bytes);
        set(&mut config.limits.connections, limits.connections);
        set(&mut config.limits.client_bytes, limits.client_bytes);
        set(
            &mut config.retention.content_publications,
            retention.content_publications,
        );
        set(&mut config.retention.content_age, retention.content_age);
        set(&mut config.retention.trees, retention.trees);
        set(&mut config.retention.young, retention.young);
        set(&mut config.retention.young_trees, retention.young_trees);
        config.retention.content_bytes = retention.content_bytes.or(config.retention.content_bytes);
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_duration(&text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

fn malformed(path: &Utf8Path, reason: &str) -> Refusal {
    let message = format!(
        "the settings in `{path}` cannot be read: {}",
        reason.trim_end()
    );
    Diagnostic::new(Code::InvalidSettings, message)
        .at(path.as_str())
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        let check = |text: &str, seconds: Option<u64>| {
            assert_eq!(
                parse_duration(text).ok(),
                seconds.map(Duration::from_secs),
                "{text}"
            );
        };
        check("10s", Some(10));
        check("5m", Some(300));
        check("2h", Some(7200));
        check("30d", Some(30 * 86400));
        check("0s", Some(0));
        check("3000ms", Some(3));
        for bad in [
            "",
            "10",
            "s",
            "-1s",
            "1.5h",
            "1 h",
            "1h30m",
            "99999999999999999999s",
            "é",
            "1é",
        ] {
            check(bad, None);
        }
        check(&format!("{}d", u64::MAX), None);
    }

    #[test]
    fn only_a_file_of_ones_own_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(directory.path()).unwrap();
        let world = crate::world::World::real();
        let disk = &*world.disk;
        let uid = rustix::process::geteuid().as_raw();
        let path = root.join("config.toml");
        let check = |uid: u32, whole: bool, expected: Result<u64, &str>| {
            let found = load(Config::default(), disk, uid, &path, whole);
            match (found, expected) {
                (Ok(found), Ok(queue)) => assert_eq!(found.limits.queue, queue),
                (Err(refusal), Err(reason)) => {
                    assert!(refusal.to_string().contains(reason), "{refusal}");
                    assert_eq!(refusal.diagnostics[0].path.as_deref(), Some(path.as_str()));
                }
                (found, expected) => panic!("{expected:?}: {found:?}"),
            }
        };
        check(uid, true, Ok(1024));
        let text = b"idle-timeout = \"1h\"\n[limits]\nqueue = 7\n";
        disk.create(&path, text, 0o644).unwrap();
        check(uid, true, Ok(7));
        check(uid, false, Err("concerns the whole daemon"));
        check(uid + 1, true, Err("belongs to another user"));
        disk.set_mode(&path, 0o664).unwrap();
        check(uid, true, Err("may be written by other users"));
        disk.set_mode(&path, 0o600).unwrap();
        disk.rename(&path, &root.join("other")).unwrap();
        disk.symlink("other", &path).unwrap();
        check(uid, true, Err("is a symlink"));
        disk.remove_file(&path).unwrap();
        disk.create(&path, b"\xff", 0o600).unwrap();
        check(uid, true, Err("utf-8"));
    }

    #[test]
    fn settings_lie_over_defaults() {
        let check = |text: &str, expected: Result<(u64, u64), &str>| {
            let found = toml::from_str::<Settings>(text)
                .map(|settings| {
                    let mut config = Config::default();
                    settings.lay_over(&mut config);
                    (config.limits.queue, config.retention.young.as_secs())
                })
                .map_err(|error| error.to_string());
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{text}: {found}"),
                (found, expected) => panic!("{text}: {found:?} {expected:?}"),
            }
        };
        check("", Ok((1024, 600)));
        check(
            "[limits]\nqueue = 5\n[retention]\nyoung = \"2s\"",
            Ok((5, 2)),
        );
        check(
            "[limits]\nqueueBytes = 5",
            Err("unknown field `queueBytes`"),
        );
        check("[limits]\nqueue = -1", Err("invalid value"));
        check("[retention]\nyoung = 5", Err("invalid type"));
        check("idle-timeout = \"5\"", Err("expected a duration"));
        check("colour = 1", Err("unknown field `colour`"));
    }
}
