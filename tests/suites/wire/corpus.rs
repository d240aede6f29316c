//! The golden files: comparing, writing, and reading all there are.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::request::Request;
use semaprax_protocol::rpc::{self, Incoming};
use semaprax_protocol::schema;

use crate::{answers, requests, schemas};

/// A line with the name of its file.
pub(crate) struct Sample {
    pub name: String,
    pub bytes: Vec<u8>,
}

fn directory() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/wire")
}

fn samples() -> Vec<Sample> {
    let mut samples = requests::samples();
    samples.extend(answers::samples());
    samples.extend(schemas::samples());
    samples
}

/// The files of a sample, oldest first: `name.json`, `name.2.json` ...
fn versions(name: &str) -> Vec<Utf8PathBuf> {
    let file = |number: u32| match number {
        1 => directory().join(format!("{name}.json")),
        number => directory().join(format!("{name}.{number}.json")),
    };
    (1..100)
        .map(file)
        .take_while(|file| file.exists())
        .collect()
}

#[test]
fn lines_are_what_they_were() {
    const NOTHING: &[u8] = b"(none)";
    let update = std::env::var_os("UPDATE_CORPUS").is_some();
    let mut wrong = Vec::new();
    for sample in samples() {
        let versions = versions(&sample.name);
        let newest = versions.last().map(|file| std::fs::read(file).unwrap());
        if newest.as_deref() == Some(&sample.bytes) {
            continue;
        }
        if update {
            std::fs::create_dir_all(directory()).unwrap();
            let name = match versions.len() {
                0 => format!("{}.json", sample.name),
                count => format!("{}.{}.json", sample.name, count + 1),
            };
            std::fs::write(directory().join(name), &sample.bytes).unwrap();
        } else {
            wrong.push(format!(
                "{}:\n  now  {}\n  file {}",
                sample.name,
                String::from_utf8_lossy(&sample.bytes).trim_end(),
                String::from_utf8_lossy(newest.as_deref().unwrap_or(NOTHING)).trim_end()
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "lines that changed (UPDATE_CORPUS=1 adds them beside the old ones):\n{}",
        wrong.join("\n")
    );
}

#[test]
fn each_name_is_a_sample_once() {
    let mut seen = BTreeSet::new();
    for sample in samples() {
        assert!(sample.bytes.ends_with(b"\n"), "{}", sample.name);
        assert!(seen.insert(sample.name.clone()), "{} twice", sample.name);
    }
    for method in Request::METHODS {
        for kind in ["request", "answer"] {
            let name = format!("{kind}-{method}");
            assert!(seen.contains(&name), "no sample `{name}`");
        }
    }
    for name in schema::NAMES {
        assert!(
            seen.contains(&format!("document-{name}")),
            "no sample of `{name}`"
        );
    }
}

/// Old lines too: a client or a record of any earlier version may still send them.
#[test]
fn every_file_can_be_read() {
    let mut count = 0;
    for entry in directory().read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_owned();
        let bytes = std::fs::read(entry.path()).unwrap();
        let stem = name.strip_suffix(".json").expect("only `.json` files");
        let stem = match stem.rsplit_once('.') {
            Some((stem, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => stem,
            _ => stem,
        };
        let (kind, rest) = stem.split_once('-').unwrap();
        match kind {
            "request" => {
                let (id, request) = rpc::decode_request(&bytes)
                    .unwrap_or_else(|bad| panic!("{name}: {}", bad.refusal));
                assert_eq!((id, request.method()), (7, rest), "{name}");
            }
            "answer" => {
                let Incoming::Answer { id, result } = rpc::decode_incoming(&bytes).unwrap() else {
                    panic!("{name} is no answer");
                };
                assert_eq!(id, Some(7), "{name}");
                let asked = requests::of_method(rest);
                let response = asked.parse_reply(&result.unwrap());
                response.unwrap_or_else(|error| panic!("{name}: {error}"));
            }
            "error" => {
                let Incoming::Answer { result, .. } = rpc::decode_incoming(&bytes).unwrap() else {
                    panic!("{name} is no answer");
                };
                result.unwrap_err();
            }
            "notice" => {
                let incoming = rpc::decode_incoming(&bytes).unwrap();
                assert!(matches!(incoming, Incoming::Notice(_)), "{name}");
            }
            "document" => {
                let read = schemas::read(rest, &bytes);
                read.unwrap_or_else(|error| panic!("{name}: {error}"));
            }
            other => panic!("{name}: what is `{other}`?"),
        }
        count += 1;
    }
    assert!(count >= samples().len());
}
