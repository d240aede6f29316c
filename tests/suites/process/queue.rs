//! What waits to be decided: cancelled, detached, timed out, refused when full, joined, and in turn.
//!
//! While a `Blocker` lives the writer decides nothing, so these tests need no luck.

use semaprax_tests::process::{Blocker, Wire, World, new_id, submission, until, until_true};
use serde_json::{Value, json};

use crate::{seeded, world};

fn put(path: &str, id: &Value) -> Value {
    let mut wanted = submission(&json!([{"op": "put", "path": path, "content": path}]));
    wanted["id"] = id.clone();
    wanted
}

fn publish(path: &str, id: &Value) -> Value {
    json!({"submission": put(path, id)})
}

/// Submits one that is under way and stays so; answers its connection.
fn occupy(world: &World) -> Wire {
    let mut wire = world.wire();
    wire.send("publish", &publish("occupied", &new_id()));
    let mut watcher = world.wire();
    until_true("it runs", || queue(&mut watcher).0.len() == 1);
    wire
}

/// The ids that run and that wait.
fn queue(wire: &mut Wire) -> (Vec<Value>, Vec<Value>) {
    let queue = wire.call("queue", &json!({})).unwrap();
    let ids = |list: &Value| -> Vec<Value> {
        let list = list.as_array().unwrap();
        list.iter()
            .map(|entry| entry["submission"].clone())
            .collect()
    };
    (ids(&queue["running"]), ids(&queue["waiting"]))
}

#[test]
fn who_goes_away_takes_what_waits_along_unless_detached() {
    let world = seeded();
    let blocker = Blocker::new(&world.state());
    let mut first = occupy(&world);
    let (attached, detached) = (new_id(), new_id());
    let mut client = world.wire();
    client.send("publish", &publish("attached", &attached));
    let mut params = publish("detached", &detached);
    params["options"] = json!({"detach": true});
    client.send("publish", &params);
    let mut watcher = world.wire();
    until_true("both wait", || queue(&mut watcher).1.len() == 2);
    drop(client);
    until_true("one is taken back", || {
        queue(&mut watcher).1 == [detached.clone()]
    });
    drop(blocker);
    first.answer(1 + 1).unwrap();
    until_true("the rest is decided", || {
        let (running, waiting) = queue(&mut watcher);
        running.is_empty() && waiting.is_empty()
    });
    world.ok(&["cat", "detached"]);
    world.refused(&["cat", "attached"], "not-found");
    // What was taken back did not take effect: its id is free.
    assert_eq!(
        world
            .publish(&put("attached", &attached), &[])
            .run()
            .ok()
            .json()["replayed"],
        false
    );
    assert_eq!(
        world
            .publish(&put("detached", &detached), &[])
            .run()
            .ok()
            .json()["replayed"],
        true
    );
}

#[test]
fn an_interrupted_command_takes_its_submission_back() {
    let world = seeded();
    let blocker = Blocker::new(&world.state());
    let _first = occupy(&world);
    let id = new_id();
    let mut killed = world.publish(&put("killed", &id), &[]).spawn();
    let mut kept = world
        .publish(&put("kept", &new_id()), &["--detach"])
        .spawn();
    let mut watcher = world.wire();
    until_true("both wait", || queue(&mut watcher).1.len() == 2);
    killed.kill();
    kept.kill();
    until_true("one is taken back", || queue(&mut watcher).1.len() == 1);
    drop(blocker);
    until_true("the other is published", || {
        world.run(&["cat", "kept"]).code == Some(0)
    });
    world.refused(&["cat", "killed"], "not-found");
}

#[test]
fn a_submission_can_be_cancelled_by_name() {
    let world = seeded();
    let blocker = Blocker::new(&world.state());
    let _first = occupy(&world);
    let id = new_id();
    let waiting = world.publish(&put("n", &id), &[]).spawn();
    let mut watcher = world.wire();
    until_true("it waits", || queue(&mut watcher).1 == [id.clone()]);
    let listed = world.json(&["queue"]);
    assert_eq!(listed["waiting"][0]["position"], 1);
    assert_eq!(listed["waiting"][0]["author"], "suite");
    world.json(&["cancel", id.as_str().unwrap()]);
    waiting.finish().exits(2).refused("cancelled");
    drop(blocker);
    world.refused(&["cancel", id.as_str().unwrap()], "not-found");
}

#[test]
fn a_deadline_is_kept() {
    let world = seeded();
    let blocker = Blocker::new(&world.state());
    let _first = occupy(&world);
    let id = new_id();
    let late = world
        .publish(&put("late", &id), &["--deadline", "200ms"])
        .run();
    late.exits(1).refused("deadline-passed");
    drop(blocker);
    let journal = until("the refusal is recorded", || {
        let lines = world.with_json(&["journal"]).run().ok().json_lines();
        let found = |line: &&Value| line.to_string().contains("deadline-passed");
        lines.iter().find(found).cloned()
    });
    assert!(
        journal.to_string().contains(id.as_str().unwrap()),
        "{journal}"
    );
    // A refusal does not bind the id.
    assert_eq!(
        world.publish(&put("late", &id), &[]).run().ok().json()["status"],
        "published"
    );
}

#[test]
fn a_full_queue_says_so() {
    let world = world();
    world.fill();
    world.configure("[limits]\nqueue = 3\n");
    world.json(&["init"]);
    assert_eq!(world.json(&["status", "--limits"])["limits"]["queue"], 3);
    let blocker = Blocker::new(&world.state());
    let mut first = occupy(&world);
    let mut client = world.wire();
    let waiting: Vec<u64> = (0..3)
        .map(|n| client.send("publish", &publish(&format!("w{n}"), &new_id())))
        .collect();
    let mut watcher = world.wire();
    until_true("three wait", || queue(&mut watcher).1.len() == 3);
    // Who filled it gets no further.
    let refused = client.call("publish", &publish("more", &new_id()));
    assert_eq!(refused.unwrap_err()["diagnostics"][0]["code"], "queue-full");
    // Another one does: the last that the first put in goes.
    let id = new_id();
    let other = world.publish(&put("other", &id), &[]).spawn();
    until_true("it waits", || queue(&mut watcher).1.contains(&id));
    let displaced = client.answer(waiting[2]).unwrap_err();
    assert_eq!(displaced["diagnostics"][0]["code"], "queue-full");
    // Reads are served all the same.
    world.ok(&["cat", "README.md"]);
    drop(blocker);
    first.answer(2).unwrap();
    for id in &waiting[..2] {
        assert_eq!(client.answer(*id).unwrap()["status"], "published");
    }
    assert_eq!(other.finish().ok().json()["status"], "published");
}

#[test]
fn a_repeat_joins_the_one_that_waits() {
    let world = seeded();
    let blocker = Blocker::new(&world.state());
    let mut first = occupy(&world);
    let id = new_id();
    let runs: Vec<_> = (0..3)
        .map(|_| world.publish(&put("n", &id), &[]).spawn())
        .collect();
    let mut watcher = world.wire();
    until_true("they wait as one", || {
        queue(&mut watcher).1 == [id.clone()]
            && world.json(&["daemon", "status"])["connections"].as_u64() >= Some(6)
    });
    // The same name with other content is another matter.
    let mut other = put("n", &id);
    other["message"] = json!("other");
    world
        .publish(&other, &[])
        .run()
        .exits(2)
        .refused("invalid-submission");
    drop(blocker);
    first.answer(2).unwrap();
    let receipts: Vec<Value> = runs
        .into_iter()
        .map(|run| run.finish().ok().json())
        .collect();
    for receipt in &receipts {
        assert_eq!(
            (&receipt["seq"], &receipt["status"]),
            (&json!(3), &json!("published"))
        );
    }
    assert_eq!(world.json(&["log"])["entries"].as_array().unwrap().len(), 3);
}

#[test]
fn a_repeat_keeps_what_its_first_sender_left() {
    let world = seeded();
    let blocker = Blocker::new(&world.state());
    let _first = occupy(&world);
    let id = new_id();
    let mut one = world.wire();
    one.send("publish", &publish("n", &id));
    let mut watcher = world.wire();
    until_true("it waits", || queue(&mut watcher).1 == [id.clone()]);
    let mut two = world.wire();
    let repeat = two.send("publish", &publish("n", &id));
    // It is taken in once its own greeting is answered after it.
    two.call("queue", &json!({})).unwrap();
    drop(one);
    until_true("the first is gone", || {
        world.json(&["daemon", "status"])["connections"].as_u64() <= Some(4)
    });
    assert_eq!(
        queue(&mut watcher).1,
        [id],
        "it waits for the one who is still there"
    );
    drop(blocker);
    assert_eq!(two.answer(repeat).unwrap()["status"], "published");
}

#[test]
fn nobody_is_starved_by_a_client_with_much_to_say() {
    let world = seeded();
    let blocker = Blocker::new(&world.state());
    let mut first = occupy(&world);
    let mut greedy = world.wire();
    let many: Vec<u64> = (0..40)
        .map(|n| greedy.send("publish", &publish(&format!("g{n}"), &new_id())))
        .collect();
    let mut watcher = world.wire();
    until_true("they wait", || queue(&mut watcher).1.len() == 40);
    let mut modest = world.wire();
    let one = modest.send("publish", &publish("modest", &new_id()));
    until_true("it waits too", || queue(&mut watcher).1.len() == 41);
    drop(blocker);
    first.answer(2).unwrap();
    let seq = modest.answer(one).unwrap()["seq"].as_u64().unwrap();
    for id in many {
        greedy.answer(id).unwrap();
    }
    // Publication 2 is the one that ran; at most one or two of the others came before this one's turn.
    assert!(
        seq <= 5,
        "it was published as {seq}, after those who had asked before"
    );
}
