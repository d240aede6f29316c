//! A client that dies at each step of each request.

use std::path::Path;

use semaprax_protocol::request::Request;
use semaprax_tests::process::{Wire, World, line_of, new_id, sha256, submission, until_true};
use serde_json::{Value, json};

use crate::{reached, seeded, times};

/// Parameters with which a method does what it is for.
fn params(method: &str, world: &World) -> Value {
    let change = json!([{"op": "put", "path": "dying", "content": new_id()}]);
    let export = world
        .directory()
        .join(format!("copy-{}", new_id().as_str().unwrap()));
    match method {
        "hello" => hello(&world.workspace()),
        "init" => json!({"directory": world.directory().join("other")}),
        "resolve" | "show" | "why" | "pin" | "unpin" => json!({"revision": "@"}),
        "rollback" => json!({"revision": "@1"}),
        "diff" => json!({"from": "@1"}),
        "content" | "blame" => json!({"path": "README.md"}),
        "blob.put" => json!({"sha256": sha256("abc"), "bytes": 3, "offset": 0, "data": "YWJj"}),
        "publish" => json!({"submission": submission(&change)}),
        "publish.directory" => json!({"directory": world.directory().join("other"), "base": "@"}),
        "revert" => json!({"seq": 2}),
        "cancel" => json!({"submission": new_id()}),
        "lease.renew" | "lease.release" => json!({"lease": new_id()}),
        "export" => json!({"directory": export}),
        "journal" => json!({"since": 1_000_000, "waitMs": 600_000}),
        "verify" => json!({"deep": true}),
        _ => json!({}),
    }
}

fn hello(workspace: &Path) -> Value {
    json!({"protocol": {"oldest": 1, "newest": 1}, "client": "dying", "workspace": workspace})
}

/// Sends `bytes` and dies: with what the daemon answered unread, or after the sending side alone.
fn die(mut wire: Wire, bytes: &[u8], waits: bool) {
    // The daemon may have closed already.
    drop(wire.send_bytes(bytes));
    if waits {
        wire.stop_sending();
        drop(wire.rest());
    }
}

#[test]
fn a_client_may_die_at_each_step_of_each_request() {
    let world = seeded();
    world.write("other/file", "x");
    world.put("n", "0");
    let pid = world.daemon().unwrap();
    let mut good = world.wire();
    let mut count = 0;
    for round in 0..times(1, 10) {
        for method in Request::METHODS {
            let line = line_of(2, method, &params(method, &world));
            let mut cuts = vec![0, 1, line.len() / 2, line.len() - 2, line.len() - 1];
            // A whole request to leave is carried out.
            if *method != "daemon.stop" {
                cuts.push(line.len());
            }
            for cut in cuts {
                for (greets, waits) in [(true, false), (true, true), (false, false)] {
                    let mut wire = Wire::connect(&world.socket()).unwrap();
                    if greets {
                        wire.hello(Some(&world.workspace()));
                    }
                    die(wire, &line[..cut], waits);
                    count += 1;
                }
            }
            // Two requests, the second cut.
            let twice = [
                line_of(3, "status", &json!({})),
                line[..line.len() / 2].to_vec(),
            ]
            .concat();
            die(world.wire(), &twice, false);
            count += 1;
            // Another client is served after each.
            let change =
                json!([{"op": "put", "path": "n", "content": format!("{round} {method}")}]);
            let receipt = good.call("publish", &json!({"submission": submission(&change)}));
            assert_eq!(receipt.unwrap()["status"], "published", "after {method}");
        }
    }
    drop(good);
    until_true("all are forgotten, and nothing waits or is held", || {
        let status = world.json(&["status"]);
        let daemon = world.json(&["daemon", "status"]);
        daemon["connections"] == 1
            && status["leases"] == 0
            && status["queue"]["waiting"] == 0
            && status["queue"]["running"] == 0
    });
    assert_eq!(world.daemon(), Some(pid), "it is the same daemon");
    assert_eq!(world.json(&["verify", "--deep"])["status"], "ok");
    let log = world.log();
    assert!(!log.contains("panicked"), "{log}");
    reached("deaths of clients", count, 600);
}
