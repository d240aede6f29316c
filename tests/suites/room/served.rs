//! Damage to a workspace while a daemon serves it, and another one beside it.
//!
//! Owns: what must be true whatever is done: no command hangs, answers are right or refused by name, and the
//! other workspace is served as if nothing had happened.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use semaprax_tests::process::{Outcome, World, make_writable};

/// The workspace that is damaged, beside that of the world.
struct Pair {
    world: World,
    root: PathBuf,
}

const CODES: [&str; 8] = [
    "workspace-damaged",
    "not-a-workspace",
    "io",
    "recovery-needed",
    "no-space",
    "read-only",
    "in-doubt",
    "workspace-locked",
];

impl Pair {
    fn new() -> Self {
        let world = World::new(env!("CARGO_BIN_EXE_semaprax-under-test"));
        world.seed();
        let root = world.directory().join("second");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a"), "one\n").unwrap();
        fs::write(root.join("large"), "large\n".repeat(20_000)).unwrap();
        let pair = Self { world, root };
        for words in [&["init"][..], &["undo"], &["status"]] {
            drop(pair.run(words));
        }
        let put = pair.world.write("source", "two\n");
        let put = format!("a={}", put.display());
        pair.run(&["publish", "--put", &put]).ok();
        pair
    }

    fn state(&self) -> PathBuf {
        self.root.join(".semaprax-workspace")
    }

    fn active(&self) -> PathBuf {
        let status = self.run(&["status"]).ok().json();
        let revision = status["active"]["revision"].as_str().unwrap().to_owned();
        self.state().join("generations").join(revision)
    }

    /// Ends in good time, or the test fails.
    fn run(&self, words: &[&str]) -> Outcome {
        self.world.with_json(words).cwd(&self.root).run()
    }

    /// Each command answers rightly, or is refused by name.
    fn check(&self, name: &str) {
        for words in [
            &["status"][..],
            &["log"],
            &["ls"],
            &["show", "@2"],
            &["diff", "@1", "@2"],
            &["verify", "--deep"],
            &["doctor"],
            &["gc", "--min-age", "0s", "--keep", "1"],
            &["lease", "acquire", "--ttl", "1s"],
            &["publish", "--delete", "a", "--dry-run"],
        ] {
            named(name, &self.run(words));
        }
        let cat = self.world.semaprax(&["cat", ":a"]).cwd(&self.root).run();
        match cat.code {
            Some(0) => assert_eq!(cat.text(), "two\n", "{name}"),
            _ => assert!(
                cat.err.contains("semaprax explain") || !cat.err.is_empty(),
                "{}",
                cat.told()
            ),
        }
        let with = self
            .world
            .semaprax(&["with", "--", "cat", "a"])
            .cwd(&self.root)
            .run();
        if with.code == Some(0) {
            assert_eq!(with.text(), "two\n", "{name}");
        }
        let before = self.world.json(&["status"])["active"]["seq"]
            .as_u64()
            .unwrap();
        let put = self.world.put("n", &format!("{name} {before}"));
        assert_eq!(put["seq"], before + 1, "{name}");
    }
}

fn named(name: &str, outcome: &Outcome) {
    let document = outcome.json();
    if document["schema"] == "semaprax.error/1" {
        let code = document["diagnostics"][0]["code"].as_str().unwrap();
        assert!(CODES.contains(&code), "{name}: {}", outcome.told());
    }
}

fn clear(place: &Path) {
    match fs::symlink_metadata(place) {
        Ok(found) if found.is_dir() => {
            make_writable(place);
            fs::remove_dir_all(place).unwrap();
        }
        Ok(_) => fs::remove_file(place).unwrap(),
        Err(_) => {}
    }
}

fn fifo(place: &Path) {
    clear(place);
    mknodat(CWD, place, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

fn overwrite(place: &Path) {
    let length = usize::try_from(fs::metadata(place).unwrap().len()).unwrap();
    fs::write(place, vec![0x5A; length]).unwrap();
}

/// What is done, and whether `doctor --repair` and `verify --repair` make it whole again.
const CASES: [(&str, fn(&Pair), bool); 14] = [
    (
        "ACTIVE is gone",
        |pair| clear(&pair.state().join("ACTIVE")),
        true,
    ),
    (
        "ACTIVE is a FIFO",
        |pair| fifo(&pair.state().join("ACTIVE")),
        true,
    ),
    (
        "LOCK is gone",
        |pair| clear(&pair.state().join("LOCK")),
        true,
    ),
    (
        "LOCK is a FIFO",
        |pair| fifo(&pair.state().join("LOCK")),
        true,
    ),
    (
        "store.db is gone",
        |pair| clear(&pair.state().join("store.db")),
        false,
    ),
    (
        "store.db is a FIFO",
        |pair| fifo(&pair.state().join("store.db")),
        false,
    ),
    (
        "store.db has other bytes",
        |pair| overwrite(&pair.state().join("store.db")),
        false,
    ),
    (
        "LEASE is a FIFO",
        |pair| fifo(&pair.active().join("LEASE")),
        true,
    ),
    (
        "BOOT is a FIFO",
        |pair| fifo(&pair.active().join("BOOT")),
        true,
    ),
    (
        "staging/ is a FIFO",
        |pair| fifo(&pair.state().join("staging")),
        true,
    ),
    (
        "trash/ is gone",
        |pair| clear(&pair.state().join("trash")),
        true,
    ),
    (
        "generations/ is gone",
        |pair| clear(&pair.state().join("generations")),
        true,
    ),
    (
        "objects/ is a FIFO",
        |pair| fifo(&pair.state().join("objects")),
        true,
    ),
    (
        "the state directory is gone",
        |pair| clear(&pair.state()),
        false,
    ),
];

#[test]
fn damage_under_a_daemon_harms_no_other_workspace() {
    for (name, damage, is_mendable) in CASES {
        let pair = Pair::new();
        damage(&pair);
        pair.check(name);
        // The same with a daemon that starts anew.
        pair.world.stop();
        pair.check(name);
        if is_mendable {
            drop(pair.run(&["doctor", "--repair"]));
            drop(pair.run(&["verify", "--deep", "--repair"]));
            let found = pair.run(&["verify", "--deep"]);
            assert_eq!(found.json()["status"], "ok", "{name}: {}", found.told());
            let cat = pair
                .world
                .semaprax(&["cat", ":a"])
                .cwd(&pair.root)
                .run()
                .ok();
            assert_eq!(cat.text(), "two\n", "{name}");
            pair.run(&["undo"]).ok();
        }
        println!("{name}");
    }
}
