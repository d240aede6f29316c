//! Clients that send without end and read nothing: what the daemon holds is bounded, and a client that
//! behaves is served within a bound of work.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use semaprax_tests::process::{Wire, World, line_of, new_id, sha256, status_field, submission};
use serde_json::{Value, json};

use crate::{code_of, reached, say, times, world};

/// What the daemon may hold for all clients in these worlds.
const CLIENT_BYTES: u64 = 32 << 20;
/// What it takes beyond that at most, in bytes: the program itself in a build for tests (30 MiB), the
/// caches of its databases, the buffers of two hundred connections, and room that the allocator keeps.
const OWN_BYTES: u64 = 128 << 20;

fn bounded_world(more: &str) -> World {
    let world = world();
    world.fill();
    world.configure(&format!("[limits]\nclient-bytes = {CLIENT_BYTES}\n{more}"));
    world.json(&["init"]);
    world
}

fn memory(world: &World) -> u64 {
    status_field(world.daemon().unwrap(), "VmRSS").unwrap() << 10
}

fn publish(path: &str, content: &str) -> Value {
    json!({"submission": submission(&json!([{"op": "put", "path": path, "content": content}]))})
}

/// Sends until the daemon takes no more, or has closed; answers how much it took.
fn pour(stream: &UnixStream, bytes: &[u8], most: usize) -> usize {
    stream.set_nonblocking(true).unwrap();
    let mut sent = 0;
    let mut waits = 0;
    while sent < most && waits < 50 {
        let from = sent % bytes.len();
        match (&mut &*stream).write(&bytes[from..]) {
            Ok(0) => break,
            Ok(count) => (sent, waits) = (sent + count, 0),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                waits += 1;
                // Waits for the other side, a little at a time.
                stream.set_nonblocking(false).unwrap();
                stream
                    .set_write_timeout(Some(Duration::from_millis(5)))
                    .unwrap();
                if let Ok(count) = (&mut &*stream).write(&bytes[from..]) {
                    (sent, waits) = (sent + count, 0);
                }
                stream.set_nonblocking(true).unwrap();
            }
            Err(_) => break,
        }
    }
    stream.set_nonblocking(false).unwrap();
    sent
}

/// Long lines that never end, and content that nothing names, of many clients: twenty times what may be
/// held.
#[test]
fn what_is_held_for_all_clients_is_bounded() {
    let world = bounded_world("");
    let before = memory(&world);
    let mut good = world.wire();
    let count = times(200, 600);
    let line = vec![b'x'; 3 << 20];
    let content = "A".repeat((1 << 20) / 3 * 4);
    let mut hogs = Vec::new();
    let (mut most, mut taken) = (before, 0);
    for place in 0..count {
        let hog = world.wire();
        let bytes = if place % 2 == 0 {
            line.clone()
        } else {
            let piece = json!({"sha256": sha256(place.to_string()), "bytes": 4 << 20, "offset": 0, "data": content});
            line_of(5, "blob.put", &piece)
        };
        taken += pour(&hog.sender(), &bytes, bytes.len());
        hogs.push(hog);
        if place % 20 == 0 {
            most = most.max(memory(&world));
            let receipt = good.call("publish", &publish("n", &place.to_string()));
            assert_eq!(receipt.unwrap()["status"], "published");
        }
    }
    most = most.max(memory(&world));
    let bound = CLIENT_BYTES + OWN_BYTES;
    say(&format!(
        "memory: {before} bytes before, {most} while {count} clients sent {taken} (bound {bound})"
    ));
    assert!(most < bound, "{most} bytes");
    // Those who were over the bound were told.
    let mut told = 0;
    for mut hog in hogs {
        hog.stop_sending();
        let said = hog.rest();
        told += usize::from(
            said.iter()
                .any(|line| code_of(&line["error"]["data"]) == "limit-exceeded"),
        );
    }
    let after = memory(&world);
    say(&format!("memory: {after} bytes after"));
    // What was given back is used again: the same once more takes no more.
    good.call("publish", &publish("n", "last")).unwrap();
    reached("hogs told that there is no room", told, count / 4);
}

/// Connections that submit without end and read no answer, and subscribers that never read. Another client
/// gets each of its submissions decided after no more than one of each of the others.
#[test]
fn a_flood_of_submissions_and_deaf_subscribers_hold_nobody_up() {
    let world = bounded_world("queue = 64\nqueue-bytes = 16777216\n");
    let before = memory(&world);
    let mut deaf: Vec<Wire> = (0..16).map(|_| world.wire()).collect();
    for wire in &mut deaf {
        wire.call("watch", &json!({})).unwrap();
    }
    let floods = 8;
    let ended = AtomicBool::new(false);
    let (mut most, mut worst, mut waited, mut served) = (before, 0, 0, 0);
    let poured = std::thread::scope(|scope| {
        let pouring: Vec<_> = (0..floods)
            .map(|flood| {
                let (ended, world) = (&ended, &world);
                scope.spawn(move || {
                    let wire = world.wire();
                    let stream = wire.sender();
                    let padding = "x".repeat(2000);
                    let mut sent = 0;
                    for id in 100.. {
                        if ended.load(Ordering::Relaxed) {
                            break;
                        }
                        let params =
                            publish(&format!("flood-{flood}"), &format!("{}{padding}", new_id()));
                        let line = line_of(id, "publish", &params);
                        sent += pour(&stream, &line, line.len());
                    }
                    sent
                })
            })
            .collect();
        let mut good = world.wire();
        for place in 0..times(40, 400) {
            let id = good.send("publish", &publish("good", &place.to_string()));
            let mut first = None;
            let receipt = loop {
                let line = good.receive().unwrap();
                match line["params"]["position"].as_u64() {
                    Some(position) => worst = worst.max(*first.get_or_insert(position)),
                    None => break line,
                }
            };
            assert_eq!(receipt["id"], id);
            assert_eq!(receipt["result"]["status"], "published", "{receipt}");
            waited += usize::from(first.is_some());
            served += 1;
            most = most.max(memory(&world));
        }
        ended.store(true, Ordering::Relaxed);
        pouring
            .into_iter()
            .map(|flood| flood.join().unwrap())
            .sum::<usize>()
    });
    let bound = CLIENT_BYTES + OWN_BYTES;
    say(&format!(
        "memory: {before} bytes before, {most} while {floods} floods sent {poured} (bound {bound}); the good client was told its place {waited} times, at worst {worst}"
    ));
    assert!(most < bound, "{most} bytes");
    // One of each of the others, and then its own.
    assert!(worst <= floods + 1, "it was put in place {worst}");
    assert!(waited > 0, "there was no flood");
    drop(deaf);
    assert_eq!(world.json(&["verify"])["status"], "ok");
    reached("publications beside a flood", served, 40);
}
