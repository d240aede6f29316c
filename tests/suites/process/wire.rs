//! Clients that speak badly, slowly, too much or not at all; and that others are served meanwhile.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use semaprax_tests::process::{Wire, World, line_of, sha256, status_field, submission, until_true};
use serde_json::{Value, json};

use crate::{seeded, world};

/// What a daemon in these tests may hold in memory, in KiB: far more than one client may make it hold,
/// far less than what the clients here send or leave unread.
const MEMORY_KIB: u64 = 96 << 10;

fn code_of(refusal: &Value) -> &str {
    refusal["diagnostics"][0]["code"]
        .as_str()
        .unwrap_or_default()
}

fn memory(world: &World) -> u64 {
    status_field(world.daemon().unwrap(), "VmRSS").unwrap()
}

#[test]
fn hello_comes_first_and_once() {
    let world = seeded();
    let mut wire = Wire::connect(&world.socket()).unwrap();
    let refusal = wire.call("status", &json!({})).unwrap_err();
    assert_eq!(code_of(&refusal), "invalid-request");
    wire.hello(Some(&world.workspace()));
    let again = json!({"protocol": {"oldest": 1, "newest": 1}, "client": "suite"});
    assert_eq!(
        code_of(&wire.call("hello", &again).unwrap_err()),
        "invalid-request"
    );
    assert_eq!(wire.call("status", &json!({})).unwrap()["active"]["seq"], 1);
}

#[test]
fn without_a_workspace_only_the_daemon_answers() {
    let world = seeded();
    let mut wire = Wire::connect(&world.socket()).unwrap();
    wire.hello(None);
    assert_eq!(
        wire.call("daemon.status", &json!({})).unwrap()["running"],
        true
    );
    for method in ["status", "log", "queue", "journal.head"] {
        assert_eq!(
            code_of(&wire.call(method, &json!({})).unwrap_err()),
            "not-a-workspace"
        );
    }
}

#[test]
fn versions_are_agreed_on_or_refused() {
    let world = seeded();
    let mut wire = Wire::connect(&world.socket()).unwrap();
    let hello = |oldest: u32, newest: u32| json!({"protocol": {"oldest": oldest, "newest": newest}, "client": "suite"});
    assert_eq!(
        code_of(&wire.call("hello", &hello(7, 9)).unwrap_err()),
        "protocol-version"
    );
    // It may try again on the same connection.
    assert_eq!(wire.call("hello", &hello(1, 9)).unwrap()["protocol"], 1);
}

#[test]
fn malformed_lines_are_answered_and_harm_nothing() {
    let world = seeded();
    let mut wire = world.wire();
    let bad: &[&[u8]] = &[
        b"{\n",
        b"nonsense\n",
        b"[]\n",
        b"null\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":900}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"status\"}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":901,\"method\":\"no such method\"}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":902,\"method\":\"status\",\"params\":[1]}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":903,\"method\":\"status\",\"params\":{\"colour\":1}}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":904,\"method\":\"show\",\"params\":{}}\n",
        b"\xff\xfe\x00\n",
    ];
    for line in bad {
        wire.send_bytes(line).unwrap();
        let shown = String::from_utf8_lossy(line);
        let answer = wire
            .receive()
            .unwrap_or_else(|| panic!("no answer to {shown}"));
        assert!(answer.get("error").is_some(), "{shown}: {answer}");
        let code = code_of(&answer["error"]["data"]);
        assert_eq!(code, "invalid-request", "{shown}: {answer}");
    }
    // Nesting without end is a line like any other.
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":905,\"method\":\"status\",\"params\":{}\n",
        "[".repeat(100_000)
    );
    wire.send_bytes(deep.as_bytes()).unwrap();
    assert!(wire.receive().unwrap().get("error").is_some());
    // Empty lines are no requests.
    wire.send_bytes(b"\n\r\n  \n").unwrap();
    assert_eq!(wire.call("status", &json!({})).unwrap()["active"]["seq"], 1);
}

#[test]
fn a_line_without_end_is_refused_while_it_is_read() {
    let world = seeded();
    let before = memory(&world);
    let mut wire = world.wire();
    let piece = vec![b'x'; 1 << 20];
    // Far more than a line may have; the daemon stops reading before it has all.
    for _ in 0..256 {
        if wire.send_bytes(&piece).is_err() {
            break;
        }
    }
    let said = wire.rest();
    let refusal = said
        .last()
        .map(|line| code_of(&line["error"]["data"]).to_owned());
    assert!(
        matches!(refusal.as_deref(), Some("limit-exceeded") | None),
        "{said:?}"
    );
    let after = memory(&world);
    assert!(
        after < before + (64 << 10),
        "{before} KiB before, {after} KiB after"
    );
    assert_eq!(world.json(&["status"])["active"]["seq"], 1);
}

#[test]
fn a_line_may_come_byte_by_byte() {
    let world = seeded();
    let mut slow = world.wire();
    let line = line_of(77, "status", &json!({}));
    let (last, most) = line.split_last().unwrap();
    for byte in most {
        slow.send_bytes(&[*byte]).unwrap();
    }
    // It holds nobody up.
    world.put("n", "n");
    slow.send_bytes(&[*last]).unwrap();
    assert_eq!(slow.answer(77).unwrap()["active"]["seq"], 2);
}

#[test]
fn pipelined_requests_are_all_answered() {
    let world = seeded();
    let mut wire = world.wire();
    // More than may be under way at once.
    let many = 1000;
    let lines: Vec<u8> = (1000..1000 + many)
        .flat_map(|id| line_of(id, if id % 2 == 0 { "status" } else { "log" }, &json!({})))
        .collect();
    let mut sender = wire.sender();
    let sending = std::thread::spawn(move || sender.write_all(&lines));
    for id in 1000..1000 + many {
        wire.answer(id).unwrap();
    }
    sending.join().unwrap().unwrap();
    let same = [
        line_of(1, "status", &json!({})),
        line_of(1, "status", &json!({})),
    ]
    .concat();
    wire.send_bytes(&same).unwrap();
    wire.answer(1).unwrap_or_default();
    wire.answer(1).unwrap_or_default();
}

#[test]
fn a_client_that_reads_no_answers_holds_a_bounded_amount() {
    let world = seeded();
    let big = "x".repeat(700 << 10);
    world.put("big", &big);
    let mut deaf = world.wire();
    let mut sender = deaf.sender();
    sender
        .set_write_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    // Each answer is most of a megabyte: some gigabytes, were they all made.
    let mut asked = 0_u64;
    for id in 1..4000 {
        let line = line_of(1_000_000 + id, "content", &json!({"path": "big"}));
        if sender.write_all(&line).is_err() {
            break;
        }
        asked += 1;
    }
    assert!(asked > 16, "{asked} requests were taken");
    let used = memory(&world);
    assert!(used < MEMORY_KIB, "{used} KiB for {asked} unread answers");
    let mut other = world.wire();
    assert_eq!(
        other.call("status", &json!({})).unwrap()["active"]["seq"],
        2
    );
    // And it gets them when it reads at last.
    for _ in 0..8 {
        assert!(deaf.receive().is_some());
    }
}

#[test]
fn a_watcher_that_never_reads_holds_nobody_up() {
    let world = seeded();
    let mut deaf = world.wire();
    let watch = deaf.call("watch", &json!({})).unwrap();
    assert_eq!(watch["event"], "snapshot");
    let mut writer = world.wire();
    let message = "m".repeat(4000);
    // More than the socket and the outbox hold.
    for n in 0..300 {
        let mut wanted = submission(&json!([{"op": "put", "path": "n", "content": n.to_string()}]));
        wanted["message"] = json!(message);
        writer
            .call("publish", &json!({"submission": wanted}))
            .unwrap();
    }
    let used = memory(&world);
    assert!(used < MEMORY_KIB, "{used} KiB");
    // What it finds when it reads is exact: every publication once, or `fresh` and then on.
    let mut seq = 1;
    while seq < 301 {
        let notice = deaf.receive().unwrap();
        let event = &notice["params"]["event"];
        let found = event["seq"].as_u64().unwrap();
        match event["event"].as_str().unwrap() {
            "published" => assert_eq!(found, seq + 1),
            "fresh" => assert!(found > seq),
            other => panic!("{other}"),
        }
        seq = found;
    }
}

#[test]
fn half_dead_clients_take_nothing_with_them() {
    let world = seeded();
    // Connected, and silent.
    let silent: Vec<UnixStream> = (0..20)
        .map(|_| UnixStream::connect(world.socket()).unwrap())
        .collect();
    // Half a line, then nothing; half a line, then gone.
    let mut half = Wire::connect(&world.socket()).unwrap();
    half.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"meth")
        .unwrap();
    let mut gone = Wire::connect(&world.socket()).unwrap();
    gone.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"meth")
        .unwrap();
    drop(gone);
    // Said hello and holds a lease, then stops sending.
    let mut leaser = world.wire();
    leaser
        .call("lease.acquire", &json!({"owner": "half"}))
        .unwrap();
    assert_eq!(
        world.json(&["lease", "list"])["leases"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    leaser.stop_sending();
    assert_eq!(leaser.rest(), Vec::<Value>::new(), "it is let go");
    until_true("its lease ends", || {
        world.json(&["lease", "list"])["leases"]
            .as_array()
            .unwrap()
            .is_empty()
    });
    assert_eq!(world.put("n", "n")["seq"], 2);
    drop((silent, half));
    until_true("they are forgotten", || {
        world.json(&["daemon", "status"])["connections"] == 1
    });
}

#[test]
fn as_many_clients_as_may_are_served_and_the_next_is_told() {
    let world = world();
    world.fill();
    world.configure("[limits]\nconnections = 20\n");
    world.json(&["init"]);
    let mut wires: Vec<Wire> = (0..20).map(|_| world.wire()).collect();
    let mut next = Wire::connect(&world.socket()).unwrap();
    let told = next.receive().unwrap();
    assert_eq!(code_of(&told["error"]["data"]), "limit-exceeded", "{told}");
    assert!(next.receive().is_none(), "then it is closed");
    world.refused(&["status"], "limit-exceeded");
    for wire in &mut wires {
        assert_eq!(wire.call("status", &json!({})).unwrap()["active"]["seq"], 1);
    }
    drop(wires.pop());
    until_true("there is room again", || {
        world.run(&["status"]).code == Some(0)
    });
}

#[test]
fn a_storm_of_connections_is_survived() {
    let world = seeded();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for round in 0..100 {
                    let mut wire = Wire::connect(&world.socket()).unwrap();
                    match round % 4 {
                        0 => drop(wire),
                        1 => drop(wire.send_bytes(b"{")),
                        _ => {
                            wire.hello(Some(&world.workspace()));
                            wire.call("status", &json!({})).unwrap();
                        }
                    }
                }
            });
        }
    });
    until_true("all are forgotten", || {
        world.json(&["daemon", "status"])["connections"] == 1
    });
    assert_eq!(world.put("n", "n")["seq"], 2);
}

#[test]
fn large_content_goes_ahead_in_pieces() {
    let world = seeded();
    let mut wire = world.wire();
    let content: Vec<u8> = (0..3_000_000_u32)
        .flat_map(|n| (n % 251).to_le_bytes())
        .take(2_500_000)
        .collect();
    let digest = sha256(&content);
    let bytes = content.len();
    let put = |wire: &mut Wire, offset: usize, piece: &[u8]| {
        let params =
            json!({"sha256": digest, "bytes": bytes, "offset": offset, "data": base64(piece)});
        wire.call("blob.put", &params)
    };
    // Content that was not sent, or not wholly, is refused.
    let change = json!([{"op": "put", "path": "big", "contentBlob": digest}]);
    let publish = json!({"submission": submission(&change)});
    wire.call("publish", &publish).unwrap_err();
    let size = 1 << 20;
    put(&mut wire, 0, &content[..size]).unwrap();
    wire.call("publish", &publish).unwrap_err();
    // A piece out of order is refused; the content goes on where it was, or from the start.
    put(&mut wire, 2 * size, &content[2 * size..]).unwrap_err();
    let received = put(&mut wire, size, &content[size..2 * size]);
    if received.is_err() {
        put(&mut wire, 0, &content[..size]).unwrap();
        put(&mut wire, size, &content[size..2 * size]).unwrap();
    }
    put(&mut wire, 2 * size, &content[2 * size..]).unwrap();
    let receipt = wire.call("publish", &publish).unwrap();
    assert_eq!(receipt["status"], "published");
    assert_eq!(world.ok(&["cat", "big"]).out, content);
    // It belongs to its connection alone.
    let change = json!([{"op": "put", "path": "other", "contentBlob": digest}]);
    let publish = json!({"submission": submission(&change)});
    let other = world.wire().call("publish", &publish);
    assert!(other.is_err(), "{other:?}");
    // Bytes that are not what their name says.
    let lie = json!({"sha256": sha256("x"), "bytes": 1, "offset": 0, "data": base64(b"y")});
    wire.call("blob.put", &lie).unwrap_err();
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
