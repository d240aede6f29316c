//! What is not ours in the state directory, or stands in the place of what is. What a link leads to must
//! stay as it is, and so must every file that somebody put there.

use super::{active, directory, fifo, remove, set_mode};
use crate::damage::{Case, Repair};
use semaprax_tests::fixture::Fixture;

const HARMLESS: [&str; 3] = ["right", "ok", "opens"];
const FOREIGN: [&str; 3] = ["right", "damaged: foreign", "opens"];
const TIDIED: (Repair, &str, &str) = (Repair::Doctor, "state-directory", "as before");
const CLEARED: (Repair, &str, &str) = (Repair::Open, "", "as before");

/// Somebody's directory, and a link to it at `name`.
fn link_outside(fixture: &Fixture, name: &str) {
    let outside = fixture.beside("precious");
    std::fs::create_dir(&outside).unwrap();
    for name in ["one", "two"] {
        std::fs::write(outside.join(name), "precious").unwrap();
    }
    remove(&fixture.state(name));
    std::os::unix::fs::symlink(&outside, fixture.state(name)).unwrap();
}

/// Whether what `link_outside` and `keep` made is still there.
pub fn is_untouched(fixture: &Fixture) -> Result<(), String> {
    let outside = fixture.beside("precious");
    if outside.exists() {
        for name in ["one", "two"] {
            let found = std::fs::read_to_string(outside.join(name)).unwrap_or_default();
            if found != "precious" {
                return Err(format!("`{name}` was touched through a link"));
            }
        }
    }
    let counted = |place: &str| -> usize {
        let found = fixture.state(place).read_dir_utf8();
        found.map_or(0, |names| {
            let names = names.map(|entry| entry.unwrap().file_name().to_owned());
            names.filter(|name| name.starts_with("notes")).count()
        })
    };
    let kept = ["", "objects", "generations", "set-aside"].map(counted);
    if fixture.beside("noted").exists() && kept.iter().sum::<usize>() != 1 {
        return Err(format!("the foreign file is gone: {kept:?}"));
    }
    Ok(())
}

/// A file that somebody put there.
fn notes(fixture: &Fixture, place: &str) {
    std::fs::write(fixture.state(place).join("notes"), "mine").unwrap();
    std::fs::write(fixture.beside("noted"), "").unwrap();
}

pub const CASES: &[Case] = &[
    Case {
        name: "a foreign file in the state directory",
        damage: |fixture| notes(fixture, ""),
        expect: HARMLESS,
        repair: TIDIED,
    },
    Case {
        name: "a foreign directory in the state directory",
        damage: |fixture| directory(&fixture.state("notes")),
        expect: HARMLESS,
        repair: TIDIED,
    },
    Case {
        name: "a foreign FIFO in the state directory",
        damage: |fixture| fifo(&fixture.state("pipe")),
        expect: HARMLESS,
        repair: TIDIED,
    },
    Case {
        name: "a foreign file in generations/",
        damage: |fixture| notes(fixture, "generations"),
        expect: ["right", "damaged: foreign notes", "opens"],
        repair: (Repair::Verify, "repaired: foreign notes", "as before"),
    },
    Case {
        name: "a foreign link in generations/",
        damage: |fixture| link_outside(fixture, "generations/elsewhere"),
        expect: ["right", "damaged: foreign elsewhere", "opens"],
        repair: TIDIED,
    },
    Case {
        name: "a foreign FIFO in generations/",
        damage: |fixture| fifo(&fixture.state("generations/pipe")),
        expect: ["right", "damaged: foreign pipe", "opens"],
        repair: TIDIED,
    },
    Case {
        name: "a generation that nobody published",
        damage: |fixture| directory(&fixture.state("generations").join("e".repeat(64))),
        expect: FOREIGN,
        repair: CLEARED,
    },
    Case {
        name: "a link with the name of a generation",
        damage: |fixture| link_outside(fixture, &format!("generations/{}", "e".repeat(64))),
        expect: FOREIGN,
        repair: CLEARED,
    },
    Case {
        name: "a hard link to a file of a live tree in generations/",
        damage: |fixture| {
            let file = active(fixture).join("files/small");
            std::fs::hard_link(file, fixture.state("generations/notes")).unwrap();
            std::fs::write(fixture.beside("noted"), "").unwrap();
        },
        expect: ["right", "damaged: foreign notes", "opens"],
        repair: TIDIED,
    },
    Case {
        name: "a foreign file in objects/",
        damage: |fixture| notes(fixture, "objects"),
        expect: HARMLESS,
        repair: TIDIED,
    },
    Case {
        name: "a link in objects/ that looks like ours",
        damage: |fixture| link_outside(fixture, "objects/0f"),
        expect: HARMLESS,
        repair: TIDIED,
    },
    Case {
        name: "a FIFO in objects/ that looks like ours",
        damage: |fixture| fifo(&fixture.state("objects/0f")),
        expect: HARMLESS,
        repair: TIDIED,
    },
    Case {
        name: "a hard link to a file of a live tree in objects/",
        damage: |fixture| {
            let file = active(fixture).join("files/small");
            std::fs::hard_link(file, fixture.state("objects/notes")).unwrap();
            std::fs::write(fixture.beside("noted"), "").unwrap();
        },
        expect: HARMLESS,
        repair: TIDIED,
    },
    Case {
        name: "a link in staging/",
        damage: |fixture| link_outside(fixture, "staging/elsewhere"),
        expect: HARMLESS,
        repair: CLEARED,
    },
    Case {
        name: "a FIFO and a closed directory in staging/",
        damage: |fixture| {
            fifo(&fixture.state("staging/pipe"));
            let closed = fixture.state("staging/closed");
            std::fs::create_dir(&closed).unwrap();
            std::fs::write(closed.join("x"), "x").unwrap();
            set_mode(&closed, 0);
        },
        expect: HARMLESS,
        repair: CLEARED,
    },
    Case {
        name: "a link in trash/",
        damage: |fixture| link_outside(fixture, "trash/elsewhere"),
        expect: HARMLESS,
        repair: CLEARED,
    },
    Case {
        name: "staging/ is a link",
        damage: |fixture| link_outside(fixture, "staging"),
        expect: ["refused", "failed workspace-damaged", "workspace-damaged"],
        repair: TIDIED,
    },
    Case {
        name: "trash/ is a link",
        damage: |fixture| link_outside(fixture, "trash"),
        expect: ["refused", "failed workspace-damaged", "workspace-damaged"],
        repair: TIDIED,
    },
    Case {
        name: "generations/ is a link",
        damage: |fixture| link_outside(fixture, "generations"),
        expect: ["refused", "failed workspace-damaged", "workspace-damaged"],
        repair: TIDIED,
    },
    Case {
        name: "staging/ is a FIFO",
        damage: |fixture| fifo(&fixture.state("staging")),
        expect: ["refused", "failed workspace-damaged", "workspace-damaged"],
        repair: TIDIED,
    },
    Case {
        name: "trash/ is a file",
        damage: |fixture| {
            remove(&fixture.state("trash"));
            std::fs::write(fixture.state("trash"), "x").unwrap();
        },
        expect: ["refused", "failed workspace-damaged", "workspace-damaged"],
        repair: TIDIED,
    },
    Case {
        name: "staging/, trash/ and generations/ are missing",
        damage: |fixture| {
            for name in ["staging", "trash", "generations"] {
                remove(&fixture.state(name));
            }
        },
        expect: ["refused", "damaged: tree", "opens"],
        repair: CLEARED,
    },
    Case {
        name: "the files that keep others out are missing",
        damage: |fixture| {
            remove(&fixture.state(".gitignore"));
            remove(&fixture.state(".ignore"));
            std::fs::write(fixture.state("CACHEDIR.TAG"), "x").unwrap();
        },
        expect: HARMLESS,
        repair: (
            Repair::Doctor,
            "state-directory, state-directory, state-directory",
            "as before",
        ),
    },
    Case {
        name: "index.db holds nonsense",
        damage: |fixture| std::fs::write(fixture.state("index.db"), "nonsense").unwrap(),
        expect: HARMLESS,
        repair: (Repair::Doctor, "", "as before"),
    },
    Case {
        name: "the reserve is a file",
        damage: |fixture| {
            remove(&fixture.state("reserve"));
            std::fs::write(fixture.state("reserve"), "x").unwrap();
        },
        expect: HARMLESS,
        repair: TIDIED,
    },
];
