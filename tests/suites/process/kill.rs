//! `kill -9` of the daemon, at rest and at random moments under load.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use semaprax_tests::process::{World, new_id, submission, until, until_true, within};
use serde_json::{Value, json};

use crate::seeded;

#[test]
fn after_a_kill_everything_goes_on() {
    let world = seeded();
    let mut wanted = submission(&json!([{"op": "put", "path": "k", "content": "1"}]));
    wanted["id"] = new_id();
    let first = world.publish(&wanted, &[]).run().ok().json();
    let detached = world.json(&["lease", "acquire", "--revision", "@1", "--ttl", "10m"]);
    let mut attached = world.spawn(&["--json", "lease", "acquire", "--hold"]);
    let held = attached.json_line();

    world.kill_daemon();
    until_true("its holder is told", || attached.has_ended());
    let outcome = attached.finish();
    assert_eq!(outcome.code, Some(2), "{}", outcome.told());

    let again = world.publish(&wanted, &[]).run().ok().json();
    assert_eq!(again["replayed"], true);
    assert_eq!(again["revision"], first["revision"]);
    let leases: Vec<Value> = world.json(&["lease", "list"])["leases"]
        .as_array()
        .unwrap()
        .clone();
    let ids: Vec<&Value> = leases.iter().map(|lease| &lease["lease"]).collect();
    assert_eq!(
        ids,
        [&detached["lease"]],
        "only what was detached lives on, not {held}"
    );
    assert!(
        world.json(&["why", "@1"])["reasons"]
            .as_array()
            .unwrap()
            .contains(&json!("leased"))
    );
    let next = world.put("k", "2");
    assert_eq!(next["seq"], 3);
    assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
}

#[test]
fn other_content_under_a_used_id_is_refused_after_a_kill() {
    let world = seeded();
    let id = new_id();
    let mut wanted = submission(&json!([{"op": "put", "path": "k", "content": "1"}]));
    wanted["id"] = id.clone();
    world.publish(&wanted, &[]).run().ok();
    world.kill_daemon();
    wanted["changes"][0]["content"] = json!("2");
    world
        .publish(&wanted, &[])
        .run()
        .refused("invalid-submission");
}

/// Kills, by default; `SEMAPRAX_KILLS` for a longer run.
const KILLS: u64 = 12;
const WRITERS: u64 = 3;

/// A number of the environment.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Numbers that look random and are the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// What one writer was told: the seq and revision of each of its submissions.
struct Told {
    seq: u64,
    revision: String,
    writer: u64,
    count: u64,
}

#[test]
fn kills_at_random_moments_lose_nothing_and_repeat_nothing() {
    let seed = number("SEMAPRAX_SEED", 0x5eed_2024);
    let kills = number("SEMAPRAX_KILLS", KILLS);
    println!("SEMAPRAX_SEED={seed} SEMAPRAX_KILLS={kills}");
    let world = seeded();
    let stop = AtomicBool::new(false);
    let decided = AtomicU64::new(0);
    let told = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let stopping = Stop(&stop);
        for writer in 0..WRITERS {
            let (world, stop, decided, told) = (&world, &stop, &decided, &told);
            scope.spawn(move || {
                let mut count = 0;
                while !stop.load(Ordering::Acquire) {
                    count += 1;
                    let receipt = insist(world, writer, count);
                    told.lock().unwrap().push(Told {
                        seq: receipt["seq"].as_u64().unwrap(),
                        revision: receipt["revision"].as_str().unwrap().to_owned(),
                        writer,
                        count,
                    });
                    decided.fetch_add(1, Ordering::AcqRel);
                }
            });
        }
        let mut random = Random(seed | 1);
        for _ in 0..kills {
            // Some work must be done between two kills, then a moment of chance.
            let before = decided.load(Ordering::Acquire);
            until_true("something is published", || {
                decided.load(Ordering::Acquire) > before
            });
            let moment = Duration::from_micros(random.below(60_000));
            let _ = within(moment, || None::<()>);
            if let Some(pid) = world.daemon() {
                world.signal_daemon(pid, rustix::process::Signal::KILL);
            }
        }
        drop(stopping);
    });
    check_history(&world, &told.into_inner().unwrap());
}

/// Ends the writers, also when the test fails.
struct Stop<'flag>(&'flag AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Publishes until it is told what became of it, with one id throughout, as a careful agent does.
fn insist(world: &World, writer: u64, count: u64) -> Value {
    let path = |part: u64| format!("w{writer}/{part}");
    let content = format!("{writer}:{count}\n");
    let changes: Vec<Value> = (0..4)
        .map(|part| json!({"op": "put", "path": path(part), "content": content}))
        .collect();
    let mut wanted = submission(&json!(changes));
    wanted["id"] = new_id();
    wanted["author"] = json!(format!("writer-{writer}"));
    wanted["message"] = json!(count.to_string());
    until("the submission is decided", || {
        let outcome = world.publish(&wanted, &[]).run();
        if outcome.code == Some(0) {
            return Some(outcome.json());
        }
        // The daemon died on it too often in a row; the id makes trying again safe.
        let code = outcome.json()["diagnostics"][0]["code"].clone();
        let lost = ["daemon-unreachable", "shutting-down", "workspace-locked"];
        assert!(lost.iter().any(|word| code == *word), "{}", outcome.told());
        None
    })
}

fn check_history(world: &World, told: &[Told]) {
    let log = world.json(&["log", "--limit", "10000"]);
    let entries = log["entries"].as_array().unwrap();
    let published = entries.len() as u64 - 1;
    assert_eq!(
        published,
        told.len() as u64,
        "each submission took effect exactly once"
    );
    for told in told {
        let entry = &entries[entries.len() - usize::try_from(told.seq).unwrap()];
        assert_eq!(entry["seq"], told.seq);
        assert_eq!(entry["revision"], told.revision.as_str());
        assert_eq!(entry["author"], format!("writer-{}", told.writer).as_str());
        assert_eq!(entry["message"], told.count.to_string().as_str());
    }
    assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
    for writer in 0..WRITERS {
        let last = told
            .iter()
            .filter(|told| told.writer == writer)
            .map(|told| told.count)
            .max();
        let expected = format!("{writer}:{}\n", last.unwrap());
        for part in 0..4 {
            let found = world.ok(&["cat", &format!("w{writer}/{part}")]).text();
            assert_eq!(found, expected, "w{writer}/{part}");
        }
    }
}
