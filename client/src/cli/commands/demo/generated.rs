//! A tree that looks like source, for a machine without any.
//!
//! Owns: packages of modules that call functions of one another. Never: code that has to compile.

use std::fmt::Write as _;
use std::io::Write as _;

use camino::Utf8Path;
use semaprax_protocol::Refusal;

use super::chance::Chance;
use crate::{error, files};

/// Packages, and modules of each.
const SIZE: (usize, usize) = (120, 25);
/// Functions of a module.
const FUNCTIONS: usize = 6;
/// What functions are about.
const NOUNS: [&str; 12] = [
    "buffer", "header", "record", "session", "window", "token", "segment", "packet", "symbol",
    "channel", "cursor", "element",
];
/// What functions do.
const VERBS: [&str; 10] = [
    "parse", "encode", "resolve", "collect", "validate", "compare", "update", "release", "prepare",
    "measure",
];

/// Writes the tree into an empty directory.
pub(super) fn write_to(
    target: &Utf8Path,
    check: &mut dyn FnMut(usize) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    for package in 0..SIZE.0 {
        let source = target.join(format!("package-{package:03}/src"));
        std::fs::create_dir_all(&source)
            .map_err(|reason| error::of_io("make", &source, &reason))?;
        for module in 0..SIZE.1 {
            check(package * SIZE.1 + module)?;
            let path = source.join(format!("module_{module:02}.rs"));
            files::create_new(&path)
                .and_then(|mut file| file.write_all(text(package, module).as_bytes()))
                .map_err(|reason| error::of_io("write", &path, &reason))?;
        }
    }
    Ok(())
}

/// The name of a function: each module has its own.
fn function(package: usize, module: usize, index: usize) -> String {
    let mut chance = Chance::new(((package * SIZE.1 + module) * FUNCTIONS + index) as u64);
    let verb = chance.pick(&VERBS).copied().unwrap_or_default();
    let noun = chance.pick(&NOUNS).copied().unwrap_or_default();
    format!("{verb}_{noun}_{module}_{index}")
}

/// The source of a module: its functions call those of the modules before it.
fn text(package: usize, module: usize) -> String {
    let mut chance = Chance::new(1_000_000 + (package * SIZE.1 + module) as u64);
    let mut text = format!("//! Module {module} of package {package}.\n");
    for index in 0..FUNCTIONS {
        let name = function(package, module, index);
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n/// Part {index}: works on what it is given.\npub fn {name}(input: &[u8], depth: usize) -> usize {{\n"
        );
        for _ in 0..4 {
            let callee = function(package, chance.below(module + 1), chance.below(FUNCTIONS));
            let bound = chance.below(1000);
            let _ = writeln!(
                text,
                "    if input.len() > {bound} {{\n        return {callee}(input, depth + 1);\n    }}"
            );
        }
        text.push_str("    depth\n}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_used_in_several_modules() {
        let names: BTreeSet<String> = (0..SIZE.1)
            .flat_map(|module| (0..FUNCTIONS).map(move |index| function(7, module, index)))
            .collect();
        assert_eq!(names.len(), SIZE.1 * FUNCTIONS);
        let texts: Vec<String> = (0..SIZE.1).map(|module| text(7, module)).collect();
        let shared = names.iter().filter(|name| {
            let users = texts.iter().filter(|text| text.contains(name.as_str()));
            users.count() >= 3
        });
        assert!(shared.count() > 20);
        assert_eq!(text(1, 2), text(1, 2));
        assert!(SIZE.0 * SIZE.1 == 3000);
    }
}
