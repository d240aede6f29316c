//! Each file for itself.

use std::collections::BTreeSet;

use camino::Utf8Path;

use crate::source::{read, rust_files, top};

/// A file longer than this is several files.
const MOST_LINES: usize = 700;
/// Worth a thought; named only when another one is over the limit.
const MANY_LINES: usize = 400;

fn all() -> Vec<camino::Utf8PathBuf> {
    ["protocol", "daemon", "client", "tests"]
        .iter()
        .flat_map(|package| rust_files(package))
        .collect()
}

#[test]
fn every_module_says_what_it_is() {
    let silent: Vec<_> = all()
        .into_iter()
        .filter(|file| !read(file).starts_with("//!"))
        .collect();
    assert!(silent.is_empty(), "without `//!` at the top: {silent:#?}");
}

#[test]
fn no_file_is_too_long() {
    let lengths: Vec<_> = all()
        .into_iter()
        .map(|file| (read(&file).lines().count(), file))
        .filter(|(lines, _)| *lines > MANY_LINES)
        .collect();
    let over = lengths.iter().any(|(lines, _)| *lines > MOST_LINES);
    assert!(
        !over,
        "a file has more than {MOST_LINES} lines; all over {MANY_LINES}: {lengths:#?}"
    );
}

#[test]
fn no_suite_is_forgotten() {
    let manifest = read(Utf8Path::new("tests/Cargo.toml"));
    for entry in top().join("tests/suites").read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_owned();
        let lines = format!("[[test]]\nname = \"{name}\"\npath = \"suites/{name}/main.rs\"\n");
        assert!(
            manifest.contains(&lines),
            "tests/Cargo.toml does not name the suite `{name}`"
        );
    }
}

#[test]
fn no_file_of_a_suite_is_forgotten() {
    for suite in top().join("tests/suites").read_dir_utf8().unwrap() {
        let suite = suite.unwrap();
        let directory = format!("tests/suites/{}", suite.file_name());
        let files = rust_files(&directory);
        // What trybuild compiles is named by its own main.
        let texts: Vec<String> = files.iter().map(|file| read(file)).collect();
        let named: BTreeSet<&str> = texts
            .iter()
            .flat_map(|text| text.lines())
            .filter_map(|line| line.trim().strip_prefix("mod ")?.strip_suffix(';'))
            .collect();
        for file in &files {
            let stem = file.file_stem().unwrap();
            let is_case = file
                .components()
                .any(|part| matches!(part.as_str(), "fail" | "pass"));
            let stem = match stem {
                "mod" => file.parent().unwrap().file_name().unwrap(),
                stem => stem,
            };
            assert!(
                stem == "main" || is_case || named.contains(stem),
                "`{file}` is in no suite: nothing says `mod {stem};`"
            );
        }
    }
}
