//! ACTIVE and LOCK.

use super::{directory, fifo, remove, set_mode, symlink, truncate};
use crate::damage::{Case, Repair};

const LOST: [&str; 3] = ["refused", "damaged: active", "workspace-damaged"];
const RESTORED: (Repair, &str, &str) = (Repair::Verify, "repaired: active", "as before");
const UNTIDY: [&str; 3] = ["right", "failed workspace-damaged", "workspace-damaged"];

pub const CASES: &[Case] = &[
    Case {
        name: "ACTIVE is missing",
        damage: |fixture| remove(&fixture.state("ACTIVE")),
        expect: LOST,
        repair: RESTORED,
    },
    Case {
        name: "ACTIVE is missing, and doctor mends it",
        damage: |fixture| remove(&fixture.state("ACTIVE")),
        expect: LOST,
        repair: (Repair::Doctor, "store", "as before"),
    },
    Case {
        name: "ACTIVE is empty",
        damage: |fixture| std::fs::write(fixture.state("ACTIVE"), "").unwrap(),
        expect: LOST,
        repair: RESTORED,
    },
    Case {
        name: "ACTIVE is cut short",
        damage: |fixture| truncate(&fixture.state("ACTIVE")),
        expect: LOST,
        repair: RESTORED,
    },
    Case {
        name: "ACTIVE names a record that nobody has",
        damage: |fixture| {
            let place = fixture.state("ACTIVE");
            let text = std::fs::read_to_string(&place).unwrap();
            let end = text.len() - 4;
            std::fs::write(place, format!("{}0\"}}\n", &text[..end])).unwrap();
        },
        expect: LOST,
        repair: RESTORED,
    },
    Case {
        name: "ACTIVE has the number of another publication",
        damage: |fixture| {
            let place = fixture.state("ACTIVE");
            let text = std::fs::read_to_string(&place).unwrap();
            std::fs::write(place, text.replace("\"seq\":3", "\"seq\":2")).unwrap();
        },
        expect: LOST,
        repair: RESTORED,
    },
    Case {
        name: "ACTIVE is a symlink",
        damage: |fixture| symlink(fixture, &fixture.state("ACTIVE")),
        expect: LOST,
        repair: RESTORED,
    },
    Case {
        name: "ACTIVE is a directory",
        damage: |fixture| directory(&fixture.state("ACTIVE")),
        expect: LOST,
        repair: RESTORED,
    },
    Case {
        name: "ACTIVE is a FIFO",
        damage: |fixture| fifo(&fixture.state("ACTIVE")),
        expect: LOST,
        repair: (Repair::Doctor, "state-directory, store", "as before"),
    },
    Case {
        name: "ACTIVE.next is a directory",
        damage: |fixture| directory(&fixture.state("ACTIVE.next")),
        expect: ["right", "ok", "opens"],
        repair: (Repair::Open, "", "as before"),
    },
    Case {
        name: "LOCK is missing",
        damage: |fixture| remove(&fixture.state("LOCK")),
        expect: ["right", "ok", "opens"],
        repair: (Repair::Open, "", "as before"),
    },
    Case {
        name: "LOCK names a daemon that is gone",
        damage: |fixture| {
            let text = r#"{"schema":"semaprax.lock/1","socket":"/gone","pid":1,"version":"0"}"#;
            std::fs::write(fixture.state("LOCK"), text).unwrap();
        },
        expect: ["right", "ok", "opens"],
        repair: (Repair::Open, "", "as before"),
    },
    Case {
        name: "LOCK holds nonsense",
        damage: |fixture| std::fs::write(fixture.state("LOCK"), "nonsense").unwrap(),
        expect: ["right", "ok", "opens"],
        repair: (Repair::Open, "", "as before"),
    },
    Case {
        name: "LOCK is a symlink",
        damage: |fixture| symlink(fixture, &fixture.state("LOCK")),
        expect: UNTIDY,
        repair: (Repair::Doctor, "state-directory", "as before"),
    },
    Case {
        name: "LOCK is a directory",
        damage: |fixture| directory(&fixture.state("LOCK")),
        expect: UNTIDY,
        repair: (Repair::Doctor, "state-directory", "as before"),
    },
    Case {
        name: "LOCK is a FIFO",
        damage: |fixture| fifo(&fixture.state("LOCK")),
        expect: UNTIDY,
        repair: (Repair::Doctor, "state-directory", "as before"),
    },
    Case {
        name: "LOCK and the database may be written by others",
        damage: |fixture| {
            set_mode(&fixture.state("LOCK"), 0o666);
            set_mode(&fixture.state("store.db"), 0o622);
            set_mode(&fixture.state(""), 0o777);
        },
        expect: ["right", "ok", "opens"],
        repair: (
            Repair::Doctor,
            "state-directory, state-directory, state-directory",
            "as before",
        ),
    },
];
