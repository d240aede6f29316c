//! The bytes of a path, piece by piece.

use base64::Engine as _;
use semaprax_protocol::limits::CHUNK_BYTES;
use semaprax_protocol::request::{Content, ContentChunk};
use semaprax_protocol::{Code, Diagnostic, Refusal};

use super::{View, no_such_path, path_of};
use crate::store::tree::Found;

impl View<'_> {
    pub(super) fn content(&self, params: &Content) -> Result<ContentChunk, Refusal> {
        let (stored, tree) = self.tree(params.revision.as_deref())?;
        let path = path_of(&params.path)?;
        let leaf = match tree.find(&path, self.database)? {
            Found::Leaf(leaf) => leaf,
            Found::Directory(_) => {
                let message = format!("`{path}` is a directory in @{}", stored.record.seq);
                let hint = format!("`semaprax ls {path}` lists it");
                return Err(Diagnostic::new(Code::NotFound, message)
                    .at(path.as_str())
                    .hint(hint)
                    .into());
            }
            Found::Nothing | Found::Blocked(..) => {
                return Err(no_such_path(path.as_str(), &stored));
            }
        };
        let wanted = params
            .length
            .and_then(|length| usize::try_from(length).ok());
        let wanted = wanted.unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        let piece =
            self.database
                .blob_piece(self.world, self.layout, &leaf.blob, params.offset, wanted)?;
        Ok(ContentChunk {
            revision: stored.record.revision,
            kind: leaf.kind,
            bytes: leaf.bytes,
            sha256: self.database.known_blob(&leaf.blob)?.sha256,
            offset: params.offset,
            data: base64::engine::general_purpose::STANDARD.encode(piece),
        })
    }
}
