//! What the trees of a torture hold: a story in which every file follows from a few words.
//!
//! Owns: the words (`State`), the tree they make, reading the words back from a tree, and the effect of
//! a publication on them. A tree whose files do not all follow from the same words is a mix.
//!
//! Each writer has a family of files that are renamed and edited together; one family is fought over;
//! in one all write lines of their own, which are merged; one file is large.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use semaprax_protocol::submission::EntryKind;

/// Writers with a family of their own.
pub const WRITERS: usize = 3;
/// Files that never change.
const STILL: usize = 12;
/// Bytes of the large file: more than fits in the database.
const LARGE: usize = 70 << 10;

/// The words, by what they are of.
pub type State = BTreeMap<String, String>;
/// A tree: kind and content by path.
pub type Files = BTreeMap<String, (EntryKind, Vec<u8>)>;

/// The word of a writer's own family.
pub fn own(writer: usize) -> String {
    format!("own{writer}")
}

/// The word of a writer's lines in the family that is merged.
pub fn merged(writer: usize) -> String {
    format!("merged{writer}")
}

/// The family that is fought over.
pub const SHARED: &str = "shared";
/// The large file.
pub const BIG: &str = "big";

/// What a publication does to the words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Sets one.
    Set(String, String),
    /// Takes all of an older publication.
    Rollback(u64),
}

/// The words at first.
pub fn first() -> State {
    let mut state = State::new();
    for writer in 0..WRITERS {
        state.insert(own(writer), format!("first{writer}"));
        state.insert(merged(writer), format!("line{writer}"));
    }
    state.insert(SHARED.to_owned(), "nobody".to_owned());
    state.insert(BIG.to_owned(), "small".to_owned());
    state
}

/// The tree that these words make.
pub fn render(state: &State) -> Files {
    let mut files = Files::new();
    let word = |of: &str| state.get(of).map_or("", String::as_str);
    for writer in 0..WRITERS {
        for (path, kind, content) in own_files(writer, word(&own(writer))) {
            files.insert(path, (kind, content));
        }
    }
    for (path, content) in shared_files(word(SHARED)) {
        files.insert(path, (EntryKind::File, content));
    }
    for (path, content) in merged_files(state) {
        files.insert(path, (EntryKind::File, content));
    }
    files.insert("big.bin".to_owned(), (EntryKind::File, large(word(BIG))));
    for number in 0..STILL {
        let content = format!("the {number}. of those that stay\r\n").into_bytes();
        files.insert(
            format!("still/d{}/f{number}.txt", number % 3),
            (EntryKind::File, content),
        );
    }
    files.insert("empty".to_owned(), (EntryKind::File, Vec::new()));
    files.insert(
        "link".to_owned(),
        (EntryKind::Symlink, b"still/d0/f0.txt".to_vec()),
    );
    files
}

/// The files of a writer's family. The first one's name has the word in it.
pub fn own_files(writer: usize, word: &str) -> Vec<(String, EntryKind, Vec<u8>)> {
    let directory = own(writer);
    let text = |what: &str| format!("// {what} of {directory}\nfn {word}() {{\n}}\n").into_bytes();
    vec![
        (
            format!("{directory}/{word}.rs"),
            EntryKind::File,
            text("name"),
        ),
        (
            format!("{directory}/a.rs"),
            EntryKind::File,
            text("first use"),
        ),
        (
            format!("{directory}/deep/er/b.rs"),
            EntryKind::File,
            text("second use"),
        ),
        (
            format!("{directory}/run.sh"),
            EntryKind::Executable,
            text("script"),
        ),
    ]
}

/// The files that are fought over.
pub fn shared_files(word: &str) -> Vec<(String, Vec<u8>)> {
    (0..4)
        .map(|number| {
            let content = format!("file {number}\nowner: {word}\n");
            (format!("shared/{number}.txt"), content.into_bytes())
        })
        .collect()
}

/// The files that are merged.
pub fn merged_files(state: &State) -> Vec<(String, Vec<u8>)> {
    (0..2)
        .map(|number| {
            let mut content = format!("file {number}\n\n\n");
            for writer in 0..WRITERS {
                let word = state.get(&merged(writer)).map_or("", String::as_str);
                // Lines between them that nobody changes, so that no two changes are adjacent.
                let _ = writeln!(content, "{writer}: {word}\n\n--\n\n");
            }
            (format!("merged/{number}.txt"), content.into_bytes())
        })
        .collect()
}

/// The content of the large file: hard to compress, and another one for each word.
pub fn large(word: &str) -> Vec<u8> {
    let seed = word
        .bytes()
        .fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    let mut chance = super::chance::Chance::new(seed);
    let mut content = format!("{word}\n").into_bytes();
    while content.len() < LARGE {
        content.extend(chance.number().to_le_bytes());
    }
    content
}

/// The words that a tree was made of. What is not there reads as nothing.
pub fn words(files: &Files) -> State {
    let mut state = State::new();
    let line = |path: &str, start: &str| -> String {
        let content = files
            .get(path)
            .map_or(&[] as &[u8], |(_, content)| content.as_slice());
        let text = String::from_utf8_lossy(content);
        let found = text.lines().find_map(|line| line.strip_prefix(start));
        found.unwrap_or_default().to_owned()
    };
    for writer in 0..WRITERS {
        let directory = own(writer);
        let name = line(&format!("{directory}/a.rs"), "fn ");
        let name = name.strip_suffix("() {").unwrap_or_default().to_owned();
        state.insert(directory, name);
        state.insert(merged(writer), line("merged/0.txt", &format!("{writer}: ")));
    }
    state.insert(SHARED.to_owned(), line("shared/0.txt", "owner: "));
    state.insert(BIG.to_owned(), line("big.bin", ""));
    state
}

/// The words of a tree, unless it is a mix.
pub fn read(files: &Files) -> Result<State, String> {
    let state = words(files);
    let expected = render(&state);
    match difference(&expected, files) {
        None => Ok(state),
        Some(difference) => Err(format!("a mix: {difference}; its words are {state:?}")),
    }
}

/// The paths in which the trees of two states differ.
pub fn changed(before: &State, after: &State) -> BTreeSet<String> {
    let (before, after) = (render(before), render(after));
    let paths = before.keys().chain(after.keys());
    paths
        .filter(|path| before.get(*path) != after.get(*path))
        .cloned()
        .collect()
}

/// The first path in which two trees differ.
pub fn difference(expected: &Files, found: &Files) -> Option<String> {
    for (path, entry) in expected {
        match found.get(path) {
            None => return Some(format!("`{path}` is missing")),
            Some(other) if other.0 != entry.0 => {
                return Some(format!("`{path}` is {:?}, not {:?}", other.0, entry.0));
            }
            Some(other) if other.1 != entry.1 => return Some(format!("`{path}` differs")),
            Some(_) => {}
        }
    }
    let foreign = found.keys().find(|path| !expected.contains_key(*path))?;
    Some(format!("`{foreign}` is foreign"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back_and_a_mix_is_found() {
        let mut state = first();
        state.insert(own(1), "w1x5".to_owned());
        let whole = render(&state);
        assert_eq!(read(&whole), Ok(state.clone()));
        for path in whole.keys() {
            let mut mixed = whole.clone();
            mixed.remove(path);
            assert!(read(&mixed).is_err(), "{path}");
        }
        state.insert(own(1), "w1x6".to_owned());
        for (path, entry) in render(&state) {
            if whole.get(&path) != Some(&entry) {
                let mut mixed = whole.clone();
                mixed.insert(path.clone(), entry);
                assert!(read(&mixed).is_err(), "{path}");
            }
        }
    }
}
