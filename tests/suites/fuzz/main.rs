//! What was found by fuzzing stays found: every target on its committed corpus, and on mutations of it.
//!
//! Owns: the replay, which needs no instrumented build. `.ci/fuzz` looks for more.
//! Never: an input that is in no corpus and made by no seed: `SEMAPRAX_SEED` repeats a run.

use std::fs;
use std::path::{Path, PathBuf};

use semaprax_fuzz::TARGETS;
use semaprax_tests::sim::Chance;

/// Mutations of each input.
const MUTATIONS: u64 = 60;

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let mut files: Vec<PathBuf> = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

#[test]
fn every_target_holds_on_its_corpus() {
    let (mut files, mut bytes) = (0, 0);
    for (name, target) in TARGETS {
        let inputs = corpus(name);
        assert!(inputs.len() >= 3, "the corpus of `{name}` is empty");
        for (path, input) in inputs {
            // Said first: a finding is a panic.
            println!("{}", path.display());
            target(&input);
            files += 1;
            bytes += input.len();
        }
    }
    println!("{files} inputs of {bytes} bytes");
    assert!(
        files < 300 && bytes < 300 << 10,
        "{files} files, {bytes} bytes: minimise the corpora"
    );
}

#[test]
fn no_corpus_is_without_its_target() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for entry in fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            semaprax_fuzz::by_name(&name).is_some(),
            "no target `{name}`"
        );
    }
}

fn mutate(input: &[u8], other: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=chance.index(3) {
        let place = chance.index(bytes.len() + 1);
        let end = place + chance.index(bytes.len() + 1 - place);
        match chance.index(6) {
            0 if place < bytes.len() => bytes[place] ^= 1 << chance.index(8),
            1 => bytes.insert(place, u8::try_from(chance.index(256)).unwrap()),
            2 => drop(bytes.drain(place..end)),
            3 => {
                let doubled = bytes[place..end].to_vec();
                bytes.splice(place..place, doubled);
            }
            4 => {
                let from = chance.index(other.len() + 1);
                bytes.splice(place.., other[from..].iter().copied());
            }
            _ => bytes.truncate(place),
        }
    }
    bytes
}

/// What holds of every input holds of those that are nearly good, too.
#[test]
fn every_target_holds_on_mutations_of_its_corpus() {
    let given = std::env::var("SEMAPRAX_SEED").ok();
    let seed = given
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_261_130);
    println!("seed {seed}");
    let mut chance = Chance::new(seed);
    let mut count = 0;
    for (name, target) in TARGETS {
        let inputs = corpus(name);
        for (path, input) in &inputs {
            for round in 0..MUTATIONS {
                let other = &inputs[chance.index(inputs.len())].1;
                let mutated = mutate(input, other, &mut chance);
                let caught = std::panic::catch_unwind(|| target(&mutated));
                assert!(
                    caught.is_ok(),
                    "{name}, {} in round {round}: {:?}",
                    path.display(),
                    String::from_utf8_lossy(&mutated)
                );
                count += 1;
            }
        }
    }
    println!("{count} mutations");
}
