//! `semaprax-bench` works: every row runs through at a tiny size, and what it prints can be read.
//!
//! Owns: that the benchmark is there and tells the truth about its form.
//! Never: a time, or a ratio: the machines of the suites are shared.

use std::collections::BTreeSet;
use std::process::Command;

use clap::ValueEnum as _;
use semaprax_tests::bench::Row;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_semaprax-bench");
/// As small as every row can be.
const TINY: &str = "--files 40 --in-directory 5 --small 20 --wide 150 --rounds 2 --long-rounds 1 \
                    --publications 3 --clients 3 --subscribers 5 --idle 1 --seed 7";

fn bench(directory: &std::path::Path, more: &[&str]) -> String {
    let output = Command::new(PROGRAM)
        .args(TINY.split_whitespace())
        .arg("--directory")
        .arg(directory)
        .args(more)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let left: Vec<_> = directory.read_dir().unwrap().flatten().collect();
    assert!(left.is_empty(), "it left {left:?} behind");
    said
}

#[test]
fn every_row_runs_through_and_is_in_the_document() {
    let (place, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = out.path().join("figures.json");
    let said = bench(
        place.path(),
        &["--large", "60", "--json", file.to_str().unwrap()],
    );
    let document: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(document["schema"], "semaprax.bench/1");
    assert!(document["filesystem"].is_string() && document["cores"].is_u64());
    let rows = document["rows"].as_array().unwrap();
    let verdicts = [
        "met",
        "not met",
        "not judged",
        "skipped: the peer is not installed",
    ];
    for row in rows {
        assert!(
            verdicts.contains(&row["verdict"].as_str().unwrap()),
            "{row}"
        );
        let is_skipped = row["ratio"].is_null();
        assert!(is_skipped || row["ratio"].is_number(), "{row}");
        let work = row["work"].as_str().unwrap();
        assert!(said.contains(work), "the table has no `{work}`:\n{said}");
    }
    let found: BTreeSet<&str> = rows
        .iter()
        .map(|row| row["row"].as_str().unwrap())
        .collect();
    let names: Vec<String> = Row::value_variants().iter().map(|row| row.name()).collect();
    let all: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(found, all);
}

#[test]
fn the_pictures_are_drawn() {
    let (place, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    bench(
        place.path(),
        &["--large", "1000", "--plot", out.path().to_str().unwrap()],
    );
    for name in ["performance-size.svg", "performance-clients.svg"] {
        let picture = std::fs::read_to_string(out.path().join(name)).unwrap();
        assert!(
            picture.starts_with("<svg ") && picture.ends_with("</svg>\n"),
            "{picture}"
        );
        assert!(picture.contains("<circle"), "{name} shows nothing");
    }
}
