//! What the manifests ask for: each dependency is used.

use std::collections::BTreeSet;

use camino::Utf8Path;

use crate::source::{read, rust_files};

/// The names in the tables of dependencies of a manifest.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_table = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_table = line.ends_with("dependencies]");
        } else if is_table && let Some((name, _)) = line.split_once(['.', ' ', '=']) {
            found.insert(name.to_owned());
        }
    }
    found.retain(|name| !name.is_empty() && !name.starts_with('#'));
    found
}

#[test]
fn every_dependency_is_used() {
    let mut unused = Vec::new();
    let mut seen = 0;
    for package in ["protocol", "daemon", "client", "tests"] {
        let manifest = read(Utf8Path::new(&format!("{package}/Cargo.toml")));
        let code: Vec<String> = rust_files(package).iter().map(|file| read(file)).collect();
        for name in dependencies(&manifest) {
            seen += 1;
            let path = format!("{}::", name.replace('-', "_"));
            if !code.iter().any(|text| text.contains(&path)) {
                unused.push(format!("{package}: {name}"));
            }
        }
    }
    assert!(seen > 60, "only {seen} dependencies were found");
    assert!(unused.is_empty(), "nothing names {unused:?}");
}
