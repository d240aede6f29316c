//! The names on the header lines of a patch.
//!
//! Owns: splitting the two names of `diff --git`, what ends a name, and the prefixes `a/` and `b/`.
//!
//! Never: checks whether a path is allowed in a workspace.

use super::parse::ParseErrorKind;
use super::quote::unquote;

/// What stands for "no file".
const NO_FILE: &[u8] = b"/dev/null";

/// A name as it stands in the patch, prefix and all.
pub(super) type RawName = Vec<u8>;

/// The two names after `diff --git `; `None` if where they part cannot be known.
pub(super) fn split_pair(text: &[u8]) -> Option<(RawName, RawName)> {
    if text.starts_with(b"\"") {
        let (old, rest) = unquote(text)?;
        let new = whole_name(rest.strip_prefix(b" ")?)?;
        return Some((old, new));
    }
    if text.ends_with(b"\"") {
        let quote = text.windows(2).position(|pair| pair == b" \"")?;
        let (old, new) = text.split_at_checked(quote)?;
        return Some((old.to_vec(), whole_name(new.get(1..)?)?));
    }
    let mut spaces = text.iter().filter(|&&byte| byte == b' ');
    if spaces.next().is_some() && spaces.next().is_none() {
        let space = text.iter().position(|&byte| byte == b' ')?;
        return pair_at(text, space);
    }
    // More than one space: the names are known where both are one path.
    let middle = (text.len() / 2..=text.len() / 2).find(|&at| text.get(at) == Some(&b' '));
    let equal = middle
        .and_then(|at| pair_at(text, at))
        .filter(|(old, new)| old == new);
    equal.or_else(|| split_prefixed(text))
}

/// Parts `X/path Y/path`. The length of the first prefix is known, so at most one space leaves two
/// paths of one length.
fn split_prefixed(text: &[u8]) -> Option<(RawName, RawName)> {
    let first_slash = text.iter().position(|&byte| byte == b'/')?;
    let mut slash = first_slash;
    for (space, _) in text.iter().enumerate().filter(|&(_, &byte)| byte == b' ') {
        while slash <= space || text.get(slash) != Some(&b'/') {
            slash += 1;
            if slash >= text.len() {
                return None;
            }
        }
        if space > first_slash && space - first_slash == text.len() - slash {
            return pair_at(text, space)
                .filter(|(old, new)| stripped(old).is_some() && stripped(old) == stripped(new));
        }
    }
    None
}

fn pair_at(text: &[u8], space: usize) -> Option<(RawName, RawName)> {
    let (old, new) = text.split_at_checked(space)?;
    Some((old.to_vec(), new.get(1..)?.to_vec()))
}

/// A name that fills the rest of its line, quoted or not.
pub(super) fn whole_name(text: &[u8]) -> Option<RawName> {
    if !text.starts_with(b"\"") {
        return Some(text.to_vec());
    }
    let (name, rest) = unquote(text)?;
    rest.is_empty().then_some(name)
}

/// One side of a file, as its `---` or `+++` line tells it.
#[derive(Debug)]
pub(super) struct DatedName {
    /// The name; none for `/dev/null`.
    pub(super) name: Option<RawName>,
    /// Whether there is a file: `/dev/null` says no, and so does a date that is the epoch.
    pub(super) exists: bool,
}

/// The name of a `---` or `+++` line, which a tab and a date may follow.
pub(super) fn dated_name(text: &[u8]) -> Result<DatedName, ParseErrorKind> {
    let (name, rest) = if text.starts_with(b"\"") {
        unquote(text).ok_or(ParseErrorKind::MalformedHeader)?
    } else {
        let end = text.iter().position(|&byte| byte == b'\t');
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        (name.to_vec(), rest)
    };
    if !rest.is_empty() && !rest.starts_with(b"\t") {
        return Err(ParseErrorKind::MalformedHeader);
    }
    let date = rest.get(1..).unwrap_or_default();
    let is_named = name != NO_FILE;
    Ok(DatedName {
        exists: is_named && !is_epoch(date),
        name: is_named.then_some(name),
    })
}

/// Whether a date is 1970-01-01 00:00 in some time zone, by which `diff -N` says "no file".
fn is_epoch(date: &[u8]) -> bool {
    let Ok(date) = std::str::from_utf8(date) else {
        return false;
    };
    let mut parts = date.split_ascii_whitespace();
    let (Some(day), Some(time), Some(zone)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i32>().ok());
    let (Some(hours), Some(minutes)) = (number(clock.get(..2)), number(clock.get(3..5))) else {
        return false;
    };
    let Some(offset) = number(zone.get(1..3)).zip(number(zone.get(3..5))) else {
        return false;
    };
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let local = hours * 60 + minutes - sign * (offset.0 * 60 + offset.1);
    let days = match day {
        "1970-01-01" => 0,
        "1969-12-31" => -24 * 60,
        _ => return false,
    };
    clock.get(5..) == Some(":00") && fraction.bytes().all(|byte| byte == b'0') && local + days == 0
}

/// `name` without its first component.
pub(super) fn stripped(name: &[u8]) -> Option<&[u8]> {
    let slash = name.iter().position(|&byte| byte == b'/')?;
    name.get(slash + 1..).filter(|rest| !rest.is_empty())
}

/// The one path two raw names of a git diff stand for: they are equal (a diff without prefixes),
/// or equal after the first component.
pub(super) fn common_path<'a>(old: &'a [u8], new: &'a [u8]) -> Option<&'a [u8]> {
    if old == new {
        return Some(old);
    }
    stripped(old).filter(|&path| Some(path) == stripped(new))
}

/// Whether a raw name can stand for `path`.
pub(super) fn stands_for(raw: &[u8], path: &[u8]) -> bool {
    raw == path || stripped(raw) == Some(path)
}

/// The path the two names of a plain unified diff stand for. `a/` and `b/` are taken for git's
/// prefixes; `old/x` and `new/x` for two directories compared; `x.orig` and `x` for a saved copy.
pub(super) fn plain_path<'a>(old: Option<&'a [u8]>, new: Option<&'a [u8]>) -> Option<&'a [u8]> {
    match (old, new) {
        (Some(old), Some(new)) => {
            let saved_copy = old.strip_suffix(b".orig").filter(|&old| old == new);
            common_path(old, new).or(saved_copy)
        }
        (Some(old), None) => Some(old.strip_prefix(b"a/").unwrap_or(old)),
        (None, Some(new)) => Some(new.strip_prefix(b"b/").unwrap_or(new)),
        (None, None) => None,
    }
}
