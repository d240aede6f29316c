//! The sources of the workspace, with comments and texts taken out, and which module a file is.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};

/// The top of the workspace.
pub(crate) fn top() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Every Rust file below a directory of the workspace, as a path from the top, sorted.
pub(crate) fn rust_files(directory: &str) -> Vec<Utf8PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![top().join(directory)];
    while let Some(directory) = open.pop() {
        for entry in directory.read_dir_utf8().unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path().to_owned());
            } else if entry.path().extension() == Some("rs") {
                found.push(entry.path().strip_prefix(top()).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn read(path: &Utf8Path) -> String {
    std::fs::read_to_string(top().join(path)).unwrap_or_else(|error| panic!("`{path}`: {error}"))
}

/// The module a file of a crate is: `daemon::store::tree::draft`.
pub(crate) fn module_of(path: &Utf8Path) -> String {
    let parts: Vec<&str> = path.iter().collect();
    let mut names = vec![parts[0]];
    for part in &parts[2..] {
        let name = part.strip_suffix(".rs").unwrap_or(part);
        if !matches!(name, "lib" | "mod") {
            names.push(name);
        }
    }
    names.join("::")
}

/// The files of a crate that are compiled without its tests.
pub(crate) fn product_files(package: &str) -> Vec<Utf8PathBuf> {
    let files = rust_files(&format!("{package}/src"));
    let mut for_tests = BTreeSet::new();
    for file in &files {
        let text = read(file);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for pair in lines.windows(2) {
            if pair[0] == "#[cfg(test)]"
                && let Some(name) = pair[1]
                    .strip_prefix("mod ")
                    .and_then(|rest| rest.strip_suffix(';'))
            {
                for_tests.insert(format!("{}::{name}", module_of(file)));
            }
        }
    }
    let is_product = |file: &Utf8PathBuf| {
        let module = module_of(file);
        !for_tests.iter().any(|test| is_or_below(&module, test))
    };
    files.into_iter().filter(is_product).collect()
}

/// Whether `path` is `module`, or in it.
pub(crate) fn is_or_below(path: &str, module: &str) -> bool {
    path.strip_prefix(module)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The code of a file: comments and the insides of texts are blanks, and so is the inline test module
/// at its end. Lines stay where they are.
pub(crate) fn code_of(text: &str) -> String {
    let text = match text.find("#[cfg(test)]\nmod tests {") {
        Some(end) => &text[..end],
        None => text,
    };
    let characters: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < characters.len() {
        let end = skip(&characters, at);
        if end == at {
            out.push(characters[at]);
            at += 1;
            continue;
        }
        for character in &characters[at..end] {
            out.push(if *character == '\n' { '\n' } else { ' ' });
        }
        at = end;
    }
    out
}

/// Where the comment or text that starts at `at` ends; `at` when none does.
fn skip(characters: &[char], at: usize) -> usize {
    let rest = &characters[at..];
    let find = |from: usize, pattern: &str| {
        let pattern: Vec<char> = pattern.chars().collect();
        rest[from..]
            .windows(pattern.len())
            .position(|window| window == pattern)
            .map_or(rest.len(), |found| from + found + pattern.len())
    };
    let before = at.checked_sub(1).map(|place| characters[place]);
    let starts_a_word = !before.is_some_and(|before| before.is_alphanumeric() || before == '_');
    match rest {
        ['/', '/', ..] => at + find(0, "\n") - 1,
        ['/', '*', ..] => at + find(2, "*/"),
        ['r', '#' | '"', ..] if starts_a_word => {
            let hashes = rest[1..]
                .iter()
                .take_while(|character| **character == '#')
                .count();
            if rest.get(1 + hashes) == Some(&'"') {
                at + find(2 + hashes, &format!("\"{}", "#".repeat(hashes)))
            } else {
                at
            }
        }
        ['"', ..] => {
            let mut end = 1;
            while end < rest.len() && rest[end] != '"' {
                end += if rest[end] == '\\' { 2 } else { 1 };
            }
            at + (end + 1).min(rest.len())
        }
        ['\'', '\\', ..] => at + find(3, "'"),
        ['\'', _, '\'', ..] => at + 3,
        _ => at,
    }
}

#[test]
fn comments_and_texts_are_no_code() {
    let check = |text: &str, expect: &str| {
        let words: Vec<String> = code_of(text)
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        assert_eq!(words.join(" "), expect, "{text}");
    };
    check("a // b\nc", "a c");
    check("a /* b\n */ c", "a c");
    check(r#"a "b // \" c" d"#, "a d");
    check(r##"a r#"b " c"# d"##, "a d");
    check("a '\"' b '\\'' c 'd", "a b c 'd");
    check("a\n#[cfg(test)]\nmod tests {\n b }", "a");
    assert_eq!(code_of("x // y\n\"\n\"\nz").lines().count(), 4);
}
