//! When the daemon under test is to die, as text.
//!
//! Owns: the form `before:KIND:CLASS:N` (or `after:...`), and how an operation of the disk is named: its kind,
//! and the class of its path, in which everything that differs from run to run is a letter.
//! Never: kills.

use std::fmt;
use std::str::FromStr;

use camino::Utf8Path;

/// On which side of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// It did not happen.
    Before,
    /// It happened.
    After,
}

impl Side {
    /// The word of the text form.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// An operation of the disk: what it does, and to what kind of path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// The operation, a word such as `rename`.
    pub kind: String,
    /// The path, such as `generations/R/BOOT`.
    pub class: String,
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.kind, self.class)
    }
}

/// Dies at the `nth` operation that fits; `*` fits all, and so does what a pattern ending in `*` begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// On which side of it.
    pub side: Side,
    /// Which operations.
    pub step: Step,
    /// The how manyth, from 1.
    pub nth: u64,
}

impl Plan {
    /// At the `nth` operation of any kind.
    pub fn any(side: Side, nth: u64) -> Self {
        let all = || "*".to_owned();
        Self {
            side,
            step: Step {
                kind: all(),
                class: all(),
            },
            nth,
        }
    }

    /// Whether an operation counts.
    pub fn fits(&self, step: &Step) -> bool {
        fits(&self.step.kind, &step.kind) && fits(&self.step.class, &step.class)
    }
}

fn fits(pattern: &str, text: &str) -> bool {
    pattern
        .strip_suffix('*')
        .map_or(pattern == text, |start| text.starts_with(start))
}

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Step { kind, class } = &self.step;
        write!(out, "{}:{kind}:{class}:{}", self.side.word(), self.nth)
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("expected `before:KIND:CLASS:N` or `after:...`, found `{text}`");
        let mut parts = text.trim().split(':');
        let side = match parts.next() {
            Some("before") => Side::Before,
            Some("after") => Side::After,
            _ => return Err(refuse()),
        };
        let (Some(kind), Some(class), Some(nth), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(refuse());
        };
        let nth = nth.parse().ok().filter(|&nth| nth > 0).ok_or_else(refuse)?;
        let step = Step {
            kind: kind.to_owned(),
            class: class.to_owned(),
        };
        Ok(Self { side, step, nth })
    }
}

/// The class of a path: what is the same in every run. Digests are `R`, UUIDs are `U`, and all paths
/// inside a tree are one.
pub fn class_of(path: &Utf8Path) -> String {
    let text = path.as_str();
    let Some((_, inside)) = text.split_once(".semaprax-workspace") else {
        let name = path.file_name().unwrap_or_default();
        return match name {
            "daemon.lock" | "daemon.sock" | "daemon.log" => format!("run/{name}"),
            _ => "outside".to_owned(),
        };
    };
    let mut classes: Vec<String> = Vec::new();
    for part in inside.split('/').filter(|part| !part.is_empty()) {
        if classes.last().is_some_and(|last| last == "files") {
            classes.push("**".to_owned());
            break;
        }
        classes.push(part_class(part));
    }
    if classes.is_empty() {
        return "state".to_owned();
    }
    // What a directory in the trash was does not matter any more.
    if classes.len() > 2 && classes.first().is_some_and(|first| first == "trash") {
        classes.truncate(2);
        classes.push("**".to_owned());
    }
    classes.join("/")
}

fn part_class(part: &str) -> String {
    // A spare becomes a candidate under the same name.
    let part = part.strip_prefix("spare-").unwrap_or(part);
    let is_hex = part.len() >= 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if part.starts_with("object-") {
        "object-U".to_owned()
    } else if part.len() == 36 && part.bytes().filter(|&byte| byte == b'-').count() == 4 {
        "U".to_owned()
    } else if is_hex {
        "R".to_owned()
    } else {
        part.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read_as_they_are_written() {
        for text in ["before:rename:generations/R:3", "after:*:*:1"] {
            let plan: Plan = text.parse().unwrap();
            assert_eq!(plan.to_string(), text);
        }
        for text in ["", "before", "during:*:*:1", "after:*:*:0", "after:*:*:1:2"] {
            assert!(text.parse::<Plan>().is_err(), "{text}");
        }
    }

    #[test]
    fn paths_of_one_class_are_alike() {
        let check = |path: &str, expect: &str| {
            assert_eq!(class_of(Utf8Path::new(path)), expect, "{path}");
        };
        let state = "/w/.semaprax-workspace";
        let uuid = "018f7d2e-6f0a-7c3e-9b1d-2f6a4c8e0b5d";
        let revision = "ab".repeat(32);
        check(state, "state");
        check(&format!("{state}/ACTIVE.next"), "ACTIVE.next");
        check(
            &format!("{state}/generations/{revision}/files/a/b"),
            "generations/R/files/**",
        );
        check(&format!("{state}/staging/{uuid}/files"), "staging/U/files");
        check(
            &format!("{state}/staging/spare-{uuid}/files"),
            "staging/U/files",
        );
        check(&format!("{state}/trash/{uuid}/files/a"), "trash/U/**");
        check(&format!("{state}/objects/ab/cdef"), "objects/R/R");
        check(
            &format!("{state}/staging/object-{uuid}"),
            "staging/object-U",
        );
        check("/run/x/daemon.lock", "run/daemon.lock");
    }
}
