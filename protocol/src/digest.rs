//! 32-byte digests and their one text form: 64 lowercase hexadecimal digits.
//!
//! Owns: one newtype for each thing a digest can name, so that none is taken for another.
//! Never: computes a digest; that is the daemon's and the client's work.

use std::fmt;
use std::str::FromStr;

/// Why a text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected 64 lowercase hexadecimal digits, found `{found}`")]
pub struct DigestError {
    found: String,
}

fn decode(text: &str) -> Option<[u8; 32]> {
    let bytes = text.as_bytes();
    if bytes.len() != 64 {
        return None;
    }
    let mut out = [0u8; 32];
    for (slot, pair) in out.iter_mut().zip(bytes.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *slot = nibble(*high)? << 4 | nibble(*low)?;
    }
    Some(out)
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

macro_rules! digest {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 32]);

        impl $name {
            /// Takes the raw bytes of a digest that was computed or read from the store.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// The raw bytes.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// The first twelve digits, for people.
            pub fn short(&self) -> String {
                let mut text = self.to_string();
                text.truncate(12);
                text
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = DigestError;

            fn from_str(text: &str) -> Result<Self, DigestError> {
                decode(text).map(Self).ok_or_else(|| DigestError {
                    found: text.chars().take(80).collect(),
                })
            }
        }

        crate::text::text_form!($name, { "type": "string", "pattern": "^[0-9a-f]{64}$" });
    };
}

digest!(
    /// Names a generation: the digest of its manifest. Every publication has its own.
    ///
    /// ```
    /// use semaprax_protocol::Revision;
    /// let revision: Revision = "ab".repeat(32).parse().unwrap();
    /// assert_eq!(revision.to_string(), "ab".repeat(32));
    /// assert!("AB".repeat(32).parse::<Revision>().is_err());
    /// ```
    Revision
);
digest!(
    /// Digest of a tree's content alone: names, kinds, bytes. Equal content, equal tree.
    TreeDigest
);
digest!(
    /// Digest of a tree's content together with the stamps of its paths.
    StampedDigest
);
digest!(
    /// Digest of a publication record; identifies a publication across repairs.
    RecordDigest
);
digest!(
    /// BLAKE3 digest of the bytes of a file, or of a symlink's target.
    BlobDigest
);
digest!(
    /// SHA-256 of the bytes of a file: what the outside contract names content by.
    Sha256
);
digest!(
    /// Digest of one entry of the event journal.
    EventDigest
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_is_strict() {
        let check = |text: &str, good: bool| {
            assert_eq!(text.parse::<Sha256>().is_ok(), good, "{text:?}");
        };
        check(&"0".repeat(64), true);
        check(&"0".repeat(63), false);
        check(&"0".repeat(65), false);
        check(&"F".repeat(64), false);
        check(&format!("{}é", "0".repeat(62)), false);
        check("", false);
    }
}
