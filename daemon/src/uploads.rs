//! Content that a connection sends ahead of its submissions, piece by piece.
//!
//! Owns: the order of pieces, the check of the digest, and the bound on what one connection holds.
//! Content that a submission has used makes room for new content; content that none has used yet is
//! never dropped.
//! Never: writes to disk, or knows which path the content is for.
//! Invariants: 9 (what is handed on is exactly what its SHA-256 names).

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use semaprax_protocol::limits::CHUNK_BYTES;
use semaprax_protocol::request::{BlobPut, BlobReceived, Request};
use semaprax_protocol::submission::Change;
use semaprax_protocol::{Code, Diagnostic, Limits, Refusal, Sha256};
use sha2::Digest as _;

/// What one connection has sent ahead.
#[derive(Debug, Default)]
pub struct SentAhead {
    whole: BTreeMap<Sha256, Whole>,
    partial: BTreeMap<Sha256, Partial>,
    /// Bytes of `whole`, and announced bytes of `partial`.
    held: u64,
    /// Bytes that came and are still here.
    in_memory: usize,
}

#[derive(Debug)]
struct Whole {
    content: Arc<Vec<u8>>,
    used: bool,
}

#[derive(Debug)]
struct Partial {
    bytes: u64,
    content: Vec<u8>,
    digest: sha2::Sha256,
}

impl SentAhead {
    /// Takes a piece.
    pub fn put(&mut self, piece: &BlobPut, limits: &Limits) -> Result<BlobReceived, Refusal> {
        let name = piece.sha256;
        if let Some(whole) = self.whole.get_mut(&name) {
            whole.used = false;
            return Ok(received(name, piece.bytes, true));
        }
        let data = decode(&piece.data)?;
        if piece.offset == 0 {
            self.forget(name);
            self.make_room(piece.bytes, limits)?;
            let digest = sha2::Sha256::new();
            let partial = Partial {
                bytes: piece.bytes,
                content: Vec::new(),
                digest,
            };
            self.held += partial.bytes;
            self.partial.insert(name, partial);
        }
        match self.append(piece, &data) {
            Ok(answer) => Ok(answer),
            Err(refusal) => {
                self.forget(name);
                Err(refusal)
            }
        }
    }

    /// How many bytes are held in memory.
    pub fn held(&self) -> usize {
        self.in_memory
    }

    /// The content that a request names, shared; it makes room for other content from now on.
    pub fn named_by(&mut self, request: &Request) -> BTreeMap<Sha256, Arc<Vec<u8>>> {
        let Request::Publish(publish) = request else {
            return BTreeMap::new();
        };
        let names = publish
            .submission
            .changes
            .iter()
            .filter_map(|change| match change {
                Change::Put { content_blob, .. } => *content_blob,
                _ => None,
            });
        let mut found = BTreeMap::new();
        for name in names {
            if let Some(whole) = self.whole.get_mut(&name) {
                whole.used = true;
                found.insert(name, Arc::clone(&whole.content));
            }
        }
        found
    }

    fn append(&mut self, piece: &BlobPut, data: &[u8]) -> Result<BlobReceived, Refusal> {
        let name = piece.sha256;
        let Some(partial) = self.partial.get_mut(&name) else {
            return Err(refuse(format!(
                "the first piece of `{name}` has not been sent: start at offset 0"
            )));
        };
        let so_far = partial.content.len() as u64;
        if piece.offset != so_far || piece.bytes != partial.bytes {
            return Err(refuse(format!(
                "the next piece of `{name}` starts at {so_far} of {} bytes, found {} of {}: start again at offset 0",
                partial.bytes, piece.offset, piece.bytes
            )));
        }
        let now = so_far + data.len() as u64;
        if now > partial.bytes {
            return Err(refuse(format!(
                "more than the announced {} bytes were sent for `{name}`",
                partial.bytes
            )));
        }
        if data.is_empty() && now < partial.bytes {
            return Err(refuse(format!("an empty piece was sent for `{name}`")));
        }
        partial.content.extend_from_slice(data);
        self.in_memory += data.len();
        partial.digest.update(data);
        if now < partial.bytes {
            return Ok(received(name, now, false));
        }
        let digest: [u8; 32] = partial.digest.clone().finalize().into();
        if Sha256::from_bytes(digest) != name {
            let found = Sha256::from_bytes(digest);
            return Err(refuse(format!(
                "the content sent as `{name}` has the SHA-256 `{found}`"
            )));
        }
        let content = Arc::new(std::mem::take(&mut partial.content));
        self.partial.remove(&name);
        self.whole.insert(
            name,
            Whole {
                content,
                used: false,
            },
        );
        Ok(received(name, now, true))
    }

    /// Drops used content until there is room.
    fn make_room(&mut self, bytes: u64, limits: &Limits) -> Result<(), Refusal> {
        let bound = limits.submission_bytes;
        if bytes > limits.file_bytes {
            let message = format!(
                "the content has {bytes} bytes, a file may have {}",
                limits.file_bytes
            );
            return Err(Diagnostic::new(Code::LimitExceeded, message).into());
        }
        // What little each content takes beside its bytes is bounded by their number.
        let is_many =
            |sent: &Self| (sent.whole.len() + sent.partial.len()) as u64 >= limits.changes;
        while self.held.saturating_add(bytes) > bound || is_many(self) {
            let used = self
                .whole
                .iter()
                .find(|(_, whole)| whole.used)
                .map(|(&name, _)| name);
            let Some(name) = used else {
                let message = format!(
                    "{} contents of {} bytes were sent ahead and not used; a submission has at most {} of {bound} bytes, and this one has {bytes}",
                    self.whole.len() + self.partial.len(),
                    self.held,
                    limits.changes
                );
                return Err(Diagnostic::new(Code::LimitExceeded, message).into());
            };
            self.forget(name);
        }
        Ok(())
    }

    fn forget(&mut self, name: Sha256) {
        if let Some(partial) = self.partial.remove(&name) {
            self.held -= partial.bytes;
            self.in_memory -= partial.content.len();
        }
        if let Some(whole) = self.whole.remove(&name) {
            self.held -= whole.content.len() as u64;
            self.in_memory -= whole.content.len();
        }
    }
}

fn decode(text: &str) -> Result<Vec<u8>, Refusal> {
    if text.len() > CHUNK_BYTES.div_ceil(3) * 4 {
        let message = format!("a piece of content has at most {CHUNK_BYTES} bytes");
        return Err(Diagnostic::new(Code::LimitExceeded, message).into());
    }
    STANDARD
        .decode(text)
        .map_err(|error| refuse(format!("the piece is not standard base64: {error}")))
}

fn received(sha256: Sha256, received: u64, complete: bool) -> BlobReceived {
    BlobReceived {
        sha256,
        received,
        complete,
    }
}

fn refuse(message: String) -> Refusal {
    Diagnostic::new(Code::InvalidRequest, message).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use semaprax_protocol::request::{Publish, PublishOptions};

    fn name_of(content: &[u8]) -> Sha256 {
        let digest: [u8; 32] = sha2::Sha256::digest(content).into();
        Sha256::from_bytes(digest)
    }

    fn piece(content: &[u8], offset: usize, length: usize) -> BlobPut {
        BlobPut {
            sha256: name_of(content),
            bytes: content.len() as u64,
            offset: offset as u64,
            data: STANDARD.encode(&content[offset..offset + length]),
        }
    }

    fn publish(content: &[u8]) -> Request {
        let text = format!(
            r#"{{"changes":[{{"op":"put","path":"x","contentBlob":"{}"}}]}}"#,
            name_of(content)
        );
        let submission = serde_json::from_str(&text).unwrap();
        Request::Publish(Publish {
            submission,
            options: PublishOptions::default(),
        })
    }

    /// Sends pieces in turn: `ok N`, `whole N`, or the code.
    fn check(pieces: &[BlobPut], expected: &str) {
        let mut sent = SentAhead::default();
        let limits = Limits {
            submission_bytes: 10,
            file_bytes: 8,
            ..Limits::default()
        };
        let words: Vec<String> = pieces
            .iter()
            .map(|piece| match sent.put(piece, &limits) {
                Ok(answer) if answer.complete => format!("whole {}", answer.received),
                Ok(answer) => format!("ok {}", answer.received),
                Err(refusal) => refusal.code().to_string(),
            })
            .collect();
        assert_eq!(words.join(", "), expected);
    }

    #[test]
    fn pieces_come_in_order_and_are_checked() {
        let content = b"abcdefgh";
        let whole = piece(content, 0, 8);
        check(std::slice::from_ref(&whole), "whole 8");
        check(
            &[piece(content, 0, 3), piece(content, 3, 5), whole.clone()],
            "ok 3, whole 8, whole 8",
        );
        check(&[piece(content, 3, 5)], "invalid-request");
        check(
            &[piece(content, 0, 3), piece(content, 4, 4), whole.clone()],
            "ok 3, invalid-request, whole 8",
        );
        check(
            &[piece(content, 0, 3), piece(content, 3, 0)],
            "ok 3, invalid-request",
        );
        check(&[piece(b"", 0, 0)], "whole 0");
        let wrong = BlobPut {
            sha256: name_of(b"else"),
            ..whole.clone()
        };
        check(&[wrong], "invalid-request");
        let more = BlobPut {
            bytes: 4,
            ..whole.clone()
        };
        check(&[more], "invalid-request");
        let text = BlobPut {
            data: "*".to_owned(),
            ..whole.clone()
        };
        check(&[text], "invalid-request");
        check(&[piece(b"123456789", 0, 1)], "limit-exceeded");
        check(&[whole, piece(b"123", 0, 1)], "whole 8, limit-exceeded");
    }

    #[test]
    fn only_used_content_makes_room() {
        let mut sent = SentAhead::default();
        let limits = Limits {
            submission_bytes: 10,
            ..Limits::default()
        };
        let (first, second) = (b"abcdefgh", b"12345678");
        sent.put(&piece(first, 0, 8), &limits).unwrap();
        assert!(sent.put(&piece(second, 0, 8), &limits).is_err());
        assert_eq!(sent.named_by(&publish(first)).len(), 1);
        assert!(sent.put(&piece(second, 0, 8), &limits).unwrap().complete);
        assert!(sent.named_by(&publish(first)).is_empty());
        assert_eq!((sent.held, sent.held()), (8, 8));
    }

    /// Each content takes more than its bytes: many small ones are bounded by their number.
    #[test]
    fn the_number_of_contents_is_bounded() {
        let limits = Limits {
            changes: 3,
            ..Limits::default()
        };
        let mut sent = SentAhead::default();
        let text = |n: u8| [n; 2];
        let begin = |sent: &mut SentAhead, n: u8, bytes: u64| {
            let first = BlobPut {
                bytes,
                ..piece(&text(n), 0, 2)
            };
            sent.put(&first, &limits)
        };
        // Whole or only begun, it counts.
        begin(&mut sent, 1, 2).unwrap();
        begin(&mut sent, 2, 9).unwrap();
        begin(&mut sent, 3, 9).unwrap();
        assert_eq!(
            begin(&mut sent, 4, 2).unwrap_err().code(),
            Code::LimitExceeded
        );
        assert_eq!((sent.held, sent.held()), (20, 6));
        // What is used makes room.
        assert_eq!(sent.named_by(&publish(&text(1))).len(), 1);
        begin(&mut sent, 4, 2).unwrap();
        // To begin one anew takes no more room than it had.
        begin(&mut sent, 2, 9).unwrap();
        assert_eq!((sent.held, sent.held()), (20, 6));
    }
}
