//! The base85 lines of git's binary patches.
//!
//! Owns: the alphabet, and the line form: one character for the count of bytes, then five
//! characters for every four bytes.
//!
//! Never: knows what the bytes are.

/// git's alphabet, that of RFC 1924.
const ALPHABET: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// The most bytes a line holds.
pub(super) const LINE_BYTES_MAX: usize = 52;

/// Appends one line, with its line end, for at most [`LINE_BYTES_MAX`] bytes.
pub(super) fn encode_line(bytes: &[u8], out: &mut Vec<u8>) {
    let count = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
    out.push(match count {
        0..=26 => b'A' + count.saturating_sub(1),
        _ => b'a' + (count - 27).min(25),
    });
    for group in bytes.chunks(4) {
        let mut word = [0; 4];
        for (slot, &byte) in word.iter_mut().zip(group) {
            *slot = byte;
        }
        let mut word = u32::from_be_bytes(word);
        let mut characters = [0; 5];
        for slot in characters.iter_mut().rev() {
            *slot = ALPHABET.get((word % 85) as usize).copied().unwrap_or(b'0');
            word /= 85;
        }
        out.extend_from_slice(&characters);
    }
    out.push(b'\n');
}

/// Appends the bytes of one line (without its line end); `None` if it is not such a line.
pub(super) fn decode_line(line: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (&first, characters) = line.split_first()?;
    let mut count = usize::from(match first {
        b'A'..=b'Z' => first - b'A' + 1,
        b'a'..=b'z' => first - b'a' + 27,
        _ => return None,
    });
    if characters.len() != count.div_ceil(4) * 5 {
        return None;
    }
    for group in characters.chunks(5) {
        let mut word: u32 = 0;
        for &character in group {
            word = word.checked_mul(85)?.checked_add(value_of(character)?)?;
        }
        let bytes = word.to_be_bytes();
        let take = count.min(bytes.len());
        out.extend_from_slice(bytes.get(..take)?);
        count -= take;
    }
    Some(())
}

fn value_of(character: u8) -> Option<u32> {
    let place = ALPHABET.iter().position(|&known| known == character)?;
    u32::try_from(place).ok()
}
