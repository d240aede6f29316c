//! Moments, as nanoseconds since 1970 UTC; text form RFC 3339.
//!
//! Owns: `Timestamp` and its text form. Never: reads a clock.

use std::fmt;
use std::str::FromStr;

/// A moment in nanoseconds since 1970-01-01T00:00:00Z, between the years 1677 and 2262.
///
/// ```
/// use semaprax_protocol::Timestamp;
/// let moment = Timestamp::from_nanos(1_500_000_000);
/// assert_eq!(moment.to_string(), "1970-01-01T00:00:01.5Z");
/// assert_eq!("1970-01-01T00:00:01.5Z".parse(), Ok(moment));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The text is not an RFC 3339 moment in range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a moment such as `2026-01-02T03:04:05Z`, found `{0}`")]
pub struct TimestampError(String);

impl Timestamp {
    /// A moment from nanoseconds since 1970.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since 1970.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// This moment moved by `nanos`, stopping at the ends of the range.
    #[must_use]
    pub const fn saturating_add(self, nanos: i64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// Milliseconds from `earlier` to this moment; 0 when `earlier` is later.
    pub fn millis_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0) / 1_000_000).unwrap_or(0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(moment) => moment.fmt(out),
            Err(_) => write!(out, "{}ns", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let refuse = || TimestampError(text.chars().take(60).collect());
        let moment: jiff::Timestamp = text.parse().map_err(|_| refuse())?;
        i64::try_from(moment.as_nanosecond())
            .map(Self)
            .map_err(|_| refuse())
    }
}

crate::text::text_form!(Timestamp, { "type": "string", "format": "date-time" });
