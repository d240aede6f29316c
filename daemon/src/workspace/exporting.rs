//! Writable copies of a generation.
//!
//! Owns: `export`, and the marker that lets `publish --from-dir` know the base. The marker lies in the
//! copy's own `.semaprax-workspace`, which is never content.

use camino::Utf8Path;
use semaprax_protocol::documents::Exported;
use semaprax_protocol::request::Export;
use semaprax_protocol::{Code, Diagnostic, Refusal, Revision, SchemaTag};

use super::Writer;
use crate::store::checkout::{Modes, materialize};
use crate::store::layout::STATE_DIRECTORY;
use crate::store::objects::FreshBlobs;
use crate::store::trash;
use crate::world::EntryType;

impl Writer {
    pub(super) fn export(&mut self, params: &Export) -> Result<Exported, Refusal> {
        let store = &self.ledger.store;
        let directory = &params.directory;
        let stored = match &params.revision {
            Some(revision) => self.resolve(revision)?,
            None => self.ledger.tip.stored.clone(),
        };
        let tree = stored.tree()?;
        self.make_room(directory)?;
        let written = materialize(
            store,
            &tree,
            &FreshBlobs::default(),
            None,
            directory,
            Modes::WRITABLE,
        )
        .map_err(Refusal::from)
        .and_then(|_| self.mark(directory, stored.record.revision));
        if let Err(refusal) = written {
            // Nothing half-made stays: the directory was ours to make.
            if let Err(error) = trash::remove(&store.world, directory, EntryType::Directory) {
                tracing::warn!(%error, "a failed export could not be taken away");
            }
            return Err(refusal);
        }
        Ok(Exported {
            schema: SchemaTag::new(),
            revision: stored.record.revision,
            seq: stored.record.seq,
            files: stored.record.files,
            path: directory.clone(),
        })
    }

    /// The directory must not be there, or be empty.
    fn make_room(&self, directory: &Utf8Path) -> Result<(), Refusal> {
        let disk = &self.ledger.store.world.disk;
        if directory.starts_with(self.ledger.store.layout.state()) {
            let message = format!("`{directory}` lies inside the state directory");
            return Err(Diagnostic::new(Code::PathRefused, message)
                .at(directory.as_str())
                .into());
        }
        match disk.metadata(directory)? {
            None => Ok(()),
            Some(found)
                if found.kind == EntryType::Directory
                    && disk.read_directory(directory)?.is_empty() =>
            {
                Ok(disk.remove_directory(directory)?)
            }
            Some(_) => {
                let message = format!("`{directory}` exists and is not an empty directory");
                let hint = "choose a directory that does not exist yet";
                Err(Diagnostic::new(Code::AlreadyExists, message)
                    .at(directory.as_str())
                    .hint(hint)
                    .into())
            }
        }
    }

    fn mark(&self, directory: &Utf8Path, revision: Revision) -> Result<(), Refusal> {
        let disk = &self.ledger.store.world.disk;
        let state = directory.join(STATE_DIRECTORY);
        disk.create_directory(&state, 0o700)?;
        disk.create(&state.join(".gitignore"), b"*\n", 0o644)?;
        self.write_marker(directory, revision)
    }
}
