//! Paths inside a workspace, and which spellings are refused.
//!
//! Owns: `LogicalPath` (well formed under the `native` policy), the `portable` policy on top of it,
//! case folding, and the lexical check of symlink targets.
//! Never: touches a file system; a real path is made only in the daemon's `store/layout.rs`.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_normalization::is_nfc;

use crate::limits::{PATH_BYTES, SEGMENT_BYTES};

/// Names that are never content, in any case, at any depth.
const RESERVED: [&str; 2] = [".git", ".semaprax-workspace"];

/// Which names a workspace accepts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, PartialOrd, Ord, Hash,
)]
#[serde(rename_all = "lowercase")]
pub enum NamePolicy {
    /// Names that every common file system can hold, no two of them equal after case folding.
    Portable,
    /// Names as this system has them.
    Native,
}

impl fmt::Display for NamePolicy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Portable => "portable",
            Self::Native => "native",
        })
    }
}

/// Why the spelling of a path, or the target of a symlink, is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathRefusal {
    /// No bytes at all.
    #[error("it is empty")]
    Empty,
    /// More bytes than a path may have.
    #[error("it is longer than {PATH_BYTES} bytes")]
    TooLong,
    /// More bytes than a segment may have.
    #[error("a segment is longer than {SEGMENT_BYTES} bytes")]
    SegmentTooLong,
    /// A leading `/`.
    #[error("it is absolute")]
    Absolute,
    /// `a//b` or a trailing `/`.
    #[error("it has an empty segment")]
    EmptySegment,
    /// A `.` segment.
    #[error("it has a `.` segment")]
    Dot,
    /// A `..` segment.
    #[error("it has a `..` segment")]
    DotDot,
    /// NUL, a control character, or DEL.
    #[error("it has a control character")]
    Control,
    /// `.git` or `.semaprax-workspace` in any case.
    #[error("`.git` and `.semaprax-workspace` are never content")]
    Reserved,
    /// Not in normalization form C.
    #[error("it is not in Unicode normalization form C (policy `portable`)")]
    NotNfc,
    /// One of `\ : * ? " < > |`.
    #[error("it has one of `\\ : * ? \" < > |` (policy `portable`)")]
    ForbiddenCharacter,
    /// `CON`, `NUL`, `COM1` and the like, with or without an extension.
    #[error("it is the name of a Windows device (policy `portable`)")]
    Device,
    /// A segment that ends in a dot or a space.
    #[error("a segment ends in a dot or a space (policy `portable`)")]
    TrailingDotOrSpace,
    /// A symlink target with a leading `/`.
    #[error("the target is absolute")]
    TargetAbsolute,
    /// A symlink target that climbs out of the workspace.
    #[error("the target leaves the workspace")]
    TargetLeaves,
    /// An empty target, or one with a NUL.
    #[error("the target is empty or has a NUL")]
    TargetMalformed,
    /// A target into `.git` or `.semaprax-workspace`.
    #[error("the target leads into `.git` or `.semaprax-workspace`")]
    TargetReserved,
}

/// A path inside a workspace: UTF-8, relative, `/`-separated, well formed under `native`.
///
/// ```
/// use semaprax_protocol::{LogicalPath, PathRefusal};
/// let path: LogicalPath = "src/lib.rs".parse().unwrap();
/// assert_eq!(path.segments().collect::<Vec<_>>(), ["src", "lib.rs"]);
/// assert_eq!("../x".parse::<LogicalPath>(), Err(PathRefusal::DotDot));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogicalPath(String);

impl LogicalPath {
    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The segments, from the root.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// The last segment.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The directory it lies in; `None` at the top.
    pub fn parent(&self) -> Option<Self> {
        self.0
            .rsplit_once('/')
            .map(|(parent, _)| Self(parent.to_owned()))
    }

    /// The entry `name` of the directory `self`.
    pub fn join(&self, name: &str) -> Result<Self, PathRefusal> {
        format!("{}/{name}", self.0).parse()
    }

    /// Whether `self` lies below `directory` (and is not it).
    pub fn is_below(&self, directory: &Self) -> bool {
        self.0
            .strip_prefix(&directory.0)
            .is_some_and(|rest| rest.starts_with('/'))
    }

    /// What two paths share that differ in case only.
    pub fn folded(&self) -> String {
        fold(&self.0)
    }

    /// Whether a name may be a segment of a path.
    pub fn is_segment(name: &str) -> bool {
        check_native(name).is_ok() && !name.contains('/')
    }

    /// [`LogicalPath::folded`] of one segment.
    pub fn fold_segment(segment: &str) -> String {
        fold(segment)
    }

    /// Checks the spelling under `policy`.
    pub fn check(&self, policy: NamePolicy) -> Result<(), PathRefusal> {
        match policy {
            NamePolicy::Native => Ok(()),
            NamePolicy::Portable => self.segments().try_for_each(check_portable),
        }
    }
}

/// Simple case folding of a name, as `portable` compares names.
fn fold(name: &str) -> String {
    unicase::UniCase::new(name).to_folded_case()
}

impl FromStr for LogicalPath {
    type Err = PathRefusal;

    fn from_str(text: &str) -> Result<Self, PathRefusal> {
        if text.is_empty() {
            return Err(PathRefusal::Empty);
        }
        if text.len() > PATH_BYTES {
            return Err(PathRefusal::TooLong);
        }
        if text.starts_with('/') {
            return Err(PathRefusal::Absolute);
        }
        text.split('/').try_for_each(check_native)?;
        Ok(Self(text.to_owned()))
    }
}

fn check_native(segment: &str) -> Result<(), PathRefusal> {
    if segment.is_empty() {
        Err(PathRefusal::EmptySegment)
    } else if segment == "." {
        Err(PathRefusal::Dot)
    } else if segment == ".." {
        Err(PathRefusal::DotDot)
    } else if segment.len() > SEGMENT_BYTES {
        Err(PathRefusal::SegmentTooLong)
    } else if segment.chars().any(char::is_control) {
        Err(PathRefusal::Control)
    } else if is_reserved(segment) {
        Err(PathRefusal::Reserved)
    } else {
        Ok(())
    }
}

fn is_reserved(segment: &str) -> bool {
    RESERVED
        .iter()
        .any(|name| segment.eq_ignore_ascii_case(name))
}

fn check_portable(segment: &str) -> Result<(), PathRefusal> {
    if !is_nfc(segment) {
        Err(PathRefusal::NotNfc)
    } else if segment.contains(['\\', ':', '*', '?', '"', '<', '>', '|']) {
        Err(PathRefusal::ForbiddenCharacter)
    } else if segment.ends_with(['.', ' ']) {
        Err(PathRefusal::TrailingDotOrSpace)
    } else if is_device(segment) {
        Err(PathRefusal::Device)
    } else {
        Ok(())
    }
}

fn is_device(segment: &str) -> bool {
    let stem = segment
        .split('.')
        .next()
        .unwrap_or(segment)
        .trim_end_matches(' ');
    let stem = stem.to_ascii_lowercase();
    if matches!(
        stem.as_str(),
        "con" | "prn" | "aux" | "nul" | "conin$" | "conout$"
    ) {
        return true;
    }
    let numbered = stem
        .strip_prefix("com")
        .or_else(|| stem.strip_prefix("lpt"));
    // Windows takes the superscript digits for the plain ones here.
    numbered.is_some_and(|rest| {
        matches!(
            rest,
            "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³"
        )
    })
}

/// Checks where the symlink at `link` points, by its text alone: relative, and inside the workspace at
/// every step. A target that does not exist is fine.
///
/// ```
/// use semaprax_protocol::{LogicalPath, PathRefusal, check_symlink_target};
/// let link: LogicalPath = "a/b/link".parse().unwrap();
/// assert!(check_symlink_target(&link, "../../top").is_ok());
/// assert_eq!(check_symlink_target(&link, "../../../up"), Err(PathRefusal::TargetLeaves));
/// ```
pub fn check_symlink_target(link: &LogicalPath, target: &str) -> Result<(), PathRefusal> {
    if target.is_empty() || target.contains('\0') || target.len() > PATH_BYTES - 1 {
        return Err(PathRefusal::TargetMalformed);
    }
    if target.starts_with('/') {
        return Err(PathRefusal::TargetAbsolute);
    }
    let mut depth = link.segments().count() - 1;
    for segment in target.split('/') {
        match segment {
            "" | "." => {}
            ".." => depth = depth.checked_sub(1).ok_or(PathRefusal::TargetLeaves)?,
            name if is_reserved(name) => return Err(PathRefusal::TargetReserved),
            _ => depth += 1,
        }
    }
    Ok(())
}

impl fmt::Display for LogicalPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Borrow<str> for LogicalPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for LogicalPath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

crate::text::text_form!(LogicalPath, { "type": "string", "minLength": 1, "maxLength": PATH_BYTES });

#[cfg(test)]
mod tests {
    use super::NamePolicy::{Native, Portable};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spellings() {
        let check = |text: &str, policy: NamePolicy, expect: Result<(), PathRefusal>| {
            let got = text
                .parse::<LogicalPath>()
                .and_then(|path| path.check(policy));
            assert_eq!(got, expect, "{text:?} under {policy}");
        };
        check("src/a.rs", Portable, Ok(()));
        check(".hidden/x", Portable, Ok(()));
        check("...", Native, Ok(()));
        check("", Native, Err(PathRefusal::Empty));
        check("/etc", Native, Err(PathRefusal::Absolute));
        check("a//b", Native, Err(PathRefusal::EmptySegment));
        check("a/", Native, Err(PathRefusal::EmptySegment));
        check("a/./b", Native, Err(PathRefusal::Dot));
        check("a/../b", Native, Err(PathRefusal::DotDot));
        check("x\0", Native, Err(PathRefusal::Control));
        check("x\u{7f}", Native, Err(PathRefusal::Control));
        check("a/.GIT/x", Native, Err(PathRefusal::Reserved));
        check(".Semaprax-Workspace", Native, Err(PathRefusal::Reserved));
        check(".gitignore", Portable, Ok(()));
        check("a\\b", Native, Ok(()));
        check("a\\b", Portable, Err(PathRefusal::ForbiddenCharacter));
        check("CON", Portable, Err(PathRefusal::Device));
        check("src/nul.txt", Portable, Err(PathRefusal::Device));
        check("com1.tar.gz", Portable, Err(PathRefusal::Device));
        check("com0", Portable, Ok(()));
        check("console", Portable, Ok(()));
        check("sp ", Portable, Err(PathRefusal::TrailingDotOrSpace));
        check("dot.", Portable, Err(PathRefusal::TrailingDotOrSpace));
        check("e\u{301}", Portable, Err(PathRefusal::NotNfc));
        check("e\u{301}", Native, Ok(()));
        check(&"x".repeat(256), Native, Err(PathRefusal::SegmentTooLong));
        check(&"x/".repeat(3000), Native, Err(PathRefusal::TooLong));
    }

    #[test]
    fn targets() {
        let check = |link: &str, target: &str, expect: Result<(), PathRefusal>| {
            let link: LogicalPath = link.parse().unwrap();
            assert_eq!(
                check_symlink_target(&link, target),
                expect,
                "{link} -> {target}"
            );
        };
        check("link", "src/a.rs", Ok(()));
        check("link", ".", Ok(()));
        check("a/link", "..", Ok(()));
        check("link", "..", Err(PathRefusal::TargetLeaves));
        check("a/link", "../b/../../c", Err(PathRefusal::TargetLeaves));
        check("a/link", "/etc/passwd", Err(PathRefusal::TargetAbsolute));
        check("a/link", "", Err(PathRefusal::TargetMalformed));
        check("a/link", "../.git/config", Err(PathRefusal::TargetReserved));
    }

    proptest! {
        #[test]
        fn a_parsed_path_has_no_odd_segment(text in ".{0,40}") {
            if let Ok(path) = text.parse::<LogicalPath>() {
                prop_assert_eq!(path.as_str(), text.as_str());
                for segment in path.segments() {
                    prop_assert!(!matches!(segment, "" | "." | ".."));
                }
            }
        }

        #[test]
        fn folding_is_stable(text in "\\PC{0,20}") {
            let once = fold(&text);
            prop_assert_eq!(fold(&once), once);
        }
    }
}
