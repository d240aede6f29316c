//! What the decoders make of anything: an answer or an error, never a panic, never more memory than the
//! limit.

use proptest::prelude::*;
use semaprax_protocol::limits::LINE_BYTES;
use semaprax_protocol::request::Request;
use semaprax_protocol::submission::Submission;
use semaprax_protocol::{FrameError, LineCodec, LogicalPath, Timestamp, rpc};

use crate::{answers, requests, schemas};

/// JSON of any shape, with names that the protocol knows.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let word = prop::sample::select(vec![
        "jsonrpc",
        "2.0",
        "id",
        "method",
        "params",
        "result",
        "error",
        "data",
        "notice",
        "publish",
        "submission",
        "changes",
        "op",
        "put",
        "path",
        "content",
        "schema",
        "event",
        "seq",
    ]);
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        word.clone().prop_map(Into::into),
        ".{0,8}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::vec((word.clone(), inner), 0..6).prop_map(|fields| {
                let fields = fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value));
                serde_json::Value::Object(fields.collect())
            }),
        ]
    })
}

fn every_line() -> Vec<Vec<u8>> {
    let samples = requests::samples()
        .into_iter()
        .chain(answers::samples())
        .chain(schemas::samples());
    samples.map(|sample| sample.bytes).collect()
}

fn decode(bytes: &[u8]) {
    drop(rpc::decode_request(bytes));
    drop(rpc::decode_incoming(bytes));
    drop(serde_json::from_slice::<Submission>(bytes));
}

proptest! {
    #[test]
    fn any_json_is_an_answer_or_an_error(value in json()) {
        let bytes = serde_json::to_vec(&value).unwrap();
        decode(&bytes);
        let raw = serde_json::value::to_raw_value(&value).unwrap();
        for method in Request::METHODS {
            drop(Request::parse(method, Some(&raw)));
            drop(requests::of_method(method).parse_reply(&raw));
        }
    }

    /// A good line with bytes changed, cut or doubled.
    #[test]
    fn a_damaged_line_is_an_answer_or_an_error(
        which in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        how in 0..3u8,
    ) {
        let lines = every_line();
        let mut line = which.get(&lines).clone();
        let place = place.index(line.len());
        match how {
            0 => line[place] = byte,
            1 => line.truncate(place),
            _ => line.insert(place, byte),
        }
        decode(&line);
    }

    #[test]
    fn what_was_accepted_is_written_and_read_again(value in json()) {
        let bytes = serde_json::to_vec(&value).unwrap();
        if let Ok((id, request)) = rpc::decode_request(&bytes) {
            let again = rpc::encode_request(id, &request).unwrap();
            let (back_id, back) = rpc::decode_request(&again).unwrap();
            prop_assert_eq!((back_id, back), (id, request));
        }
    }

    /// The codec gives what splitting at line feeds gives, however the bytes arrive, and refuses a
    /// line over the limit at once.
    #[test]
    fn lines_are_cut_as_a_simple_split_would(
        bytes in prop::collection::vec(prop::sample::select(b"ab\r\n".to_vec()), 0..80),
        cuts in prop::collection::vec(1usize..20, 1..20),
        limit in 1usize..12,
    ) {
        let mut codec = LineCodec::new(limit);
        let mut got = Vec::new();
        let mut failed = None;
        let mut rest = bytes.as_slice();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            rest = later;
            let pushed = codec.push(now);
            while let Some(line) = codec.next_line() { got.push(line); }
            if let Err(error) = pushed { failed = Some(error); break; }
        }
        let mut expect = Vec::new();
        let mut too_long = false;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if piece.len() > limit { too_long = true; break; }
            if let Some(line) = piece.strip_suffix(b"\n") {
                expect.push(line.strip_suffix(b"\r").unwrap_or(line).to_vec());
            }
        }
        prop_assert_eq!(failed, too_long.then_some(FrameError::TooLong { limit }));
        prop_assert_eq!(got, expect);
    }

    #[test]
    fn paths_and_times_read_back(text in ".{0,40}", nanos in any::<i64>()) {
        if let Ok(path) = text.parse::<LogicalPath>() {
            prop_assert_eq!(path.to_string(), text);
        }
        let moment = Timestamp::from_nanos(nanos);
        prop_assert_eq!(moment.to_string().parse::<Timestamp>(), Ok(moment));
    }
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    for open in ["[", "{\"a\":"] {
        let line = open.repeat(LINE_BYTES / open.len());
        decode(line.as_bytes());
        let whole = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"publish","params":{line}"#);
        decode(whole.as_bytes());
    }
}

#[test]
fn an_id_is_echoed_where_it_can_be_read() {
    let check = |line: &str, id: Option<u64>| {
        let bad = rpc::decode_request(line.as_bytes()).unwrap_err();
        assert_eq!(bad.id, id, "{line}");
        let answer = rpc::encode_bad_request(bad).unwrap();
        let rpc::Incoming::Answer { id: back, result } = rpc::decode_incoming(&answer).unwrap()
        else {
            panic!("an answer");
        };
        assert_eq!(back, id, "{line}");
        result.unwrap_err();
    };
    check(r#"{"jsonrpc":"2.0","id":5,"method":"nothing"}"#, Some(5));
    check(r#"{"jsonrpc":"2.0","id":5,"method":"show"}"#, Some(5));
    check(
        r#"{"jsonrpc":"2.0","id":5,"method":"show","params":[]}"#,
        Some(5),
    );
    check(r#"{"jsonrpc":"2.0","id":-5,"method":"show"}"#, None);
    check(r#"{"jsonrpc":"2.0","method":"show"}"#, None);
    check("\u{0}", None);
}
