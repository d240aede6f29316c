//! The trees of generations, and what lies beside them. Readers of the store never look at them.

use super::{active, directory, fifo, remove, set_mode, spoil, symlink, truncate};
use crate::damage::{Case, Repair};
use semaprax_tests::fixture::Fixture;
use semaprax_tests::oracle::mtime;

/// Rewrites a file of ACTIVE's tree: the length, mode and time are kept.
fn rewrite(fixture: &Fixture) {
    let place = active(fixture).join("files/d/b");
    let time = mtime(&place);
    spoil(&place);
    fixture.test.world.disk.set_mtime(&place, time).unwrap();
}

const MANIFEST: [&str; 3] = ["right", "damaged: manifest", "opens"];
const LEASE: [&str; 3] = ["right", "damaged: lease", "opens"];
const MENDED_MANIFEST: (Repair, &str, &str) = (Repair::Verify, "repaired: manifest", "as before");
const MENDED_LEASE: (Repair, &str, &str) = (Repair::Verify, "repaired: lease", "as before");
const MENDED_BY_OPENING: (Repair, &str, &str) = (Repair::Open, "", "as before");

pub const CASES: &[Case] = &[
    Case {
        name: "a file of a live generation is rewritten",
        damage: rewrite,
        expect: ["right", "damaged: tree d/b", "opens"],
        repair: (Repair::Verify, "repaired: tree d/b", "as before"),
    },
    Case {
        name: "the tree of ACTIVE is missing",
        damage: |fixture| remove(&active(fixture)),
        expect: ["right", "damaged: tree", "opens"],
        repair: MENDED_BY_OPENING,
    },
    Case {
        name: "the tree of ACTIVE is a file",
        damage: |fixture| {
            let place = active(fixture);
            remove(&place);
            std::fs::write(place, "x").unwrap();
        },
        expect: ["right", "damaged: foreign", "opens"],
        repair: MENDED_BY_OPENING,
    },
    Case {
        name: "the tree of ACTIVE is a symlink",
        damage: |fixture| symlink(fixture, &active(fixture)),
        expect: ["right", "damaged: foreign", "opens"],
        repair: MENDED_BY_OPENING,
    },
    Case {
        name: "files/ of ACTIVE is a FIFO",
        damage: |fixture| fifo(&active(fixture).join("files")),
        expect: [
            "right",
            "damaged: tree, tree d, tree d/b, tree d/c, tree large, tree link, tree small",
            "opens",
        ],
        repair: MENDED_BY_OPENING,
    },
    Case {
        name: "a file of ACTIVE is a FIFO",
        damage: |fixture| {
            let files = active(fixture).join("files");
            set_mode(&files, 0o755);
            fifo(&files.join("small"));
            set_mode(&files, 0o555);
        },
        expect: ["right", "damaged: tree small", "opens"],
        repair: (Repair::Verify, "repaired: tree small", "as before"),
    },
    Case {
        name: "manifest.json is missing",
        damage: |fixture| remove(&active(fixture).join("manifest.json")),
        expect: MANIFEST,
        repair: MENDED_MANIFEST,
    },
    Case {
        name: "manifest.json is cut short",
        damage: |fixture| truncate(&active(fixture).join("manifest.json")),
        expect: MANIFEST,
        repair: MENDED_MANIFEST,
    },
    Case {
        name: "manifest.json has another bit",
        damage: |fixture| spoil(&active(fixture).join("manifest.json")),
        expect: MANIFEST,
        repair: MENDED_MANIFEST,
    },
    Case {
        name: "manifest.json is a directory",
        damage: |fixture| directory(&active(fixture).join("manifest.json")),
        expect: MANIFEST,
        repair: MENDED_MANIFEST,
    },
    Case {
        name: "manifest.json is a symlink",
        damage: |fixture| symlink(fixture, &active(fixture).join("manifest.json")),
        expect: MANIFEST,
        repair: MENDED_MANIFEST,
    },
    Case {
        name: "LEASE is missing",
        damage: |fixture| remove(&active(fixture).join("LEASE")),
        expect: ["right", "damaged: lease", "opens"],
        repair: MENDED_BY_OPENING,
    },
    Case {
        name: "LEASE is a FIFO",
        damage: |fixture| fifo(&active(fixture).join("LEASE")),
        expect: LEASE,
        repair: MENDED_LEASE,
    },
    Case {
        name: "LEASE is a directory",
        damage: |fixture| directory(&active(fixture).join("LEASE")),
        expect: LEASE,
        repair: MENDED_LEASE,
    },
    Case {
        name: "LEASE is a symlink",
        damage: |fixture| symlink(fixture, &active(fixture).join("LEASE")),
        expect: LEASE,
        repair: MENDED_LEASE,
    },
    Case {
        name: "BOOT is missing",
        damage: |fixture| remove(&active(fixture).join("BOOT")),
        expect: ["right", "ok", "opens"],
        repair: MENDED_BY_OPENING,
    },
    Case {
        name: "BOOT is a directory",
        damage: |fixture| directory(&active(fixture).join("BOOT")),
        expect: ["right", "ok", "opens"],
        repair: MENDED_BY_OPENING,
    },
    Case {
        name: "BOOT is a FIFO",
        damage: |fixture| fifo(&active(fixture).join("BOOT")),
        expect: ["right", "ok", "opens"],
        repair: MENDED_BY_OPENING,
    },
];
