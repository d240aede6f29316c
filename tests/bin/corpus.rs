//! `semaprax-corpus DIRECTORY`: writes the stores of the format that this build writes, for the suite
//! `upgrades`, with what is to be found in each.
//!
//! ```text
//! cargo run -p semaprax-tests --bin semaprax-corpus -- tests/corpus/store/1
//! ```
//!
//! Run once, before a format is released. A directory of a released format is never written again.

use std::path::PathBuf;

use semaprax_tests::corpus::{STORES, make, observed, pack, unpack};

fn main() {
    let Some(target) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: semaprax-corpus DIRECTORY");
        std::process::exit(1);
    };
    std::fs::create_dir_all(&target).unwrap();
    let place = tempfile::tempdir().unwrap();
    for name in STORES {
        let archive = target.join(format!("{name}.tar.gz"));
        pack(&make(name, place.path()), &archive);
        let mut fixture = unpack(&archive);
        fixture.open().unwrap();
        let found = serde_json::to_string_pretty(&observed(&fixture)).unwrap();
        std::fs::write(target.join(format!("{name}.json")), found + "\n").unwrap();
    }
}
