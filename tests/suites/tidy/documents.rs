//! Documents against the code: invariants name their tests, diagnostics list every code.

use std::collections::BTreeSet;

use camino::Utf8Path;
use semaprax_protocol::Code;

use crate::source::{read, rust_files, top};

/// docs/invariants.md has sections `## N. ...`, each with a line "Test: `suite::name`" (or
/// `suite::file::name`).
#[test]
fn every_invariant_names_a_test_that_exists() {
    let text = read(Utf8Path::new("docs/invariants.md"));
    let mut number = 0;
    let mut wrong = Vec::new();
    for section in text.split("\n## ").skip(1) {
        let title = section.lines().next().unwrap();
        let Some((found, _)) = title.split_once(". ") else {
            continue;
        };
        let Ok(found) = found.parse::<usize>() else {
            continue;
        };
        number += 1;
        if found != number {
            wrong.push(format!("`## {title}`: the next number is {number}"));
        }
        let tests: Vec<&str> = section
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Test: `")?.split('`').next())
            .collect();
        if tests.is_empty() {
            wrong.push(format!("`## {title}` names no test"));
        }
        for test in tests {
            if !exists(test) {
                wrong.push(format!(
                    "`## {title}` names the test `{test}`, which is not there"
                ));
            }
        }
    }
    assert!(number > 0, "docs/invariants.md numbers no invariant");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn exists(test: &str) -> bool {
    let parts: Vec<&str> = test.split("::").collect();
    let [suite, files @ .., name] = parts.as_slice() else {
        return false;
    };
    let directory = format!("tests/suites/{suite}");
    if !top().join(&directory).exists() {
        return false;
    }
    rust_files(&directory).into_iter().any(|file| {
        let is_file = files
            .last()
            .is_none_or(|stem| file.file_stem() == Some(stem));
        is_file && read(&file).contains(&format!("fn {name}("))
    })
}

/// Wherever a document names a test as `suite::name`, it is there.
#[test]
fn documents_name_tests_that_exist() {
    let suites: BTreeSet<String> = top()
        .join("tests/suites")
        .read_dir_utf8()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_owned())
        .collect();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for document in ["docs/security.md", "docs/durability.md"] {
        let text = read(Utf8Path::new(document));
        for word in text.split('`').skip(1).step_by(2) {
            let is_test = word
                .split_once("::")
                .is_some_and(|(suite, _)| suites.contains(suite));
            if is_test {
                seen += 1;
                if !exists(word) {
                    wrong.push(format!("{document}: `{word}`"));
                }
            }
        }
    }
    assert!(seen > 20, "only {seen} tests are named");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn tests_are_found_by_name() {
    let own = "tidy::documents::tests_are_found_by_name";
    assert!(exists(own) && exists("tidy::tests_are_found_by_name"));
    assert!(!exists("tidy::files::tests_are_found_by_name"));
    assert!(!exists("nothing::x") && !exists("tidy::no_such_test") && !exists("tidy"));
}

/// docs/diagnostics.md has a section `## word` for each code.
#[test]
fn every_code_is_documented_and_nothing_else() {
    let text = read(Utf8Path::new("docs/diagnostics.md"));
    let headings = text.lines().filter_map(|line| line.strip_prefix("## "));
    let documented: BTreeSet<&str> = headings.map(|heading| heading.trim_matches('`')).collect();
    let known: BTreeSet<&str> = Code::ALL.iter().map(|code| code.word()).collect();
    let missing: Vec<_> = known.difference(&documented).collect();
    let unknown: Vec<_> = documented.difference(&known).collect();
    assert!(
        missing.is_empty(),
        "not in docs/diagnostics.md: {missing:?}"
    );
    assert!(
        unknown.is_empty(),
        "docs/diagnostics.md documents what is no code: {unknown:?}"
    );
}
