//! Requests that are none: the wrong type in every field of every method, nesting without end, every
//! order but the right one, a byte at a time.

use std::fs;
use std::io::Write;
use std::path::Path;

use semaprax_protocol::request::Request;
use semaprax_tests::process::{Wire, line_of, submission, until_true};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::{code_of, reached, seeded, times};

/// Words of the JSON library and of our sources that no client should have to read.
const INTERNAL: [&str; 9] = [
    " at line ",
    "missing field",
    "unknown field",
    "unknown variant",
    "invalid type",
    "invalid value",
    "invalid length",
    "struct ",
    "enum ",
];

/// The parameters of the committed sample of a method: every field there is.
fn sample(method: &str) -> Value {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/wire");
    let line = fs::read(corpus.join(format!("request-{method}.json"))).unwrap();
    let line: Value = serde_json::from_slice(&line).unwrap();
    line["params"].clone()
}

/// One of each type, and some that are the right type and no sense.
fn wrong_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("\u{0}"),
        json!("x".repeat(10_000)),
        json!([]),
        json!([true, 1, "x"]),
        json!([[[]]]),
        json!({}),
        json!({"unknown": 1}),
    ]
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

/// The JSON pointers to every value in a value, itself included.
fn pointers(value: &Value, here: &str, found: &mut Vec<String>) {
    found.push(here.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, &format!("{here}/{index}"), found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                pointers(field, &format!("{here}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// Parameters with one value replaced, and whether its type is another one now.
fn mutations(params: &Value) -> Vec<(String, Value, bool)> {
    let mut places = Vec::new();
    pointers(params, "", &mut places);
    let mut made = Vec::new();
    for place in places {
        let old = params.pointer(&place).unwrap();
        for value in wrong_values() {
            // No parameters at all are none.
            if place.is_empty() && value.is_null() {
                continue;
            }
            let is_other = kind(&value) != kind(old) && !value.is_null();
            let mut mutated = params.clone();
            *mutated.pointer_mut(&place).unwrap() = value.clone();
            let shown: String = value.to_string().chars().take(20).collect();
            made.push((format!("{place} = {shown}"), mutated, is_other));
        }
        if old.is_object() {
            let mut mutated = params.clone();
            mutated.pointer_mut(&place).unwrap()["no such field"] = json!(1);
            made.push((format!("{place} + unknown"), mutated, true));
        }
    }
    made
}

/// What the decoder refuses, the daemon refuses in plain words; nothing of the wrong type gets through.
#[test]
fn every_field_of_every_request_refuses_the_wrong_type() {
    let world = seeded();
    let mut wire = world.wire();
    let (mut refused, mut accepted) = (0, 0);
    let mut wrong = Vec::new();
    for method in Request::METHODS {
        let mut lines = Vec::new();
        let mut shown = Vec::new();
        for (what, params, is_other) in mutations(&sample(method)) {
            match Request::parse(method, Some(&to_raw_value(&params).unwrap())) {
                Ok(_) if is_other => wrong.push(format!("{method} {what}: accepted")),
                Ok(_) => accepted += 1,
                Err(_) => {
                    lines.extend(line_of(1_000_000 + shown.len() as u64, method, &params));
                    shown.push(what);
                }
            }
        }
        let mut sender = wire.sender();
        let sending = std::thread::spawn(move || sender.write_all(&lines));
        for (index, what) in shown.iter().enumerate() {
            let refusal = wire.answer(1_000_000 + index as u64).unwrap_err();
            refused += 1;
            let message = refusal["diagnostics"][0]["message"].as_str().unwrap();
            let code = code_of(&refusal);
            let expected = if *method == "publish" {
                "invalid-submission"
            } else {
                "invalid-request"
            };
            if code != expected || INTERNAL.iter().any(|word| message.contains(word)) {
                wrong.push(format!("{method} {what}: {code}: {message}"));
            }
        }
        sending.join().unwrap().unwrap();
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(wire.call("status", &json!({})).unwrap()["active"]["seq"], 1);
    reached("requests with a wrong field, refused", refused, 2000);
    reached(
        "requests with an odd field, accepted by type",
        accepted,
        100,
    );
}

/// JSON nested `depth` times, at each place where JSON may stand.
#[test]
fn nesting_is_refused_and_the_connection_lives() {
    let world = seeded();
    let mut wire = world.wire();
    let mut count = 0;
    for depth in [100, 126, 127, 128, 129, 1000, 100_000, 1_000_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            for closed in [true, false] {
                let middle = if open == "[" { "" } else { "1" };
                let close = if closed { close } else { "" };
                let deep = format!("{}{middle}{}", open.repeat(depth), close.repeat(depth));
                for around in [
                    "DEEP",
                    r#"{"jsonrpc":"2.0","id":DEEP,"method":"status"}"#,
                    r#"{"jsonrpc":"2.0","id":5,"method":DEEP}"#,
                    r#"{"jsonrpc":"2.0","id":5,"method":"status","params":DEEP}"#,
                    r#"{"jsonrpc":"2.0","id":5,"method":"status","params":{"drift":DEEP}}"#,
                    r#"{"jsonrpc":"2.0","id":5,"method":"status","more":DEEP}"#,
                    r#"{"jsonrpc":"2.0","id":5,"method":"publish","params":{"submission":{"changes":[DEEP]}}}"#,
                    r#"{"jsonrpc":"2.0","id":5,"method":"publish","params":{"submission":{"changes":[{"op":"put","path":DEEP}]}}}"#,
                    r#"{"jsonrpc":"2.0","id":5,"method":"publish","params":{"submission":{"changes":[{"op":"put","path":"a","odd":DEEP}]}}}"#,
                ] {
                    let line = around.replace("DEEP", &deep);
                    if line.len() >= semaprax_protocol::limits::LINE_BYTES {
                        continue;
                    }
                    wire.send_bytes(line.as_bytes()).unwrap();
                    wire.send_bytes(b"\n").unwrap();
                    let answer = wire.receive().unwrap();
                    let what = format!("{depth} {open} closed {closed} in {around}");
                    // A field of the envelope that nobody knows is passed over, however deep it is.
                    if answer.get("result").is_some() {
                        assert!(around.contains("more") && closed, "{what}: {answer}");
                        continue;
                    }
                    let refusal = &answer["error"]["data"];
                    let code = code_of(refusal);
                    assert!(
                        ["invalid-request", "invalid-submission"].contains(&code),
                        "{what}: {answer}"
                    );
                    let message = refusal["diagnostics"][0]["message"].as_str().unwrap();
                    assert!(
                        !INTERNAL.iter().any(|word| message.contains(word)) && message.len() < 400,
                        "{what}: {message}"
                    );
                    count += 1;
                }
            }
        }
    }
    assert_eq!(wire.call("status", &json!({})).unwrap()["active"]["seq"], 1);
    reached("nested lines refused", count, 200);
}

/// Every sequence of three of these, each on a connection of its own.
#[test]
fn requests_in_every_order_get_one_answer_each() {
    let world = seeded();
    let hello = json!({"protocol": {"oldest": 1, "newest": 1}, "client": "odd", "workspace": world.workspace()});
    let unknown = "11111111-2222-4333-8444-555555555555";
    let digest = "00".repeat(32);
    let blob = json!([{"op": "put", "path": "a", "contentBlob": digest}]);
    let steps: Vec<(&str, Value)> = vec![
        ("hello", hello),
        (
            "hello",
            json!({"protocol": {"oldest": 8, "newest": 9}, "client": "odd"}),
        ),
        (
            "hello",
            json!({"protocol": {"oldest": 1, "newest": 1}, "client": "odd", "workspace": "/nowhere"}),
        ),
        ("status", json!({})),
        ("daemon.status", json!({})),
        (
            "blob.put",
            json!({"sha256": digest, "bytes": 9, "offset": 4, "data": "AAAA"}),
        ),
        ("publish", json!({"submission": submission(&blob)})),
        ("cancel", json!({"submission": unknown})),
        ("lease.release", json!({"lease": unknown})),
        ("watch", json!({"since": "9999"})),
        ("no such method", json!({})),
    ];
    let mut sequences: Vec<Vec<usize>> = vec![Vec::new()];
    let mut count = 0;
    for _ in 0..times(2, 3) {
        sequences = sequences
            .iter()
            .flat_map(|before| {
                (0..steps.len()).map(|next| before.iter().copied().chain([next]).collect())
            })
            .collect();
        for sequence in &sequences {
            let mut wire = Wire::connect(&world.socket()).unwrap();
            let mut lines = Vec::new();
            for (place, &step) in sequence.iter().enumerate() {
                lines.extend(line_of(place as u64, steps[step].0, &steps[step].1));
            }
            // All at once: what follows a greeting must wait for it.
            wire.send_bytes(&lines).unwrap();
            let mut greeted = false;
            for (place, &step) in sequence.iter().enumerate() {
                let answer = wire.answer(place as u64);
                let first = step == 0 && !greeted;
                greeted |= first;
                let served = first || (greeted && [3, 4].contains(&step));
                let known = answer.is_ok() == served || (step == 9 && greeted);
                assert!(known, "{sequence:?} at {place}: {answer:?}");
            }
            count += 1;
        }
    }
    until_true("they are forgotten", || {
        world.json(&["daemon", "status"])["connections"] == 1
    });
    assert_eq!(world.json(&["status"])["active"]["seq"], 1);
    reached("orders of requests", count, 130);
}

/// Many clients that send a byte now and then; for each byte of each, another client is served whole.
#[test]
fn slow_clients_hold_nobody_up() {
    let world = seeded();
    let mut good = world.wire();
    let count = times(60, 600);
    let mut slow: Vec<Wire> = (0..count).map(|_| world.wire()).collect();
    let line = line_of(9, "resolve", &json!({"revision": "@"}));
    for (place, byte) in line.iter().enumerate() {
        for wire in &mut slow {
            wire.send_bytes(&[*byte]).unwrap();
        }
        if place % 8 == 0 {
            let change = json!([{"op": "put", "path": "n", "content": place.to_string()}]);
            let receipt = good.call("publish", &json!({"submission": submission(&change)}));
            assert_eq!(receipt.unwrap()["status"], "published", "{place}");
        }
    }
    let active = good.call("status", &json!({})).unwrap()["active"]["seq"].clone();
    for wire in &mut slow {
        assert_eq!(wire.answer(9).unwrap()["seq"], active);
    }
    reached("bytes sent one by one", count * line.len(), 3000);
}

/// Whatever was sent before, a client that closes its sending side is gone, and so is what it held.
#[test]
fn half_closed_connections_end() {
    let world = seeded();
    let before: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"{".to_vec(),
        b"\n\n".to_vec(),
        line_of(2, "status", &json!({})),
        (2..200)
            .flat_map(|id| line_of(id, "ls", &json!({})))
            .collect(),
        line_of(2, "watch", &json!({})),
        line_of(2, "lease.acquire", &json!({})),
        line_of(
            2,
            "journal",
            &json!({"since": 1_000_000, "waitMs": 600_000}),
        ),
        [line_of(2, "status", &json!({})), vec![b'x'; 100_000]].concat(),
    ];
    let mut count = 0;
    for _ in 0..times(3, 30) {
        for lines in &before {
            for greets in [true, false] {
                let mut wire = Wire::connect(&world.socket()).unwrap();
                if greets {
                    wire.hello(Some(&world.workspace()));
                }
                wire.send_bytes(lines).unwrap();
                wire.stop_sending();
                // The end comes; what was answered before it may come first.
                drop(wire.rest());
                count += 1;
            }
        }
    }
    until_true("nothing of them is left", || {
        let status = world.json(&["daemon", "status"])["connections"] == 1;
        let leases = world.json(&["lease", "list"]);
        status && leases["leases"].as_array().unwrap().is_empty()
    });
    reached("half-closed connections", count, 54);
}
