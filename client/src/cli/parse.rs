//! Reading single values of the command line.
//!
//! Owns: durations, `PATH=FILE` pairs, publication numbers, and the words of closed lists.
//! Never: asks anyone whether a value exists.

use std::str::FromStr;

use semaprax_protocol::submission::OnStale;
use semaprax_protocol::{NamePolicy, Seq};

/// A length of time in milliseconds, written `500ms`, `30s`, `10m`, `2h` or `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Millis(pub(super) u64);

impl FromStr for Millis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "expected a duration such as `500ms`, `30s`, `10m`, `2h` or `7d`, found `{text}`"
            )
        };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| refuse())?;
        let unit = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60 * 1000,
            "h" => 3600 * 1000,
            "d" => 24 * 3600 * 1000,
            "w" => 7 * 24 * 3600 * 1000,
            "" if number == 0 => 1,
            _ => return Err(refuse()),
        };
        number.checked_mul(unit).map(Self).ok_or_else(refuse)
    }
}

impl std::fmt::Display for Millis {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}ms", self.0)
    }
}

/// Two texts with a `=` between them: the first `=` is the one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathPair {
    /// What stands before.
    pub(super) left: String,
    /// What stands after.
    pub(super) right: String,
}

impl FromStr for PathPair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((left, right)) if !left.is_empty() && !right.is_empty() => Ok(Self {
                left: left.to_owned(),
                right: right.to_owned(),
            }),
            _ => Err(format!(
                "expected two paths with a `=` between them, found `{text}`"
            )),
        }
    }
}

/// A publication number, where nothing else makes sense: `3` or `@3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeqArgument(pub(super) Seq);

impl FromStr for SeqArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix('@').unwrap_or(text);
        number
            .parse()
            .map(Self)
            .map_err(|reason: semaprax_protocol::IdError| reason.to_string())
    }
}

/// A name policy by its word.
pub(super) fn name_policy(text: &str) -> Result<NamePolicy, String> {
    match text {
        "portable" => Ok(NamePolicy::Portable),
        "native" => Ok(NamePolicy::Native),
        _ => Err("expected `portable` or `native`".to_owned()),
    }
}

/// What to do with a stale base, by its word.
pub(super) fn on_stale(text: &str) -> Result<OnStale, String> {
    match text {
        "reject" => Ok(OnStale::Reject),
        "rebase" => Ok(OnStale::Rebase),
        "merge" => Ok(OnStale::Merge),
        _ => Err("expected `reject`, `rebase` or `merge`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(
                text.parse::<Millis>().ok().map(|found| found.0),
                expect,
                "{text:?}"
            );
        };
        check("0s", Some(0));
        check("0", Some(0));
        check("250ms", Some(250));
        check("30s", Some(30_000));
        check("10m", Some(600_000));
        check("2h", Some(7_200_000));
        check("7d", Some(604_800_000));
        check("", None);
        check("10", None);
        check("s", None);
        check("-1s", None);
        check("1.5h", None);
        check("1 h", None);
        check("5µs", None);
        check("99999999999999999999s", None);
        check("18446744073709551615d", None);
    }

    #[test]
    fn pairs_split_at_the_first_sign() {
        let check = |text: &str, expect: Option<(&str, &str)>| {
            let found = text.parse::<PathPair>().ok();
            let found = found
                .as_ref()
                .map(|pair| (pair.left.as_str(), pair.right.as_str()));
            assert_eq!(found, expect, "{text:?}");
        };
        check("a=b", Some(("a", "b")));
        check("src/a.rs=/tmp/x=y", Some(("src/a.rs", "/tmp/x=y")));
        check("a=-", Some(("a", "-")));
        check("a", None);
        check("=b", None);
        check("a=", None);
    }

    #[test]
    fn publication_numbers() {
        let check = |text: &str, expect: Option<u64>| {
            let found = text.parse::<SeqArgument>().ok().map(|found| found.0.get());
            assert_eq!(found, expect, "{text:?}");
        };
        check("3", Some(3));
        check("@3", Some(3));
        check("@", None);
        check("@-1", None);
        check("0", None);
        check("abcdef", None);
    }
}
