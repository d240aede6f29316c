//! JSON-RPC 2.0 envelopes: one object a line.
//!
//! Owns: the shape of requests, answers and notices on the wire, and how a refusal travels in an
//! error. Never: reads or writes a socket.

use schemars::JsonSchema;
use serde::de::MapAccess;
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::documents::WatchEvent;
use crate::object::{ReadObject, read_object};
use crate::reading::read_json;
use crate::request::{Request, Response};
use crate::{Code, Diagnostic, Refusal, SubmissionId};

/// The error number of every refusal; which one is in its data.
const REFUSED: i64 = -32000;
/// JSON-RPC's own number for a line that is not JSON.
const PARSE_ERROR: i64 = -32700;
/// JSON-RPC's own number for JSON that is not a request.
const NOT_A_REQUEST: i64 = -32600;

#[derive(Serialize, Deserialize)]
#[serde(remote = "Self")]
struct RequestLine<'line> {
    jsonrpc: std::borrow::Cow<'line, str>,
    id: u64,
    method: std::borrow::Cow<'line, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    params: Option<&'line RawValue>,
}

impl Serialize for RequestLine<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RequestLine::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for RequestLine<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> ReadObject<'de, RequestLine<'de>> for Fields {
            fn read<M: MapAccess<'de>>(
                self,
                map: MapAccessDeserializer<M>,
            ) -> Result<RequestLine<'de>, M::Error> {
                RequestLine::deserialize(map)
            }
        }

        read_object(deserializer, Fields)
    }
}

#[derive(Serialize, Deserialize)]
struct ErrorBody {
    code: i64,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Refusal>,
}

#[derive(Serialize, Deserialize)]
struct ServerLine {
    jsonrpc: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    params: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

#[derive(Serialize)]
struct BadRequestLine {
    jsonrpc: &'static str,
    id: Option<u64>,
    error: ErrorBody,
}

/// What the daemon says on its own while a request is under way; `request` is the id of that request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "notice", rename_all = "lowercase")]
pub enum Notice {
    /// An import goes on.
    Progress {
        /// The request.
        request: u64,
        /// Files done.
        done: u64,
        /// Files in all, where known.
        total: Option<u64>,
    },
    /// A submission waits.
    Queued {
        /// The request.
        request: u64,
        /// The submission, which may have been given its name just now.
        submission: SubmissionId,
        /// Its place, 1 for the next one.
        position: u64,
    },
    /// A subscriber is told of a publication.
    Event {
        /// The `watch` request.
        request: u64,
        /// What happened.
        event: Box<WatchEvent>,
    },
}

/// A line from the daemon.
#[derive(Debug)]
pub enum Incoming {
    /// The answer to the request with this id; its result is read with `Request::parse_reply`.
    Answer {
        /// The id of the request; `None` where the daemon could not read it.
        id: Option<u64>,
        /// The result, or why there is none.
        result: Result<Box<RawValue>, Refusal>,
    },
    /// A notice.
    Notice(Notice),
}

/// Why a line was not a request, with the id where it could be read.
#[derive(Debug)]
pub struct BadRequest {
    /// The id of the request, where it could be read.
    pub id: Option<u64>,
    /// What is wrong.
    pub refusal: Refusal,
    number: i64,
}

/// Reads a request line.
///
/// ```
/// use semaprax_protocol::rpc;
/// let (id, request) = rpc::decode_request(br#"{"jsonrpc":"2.0","id":7,"method":"queue"}"#).unwrap();
/// assert_eq!((id, request.method()), (7, "queue"));
/// assert!(rpc::decode_request(b"{").is_err());
/// ```
pub fn decode_request(line: &[u8]) -> Result<(u64, Request), BadRequest> {
    let parsed: RequestLine<'_> = read_json(line).map_err(|reason| {
        let number = if reason.is_json() {
            NOT_A_REQUEST
        } else {
            PARSE_ERROR
        };
        let message = format!("the line is not a JSON-RPC request: {reason}");
        BadRequest {
            id: None,
            refusal: Diagnostic::new(Code::InvalidRequest, message).into(),
            number,
        }
    })?;
    let id = parsed.id;
    let bad = |refusal, number| BadRequest {
        id: Some(id),
        refusal,
        number,
    };
    if parsed.jsonrpc != "2.0" {
        let message = "the field `jsonrpc` must be \"2.0\"";
        return Err(bad(
            Diagnostic::new(Code::InvalidRequest, message).into(),
            NOT_A_REQUEST,
        ));
    }
    match Request::parse(&parsed.method, parsed.params) {
        Ok(request) => Ok((id, request)),
        Err(refusal) => Err(bad(refusal, REFUSED)),
    }
}

/// Writes a request line, line feed included.
pub fn encode_request(id: u64, request: &Request) -> Result<Vec<u8>, serde_json::Error> {
    let params = request.params()?;
    let method = request.method().into();
    line(&RequestLine {
        jsonrpc: "2.0".into(),
        id,
        method,
        params: Some(&params),
    })
}

/// Writes the line that answers request `id`, line feed included.
pub fn encode_answer(
    id: u64,
    answer: Result<&Response, Refusal>,
) -> Result<Vec<u8>, serde_json::Error> {
    match answer {
        Ok(response) => line(&server_line(Some(id), Some(response.result()?), None)),
        Err(refusal) => line(&server_line(
            Some(id),
            None,
            Some(error_body(refusal, REFUSED)),
        )),
    }
}

/// Writes the line that answers something that was no request, line feed included. Its id is null
/// where none could be read, as JSON-RPC asks.
pub fn encode_bad_request(bad: BadRequest) -> Result<Vec<u8>, serde_json::Error> {
    line(&BadRequestLine {
        jsonrpc: "2.0",
        id: bad.id,
        error: error_body(bad.refusal, bad.number),
    })
}

/// Writes a notice line, line feed included.
pub fn encode_notice(notice: &Notice) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = server_line(None, None, None);
    out.method = Some("notice".to_owned());
    out.params = Some(serde_json::value::to_raw_value(notice)?);
    line(&out)
}

/// Reads a line from the daemon.
pub fn decode_incoming(bytes: &[u8]) -> Result<Incoming, serde_json::Error> {
    let parsed: ServerLine = serde_json::from_slice(bytes)?;
    if let Some(error) = parsed.error {
        let refusal = error
            .data
            .unwrap_or_else(|| Diagnostic::new(Code::InvalidRequest, error.message).into());
        return Ok(Incoming::Answer {
            id: parsed.id,
            result: Err(refusal),
        });
    }
    match (parsed.result, parsed.params) {
        (Some(result), _) => Ok(Incoming::Answer {
            id: parsed.id,
            result: Ok(result),
        }),
        (None, Some(params)) => serde_json::from_str(params.get()).map(Incoming::Notice),
        (None, None) => Err(serde::de::Error::custom("neither an answer nor a notice")),
    }
}

fn error_body(refusal: Refusal, number: i64) -> ErrorBody {
    ErrorBody {
        code: number,
        message: refusal.to_string(),
        data: Some(refusal),
    }
}

fn server_line(
    id: Option<u64>,
    result: Option<Box<RawValue>>,
    error: Option<ErrorBody>,
) -> ServerLine {
    ServerLine {
        jsonrpc: "2.0".to_owned(),
        id,
        method: None,
        params: None,
        result,
        error,
    }
}

fn line<T: Serialize>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Log, QueueParams};
    use proptest::prelude::*;

    #[test]
    fn a_request_survives_the_wire() {
        let request = Request::Log(Log {
            limit: Some(3),
            before: None,
            path: None,
            author: None,
        });
        let bytes = encode_request(9, &request).unwrap();
        assert!(bytes.ends_with(b"\n"));
        let (id, back) = decode_request(&bytes).unwrap();
        assert_eq!((id, back), (9, request));
    }

    #[test]
    fn a_refusal_survives_the_wire() {
        let refusal = Refusal::new(Diagnostic::new(Code::NotFound, "there is no `x`").at("x"))
            .in_submission();
        let bytes = encode_answer(4, Err(refusal.clone())).unwrap();
        match decode_incoming(&bytes).unwrap() {
            Incoming::Answer { id, result } => {
                assert_eq!(id, Some(4));
                assert_eq!(result.unwrap_err(), refusal);
            }
            Incoming::Notice(notice) => panic!("{notice:?}"),
        }
    }

    #[test]
    fn bad_lines_say_what_is_wrong() {
        let check = |text: &str, number: i64, id: Option<u64>| {
            let bad = decode_request(text.as_bytes()).unwrap_err();
            assert_eq!((bad.number, bad.id), (number, id), "{text}");
        };
        check("{", PARSE_ERROR, None);
        check("[]", NOT_A_REQUEST, None);
        check(
            r#"{"jsonrpc":"1.0","id":1,"method":"queue"}"#,
            NOT_A_REQUEST,
            Some(1),
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"no"}"#,
            REFUSED,
            Some(1),
        );
        check(
            r#"{"jsonrpc":"2.0","id":"x","method":"queue"}"#,
            NOT_A_REQUEST,
            None,
        );
    }

    #[test]
    fn an_unreadable_request_is_answered_with_a_null_id() {
        let line = encode_bad_request(decode_request(b"{").unwrap_err()).unwrap();
        assert!(String::from_utf8(line).unwrap().contains(r#""id":null"#));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(decode_request(&bytes));
            drop(decode_incoming(&bytes));
        }
    }

    #[test]
    fn an_empty_parameter_object_is_enough() {
        let request = Request::Queue(QueueParams {});
        assert_eq!(request.params().unwrap().get(), "{}");
    }
}
