//! Arguments that name a revision, a path, or both.
//!
//! Owns: the rule by which they are told apart. What stands alone, or before the first `:`, is a
//! revision only if it starts with `@`, or is 6 or more hexadecimal digits and one is found for
//! them. `:PATH` is a path in any case.
//! Never: asks a daemon itself; whether digits name a revision is asked through a function.

use semaprax_protocol::Refusal;

/// What an argument names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The revision, where one was named.
    pub(super) revision: Option<String>,
    /// The path, where one was named.
    pub(super) path: Option<String>,
}

/// Tells what `text` names. `resolves` says whether hexadecimal digits name a revision.
pub(super) fn tell_apart(
    text: &str,
    resolves: &mut dyn FnMut(&str) -> Result<bool, Refusal>,
) -> Result<Target, Refusal> {
    let target = |revision: Option<&str>, path: Option<&str>| Target {
        revision: revision.map(str::to_owned),
        path: path.filter(|path| !path.is_empty()).map(str::to_owned),
    };
    if let Some(path) = text.strip_prefix(':') {
        return Ok(target(None, Some(path)));
    }
    if let Some((before, path)) = text.split_once(':') {
        return Ok(if is_revision(before, resolves)? {
            target(Some(before), Some(path))
        } else {
            target(None, Some(text))
        });
    }
    Ok(if is_revision(text, resolves)? {
        target(Some(text), None)
    } else {
        target(None, Some(text))
    })
}

fn is_revision(
    text: &str,
    resolves: &mut dyn FnMut(&str) -> Result<bool, Refusal>,
) -> Result<bool, Refusal> {
    if text.starts_with('@') {
        return Ok(true);
    }
    let is_digits = (6..=64).contains(&text.len())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_digits { resolves(text) } else { Ok(false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_told_from_a_path() {
        let check = |text: &str, revision: Option<&str>, path: Option<&str>| {
            let mut known = |digits: &str| Ok(digits.starts_with("abc"));
            let found = tell_apart(text, &mut known).unwrap();
            let expect = (revision, path);
            assert_eq!(
                (found.revision.as_deref(), found.path.as_deref()),
                expect,
                "{text:?}"
            );
        };
        check("src/a.rs", None, Some("src/a.rs"));
        check("@", Some("@"), None);
        check("@3", Some("@3"), None);
        check("@-1", Some("@-1"), None);
        check("@scope", Some("@scope"), None);
        check(":@scope/x", None, Some("@scope/x"));
        check("@3:src/a.rs", Some("@3"), Some("src/a.rs"));
        check("@:a:b", Some("@"), Some("a:b"));
        check("abcdef", Some("abcdef"), None);
        check("deadbeef", None, Some("deadbeef"));
        check("abcde", None, Some("abcde"));
        check("ABCDEF", None, Some("ABCDEF"));
        check(":abcdef", None, Some("abcdef"));
        check("abcdef:x", Some("abcdef"), Some("x"));
        check("deadbeef:x", None, Some("deadbeef:x"));
        check("a:b", None, Some("a:b"));
        check("@2:", Some("@2"), None);
        check(":", None, None);
        check("", None, None);
    }

    #[test]
    fn only_digits_are_looked_up() {
        let mut asked = Vec::new();
        for text in ["src", "@5", "cafe", "cafe00", &"a".repeat(65)] {
            tell_apart(text, &mut |digits| {
                asked.push(digits.to_owned());
                Ok(false)
            })
            .unwrap();
        }
        assert_eq!(asked, ["cafe00"]);
    }
}
