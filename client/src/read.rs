//! Reading whole things that the daemon hands out in pieces: content, listings, the log.
//!
//! Owns: the paging, and the check that content has the digest it was announced with.
//! Never: mixes two generations: the first piece names the revision of all the others.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use semaprax_protocol::documents::{Listing, LogPage};
use semaprax_protocol::request::{Content, ContentChunk, List, Log};
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{Code, Diagnostic, Refusal, Sha256};
use sha2::Digest as _;

use crate::{Client, error};

/// A path of a generation, read whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeContent {
    /// What the path is.
    pub kind: EntryKind,
    /// The digest of the bytes.
    pub sha256: Sha256,
    /// The bytes; of a symlink, its target.
    pub bytes: Vec<u8>,
}

/// The pieces of a path of a generation, in order.
pub struct ContentReader {
    revision: Option<String>,
    path: String,
    offset: u64,
    first: Option<ContentChunk>,
    digest: sha2::Sha256,
    done: bool,
}

impl ContentReader {
    /// The pieces of `path` at `revision` (`@` without it).
    pub fn new(revision: Option<String>, path: impl Into<String>) -> Self {
        Self {
            revision,
            path: path.into(),
            offset: 0,
            first: None,
            digest: sha2::Sha256::new(),
            done: false,
        }
    }

    /// The next piece; `None` after the last, whose digest has been checked then.
    pub fn next_piece(&mut self, client: &mut Client) -> Result<Option<Vec<u8>>, Refusal> {
        if self.done {
            return Ok(None);
        }
        let mut chunk = client.call(Content {
            revision: self.revision.clone(),
            path: self.path.clone(),
            offset: self.offset,
            length: None,
        })?;
        let data = BASE64
            .decode(std::mem::take(&mut chunk.data))
            .map_err(|reason| {
                error::internal(format!("a piece of `{}` is no base64: {reason}", self.path))
            })?;
        self.digest.update(&data);
        self.offset += data.len() as u64;
        self.revision
            .get_or_insert_with(String::new)
            .clone_from(&chunk.revision.to_string());
        let (whole, expected) = (chunk.bytes, chunk.sha256);
        self.first.get_or_insert(chunk);
        if self.offset >= whole {
            self.finish(expected)?;
        } else if data.is_empty() {
            let message = format!(
                "`{}` ended after {} of {whole} bytes",
                self.path, self.offset
            );
            return Err(error::internal(message));
        }
        Ok(Some(data))
    }

    fn finish(&mut self, expected: Sha256) -> Result<(), Refusal> {
        self.done = true;
        let found = Sha256::from_bytes(std::mem::take(&mut self.digest).finalize().into());
        if found == expected {
            return Ok(());
        }
        let message = format!(
            "`{}` was read with digest {found}, not {expected}",
            self.path
        );
        Err(Diagnostic::new(Code::WorkspaceDamaged, message)
            .at(self.path.clone())
            .into())
    }
}

/// The SHA-256 of bytes.
pub fn sha256_of(bytes: &[u8]) -> Sha256 {
    Sha256::from_bytes(sha2::Sha256::digest(bytes).into())
}

impl Client {
    /// The whole content of `path` at `revision` (`@` without it).
    pub fn content(&mut self, revision: Option<&str>, path: &str) -> Result<WholeContent, Refusal> {
        let mut reader = ContentReader::new(revision.map(str::to_owned), path);
        let mut bytes = Vec::new();
        while let Some(mut piece) = reader.next_piece(self)? {
            bytes.append(&mut piece);
        }
        let first = reader
            .first
            .ok_or_else(|| error::internal(format!("`{path}` came without a piece")))?;
        Ok(WholeContent {
            kind: first.kind,
            sha256: first.sha256,
            bytes,
        })
    }

    /// The whole listing of a generation, below `prefix` where one is given.
    pub fn listing(
        &mut self,
        revision: Option<String>,
        prefix: Option<&str>,
    ) -> Result<Listing, Refusal> {
        let mut whole = self.call(List {
            revision,
            prefix: prefix.map(str::to_owned),
            after: None,
            limit: None,
        })?;
        while whole.truncated {
            let Some(last) = whole.entries.last() else {
                break;
            };
            let page = self.call(List {
                revision: Some(whole.revision.to_string()),
                prefix: prefix.map(str::to_owned),
                after: Some(last.path.clone()),
                limit: None,
            })?;
            if page.entries.is_empty() {
                break;
            }
            whole.truncated = page.truncated;
            whole.entries.extend(page.entries);
        }
        Ok(whole)
    }

    /// The log, newest first: `params.limit` entries, or all without one. `truncated` tells whether
    /// there are older ones.
    pub fn history(&mut self, params: &Log) -> Result<LogPage, Refusal> {
        let limit = params.limit;
        let mut whole = self.call(params.clone())?;
        while whole.truncated {
            let left = limit.map(|limit| limit.saturating_sub(whole.entries.len() as u64));
            let Some(last) = whole.entries.last().filter(|_| left != Some(0)) else {
                break;
            };
            let page = self.call(Log {
                before: Some(last.seq),
                limit: left,
                ..params.clone()
            })?;
            if page.entries.is_empty() {
                whole.truncated = false;
                break;
            }
            whole.truncated = page.truncated;
            whole.entries.extend(page.entries);
        }
        Ok(whole)
    }
}
