//! The database: its file, its log, its structure, and rows that only check sums cover.

use super::{directory, fifo, remove, sql, symlink, truncate};
use crate::damage::{Case, Repair};
use crate::pages::{self, Kind};

const NOT_OPEN: [&str; 3] = ["refused", "failed workspace-damaged", "workspace-damaged"];

/// Nothing of ours makes a database whole again.
const BY_HAND: (Repair, &str, &str) = (Repair::Verify, "failed workspace-damaged", "gone");

fn blank(fixture: &semaprax_tests::fixture::Fixture, kind: Kind) {
    let place = fixture.state("store.db");
    if kind == Kind::FreelistTrunk {
        sql(
            fixture,
            "CREATE TABLE x AS SELECT randomblob(20000); DROP TABLE x",
        );
    }
    let mut bytes = std::fs::read(&place).unwrap();
    for range in pages::of_database(&bytes).remove(&kind).unwrap() {
        bytes[range].fill(0);
    }
    std::fs::write(place, bytes).unwrap();
}

pub const CASES: &[Case] = &[
    Case {
        name: "store.db is missing",
        damage: |fixture| remove(&fixture.state("store.db")),
        expect: ["refused", "failed not-a-workspace", "not-a-workspace"],
        repair: (Repair::Verify, "failed not-a-workspace", "gone"),
    },
    Case {
        name: "store.db is empty",
        damage: |fixture| std::fs::write(fixture.state("store.db"), "").unwrap(),
        expect: NOT_OPEN,
        repair: BY_HAND,
    },
    Case {
        name: "store.db is cut short",
        damage: |fixture| truncate(&fixture.state("store.db")),
        expect: NOT_OPEN,
        repair: BY_HAND,
    },
    Case {
        name: "store.db is another file",
        damage: |fixture| std::fs::write(fixture.state("store.db"), "text".repeat(5000)).unwrap(),
        expect: NOT_OPEN,
        repair: BY_HAND,
    },
    Case {
        name: "store.db is a directory",
        damage: |fixture| directory(&fixture.state("store.db")),
        expect: NOT_OPEN,
        repair: BY_HAND,
    },
    Case {
        name: "store.db is a FIFO",
        damage: |fixture| fifo(&fixture.state("store.db")),
        expect: NOT_OPEN,
        repair: BY_HAND,
    },
    Case {
        name: "store.db is a symlink",
        damage: |fixture| symlink(fixture, &fixture.state("store.db")),
        expect: NOT_OPEN,
        repair: BY_HAND,
    },
    Case {
        name: "the log is a FIFO",
        damage: |fixture| fifo(&fixture.state("store.db-wal")),
        expect: NOT_OPEN,
        repair: (Repair::Doctor, "state-directory", "as before"),
    },
    Case {
        name: "the log is a directory",
        damage: |fixture| directory(&fixture.state("store.db-wal")),
        expect: NOT_OPEN,
        repair: (Repair::Doctor, "state-directory", "as before"),
    },
    Case {
        name: "the index of the log is a symlink",
        damage: |fixture| symlink(fixture, &fixture.state("store.db-shm")),
        expect: NOT_OPEN,
        repair: (Repair::Doctor, "state-directory", "as before"),
    },
    Case {
        name: "the log holds nonsense",
        damage: |fixture| {
            std::fs::write(fixture.state("store.db-wal"), "nonsense".repeat(600)).unwrap();
        },
        expect: ["right", "ok", "opens"],
        repair: (Repair::Open, "", "as before"),
    },
    Case {
        name: "the index of the log holds nonsense",
        damage: |fixture| std::fs::write(fixture.state("store.db-shm"), [0x55; 32768]).unwrap(),
        expect: ["right", "ok", "opens"],
        repair: (Repair::Open, "", "as before"),
    },
    Case {
        name: "all leaves of all indexes are blank",
        damage: |fixture| blank(fixture, Kind::IndexLeaf),
        expect: [
            "refused",
            "damaged: database, lease, pin, identity, active",
            "workspace-damaged",
        ],
        repair: (Repair::Verify, "repaired: database", "as before"),
    },
    Case {
        name: "all leaves of all tables are blank",
        damage: |fixture| blank(fixture, Kind::TableLeaf),
        expect: [
            "refused",
            "damaged: database, lease, pin, identity, active",
            "workspace-damaged",
        ],
        repair: (
            Repair::Verify,
            "damaged: database, lease, pin, identity, active",
            "gone",
        ),
    },
    Case {
        name: "an overflow page is blank",
        damage: |fixture| blank(fixture, Kind::Overflow),
        expect: ["refused", "damaged: database, blob", "opens"],
        repair: (Repair::Verify, "damaged: database, blob", "gone"),
    },
    Case {
        name: "the freelist is blank",
        damage: |fixture| blank(fixture, Kind::FreelistTrunk),
        expect: ["right", "damaged: database", "opens"],
        repair: (Repair::Verify, "repaired: database", "as before"),
    },
    Case {
        name: "a lease is changed",
        damage: |fixture| sql(fixture, "UPDATE leases SET expires = expires + 1"),
        expect: ["refused", "damaged: lease", "workspace-damaged"],
        repair: (Repair::Verify, "repaired: lease", "changed"),
    },
    Case {
        name: "a pin is changed",
        damage: |fixture| sql(fixture, "UPDATE pins SET revision = zeroblob(32)"),
        expect: ["right", "damaged: pin", "opens"],
        repair: (Repair::Verify, "repaired: pin", "as before"),
    },
    Case {
        name: "the identity is changed",
        damage: |fixture| {
            sql(
                fixture,
                "UPDATE meta SET value = replace(value, '-', '+') WHERE key = 'workspace'",
            );
        },
        expect: ["refused", "damaged: identity", "workspace-damaged"],
        repair: (Repair::Verify, "repaired: identity", "changed"),
    },
    Case {
        name: "the name policy is changed",
        damage: |fixture| {
            sql(
                fixture,
                "UPDATE meta SET value = 'native' WHERE key = 'names'",
            );
        },
        expect: ["refused", "damaged: identity", "workspace-damaged"],
        repair: (Repair::Verify, "repaired: identity", "changed"),
    },
    Case {
        name: "which record is confirmed is changed",
        damage: |fixture| {
            sql(
                fixture,
                "UPDATE meta SET value = 'x' WHERE key = 'confirmed'",
            );
        },
        expect: ["right", "ok", "opens"],
        repair: (Repair::Open, "", "as before"),
    },
    Case {
        name: "a record is changed",
        damage: |fixture| {
            sql(
                fixture,
                "UPDATE publications SET body = replace(body, 'importer', 'importes') WHERE seq = 1",
            );
        },
        expect: ["refused", "damaged: record, node", "opens"],
        repair: (Repair::Verify, "damaged: record, node", "partly"),
    },
    Case {
        name: "a record is gone",
        damage: |fixture| sql(fixture, "DELETE FROM publications WHERE seq = 2"),
        expect: ["refused", "damaged: record, node, foreign", "opens"],
        repair: (Repair::Verify, "damaged: record, node", "partly"),
    },
    Case {
        name: "a record has the number of another",
        damage: |fixture| sql(fixture, "UPDATE publications SET seq = 9 WHERE seq = 2"),
        expect: ["refused", "damaged: record, node", "workspace-damaged"],
        repair: (Repair::Verify, "damaged: record, node", "gone"),
    },
    Case {
        name: "the time of a publication is changed",
        damage: |fixture| sql(fixture, "UPDATE publications SET at = at + 1 WHERE seq = 2"),
        expect: ["refused", "damaged: record, node", "opens"],
        repair: (Repair::Verify, "damaged: record, node", "partly"),
    },
    Case {
        name: "a journal entry is changed",
        damage: |fixture| sql(fixture, "UPDATE events SET detail = '{}' WHERE entry = 2"),
        expect: ["refused", "damaged: event", "opens"],
        repair: (Repair::Verify, "damaged: event", "partly"),
    },
    Case {
        name: "the newest journal entry is gone",
        damage: |fixture| {
            sql(
                fixture,
                "DELETE FROM events WHERE entry = (SELECT max(entry) FROM events)",
            );
        },
        expect: ["refused", "damaged: event", "opens"],
        repair: (Repair::Verify, "damaged: event", "partly"),
    },
    Case {
        name: "where the journal ends is changed",
        damage: |fixture| {
            sql(
                fixture,
                "UPDATE meta SET value = '1' || value WHERE key = 'journal'",
            );
        },
        expect: ["refused", "damaged: database, event", "opens"],
        repair: (Repair::Verify, "repaired: database", "as before"),
    },
    Case {
        name: "a journal entry is gone",
        damage: |fixture| sql(fixture, "DELETE FROM events WHERE entry = 2"),
        expect: ["refused", "damaged: event", "opens"],
        repair: (Repair::Verify, "damaged: event", "partly"),
    },
];
