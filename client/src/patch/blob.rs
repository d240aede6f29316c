//! The ids git gives to contents.
//!
//! Owns: the blob id of a content, and comparing one with an id read from a patch.
//!
//! Never: touches a git repository.

use sha1::Sha1;
use sha2::Sha256;

/// Digits of a whole SHA-1 and a whole SHA-256 id.
const SHA1_DIGITS: usize = 40;
const SHA256_DIGITS: usize = 64;

/// The id of the empty content, in either kind of repository.
const EMPTY_IDS: [&str; 2] = [
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
];

/// The id git gives to `content` as a blob, 40 hex digits.
pub fn git_blob_id(content: &[u8]) -> String {
    id::<Sha1>(content)
}

fn id<D: sha1::Digest>(content: &[u8]) -> String {
    let mut digest = D::new();
    digest.update(format!("blob {}\0", content.len()));
    digest.update(content);
    let hex_digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    let digest = digest.finalize();
    let halves = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.map(hex_digit).collect()
}

/// Whether `id`, as read from a patch, is whole, so that it names one content.
pub(super) fn is_whole(id: &str) -> bool {
    id.len() == SHA1_DIGITS || id.len() == SHA256_DIGITS
}

/// The id of `content` of the same kind as the whole id `like`.
pub(super) fn id_like(like: &str, content: &[u8]) -> String {
    if like.len() == SHA256_DIGITS {
        id::<Sha256>(content)
    } else {
        git_blob_id(content)
    }
}

/// Whether `id`, whole or shortened, is that of the empty content.
pub(super) fn is_empty_id(id: &str) -> bool {
    EMPTY_IDS.iter().any(|empty| empty.starts_with(id))
}

/// Whether `id`, whole or shortened, stands for "no file".
pub(super) fn is_null_id(id: &str) -> bool {
    id.bytes().all(|digit| digit == b'0')
}
