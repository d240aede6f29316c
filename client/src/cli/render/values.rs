//! Single values as text: sizes, moments, changes.
//!
//! Owns: making text of others harmless: a name or a message must not steer the terminal.
//! Never: reads a clock.

use std::borrow::Cow;

use jiff::tz::TimeZone;
use semaprax_protocol::Timestamp;
use semaprax_protocol::documents::{ChangeKind, PathChange};

use super::{style, styled};

/// Text of others with its control characters made visible.
pub(in crate::cli) fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let harmless = text.chars().map(|character| {
        if character.is_control() {
            character.escape_default().to_string()
        } else {
            character.to_string()
        }
    });
    Cow::Owned(harmless.collect())
}

/// A number of bytes, such as `3.4 kB`.
pub(in crate::cli) fn bytes(number: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if number < 1000 {
        return format!("{number} B");
    }
    let mut tenths = u128::from(number) * 10 / 1000;
    let mut unit = UNITS[0];
    for next in UNITS.iter().skip(1) {
        if tenths < 10_000 {
            break;
        }
        tenths /= 1000;
        unit = next;
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// A moment, in the zone of this machine.
pub(in crate::cli) fn moment(at: Timestamp) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(at.as_nanos())).map_or_else(
        |_| at.to_string(),
        |moment| {
            let here = moment.to_zoned_datetime(TimeZone::system());
            here.strftime("%Y-%m-%d %H:%M:%S").to_string()
        },
    )
}

/// A length of time, such as `2h 5m`.
pub(in crate::cli) fn span(millis: u64) -> String {
    let seconds = millis / 1000;
    match (
        seconds / 86_400,
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
    ) {
        (0, 0, 0, 0) => format!("{millis}ms"),
        (0, 0, 0, seconds) => format!("{seconds}s"),
        (0, 0, minutes, seconds) => format!("{minutes}m {seconds}s"),
        (0, hours, minutes, _) => format!("{hours}h {minutes}m"),
        (days, hours, ..) => format!("{days}d {hours}h"),
    }
}

/// `1 change`, `2 changes`.
pub(in crate::cli) fn plural(number: u64, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

/// One change, as a letter and its path.
pub(in crate::cli) fn change_line(change: &PathChange) -> String {
    let style = match change.kind {
        ChangeKind::Created => style::GOOD,
        ChangeKind::Deleted => style::BAD,
        ChangeKind::Modified | ChangeKind::Renamed | ChangeKind::Mode => style::PLACE,
    };
    let path = clean(change.path.as_str());
    let letter = change.kind.letter();
    styled(
        style,
        match &change.from {
            Some(from) => format!("{letter} {} -> {path}", clean(from.as_str())),
            None => format!("{letter} {path}"),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let check = |number: u64, expect: &str| assert_eq!(bytes(number), expect);
        check(0, "0 B");
        check(999, "999 B");
        check(1000, "1.0 kB");
        check(3449, "3.4 kB");
        check(999_999, "999.9 kB");
        check(1_000_000, "1.0 MB");
        check(64 << 20, "67.1 MB");
        check(u64::MAX, "18446744.0 TB");
    }

    #[test]
    fn spans() {
        let check = |millis: u64, expect: &str| assert_eq!(span(millis), expect);
        check(0, "0ms");
        check(1500, "1s");
        check(61_000, "1m 1s");
        check(7_500_000, "2h 5m");
        check(90_000_000, "1d 1h");
    }

    #[test]
    fn text_of_others_cannot_steer_the_terminal() {
        assert_eq!(clean("plain äöü"), "plain äöü");
        assert_eq!(clean("\u{1b}[2Jgone\u{7}"), "\\u{1b}[2Jgone\\u{7}");
        assert_eq!(clean("two\nlines"), "two\\nlines");
    }
}
