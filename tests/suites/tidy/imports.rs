//! Who may import whom: the table of docs/architecture.md against the code. What the table does not
//! list is refused.
//!
//! A file belongs to the row of the longest module it is in, and so does a path. What is of the same row
//! may be imported, and a module may name what is in it; anything else of ours, and the few crates named in `WATCHED`, only when the row lists
//! it or something it is in.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;

use crate::source::{code_of, is_or_below, module_of, product_files, read};

const PACKAGES: [&str; 3] = ["protocol", "daemon", "client"];
/// Crates and modules of others that have one home each.
const WATCHED: [&str; 5] = ["tokio", "interprocess", "rusqlite", "shuttle", "std::fs"];

type Table = BTreeMap<String, Vec<String>>;

fn table() -> Table {
    let text = read(Utf8Path::new("docs/architecture.md"));
    let (_, section) = text
        .split_once("\n## Who may import whom\n")
        .expect("docs/architecture.md has the section `## Who may import whom`");
    let section = section.split("\n## ").next().unwrap();
    let mut table = Table::new();
    for line in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let [modules, imports] = cells.as_slice() else {
            panic!("the row `{line}` has not two cells");
        };
        for module in words(modules) {
            let imports = words(imports);
            assert!(
                table.insert(module.clone(), imports).is_none(),
                "`{module}` has two rows"
            );
        }
    }
    table
}

/// The row that a module, or a path in one, belongs to.
fn row_of<'table>(table: &'table Table, path: &str) -> Option<&'table String> {
    let rows = table.keys().filter(|row| is_or_below(path, row));
    rows.max_by_key(|row| row.len())
}

/// What stands in backticks.
fn words(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// A path that the code names, and on which line.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    line: usize,
    path: String,
}

/// Every path in the code that starts with `crate`, `super`, `self`, one of our crates or a watched one,
/// resolved from `module`; lists in braces are taken apart.
fn named(code: &str, module: &str) -> BTreeSet<Named> {
    let mut found = BTreeSet::new();
    let starts = |rest: &str| {
        let word: String = rest
            .chars()
            .take_while(|character| character.is_alphanumeric() || *character == '_')
            .collect();
        let is_start = matches!(word.as_str(), "crate" | "super" | "self" | "std")
            || word.starts_with("semaprax_")
            || WATCHED.contains(&word.as_str());
        (is_start && rest[word.len()..].starts_with("::")).then_some(word)
    };
    let mut before = ' ';
    for (place, character) in code.char_indices() {
        let is_inside = before.is_alphanumeric() || before == '_' || before == ':';
        before = character;
        // A list `super::{a, b}` is taken apart from its head.
        if is_inside || starts(&code[place..]).is_none() {
            continue;
        }
        let line = code[..place].matches('\n').count() + 1;
        let mut paths = Vec::new();
        expand(&code[place..], "", &mut paths);
        for path in paths {
            if let Some(path) = resolve(&path, module) {
                found.insert(Named { line, path });
            }
        }
    }
    found
}

/// The paths of a use tree; answers what is left after it.
fn expand<'code>(code: &'code str, prefix: &str, paths: &mut Vec<String>) -> &'code str {
    let mut path = prefix.to_owned();
    let mut rest = code.trim_start();
    loop {
        let word: String = rest
            .chars()
            .take_while(|character| character.is_alphanumeric() || *character == '_')
            .collect();
        rest = &rest[word.len()..];
        if word != "self" || path.is_empty() {
            if !path.is_empty() && !word.is_empty() {
                path.push_str("::");
            }
            path.push_str(&word);
        }
        let Some(after) = rest.strip_prefix("::") else {
            paths.push(path);
            return rest;
        };
        rest = after;
        if let Some(list) = rest.strip_prefix('{') {
            rest = list.trim_start();
            while !rest.starts_with('}') && !rest.is_empty() {
                rest = expand(rest, &path, paths).trim_start();
                // `name as other`, `*`.
                let end = rest.find([',', '}']).unwrap_or(rest.len());
                rest = rest[end..]
                    .strip_prefix(',')
                    .unwrap_or(&rest[end..])
                    .trim_start();
            }
            return rest.strip_prefix('}').unwrap_or(rest);
        }
        if !rest.starts_with(|character: char| character.is_alphanumeric() || character == '_') {
            paths.push(path);
            return rest;
        }
    }
}

/// The path from the top: `crate` and `super` replaced, our crates by their short names.
fn resolve(path: &str, module: &str) -> Option<String> {
    let mut segments = path.split("::").peekable();
    let mut here: Vec<&str> = module.split("::").collect();
    match segments.peek().copied()? {
        "crate" => {
            here.truncate(1);
            segments.next();
        }
        "self" => drop(segments.next()),
        "super" => {
            while segments.next_if_eq(&"super").is_some() {
                here.pop();
            }
        }
        first => {
            let short = first.strip_prefix("semaprax_");
            let is_watched = WATCHED.iter().any(|watched| is_or_below(path, watched));
            if short.is_none() && !is_watched {
                return None;
            }
            here = vec![short.unwrap_or(first)];
            segments.next();
        }
    }
    here.extend(segments);
    Some(here.join("::"))
}

#[test]
fn the_table_is_kept() {
    let table = table();
    let mut wrong = Vec::new();
    for package in PACKAGES {
        for file in product_files(package) {
            let module = module_of(&file);
            // The top of a crate may have no row: it names its modules and nothing else.
            let row = row_of(&table, &module).map_or("", String::as_str);
            if row.is_empty() && module != package {
                wrong.push(format!("{file}: the module `{module}` has no row"));
                continue;
            }
            let imports = table.get(row).map_or(&[][..], Vec::as_slice);
            for Named { line, path } in named(&code_of(&read(&file)), &module) {
                let allowed = row_of(&table, &path).is_some_and(|other| other == row)
                    || is_or_below(&path, &module)
                    || imports.iter().any(|import| is_or_below(&path, import));
                if !allowed {
                    wrong.push(format!(
                        "{file}:{line}: `{row}` may not import `{path}`; its row lists: {}",
                        imports.join(", ")
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} imports:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// A row that nothing needs any more would allow what nobody has thought about.
#[test]
fn the_table_has_nothing_too_much() {
    let mut unused: BTreeSet<(String, String)> = BTreeSet::new();
    let table = table();
    for (row, imports) in &table {
        unused.extend(imports.iter().map(|import| (row.clone(), import.clone())));
    }
    let mut rows: BTreeSet<&String> = table.keys().collect();
    for package in PACKAGES {
        for file in product_files(package) {
            let module = module_of(&file);
            let Some(row) = row_of(&table, &module) else {
                continue;
            };
            rows.remove(row);
            for Named { path, .. } in named(&code_of(&read(&file)), &module) {
                unused.retain(|(user, import)| user != row || !is_or_below(&path, import));
            }
        }
    }
    assert!(
        rows.is_empty(),
        "rows of modules that do not exist: {rows:?}"
    );
    assert!(unused.is_empty(), "entries that nothing needs: {unused:#?}");
}

#[test]
fn paths_are_found_wherever_they_stand() {
    let check = |code: &str, expect: &[&str]| {
        let found: Vec<String> = named(code, "daemon::store::tree")
            .into_iter()
            .map(|named| named.path)
            .collect();
        assert_eq!(found, expect, "{code}");
    };
    check("use crate::world::World;", &["daemon::world::World"]);
    check("use super::Layout;", &["daemon::store::Layout"]);
    check("use super::super::x;", &["daemon::x"]);
    check("let x = crate::text::merge(1);", &["daemon::text::merge"]);
    check(
        "use crate::{a::B, c::{D, self}, e as f};",
        &["daemon::a::B", "daemon::c", "daemon::c::D", "daemon::e"],
    );
    check("use crate::a::*;", &["daemon::a"]);
    check("use semaprax_protocol::Seq;", &["protocol::Seq"]);
    check("tokio::spawn(x); std::io::Error", &["tokio::spawn"]);
    check("use std::{fs, io};", &["std::fs"]);
    check("use std::fs::File;", &["std::fs::File"]);
    check("self::below::x()", &["daemon::store::tree::below::x"]);
    check("&self, Self::x, my_crate::x", &[]);
}
