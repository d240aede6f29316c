//! A group: files of the tree that say the same in every whole generation.
//!
//! Owns: the invariant of the demo. A group is a real identifier, the source files of one package
//! that use it (members), and small files all over the tree (markers). Every submission gives all of
//! them a new number at once: the identifier is `NAME_gNUMBER` in each member, and each marker says
//! the number. Two numbers in one tree: it is a mix of two generations.
//! Never: reads a file; bytes are handed in.

use std::collections::BTreeMap;

use semaprax_protocol::submission::{Change, Edit, Expect};

use super::words;
use crate::{put, sha256_of};

/// The content of paths.
pub(super) type Contents = BTreeMap<String, Vec<u8>>;

/// A source file that uses the identifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// Its path.
    pub(super) path: String,
    /// How often it uses it.
    pub(super) uses: usize,
}

/// Files that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// Which one.
    pub(super) index: usize,
    /// The identifier, as the authors of the sources wrote it; empty when the tree has none to offer.
    pub(super) name: String,
    /// The source files that use it.
    pub(super) members: Vec<Member>,
    /// The paths of its markers.
    pub(super) markers: Vec<String>,
}

impl Group {
    /// All its paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        let members = self.members.iter().map(|member| member.path.as_str());
        members.chain(self.markers.iter().map(String::as_str))
    }

    /// What the identifier is called at a number; 0 is before the first rename.
    pub(super) fn name_at(&self, number: u64) -> String {
        match number {
            0 => self.name.clone(),
            _ => format!("{}_g{number}", self.name),
        }
    }

    /// What its markers say at a number.
    pub(super) fn marker_at(&self, number: u64) -> String {
        format!(
            "A marker of the Semaprax demo. All markers of a group say the same, in every generation.\n\
             group {}\nname {}\nnumber {number}\n",
            self.index,
            self.name_at(number)
        )
    }

    /// The number that all files of the group agree on, or what they do not agree on.
    pub(super) fn number(&self, contents: &Contents) -> Result<u64, String> {
        let agreed = self.number_of_markers(contents)?;
        for member in &self.members {
            let text = text_of(contents, &member.path)?;
            let mut uses = 0;
            for (_, word) in words::words(text) {
                if let Some(number) = self.number_of_word(word) {
                    self.agree(agreed, number, &member.path)?;
                    uses += 1;
                }
            }
            if uses != member.uses {
                return Err(format!(
                    "`{}` uses `{}` {uses} times, not {}",
                    member.path, self.name, member.uses
                ));
            }
        }
        Ok(agreed)
    }

    /// The number that the markers agree on, whatever the members say.
    pub(super) fn number_of_markers(&self, contents: &Contents) -> Result<u64, String> {
        let mut agreed = None;
        for path in &self.markers {
            let text = text_of(contents, path)?;
            let number = text
                .lines()
                .find_map(|line| line.strip_prefix("number "))
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(|| format!("`{path}` says no number"))?;
            if text != self.marker_at(number) {
                return Err(format!("`{path}` is not the marker of any generation"));
            }
            self.agree(*agreed.get_or_insert(number), number, path)?;
        }
        agreed.ok_or_else(|| format!("group {} has no markers", self.index))
    }

    fn agree(&self, agreed: u64, number: u64, path: &str) -> Result<(), String> {
        if agreed == number {
            return Ok(());
        }
        Err(format!(
            "`{path}` is of number {number}, other files of group {} of {agreed}",
            self.index
        ))
    }

    /// The number in a use of the identifier; `None` for every other word.
    pub(super) fn number_of_word(&self, word: &str) -> Option<u64> {
        let rest = word.strip_prefix(self.name.as_str())?;
        if self.name.is_empty() {
            None
        } else if rest.is_empty() {
            Some(0)
        } else {
            rest.strip_prefix("_g")?.parse().ok()
        }
    }

    /// The changes that bring the whole group from one number to another, each bound to the content
    /// it was made from. Edits where a line can be named, whole contents elsewhere.
    pub(super) fn changes(
        &self,
        contents: &Contents,
        from: u64,
        to: u64,
    ) -> Result<Vec<Change>, String> {
        let (old, new) = (self.name_at(from), self.name_at(to));
        let mut changes = Vec::new();
        for (index, path) in self.markers.iter().enumerate() {
            let change = if index % 2 == 0 {
                put(path.clone(), self.marker_at(to).into_bytes())
            } else {
                edit(path, self.marker_edits(from, to))
            };
            changes.push(bound(change, contents.get(path)));
        }
        for member in &self.members {
            let text = text_of(contents, &member.path)?;
            let change = match words::rename_by_edits(text, &old, &new) {
                Some(edits) => edit(&member.path, edits),
                None => put(
                    member.path.clone(),
                    words::rename(text, &old, &new).into_bytes(),
                ),
            };
            changes.push(bound(change, contents.get(&member.path)));
        }
        Ok(changes)
    }

    fn marker_edits(&self, from: u64, to: u64) -> Vec<Edit> {
        let line = |word: &str, value: String| format!("\n{word} {value}\n");
        let whole =
            |number: u64| line("name", format!("{}\nnumber {number}", self.name_at(number)));
        vec![Edit {
            old: whole(from),
            new: whole(to),
        }]
    }
}

fn edit(path: &str, edits: Vec<Edit>) -> Change {
    Change::Edit {
        path: path.to_owned(),
        edits,
        expect: None,
        reason: None,
    }
}

/// The change, refused unless the path holds what it was made from.
pub(super) fn bound(mut change: Change, made_from: Option<&Vec<u8>>) -> Change {
    if let Change::Put { expect, .. } | Change::Edit { expect, .. } = &mut change {
        *expect = Some(Expect {
            sha256: made_from.map(|bytes| sha256_of(bytes)),
            absent: made_from.is_none().then_some(true),
        });
    }
    change
}

fn text_of<'contents>(contents: &'contents Contents, path: &str) -> Result<&'contents str, String> {
    let bytes = contents
        .get(path)
        .ok_or_else(|| format!("`{path}` is missing"))?;
    std::str::from_utf8(bytes).map_err(|_| format!("`{path}` is no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> Group {
        let member = |path: &str, uses| Member {
            path: path.to_owned(),
            uses,
        };
        Group {
            index: 3,
            name: "open".to_owned(),
            members: vec![member("a.rs", 2), member("b.rs", 1)],
            markers: vec!["m0".to_owned(), "d/m1".to_owned()],
        }
    }

    fn at(number: u64) -> Contents {
        let group = group();
        let name = group.name_at(number);
        let marker = group.marker_at(number).into_bytes();
        Contents::from([
            (
                "a.rs".to_owned(),
                format!("fn {name}() {{}}\n{name}();\n").into(),
            ),
            ("b.rs".to_owned(), format!("reopen({name})").into()),
            ("m0".to_owned(), marker.clone()),
            ("d/m1".to_owned(), marker),
        ])
    }

    #[test]
    fn a_whole_generation_has_one_number() {
        assert_eq!(group().number(&at(0)), Ok(0));
        assert_eq!(group().number(&at(17)), Ok(17));
    }

    #[test]
    fn every_mix_is_seen() {
        for path in ["a.rs", "b.rs", "m0", "d/m1"] {
            let mut mixed = at(17);
            mixed.insert(path.to_owned(), at(18).remove(path).unwrap());
            assert!(group().number(&mixed).is_err(), "{path} of another one");
            mixed.remove(path);
            assert!(group().number(&mixed).is_err(), "{path} missing");
        }
        let mut half = at(17);
        half.insert(
            "a.rs".to_owned(),
            b"fn open_g17() {}\nopen_g18();\n".to_vec(),
        );
        assert!(group().number(&half).is_err());
    }

    #[test]
    fn changes_lead_from_one_number_to_another() {
        let mut contents = at(5);
        for change in group().changes(&contents.clone(), 5, 55).unwrap() {
            match change {
                Change::Put { path, content, .. } => {
                    contents.insert(path, content.unwrap().into_bytes());
                }
                Change::Edit { path, edits, .. } => {
                    let text = String::from_utf8(contents.remove(&path).unwrap()).unwrap();
                    let done = edits.iter().fold(text, |text, edit| {
                        assert_eq!(text.matches(&edit.old).count(), 1);
                        text.replacen(&edit.old, &edit.new, 1)
                    });
                    contents.insert(path, done.into_bytes());
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(contents, at(55));
    }
}
