//! The trees on disk, what lies beside them, and the blobs that only a tree still has.
//!
//! Owns: what is found wrong with `generations/`, and putting it right.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{BlobDigest, Refusal, Revision, Seq};

use super::{Check, damage};
use crate::store::check::{Depth, check_tree};
use crate::store::collect::materialized;
use crate::store::generation::Manifest;
use crate::store::history::StoredRecord;
use crate::store::layout::GenerationLayout;
use crate::store::objects::{Blob, prepare};
use crate::store::recover::{ensure_tree, is_of_this_boot, mend};
use crate::store::tree::{Tree, for_each_leaf};
use crate::store::{Store, StoreError, StoreResult, own, trash};
use crate::world::EntryType;

impl Check<'_> {
    /// Other trees may have been collected; that of ACTIVE must be there.
    pub(super) fn active_tree(&mut self, tip: Seq) -> Result<(), Refusal> {
        let store = self.store;
        // A record that cannot be read is damage that was named already.
        let Ok(Some(stored)) = store.database.record(tip) else {
            return Ok(());
        };
        let revision = stored.record.revision;
        let place = store.layout.generation(&revision);
        if store.world.disk.metadata(place.directory())?.is_some() {
            return Ok(());
        }
        let made = if self.params.repair {
            ensure_tree(store, &stored, &stored.tree()?, None)
        } else {
            Err(StoreError::damaged("the tree of ACTIVE is missing"))
        };
        let (detail, repaired) = match made {
            Ok(()) => ("the tree of ACTIVE was missing".to_owned(), true),
            Err(error) => (error.to_string(), false),
        };
        self.damage
            .push(damage("tree", Some(revision), None, detail, repaired));
        Ok(())
    }

    /// Other programs rely on `manifest.json`, whose digest is the revision, and on LEASE.
    fn beside(
        &mut self,
        stored: &StoredRecord,
        tree: &Tree,
        layout: &GenerationLayout,
    ) -> Result<(), Refusal> {
        let store = self.store;
        let manifest = Manifest::of(stored.record.seq, tree).encode()?;
        let expected = [
            ("manifest", layout.manifest(), &manifest[..]),
            ("lease", layout.lease(), b""),
        ];
        for (kind, place, right) in expected {
            let is_right = match store.world.disk.metadata(&place)? {
                Some(found) if found.kind == EntryType::File => {
                    store.world.disk.read(&place)? == right
                }
                _ => false,
            };
            if is_right {
                continue;
            }
            if self.params.repair {
                // Whoever reads the tree by a lock on the old LEASE keeps it: the tree is not touched.
                replace_beside(store, &place, right)?;
            }
            let what = match kind {
                "lease" => "LEASE is missing or not an empty file",
                _ => "manifest.json is not that of the revision",
            };
            let (revision, repaired) = (Some(stored.record.revision), self.params.repair);
            let detail = what.to_owned();
            self.damage
                .push(damage(kind, revision, None, detail, repaired));
        }
        Ok(())
    }

    pub(super) fn generations(&mut self) -> Result<(), Refusal> {
        let store = self.store;
        let generations = store.layout.generations();
        own::must_be(&store.world, &generations, EntryType::Directory)?;
        if store.world.disk.metadata(&generations)?.is_none() {
            return Ok(());
        }
        for (name, kind) in store.world.disk.read_directory(&generations)? {
            let revision = name.parse::<Revision>().ok();
            let known = match revision {
                Some(revision) if kind == EntryType::Directory => {
                    match store.database.record_by_revision(&revision) {
                        Ok(known) => known,
                        // The record is damaged, which was named already; its tree is not foreign.
                        Err(error) if error.is_damage() => continue,
                        Err(error) => return Err(error.into()),
                    }
                }
                _ => None,
            };
            if let Some(stored) = known {
                self.generation(&stored)?;
                continue;
            }
            let place = generations.join(&name);
            if self.params.repair {
                match revision {
                    Some(_) => trash::discard(&store.world, &store.layout, &place)?,
                    // Not ours: a person decides.
                    None => own::set_foreign_aside(&store.world, &store.layout, &place)?,
                }
            }
            let detail = "no publication has this generation".to_owned();
            let repaired = self.params.repair;
            self.damage
                .push(damage("foreign", None, Some(name), detail, repaired));
        }
        Ok(())
    }

    /// A tree of an earlier boot promises nothing yet: a power cut may have left anything of it. It is
    /// mended as before a lease. Where nobody tells which boot this is, what is wrong with it is damage.
    fn of_this_boot(
        &self,
        stored: &StoredRecord,
        tree: &Tree,
        layout: &GenerationLayout,
    ) -> StoreResult<()> {
        let world = &self.store.world;
        if world.clock.boot_id().is_none() || is_of_this_boot(world, layout)? {
            return Ok(());
        }
        match ensure_tree(self.store, stored, tree, None) {
            // What it cannot be mended from is found and named below.
            Err(error) if error.is_damage() => Ok(()),
            other => other,
        }
    }

    fn generation(&mut self, stored: &StoredRecord) -> Result<(), Refusal> {
        let store = self.store;
        self.counts.generations += 1;
        let revision = stored.record.revision;
        let tree = match stored.tree() {
            Ok(tree) => tree,
            // Without content there is nothing to hold the tree against.
            Err(StoreError::Collected { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        self.counts.files += tree.root().files();
        let layout = store.layout.generation(&revision);
        if self.is_open {
            self.of_this_boot(stored, &tree, &layout)?;
        }
        self.beside(stored, &tree, &layout)?;
        // What is mended is trusted from then on, so all of it must have been looked at.
        let is_trusted = is_of_this_boot(&store.world, &layout)?;
        let depth = if self.params.deep || (self.params.repair && !is_trusted) {
            Depth::Content
        } else {
            Depth::Shape
        };
        let faults = match check_tree(store, &tree, &layout.files(), depth) {
            Ok(faults) => faults,
            Err(error) if error.is_damage() => {
                let detail = error.to_string();
                self.damage
                    .push(damage("node", Some(revision), None, detail, false));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let mut repaired = false;
        if self.params.repair && !faults.is_empty() {
            repaired = match mend(store, &layout, stored, &faults) {
                Ok(()) => check_tree(store, &tree, &layout.files(), depth)?.is_empty(),
                Err(error) => {
                    self.damage.push(damage(
                        "tree",
                        Some(revision),
                        None,
                        error.to_string(),
                        false,
                    ));
                    false
                }
            };
        }
        for fault in faults {
            let path = Some(fault.path).filter(|path| !path.is_empty());
            self.damage.push(damage(
                "tree",
                Some(revision),
                path,
                fault.fault.detail(),
                repaired,
            ));
        }
        Ok(())
    }

    /// Names the blobs that the store lost. In a repair it takes those back of which a tree on disk has
    /// the very bytes: their digest says so, whatever became of the tree.
    pub(super) fn mend_blobs(&mut self) -> Result<(), Refusal> {
        let lost = std::mem::take(&mut self.lost);
        if lost.is_empty() {
            return Ok(());
        }
        let found = if self.params.repair {
            self.in_trees(&lost.iter().map(|(digest, _)| *digest).collect())?
        } else {
            BTreeMap::new()
        };
        for (digest, why) in lost {
            let (detail, repaired) = match found.get(&digest) {
                Some(blob) => match put_back(self.store, blob) {
                    Ok(()) => (format!("{why}; taken back from a tree"), true),
                    Err(error) => (format!("{why}; it cannot be put back: {error}"), false),
                },
                None => (self.left_as_lost(&digest, why)?, false),
            };
            self.damage
                .push(damage("blob", None, None, detail, repaired));
        }
        Ok(())
    }

    /// A lost object that is there with other bytes is put aside in a repair: a publication with the same
    /// content then writes it anew.
    fn left_as_lost(&self, digest: &BlobDigest, why: String) -> Result<String, Refusal> {
        let store = self.store;
        let object = store.layout.object(digest);
        if !self.params.repair || store.world.disk.metadata(&object)?.is_none() {
            return Ok(why);
        }
        own::set_aside(&store.world, &store.layout, &object)?;
        Ok(format!(
            "{why}; what is left of it was moved to `set-aside`"
        ))
    }

    /// Those of the blobs `wanted` that a file of a tree on disk still holds.
    fn in_trees(
        &self,
        wanted: &BTreeSet<BlobDigest>,
    ) -> Result<BTreeMap<BlobDigest, Blob>, Refusal> {
        let store = self.store;
        let mut found = BTreeMap::new();
        for revision in materialized(store)? {
            let Ok(Some(stored)) = store.database.record_by_revision(&revision) else {
                continue;
            };
            let files = store.layout.generation(&revision).files();
            let walked = stored.tree().and_then(|tree| {
                for_each_leaf(tree.root(), "", &store.database, &mut |path, leaf| {
                    if wanted.contains(&leaf.blob) && !found.contains_key(&leaf.blob) {
                        let place = files.join(path.as_str());
                        let read = if leaf.kind == EntryKind::Symlink {
                            store.world.disk.read_link(&place)
                        } else {
                            store.world.disk.read(&place)
                        };
                        let blob = read.ok().map(Blob::new);
                        if let Some(blob) = blob.filter(|blob| blob.info().digest == leaf.blob) {
                            found.insert(leaf.blob, blob);
                        }
                    }
                    Ok(found.len() < wanted.len())
                })
            });
            // What cannot be walked is named elsewhere; another tree may have them.
            if let Err(error) = walked {
                tracing::debug!(%error, %revision, "a tree cannot be searched");
            }
        }
        Ok(found)
    }
}

fn put_back(store: &Store, blob: &Blob) -> StoreResult<()> {
    let object = store.layout.object(&blob.info().digest);
    // Something else in its place, perhaps: a file of the right length would be taken for it.
    if store.world.disk.metadata(&object)?.is_some() {
        trash::discard(&store.world, &store.layout, &object)?;
    }
    let prepared = prepare(&store.world, &store.layout, blob, false)?;
    store.database.insert_blob(&prepared)
}

fn replace_beside(store: &Store, place: &Utf8Path, content: &[u8]) -> StoreResult<()> {
    let disk = &store.world.disk;
    let name = store.world.entropy.uuid().to_string();
    let aside = store.layout.staging().join(name);
    disk.create(&aside, content, 0o444)?;
    if disk
        .metadata(place)?
        .is_some_and(|found| found.kind == EntryType::Directory)
    {
        trash::discard(&store.world, &store.layout, place)?;
    }
    Ok(disk.rename(&aside, place)?)
}
