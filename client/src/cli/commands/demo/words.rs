//! Identifiers in source text: finding, counting and renaming whole words.
//!
//! Owns: what a word is (ASCII letters, digits and `_`, no digit first), whatever the language.
//! Never: reads a file.

use semaprax_protocol::submission::Edit;

/// What stands before a name where it is defined, in the languages one meets most.
const DEFINERS: [&str; 5] = ["fn", "def", "func", "function", "class"];

/// The words of a text, in order, each with the place where it starts.
pub(super) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        loop {
            let tail = text.get(rest..)?;
            let start = rest + tail.find(|c: char| is_part(c))?;
            let run = text.get(start..)?;
            let length = run.find(|c: char| !is_part(c)).unwrap_or(run.len());
            rest = start + length;
            let word = run.get(..length)?;
            if !word.starts_with(|c: char| c.is_ascii_digit()) {
                return Some((start, word));
            }
        }
    })
}

fn is_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// The words that a text defines: those after `fn`, `def` and the like.
pub(super) fn defined(text: &str) -> impl Iterator<Item = &str> {
    let mut after_definer = false;
    words(text).filter_map(move |(_, word)| {
        let found = after_definer.then_some(word);
        after_definer = DEFINERS.contains(&word);
        found
    })
}

/// The text with every word `old` turned into `new`.
pub(super) fn rename(text: &str, old: &str, new: &str) -> String {
    let mut renamed = String::with_capacity(text.len() + 64);
    let mut copied = 0;
    for (start, word) in words(text) {
        if word == old {
            renamed.push_str(text.get(copied..start).unwrap_or_default());
            renamed.push_str(new);
            copied = start + word.len();
        }
    }
    renamed.push_str(text.get(copied..).unwrap_or_default());
    renamed
}

/// The same rename as edits of whole lines. `None` where a line does not occur just once, so that an
/// edit could not name it.
pub(super) fn rename_by_edits(text: &str, old: &str, new: &str) -> Option<Vec<Edit>> {
    let mut current = text.to_owned();
    let mut edits = Vec::new();
    for line in text.split_inclusive('\n') {
        if !words(line).any(|(_, word)| word == old) {
            continue;
        }
        let changed = rename(line, old, new);
        if current.matches(line).count() != 1 {
            return None;
        }
        current = current.replacen(line, &changed, 1);
        edits.push(Edit {
            old: line.to_owned(),
            new: changed,
        });
    }
    (current == rename(text, old, new)).then_some(edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole() {
        let found: Vec<&str> = words("fn read_all(x2: u8) 7up é_a\n")
            .map(|(_, w)| w)
            .collect();
        assert_eq!(found, ["fn", "read_all", "x2", "u8", "_a"]);
        let names: Vec<&str> = defined("pub fn one() { two() } async fn three").collect();
        assert_eq!(names, ["one", "three"]);
    }

    #[test]
    fn a_rename_leaves_longer_words_alone() {
        let check = |text: &str, expect: &str| assert_eq!(rename(text, "old", "new"), expect);
        check("old", "new");
        check("old(old_one, bold, old.old)", "new(old_one, bold, new.new)");
        check("", "");
        check("nothing", "nothing");
        check("über old\r\n", "über new\r\n");
    }

    #[test]
    fn edits_rename_the_same_or_are_not_made() {
        let check = |text: &str, expect: Option<usize>| {
            let edits = rename_by_edits(text, "old", "new");
            assert_eq!(edits.as_ref().map(Vec::len), expect, "{text:?}");
            let Some(edits) = edits else { return };
            let done = edits.iter().fold(text.to_owned(), |text, edit| {
                assert_eq!(text.matches(&edit.old).count(), 1);
                text.replacen(&edit.old, &edit.new, 1)
            });
            assert_eq!(done, rename(text, "old", "new"));
        };
        check("fn old() {}\nlet a = old();\n", Some(2));
        check("old old\n", Some(1));
        check("  old\n  old\n", None);
        check("a old\nold\nx a old\n", None);
        check("none\n", Some(0));
    }
}
