//! Names in patches: git's C-style quoting.
//!
//! Owns: which names are quoted (control characters, `"`, `\` and all that is not ASCII) and how.
//!
//! Never: knows prefixes or what a name stands for.

/// The single letters that follow a backslash, and what they stand for.
const LETTERS: [(u8, u8); 9] = [
    (b'a', 7),
    (b'b', 8),
    (b't', b'\t'),
    (b'n', b'\n'),
    (b'v', 11),
    (b'f', 12),
    (b'r', b'\r'),
    (b'"', b'"'),
    (b'\\', b'\\'),
];

/// `name` as git writes it: in quotes if it must be, else as it is.
pub(super) fn quote(name: &str) -> String {
    let plain = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    if name.bytes().all(plain) {
        return name.to_owned();
    }
    let mut quoted = String::with_capacity(name.len() + 8);
    quoted.push('"');
    for byte in name.bytes() {
        if let Some(&(letter, _)) = LETTERS.iter().find(|&&(_, value)| value == byte) {
            quoted.push('\\');
            quoted.push(char::from(letter));
        } else if plain(byte) {
            quoted.push(char::from(byte));
        } else {
            quoted.push('\\');
            for shift in [6, 3, 0] {
                quoted.push(char::from(b'0' + ((byte >> shift) & 7)));
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Reads a quoted name at the start of `text`, which begins with `"`. Gives the name and what
/// follows the closing quote; `None` if the quoting is broken.
pub(super) fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut name = Vec::new();
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((name, rest)),
            b'\\' => {
                let (&escape, after) = rest.split_first()?;
                if let Some(&(_, value)) = LETTERS.iter().find(|&&(letter, _)| letter == escape) {
                    name.push(value);
                    rest = after;
                } else {
                    let (value, after) = octal(rest)?;
                    name.push(value);
                    rest = after;
                }
            }
            _ => name.push(byte),
        }
    }
}

/// Three octal digits, at most `377`.
fn octal(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, rest) = text.split_at_checked(3)?;
    let mut value: u16 = 0;
    for &digit in digits {
        if !(b'0'..=b'7').contains(&digit) {
            return None;
        }
        value = value * 8 + u16::from(digit - b'0');
    }
    Some((u8::try_from(value).ok()?, rest))
}
