//! What a submission id is bound to.
//!
//! Owns: the digest over {base as sent, onStale, author, message, reads, changes}; of the publishing
//! requests without changes of their own, over what takes their place (directory, revision, number).
//! Here it decides who joins whom while a submission waits or runs; what a published id is bound to is
//! the store's to say.
//! Never: the id itself, the deadline, or how the answer is wanted.
//! Invariants: 8 (same id and same binding: the first outcome; same id and other binding: refused).

use semaprax_protocol::SubmissionId;
use semaprax_protocol::request::{Attribution, PublishOptions, Request};
use serde::Serialize;

/// The digest that binds a submission id to its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Binding([u8; 32]);

impl Binding {
    /// A binding of a test's own.
    #[cfg(test)]
    pub(super) const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The binding of a publishing request; `None` for any other request.
    pub fn of(request: &Request) -> Option<Self> {
        let mut digest = Parts::new(request.method());
        match request {
            Request::Publish(publish) => {
                let submission = &publish.submission;
                digest.json(&submission.base);
                digest.text(submission.on_stale.word());
                digest.text(&submission.author);
                digest.text(&submission.message);
                digest.json(&submission.reads);
                digest.json(&submission.changes);
            }
            Request::PublishDirectory(publish) => {
                digest.json(&publish.base);
                digest.text(publish.on_stale.word());
                digest.attribution(&publish.attribution);
                digest.text(publish.directory.as_str());
            }
            Request::Rollback(rollback) => {
                digest.attribution(&rollback.attribution);
                digest.text(&rollback.revision);
            }
            Request::Revert(revert) => {
                digest.attribution(&revert.attribution);
                digest.text(&revert.seq.to_string());
            }
            Request::Undo(undo) => digest.attribution(&undo.attribution),
            _ => return None,
        }
        Some(Self(*digest.0.finalize().as_bytes()))
    }
}

/// What every publishing request says about itself.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'request> {
    /// The client's own name for the submission.
    pub id: Option<SubmissionId>,
    /// Who.
    pub author: &'request str,
    /// How to carry it out.
    pub options: &'request PublishOptions,
}

impl<'request> Terms<'request> {
    /// The terms of a publishing request; `None` for any other request.
    pub fn of(request: &'request Request) -> Option<Self> {
        let of = |attribution: &'request Attribution, options| Self {
            id: attribution.id,
            author: &attribution.author,
            options,
        };
        Some(match request {
            Request::Publish(publish) => Self {
                id: publish.submission.id,
                author: &publish.submission.author,
                options: &publish.options,
            },
            Request::PublishDirectory(publish) => of(&publish.attribution, &publish.options),
            Request::Rollback(rollback) => of(&rollback.attribution, &rollback.options),
            Request::Revert(revert) => of(&revert.attribution, &revert.options),
            Request::Undo(undo) => of(&undo.attribution, &undo.options),
            _ => return None,
        })
    }
}

/// A digest of parts, each with its length before it, so that no two lists of parts run together.
struct Parts(blake3::Hasher);

impl Parts {
    fn new(method: &str) -> Self {
        let mut parts = Self(blake3::Hasher::new_derive_key(
            "semaprax.submission-binding/1",
        ));
        parts.text(method);
        parts
    }

    fn text(&mut self, text: &str) {
        self.0.update(&(text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
    }

    fn json<T: Serialize>(&mut self, value: &T) {
        // The wire types have no map with keys that are not text, which is all that could fail.
        let text = serde_json::to_string(value).unwrap_or_default();
        self.text(&text);
    }

    fn attribution(&mut self, attribution: &Attribution) {
        self.text(&attribution.author);
        self.text(&attribution.message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(params: &str) -> Binding {
        let raw = serde_json::value::RawValue::from_string(params.to_owned()).unwrap();
        Binding::of(&Request::parse("publish", Some(&raw)).unwrap()).unwrap()
    }

    #[test]
    fn only_what_is_listed_binds() {
        let first =
            publish(r#"{"submission":{"author":"a","changes":[{"op":"delete","path":"x"}]}}"#);
        let check =
            |params: &str, same: bool| assert_eq!(publish(params) == first, same, "{params}");
        check(
            r#"{"options":{"detach":true,"deadlineMs":5},"submission":{"id":"018f7d2e-6f0a-7c3e-9b1d-2f6a4c8e0b5d",
               "onStale":"reject","author":"a","changes":[{"path":"x","op":"delete"}]}}"#,
            true,
        );
        for other in [
            r#"{"submission":{"author":"b","changes":[{"op":"delete","path":"x"}]}}"#,
            r#"{"submission":{"author":"","message":"a","changes":[{"op":"delete","path":"x"}]}}"#,
            r#"{"submission":{"author":"a","onStale":"merge","changes":[{"op":"delete","path":"x"}]}}"#,
            r#"{"submission":{"author":"a","base":"@","changes":[{"op":"delete","path":"x"}]}}"#,
            r#"{"submission":{"author":"a","changes":[{"op":"delete","path":"y"}]}}"#,
            r#"{"submission":{"author":"a","reads":[{"path":"x","absent":true}],"changes":[{"op":"delete","path":"x"}]}}"#,
        ] {
            check(other, false);
        }
    }
}
