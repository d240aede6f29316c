//! `watch`: every publication exactly once, whatever happens to the daemon.

use std::fs;

use semaprax_tests::process::{Running, World, until_true};
use serde_json::{Value, json};

use crate::seeded;

/// Takes publications from a watcher up to number `last`; they must follow `after` without a hole.
fn expect(watch: &mut Running, after: u64, last: u64) {
    for seq in after + 1..=last {
        let event = watch.json_line();
        assert_eq!(event["event"], "published", "{event}");
        assert_eq!(event["seq"], seq, "{event}");
        assert_eq!(
            event["changes"][0]["path"],
            format!("n{seq}").as_str(),
            "{event}"
        );
    }
}

/// Publishes up to number `last`.
fn publish(world: &World, after: u64, last: u64) {
    for seq in after + 1..=last {
        assert_eq!(world.put(&format!("n{seq}"), "x")["seq"], seq);
    }
}

#[test]
fn each_publication_is_told_once_across_kills_and_restarts() {
    let world = seeded();
    let mut watch = world.spawn(&["--json", "watch"]);
    assert_eq!(watch.json_line()["event"], "snapshot");
    publish(&world, 1, 3);
    expect(&mut watch, 1, 3);
    for (how, after) in [("kill", 3), ("stop", 5), ("kill", 7)] {
        if how == "kill" {
            world.kill_daemon();
        } else {
            world.stop();
        }
        publish(&world, after, after + 2);
        expect(&mut watch, after, after + 2);
    }
    watch.kill();
}

#[test]
fn a_token_goes_on_where_it_was_taken() {
    let world = seeded();
    publish(&world, 1, 6);
    let watch = |since: &str, limit: &str| {
        let call = world.with_json(&["watch", "--since", since, "--limit", limit]);
        call.run().ok().json_lines()
    };
    let seqs = |events: &[Value]| -> Vec<u64> {
        events
            .iter()
            .map(|event| event["seq"].as_u64().unwrap())
            .collect()
    };
    let first = watch("2", "2");
    assert_eq!(seqs(&first), [2, 3, 4]);
    let token = first.last().unwrap()["token"].as_str().unwrap();
    assert_eq!(seqs(&watch(token, "2")), [4, 5, 6]);
    world.kill_daemon();
    assert_eq!(seqs(&watch(token, "2")), [4, 5, 6]);
    // A token of another history is answered with what is there now.
    let foreign = format!("3:{}", "0".repeat(64));
    let call = world.with_json(&["watch", "--since", &foreign]);
    let mut fresh = call.spawn();
    let event = fresh.json_line();
    assert_eq!(
        (&event["event"], &event["seq"]),
        (&json!("fresh"), &json!(6)),
        "{event}"
    );
    fresh.kill();
}

#[test]
fn a_watcher_without_a_daemon_follows_active() {
    let world = seeded();
    world.stop();
    let call = world.with_json(&["watch"]);
    let mut watch = call.env("SEMAPRAX_NO_AUTOSTART", "1").spawn();
    assert_eq!(watch.json_line()["event"], "snapshot");
    assert!(world.daemons().is_empty());
    publish(&world, 1, 4);
    expect(&mut watch, 1, 4);
    world.kill_daemon();
    publish(&world, 4, 6);
    expect(&mut watch, 4, 6);
    watch.kill();
}

#[test]
fn a_watcher_ends_when_its_reader_does() {
    let world = seeded();
    let script = format!(
        "'{}' --json watch | (read one; echo \"$one\"; read two; echo \"$two\")",
        world.binary().display()
    );
    let mut piped = world
        .program("sh", "sh".to_owned())
        .arg("-c")
        .arg(script)
        .spawn();
    assert!(piped.line().contains("snapshot"));
    world.put("n2", "x");
    assert!(piped.line().contains("published"));
    world.put("n3", "x");
    let ended = piped.finish();
    assert!(!ended.err.contains("panicked"), "{}", ended.told());
    until_true("it is gone", || {
        world.json(&["daemon", "status"])["connections"] == 1
    });
}

#[test]
fn the_journal_can_be_followed() {
    let world = seeded();
    let mut follow = world.spawn(&["--json", "journal", "--follow"]);
    let mut last = follow.json_line();
    world.put("n", "x");
    while !last.to_string().contains("\"publi") || last["entry"].as_u64().unwrap() < 2 {
        let next = follow.json_line();
        assert_eq!(next["prev"], last["digest"], "the chain is whole");
        assert_eq!(
            next["entry"].as_u64(),
            last["entry"].as_u64().map(|n| n + 1)
        );
        last = next;
    }
    follow.kill();
    let head = world.json(&["journal", "head"]);
    assert!(head["entry"].as_u64() >= last["entry"].as_u64());
    assert!(fs::exists(world.state().join("ACTIVE")).unwrap());
}
