//! What comes over the socket.

use semaprax_daemon::session::{Action, Session};
use semaprax_protocol::limits::{CONNECTION_REQUESTS, LINE_BYTES};
use semaprax_protocol::reading::read_json;
use semaprax_protocol::request::Request;
use semaprax_protocol::submission::Submission;
use semaprax_protocol::{Limits, LineCodec, rpc};

/// However the bytes are cut, the lines are the same, and no line is longer than the limit.
pub(crate) fn frame(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else {
        return;
    };
    let (limit, piece) = (usize::from(first % 32) + 1, usize::from(first / 32) + 1);
    let cut = |piece: usize| {
        let mut codec = LineCodec::new(limit);
        let mut lines = Vec::new();
        for piece in bytes.chunks(piece) {
            let pushed = codec.push(piece);
            while let Some(line) = codec.next_line() {
                assert!(line.len() < limit && !line.contains(&b'\n'));
                lines.push(line);
            }
            if pushed.is_err() {
                return (lines, None);
            }
            assert!(codec.held() <= limit);
        }
        (lines, Some(codec.held()))
    };
    assert_eq!(cut(piece), cut(bytes.len().max(1)));
}

/// A request is read, or refused in plain words; what was read is written and read as the same.
pub(crate) fn request(bytes: &[u8]) {
    match rpc::decode_request(bytes) {
        Ok((id, request)) => {
            let again = rpc::encode_request(id, &request).unwrap();
            assert_eq!(rpc::decode_request(&again).unwrap(), (id, request));
        }
        Err(bad) => {
            let message = bad.refusal.to_string();
            for word in [
                " at line ",
                "missing field",
                "unknown field",
                "invalid type",
            ] {
                // A name or a text of the request may hold these words too.
                let theirs = String::from_utf8_lossy(bytes).contains(word.trim());
                assert!(theirs || !message.contains(word), "{message}");
            }
            let line = rpc::encode_bad_request(bad).unwrap();
            rpc::decode_incoming(&line).unwrap();
        }
    }
}

/// An answer is read, or refused: the client trusts a daemon no more than the daemon a client.
pub(crate) fn reply(bytes: &[u8]) {
    let Ok(rpc::Incoming::Answer {
        result: Ok(result), ..
    }) = rpc::decode_incoming(bytes)
    else {
        return;
    };
    for method in Request::METHODS {
        // Only those that need no parameters: the answers of the others are of the same types.
        if let Ok(request) = Request::parse(method, None)
            && let Ok(response) = request.parse_reply(&result)
        {
            let again = response.result().unwrap();
            assert_eq!(request.parse_reply(&again).unwrap(), response);
        }
    }
}

/// A submission is read, or refused; what was read is written and read as the same.
pub(crate) fn submission(bytes: &[u8]) {
    if let Ok(submission) = read_json::<Submission>(bytes) {
        let again = serde_json::to_vec(&submission).unwrap();
        assert_eq!(read_json::<Submission>(&again).unwrap(), submission);
    }
}

/// Whatever a connection is sent, in pieces of whatever size, it stays within its bounds, and everything
/// is given back at its end.
pub(crate) fn session(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else {
        return;
    };
    let limits = Limits {
        changes: 4,
        submission_bytes: 64,
        ..Limits::default()
    };
    let mut session = Session::new(limits.clone());
    let (mut under_way, mut ended) = (Vec::new(), false);
    for piece in bytes.chunks(usize::from(first) + 1) {
        assert!(!ended || !session.wants_bytes());
        session.receive(piece);
        while let Some(action) = session.next_action() {
            match action {
                Action::Greet {
                    request, workspace, ..
                } => {
                    session.answered(request);
                    let named = workspace.is_some();
                    session.greeted(if named {
                        Ok(Some(limits.clone()))
                    } else {
                        Ok(None)
                    });
                }
                Action::Serve(call) => under_way.push(call.id),
                Action::Answer(..) => {}
                Action::Send(line) => assert!(line.ends_with(b"\n") && line.len() < LINE_BYTES),
                Action::End => ended = true,
            }
            assert!(under_way.len() <= CONNECTION_REQUESTS);
        }
        // Half of what is under way is answered now and then.
        if first % 2 == 0 {
            for id in under_way.drain(..under_way.len() / 2) {
                assert!(session.answered(id));
            }
        }
    }
    session.no_room();
    session.end();
    assert_eq!(session.held(), 0);
}
