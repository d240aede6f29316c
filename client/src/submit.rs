//! Sending a submission: content that is large goes ahead in pieces.
//!
//! Owns: what is sent in line and what is sent ahead, and doing both again, on a new connection, when
//! the daemon went away before it answered.
//! Never: changes what is submitted: the same bytes get the same paths whichever way they travel.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use semaprax_protocol::documents::Receipt;
use semaprax_protocol::limits::{CHUNK_BYTES, LINE_BYTES};
use semaprax_protocol::request::{BlobPut, Publish, PublishOptions, Request, Response};
use semaprax_protocol::submission::{Change, Submission};
use semaprax_protocol::{Code, Diagnostic, Refusal, Sha256, rpc};

use crate::client::{is_worth_repeating, new_submission_id};
use crate::read::sha256_of;
use crate::transport::{CallError, NoticeSink};
use crate::{Client, error};

/// Content of more bytes than this is sent ahead.
const INLINE_BYTES: usize = 64 << 10;
/// When a line is too long all the same, content of more bytes than this is sent ahead too.
const SMALL_BYTES: usize = 256;

/// Content to be sent ahead, by digest.
type Blobs = BTreeMap<Sha256, Vec<u8>>;

impl Client {
    /// Publishes a submission. Content of any size may stand in it.
    pub fn publish(
        &mut self,
        mut submission: Submission,
        options: PublishOptions,
        notices: NoticeSink<'_>,
    ) -> Result<Receipt, Refusal> {
        submission.id.get_or_insert_with(new_submission_id);
        let mut blobs = Blobs::new();
        let mut request = Request::Publish(Publish {
            submission,
            options,
        });
        send_ahead(&mut request, INLINE_BYTES, &mut blobs)?;
        if line_bytes(&request)? > LINE_BYTES {
            send_ahead(&mut request, SMALL_BYTES, &mut blobs)?;
        }
        let answer = match self.send(&request, &blobs, notices) {
            Err(failed) if is_worth_repeating(&failed) => {
                self.reconnect()?;
                self.send(&request, &blobs, notices)
            }
            other => other,
        };
        match answer.map_err(CallError::into_refusal)? {
            Response::Publish(receipt) => Ok(receipt),
            _ => Err(error::internal(
                "`publish` was answered with another answer",
            )),
        }
    }

    fn send(
        &mut self,
        request: &Request,
        blobs: &Blobs,
        notices: NoticeSink<'_>,
    ) -> Result<Response, CallError> {
        for (digest, content) in blobs {
            self.send_blob(*digest, content)?;
        }
        self.attempt(request, notices)
    }

    fn send_blob(&mut self, sha256: Sha256, content: &[u8]) -> Result<(), CallError> {
        let mut offset = 0;
        for piece in content.chunks(CHUNK_BYTES) {
            let request = Request::BlobPut(BlobPut {
                sha256,
                bytes: content.len() as u64,
                offset,
                data: BASE64.encode(piece),
            });
            self.attempt(&request, &mut |_| {})?;
            offset += piece.len() as u64;
        }
        Ok(())
    }
}

/// Whether the submission names content that must have been sent ahead.
pub(crate) fn names_uploads(submission: &Submission) -> bool {
    submission.changes.iter().any(|change| {
        matches!(
            change,
            Change::Put {
                content_blob: Some(_),
                ..
            }
        )
    })
}

fn line_bytes(request: &Request) -> Result<usize, Refusal> {
    rpc::encode_request(u64::MAX, request)
        .map(|line| line.len())
        .map_err(|reason| error::internal(format!("the submission cannot be written: {reason}")))
}

/// Takes content of more than `limit` bytes out of the changes and names it by its digest instead.
fn send_ahead(request: &mut Request, limit: usize, blobs: &mut Blobs) -> Result<(), Refusal> {
    let Request::Publish(params) = request else {
        return Ok(());
    };
    for (index, change) in params.submission.changes.iter_mut().enumerate() {
        let Change::Put {
            path,
            content,
            content_base64,
            content_blob,
            ..
        } = change
        else {
            continue;
        };
        // Content given twice is for the daemon to refuse, in the words of the submission.
        if content_blob.is_some() || content.is_some() == content_base64.is_some() {
            continue;
        }
        let bytes = if content.as_ref().is_some_and(|text| text.len() > limit) {
            content.take().unwrap_or_default().into_bytes()
        } else if content_base64
            .as_ref()
            .is_some_and(|text| text.len() / 4 * 3 > limit)
        {
            let text = content_base64.take().unwrap_or_default();
            BASE64.decode(text).map_err(|reason| {
                let message = format!("`contentBase64` of `{path}` is no base64: {reason}");
                let mut bad = Diagnostic::new(Code::InvalidSubmission, message).at(path.clone());
                bad.change = Some(index as u64);
                Refusal::from(bad)
            })?
        } else {
            continue;
        };
        let digest = sha256_of(&bytes);
        *content_blob = Some(digest);
        blobs.insert(digest, bytes);
    }
    Ok(())
}

/// The change that puts `bytes` at `path`, as text where it is text.
pub fn put(path: impl Into<String>, bytes: Vec<u8>) -> Change {
    let (content, content_base64) = match String::from_utf8(bytes) {
        Ok(text) => (Some(text), None),
        Err(binary) => (None, Some(BASE64.encode(binary.as_bytes()))),
    };
    Change::Put {
        path: path.into(),
        content,
        content_base64,
        content_blob: None,
        mode: None,
        expect: None,
        reason: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submission(contents: &[Vec<u8>]) -> Request {
        let changes = contents
            .iter()
            .enumerate()
            .map(|(index, bytes)| put(format!("f{index}"), bytes.clone()))
            .collect();
        let mut submission: Submission = serde_json::from_str(r#"{"changes":[]}"#).unwrap();
        submission.changes = changes;
        Request::Publish(Publish {
            submission,
            options: PublishOptions::default(),
        })
    }

    #[test]
    fn large_content_travels_ahead_whatever_its_form() {
        let check = |content: Vec<u8>, ahead: bool| {
            let mut request = submission(std::slice::from_ref(&content));
            let mut blobs = Blobs::new();
            send_ahead(&mut request, 100, &mut blobs).unwrap();
            assert_eq!(
                blobs.get(&sha256_of(&content)),
                ahead.then_some(&content),
                "{} bytes",
                content.len()
            );
            let Request::Publish(params) = request else {
                panic!("another request");
            };
            assert_eq!(names_uploads(&params.submission), ahead);
        };
        check(b"small".to_vec(), false);
        check(vec![b'x'; 100], false);
        check(vec![b'x'; 101], true);
        check(vec![0xff; 30], false);
        check(vec![0xff; 200], true);
    }

    #[test]
    fn content_in_broken_base64_is_the_authors_fault() {
        let mut request = submission(&[vec![0xff; 200]]);
        let Request::Publish(params) = &mut request else {
            panic!("another request");
        };
        let Some(Change::Put { content_base64, .. }) = params.submission.changes.first_mut() else {
            panic!("another change");
        };
        *content_base64 = Some("*".repeat(400));
        let refusal = send_ahead(&mut request, 100, &mut Blobs::new()).unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidSubmission);
        assert_eq!(refusal.diagnostics[0].path.as_deref(), Some("f0"));
    }
}
