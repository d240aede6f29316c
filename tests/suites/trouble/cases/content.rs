//! Blobs, as rows and as objects, and nodes.

use super::{directory, fifo, object, remove, set_mode, spoil, sql, symlink, truncate, unseal};
use crate::damage::{Case, Repair};
use semaprax_tests::fixture::Fixture;

const LOST: [&str; 3] = ["refused", "damaged: blob", "opens"];
/// A tree on disk has the very bytes.
const TAKEN_BACK: (Repair, &str, &str) = (Repair::Verify, "repaired: blob", "as before");
const STAYS_LOST: (Repair, &str, &str) =
    (Repair::Verify, "damaged: blob, tree, tree large", "gone");

/// Takes all trees away.
fn without_trees(fixture: &Fixture) {
    let place = fixture.state("generations");
    unseal(&place);
    std::fs::remove_dir_all(&place).unwrap();
    std::fs::create_dir(&place).unwrap();
}

pub const CASES: &[Case] = &[
    Case {
        name: "an object is missing",
        damage: |fixture| remove(&object(fixture)),
        expect: LOST,
        repair: TAKEN_BACK,
    },
    Case {
        name: "an object is cut short",
        damage: |fixture| truncate(&object(fixture)),
        expect: LOST,
        repair: TAKEN_BACK,
    },
    Case {
        name: "an object has another byte",
        damage: |fixture| spoil(&object(fixture)),
        expect: LOST,
        repair: TAKEN_BACK,
    },
    Case {
        name: "an object is a directory",
        damage: |fixture| directory(&object(fixture)),
        expect: LOST,
        repair: TAKEN_BACK,
    },
    Case {
        name: "an object is a FIFO",
        damage: |fixture| fifo(&object(fixture)),
        expect: LOST,
        repair: TAKEN_BACK,
    },
    Case {
        name: "an object is a symlink",
        damage: |fixture| symlink(fixture, &object(fixture)),
        expect: LOST,
        repair: TAKEN_BACK,
    },
    Case {
        name: "objects/ is missing",
        damage: |fixture| remove(&fixture.state("objects")),
        expect: LOST,
        repair: TAKEN_BACK,
    },
    Case {
        name: "an object and the trees are missing",
        damage: |fixture| {
            remove(&object(fixture));
            without_trees(fixture);
        },
        expect: ["refused", "damaged: blob, tree", "workspace-damaged"],
        repair: (Repair::Verify, "damaged: blob, tree", "gone"),
    },
    Case {
        name: "an object and its file in the tree have another byte",
        damage: |fixture| {
            spoil(&object(fixture));
            let large = super::active(fixture).join("files/large");
            set_mode(large.parent().unwrap(), 0o755);
            spoil(&large);
            set_mode(large.parent().unwrap(), 0o555);
        },
        expect: ["refused", "damaged: blob, tree large", "opens"],
        repair: STAYS_LOST,
    },
    Case {
        name: "a row of a blob has other bytes",
        damage: |fixture| {
            sql(
                fixture,
                "UPDATE blobs SET data = zeroblob(length(data)) WHERE id = (SELECT min(id) FROM blobs WHERE data NOT NULL)",
            );
        },
        expect: LOST,
        repair: TAKEN_BACK,
    },
    Case {
        name: "a row of a blob has another SHA-256",
        damage: |fixture| {
            sql(
                fixture,
                "UPDATE blobs SET sha256 = zeroblob(32) WHERE id = 2",
            );
        },
        expect: LOST,
        repair: TAKEN_BACK,
    },
    Case {
        name: "a row of a blob is gone",
        damage: |fixture| sql(fixture, "DELETE FROM blobs WHERE id = 2"),
        expect: LOST,
        repair: TAKEN_BACK,
    },
    Case {
        name: "a row of a blob is kept in a way that nobody knows",
        damage: |fixture| sql(fixture, "UPDATE blobs SET encoding = 7 WHERE id = 2"),
        expect: LOST,
        repair: TAKEN_BACK,
    },
    Case {
        name: "a node has other bytes",
        damage: |fixture| {
            sql(
                fixture,
                "UPDATE nodes SET data = zeroblob(40) WHERE id = (SELECT min(id) FROM nodes)",
            );
        },
        expect: ["refused", "damaged: node", "opens"],
        repair: (Repair::Verify, "damaged: node", "partly"),
    },
    Case {
        name: "the node of a directory of ACTIVE is gone",
        damage: |fixture| {
            sql(
                fixture,
                "DELETE FROM nodes WHERE id = (SELECT max(id) FROM nodes)",
            );
        },
        expect: ["refused", "damaged: node", "opens"],
        repair: (Repair::Verify, "damaged: node", "gone"),
    },
];
