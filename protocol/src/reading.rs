//! Reading JSON that a person or a program wrote, and saying in plain words what is wrong with it.
//!
//! Owns: where in the JSON the fault is (`submission.changes[2].mode`), and our own words for what the
//! JSON library says. Never: which fields there are, or what they mean.

use std::fmt;

use serde::Deserialize;
use serde_json::error::Category;

/// Why a text is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// What is wrong, with the place in it.
    reason: String,
    /// Line and column of the text, from 1.
    place: (usize, usize),
    /// Whether the text is JSON at all.
    is_json: bool,
}

impl Unreadable {
    /// Whether the text is JSON, only not the one that was asked for.
    pub const fn is_json(&self) -> bool {
        self.is_json
    }

    /// The line of the text where reading stopped, from 1.
    pub const fn line(&self) -> usize {
        self.place.0
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.reason)
    }
}

impl std::error::Error for Unreadable {}

/// Reads one JSON value.
///
/// ```
/// use semaprax_protocol::reading::read_json;
/// use semaprax_protocol::submission::Submission;
/// let bad = read_json::<Submission>(br#"{"changes":[{"op":"delete"}]}"#).unwrap_err();
/// assert_eq!(bad.to_string(), "`changes[0]` lacks the field `path`");
/// ```
pub fn read_json<'text, T: Deserialize<'text>>(text: &'text [u8]) -> Result<T, Unreadable> {
    // Where a fault is costs as much to know as to read; what is good is read without.
    if let Ok(value) = serde_json::from_slice(text) {
        return Ok(value);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let read = serde_path_to_error::deserialize(&mut deserializer);
    let value = read.map_err(|error| {
        let path = match error.path().to_string() {
            path if path == "." => String::new(),
            path => path,
        };
        unreadable(&path, &error.into_inner())
    })?;
    deserializer.end().map_err(|error| unreadable("", &error))?;
    Ok(value)
}

fn unreadable(path: &str, error: &serde_json::Error) -> Unreadable {
    let place = (error.line(), error.column());
    let said = error.to_string();
    // What the library appends by itself.
    let position = format!(" at line {} column {}", place.0, place.1);
    let said = said.strip_suffix(&position).unwrap_or(&said);
    let is_json = error.classify() == Category::Data;
    let reason = if is_json {
        in_our_words(path, said)
    } else {
        format!("{} (line {}, column {})", no_json(said), place.0, place.1)
    };
    Unreadable {
        reason,
        place,
        is_json,
    }
}

fn no_json(said: &str) -> String {
    if said == "recursion limit exceeded" {
        return "it is nested deeper than 127 levels".to_owned();
    }
    let said = said.replace("EOF while parsing", "it ends inside");
    format!("it is not JSON: {said}")
}

/// What is wrong at `path`; the whole value for none.
fn in_our_words(path: &str, said: &str) -> String {
    let here = if path.is_empty() {
        "it".to_owned()
    } else {
        format!("`{path}`")
    };
    if let Some(field) = said.strip_prefix("missing field ") {
        return format!("{here} lacks the field {field}");
    }
    if let Some(field) = said.strip_prefix("duplicate field ") {
        return format!("{here} has the field {field} twice");
    }
    if let Some(rest) = said.strip_prefix("unknown field ") {
        let (field, known) = rest.split_once(", ").unwrap_or((rest, ""));
        let known = match known {
            "there are no fields" | "" => "; there are none".to_owned(),
            known => format!("; there are {}", alternatives(known)),
        };
        // The path of the library leads into what it does not know.
        let name = field.trim_matches('`');
        let holder = path.strip_suffix(name).unwrap_or(path);
        let holder = holder.strip_suffix('.').unwrap_or(holder);
        return if holder.is_empty() {
            format!("there is no field {field}{known}")
        } else {
            format!("`{holder}` has no field {field}{known}")
        };
    }
    if let Some(rest) = said.strip_prefix("unknown variant ") {
        let (found, known) = rest.split_once(", ").unwrap_or((rest, ""));
        return format!(
            "{here} is {found}, and has to be one of {}",
            alternatives(known)
        );
    }
    for kind in ["invalid type: ", "invalid value: ", "invalid length "] {
        if let Some((found, expected)) = said
            .strip_prefix(kind)
            .and_then(|rest| rest.rsplit_once(", expected "))
        {
            let (found, expected) = (plain(found), plain(expected));
            return format!("{here} has to be {expected}, and is {found}");
        }
    }
    format!("{here}: {said}")
}

/// `one of a, b` or `a or b` or `a`, as a list.
fn alternatives(known: &str) -> String {
    let known = known.strip_prefix("expected ").unwrap_or(known);
    let known = known.strip_prefix("one of ").unwrap_or(known);
    known.replace(" or ", ", ")
}

/// What JSON calls it, not what the library does.
fn plain(named: &str) -> String {
    let named = match named {
        "map" | "a map" => "an object",
        "sequence" | "a sequence" => "a list",
        "unit" | "null" | "unit value" => "null",
        "u64" | "u32" | "i64" => "a whole number in range",
        "a borrowed string" | "raw value" => "a string without escapes",
        named => named,
    };
    for (theirs, ours) in [
        ("integer `", "the number `"),
        ("floating point `", "the number `"),
        ("boolean `", "`"),
        ("string \"", "the text \""),
    ] {
        if let Some(rest) = named.strip_prefix(theirs) {
            return format!("{ours}{rest}");
        }
    }
    named.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Hello, Init, LeaseAcquire, Publish, Show, StatusParams};

    fn check<'text, T: Deserialize<'text> + std::fmt::Debug>(text: &'text str, expect: &str) {
        let reason = read_json::<T>(text.as_bytes()).unwrap_err();
        assert_eq!(reason.to_string(), expect, "{text}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        check::<Show>("{}", "it lacks the field `revision`");
        check::<Show>(
            r#"{"revision":7}"#,
            "`revision` has to be a string, and is the number `7`",
        );
        check::<Show>(
            r#"{"revision":"@","revision":"@"}"#,
            "it has the field `revision` twice",
        );
        check::<StatusParams>(
            r#"{"drift":"yes"}"#,
            r#"`drift` has to be a boolean, and is the text "yes""#,
        );
        check::<StatusParams>(
            r#"{"colour":1}"#,
            "there is no field `colour`; there are `drift`, `limits`",
        );
        check::<StatusParams>("[]", "it has to be an object, and is a list");
        check::<Init>(
            r#"{"directory":"/x","names":"odd"}"#,
            "`names` is `odd`, and has to be one of `portable`, `native`",
        );
        check::<LeaseAcquire>(
            r#"{"ttlMs":-1}"#,
            "`ttlMs` has to be a whole number in range, and is the number `-1`",
        );
        check::<Hello>(
            r#"{"protocol":{"oldest":1},"client":"c"}"#,
            "`protocol` lacks the field `newest`",
        );
        check::<Hello>(
            r#"{"protocol":[1,1],"client":"c"}"#,
            "`protocol` has to be an object, and is a list",
        );
        check::<Publish>(
            r#"{"submission":{"changes":[{"op":"delete","path":"a"},{"op":"put","path":1}]}}"#,
            "`submission.changes[1]` has to be a string, and is the number `1`",
        );
        check::<Publish>(
            r#"{"submission":{"changes":[["delete","a"]]}}"#,
            "`submission.changes[0]` has to be an object, and is a list",
        );
        check::<Publish>(
            r#"{"submission":{"changes":[],"colour":1}}"#,
            "`submission` has no field `colour`; there are `schema`, `id`, `base`, `onStale`, `author`, `message`, `reads`, `changes`",
        );
    }

    #[test]
    fn what_is_no_json_is_said_with_its_line() {
        check::<Show>(
            "{\n  \"revision\": \"@",
            "it is not JSON: it ends inside a string (line 2, column 16)",
        );
        check::<Show>(
            r#"{"revision":"@"} x"#,
            "it is not JSON: trailing characters (line 1, column 18)",
        );
        let deep = format!("{{\"submission\":{}", "[".repeat(200));
        check::<Publish>(&deep, "`submission` has to be an object, and is a list");
        let deep = format!(
            r#"{{"submission":{{"changes":[{{"op":"put","x":{}"#,
            "[".repeat(200)
        );
        let reason = read_json::<Publish>(deep.as_bytes()).unwrap_err();
        assert!(
            reason.to_string().contains("nested deeper than 127 levels"),
            "{reason}"
        );
    }
}
