//! Protocol versions and what two sides make of each other's.
//!
//! Owns: the version number and the rule of compatibility. A change that an older side would
//! misunderstand raises `PROTOCOL`; added fields and methods do not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the wire protocol this build speaks.
pub const PROTOCOL: u32 = 1;
/// The oldest version this build still understands.
pub const PROTOCOL_OLDEST: u32 = 1;
/// The version of this build, as `semaprax --version` prints it.
pub const BUILD: &str = env!("CARGO_PKG_VERSION");

/// The versions one side speaks, oldest and newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct ProtocolRange {
    /// The oldest version.
    pub oldest: u32,
    /// The newest version.
    pub newest: u32,
}

crate::object::object_form!(ProtocolRange);

impl ProtocolRange {
    /// What this build speaks.
    pub const CURRENT: Self = Self {
        oldest: PROTOCOL_OLDEST,
        newest: PROTOCOL,
    };

    /// The version both sides speak, the newest there is.
    ///
    /// ```
    /// use semaprax_protocol::version::ProtocolRange;
    /// let ours = ProtocolRange { oldest: 2, newest: 4 };
    /// assert_eq!(ours.agree(ProtocolRange { oldest: 1, newest: 3 }), Some(3));
    /// assert_eq!(ours.agree(ProtocolRange { oldest: 5, newest: 6 }), None);
    /// ```
    pub fn agree(self, other: Self) -> Option<u32> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }
}

/// Whether build version `candidate` is newer than `other`: numbers of `major.minor.patch` compared
/// in turn. Text that is not of that form is never newer.
pub fn is_newer_build(candidate: &str, other: &str) -> bool {
    let numbers = |text: &str| -> Option<Vec<u64>> {
        let core = text.split(['-', '+']).next()?;
        core.split('.').map(|part| part.parse().ok()).collect()
    };
    match (numbers(candidate), numbers(other)) {
        (Some(candidate), Some(other)) => candidate > other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_compare_by_number() {
        let check =
            |a: &str, b: &str, newer: bool| assert_eq!(is_newer_build(a, b), newer, "{a} {b}");
        check("0.10.0", "0.9.9", true);
        check("0.1.0", "0.1.0", false);
        check("1.0.0", "1.0.0-rc.1", false);
        check("junk", "0.1.0", false);
        check("0.2.0", "junk", false);
    }
}
