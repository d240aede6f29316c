//! Blobs: the bytes of files and the targets of symlinks, each stored once, by digest.
//!
//! Owns: the table `blobs` and the directory `objects/`. Small blobs are compressed rows; large ones
//! are files, written and synced before the transaction that names them.
//! Never: a path of a tree; one blob may be many files.
//!
//! Keeps invariants 3 (durable before the flip) and 9 (bytes in, bytes out).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use camino::Utf8Path;
use semaprax_protocol::limits::INLINE_BLOB_BYTES;
use semaprax_protocol::{BlobDigest, Sha256};
use sha2::Digest as _;

use super::database::Database;
use super::guard::GuardedRow;
use super::{Layout, Store, StoreError, StoreResult, trash};
use crate::world::{EntryType, World, WorldError};

const TABLE: &str = "blobs";
const ENCODING_RAW: i64 = 0;
const ENCODING_ZSTD: i64 = 1;
const ENCODING_FILE: i64 = 2;
/// Fast and good enough: measured at a third of the size for source text.
const ZSTD_LEVEL: i32 = 1;

/// What is known of a blob without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobInfo {
    /// Its name.
    pub digest: BlobDigest,
    /// The name that the outside knows.
    pub sha256: Sha256,
    /// How many bytes it has.
    pub bytes: u64,
}

/// Bytes with their digests, not yet in the store.
#[derive(Debug, Clone)]
pub struct Blob {
    info: BlobInfo,
    content: Arc<Vec<u8>>,
}

/// The BLAKE3 name of `content`.
pub fn digest_of(content: &[u8]) -> BlobDigest {
    BlobDigest::from_bytes(*blake3::hash(content).as_bytes())
}

/// The SHA-256 of `content`.
pub fn sha256_of(content: &[u8]) -> Sha256 {
    Sha256::from_bytes(sha2::Sha256::digest(content).into())
}

impl Blob {
    /// Computes both digests.
    pub fn new(content: impl Into<Arc<Vec<u8>>>) -> Self {
        let content = content.into();
        let info = BlobInfo {
            digest: digest_of(&content),
            sha256: sha256_of(&content),
            bytes: content.len() as u64,
        };
        Self { info, content }
    }

    /// What is known of it.
    pub fn info(&self) -> BlobInfo {
        self.info
    }

    /// Its bytes.
    pub fn content(&self) -> &[u8] {
        &self.content
    }
}

/// Blobs of a candidate that the store may not have yet.
#[derive(Debug, Default)]
pub struct FreshBlobs {
    blobs: BTreeMap<BlobDigest, Blob>,
}

impl FreshBlobs {
    /// Adds one.
    pub fn add(&mut self, blob: Blob) {
        self.blobs.insert(blob.info.digest, blob);
    }

    /// Takes all of another candidate over.
    pub fn extend(&mut self, other: Self) {
        self.blobs.extend(other.blobs);
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Blob> {
        self.blobs.values()
    }

    /// Keeps those that `is_needed` names.
    pub fn retain(&mut self, is_needed: &BTreeSet<BlobDigest>) {
        self.blobs.retain(|digest, _| is_needed.contains(digest));
    }

    /// The bytes of a blob, from here or from the store.
    pub fn content(&self, store: &Store, digest: &BlobDigest) -> StoreResult<Arc<Vec<u8>>> {
        match self.blobs.get(digest) {
            Some(blob) => Ok(Arc::clone(&blob.content)),
            None => store
                .database
                .blob(&store.world, &store.layout, digest)
                .map(Arc::new),
        }
    }

    /// The same, to be unpacked elsewhere: in a thread that has no database.
    pub fn packed(&self, store: &Store, digest: &BlobDigest) -> StoreResult<PackedBlob> {
        match self.blobs.get(digest) {
            Some(blob) => Ok(PackedBlob(Packed::Fresh(Arc::clone(&blob.content)))),
            None => store.database.packed_blob(digest),
        }
    }

    /// The outside name of a blob, from here or from the store.
    pub fn sha256(&self, store: &Store, digest: &BlobDigest) -> StoreResult<Sha256> {
        match self.blobs.get(digest) {
            Some(blob) => Ok(blob.info.sha256),
            None => Ok(store.database.known_blob(digest)?.sha256),
        }
    }
}

/// A blob ready for the transaction: compressed, or already a synced file.
#[derive(Debug)]
pub struct PreparedBlob {
    info: BlobInfo,
    encoding: i64,
    data: Option<Vec<u8>>,
}

/// Does all of storing a blob that can be done outside the transaction. A large one becomes a synced
/// file under its name; when the transaction never happens, the collector finds it unnamed.
/// `is_known` says that the store names it already.
pub fn prepare(
    world: &World,
    layout: &Layout,
    blob: &Blob,
    is_known: bool,
) -> StoreResult<PreparedBlob> {
    let info = blob.info;
    if blob.content.len() > INLINE_BLOB_BYTES {
        write_object(world, layout, blob, is_known)?;
        return Ok(PreparedBlob {
            info,
            encoding: ENCODING_FILE,
            data: None,
        });
    }
    let packed = pack(&blob.content);
    match packed.filter(|packed| packed.len() < blob.content.len()) {
        Some(packed) => Ok(PreparedBlob {
            info,
            encoding: ENCODING_ZSTD,
            data: Some(packed),
        }),
        None => {
            let data = Some(blob.content.to_vec());
            Ok(PreparedBlob {
                info,
                encoding: ENCODING_RAW,
                data,
            })
        }
    }
}

thread_local! {
    /// Making one takes longer than packing a file.
    static PACKER: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    /// The same.
    static UNPACKER: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
        const { RefCell::new(None) };
}

fn unpack(data: &[u8], capacity: usize) -> io::Result<Vec<u8>> {
    UNPACKER.with_borrow_mut(|unpacker| {
        let unpacker = match unpacker {
            Some(unpacker) => unpacker,
            None => unpacker.insert(zstd::bulk::Decompressor::new()?),
        };
        unpacker.decompress(data, capacity)
    })
}

fn pack(content: &[u8]) -> Option<Vec<u8>> {
    PACKER.with_borrow_mut(|packer| {
        if packer.is_none() {
            *packer = zstd::bulk::Compressor::new(ZSTD_LEVEL).ok();
        }
        packer.as_mut()?.compress(content).ok()
    })
}

/// An object that the store names and that is not there is damage.
fn of_object(error: WorldError) -> StoreError {
    if error.kind() == std::io::ErrorKind::NotFound {
        return StoreError::damaged(error.to_string());
    }
    StoreError::of_own_file(error)
}

/// A row of the table.
#[derive(Debug)]
struct BlobRow {
    info: BlobInfo,
    encoding: i64,
    data: Option<Vec<u8>>,
}

/// What the check sum of a row covers: all but the bytes, which have their digest.
fn guarded(info: &BlobInfo, encoding: i64) -> GuardedRow {
    GuardedRow::of(TABLE)
        .bytes(info.digest.as_bytes())
        .bytes(info.sha256.as_bytes())
        .number(info.bytes.cast_signed())
        .number(encoding)
}

impl PreparedBlob {
    fn row(&self) -> impl rusqlite::Params + '_ {
        let guard = guarded(&self.info, self.encoding).guard();
        (
            self.info.digest.as_bytes(),
            self.info.sha256.as_bytes(),
            self.info.bytes.cast_signed(),
            self.encoding,
            &self.data,
            guard,
        )
    }
}

fn write_object(world: &World, layout: &Layout, blob: &Blob, is_known: bool) -> StoreResult<()> {
    let disk = &world.disk;
    let (objects, place) = (layout.objects(), layout.object(&blob.info.digest));
    // Only a row of the store says that the names are durable. A file without one was left behind by a
    // kill or by a failed sync, after which the next one may succeed and bring nothing: it is written
    // again. A file of another length is damage that must not be taken over.
    let is_there = || -> StoreResult<bool> {
        let found = disk.metadata(&place)?;
        Ok(found.is_some_and(|found| found.len == blob.info.bytes))
    };
    if is_known && is_there()? {
        return Ok(());
    }
    let shard = place.parent().unwrap_or(&objects);
    make_shard(world, layout, shard)?;
    let aside = layout
        .staging()
        .join(format!("object-{}", world.entropy.uuid()));
    disk.create(&aside, &blob.content, 0o444)?;
    // Makes the content durable before the name can be.
    disk.sync_file(&aside)?;
    disk.rename(&aside, &place)?;
    Ok(disk.sync_directory(shard)?)
}

/// The directory of an object, with a name that is durable.
fn make_shard(world: &World, layout: &Layout, shard: &Utf8Path) -> StoreResult<()> {
    let (disk, objects) = (&world.disk, layout.objects());
    let there = disk.metadata(shard)?.map(|found| found.kind);
    let is_new = there != Some(EntryType::Directory);
    if is_new {
        if there.is_some() {
            // Without a journal a power cut may leave a name without its directory: it is then the name of
            // whatever has the inode.
            trash::discard(world, layout, shard)?;
        }
        // As open to others as the directory it lies in, which `init --shared` widens.
        let mode = disk.metadata(&objects)?.map_or(0o700, |found| found.mode);
        disk.create_directory(shard, mode)?;
    }
    let sync = || {
        if is_new {
            // Makes the directory durable before its name can be.
            disk.sync_directory(shard)?;
        }
        // Also for a shard that is there: a kill may have come before this.
        disk.sync_directory(&objects)
    };
    sync().map_err(|error| {
        if is_new {
            // So that the next one makes the name again, and syncs more than nothing.
            drop(disk.remove_directory(shard));
        }
        error.into()
    })
}

impl Database {
    /// Names a prepared blob in the store, inside a transaction. A row that is there already stays, unless
    /// it is not what it should be.
    pub fn insert_blob(&self, blob: &PreparedBlob) -> StoreResult<()> {
        let sql = "INSERT INTO blobs (digest, sha256, bytes, encoding, data, guard)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (digest) DO UPDATE SET
                   sha256 = excluded.sha256, bytes = excluded.bytes, encoding = excluded.encoding,
                   data = excluded.data, guard = excluded.guard
                   WHERE sha256 IS NOT excluded.sha256 OR bytes IS NOT excluded.bytes
                   OR encoding IS NOT excluded.encoding OR data IS NOT excluded.data
                   OR guard IS NOT excluded.guard";
        self.execute(sql, blob.row()).map(drop)
    }

    /// What is known of a blob; `None` when the store does not have it.
    pub fn blob_info(&self, digest: &BlobDigest) -> StoreResult<Option<BlobInfo>> {
        Ok(self.blob_row(digest, false)?.map(|row| row.info))
    }

    /// The row of a blob, believed only when it gives its check sum.
    fn blob_row(&self, digest: &BlobDigest, with_data: bool) -> StoreResult<Option<BlobRow>> {
        let data = if with_data { "data" } else { "NULL" };
        let sql = format!(
            "SELECT digest, sha256, bytes, encoding, guard, {data} FROM blobs WHERE digest = ?1"
        );
        let found = self.query_one(&sql, [digest.as_bytes()], |row| {
            let info = BlobInfo {
                digest: BlobDigest::from_bytes(row.get(0)?),
                sha256: Sha256::from_bytes(row.get(1)?),
                bytes: row.get::<_, i64>(2)?.cast_unsigned(),
            };
            let (encoding, data) = (row.get(3)?, row.get(5)?);
            let read = BlobRow {
                info,
                encoding,
                data,
            };
            Ok((read, row.get(4)?))
        })?;
        let Some((row, guard)) = found else {
            return Ok(None);
        };
        if row.info.digest != *digest {
            return Err(StoreError::damaged(format!(
                "an index leads from blob {digest} to another"
            )));
        }
        guarded(&row.info, row.encoding).check(guard)?;
        Ok(Some(row))
    }

    /// What is known of a blob that a tree names: not having it is damage.
    pub fn known_blob(&self, digest: &BlobDigest) -> StoreResult<BlobInfo> {
        self.blob_info(digest)?
            .ok_or_else(|| StoreError::damaged(format!("blob {digest} is not in the store")))
    }

    /// A piece of a blob, from `offset`, at most `length` bytes. A large blob is checked against its
    /// digest when it is read from the start; going on reads only the piece.
    pub fn blob_piece(
        &self,
        world: &World,
        layout: &Layout,
        digest: &BlobDigest,
        offset: u64,
        length: usize,
    ) -> StoreResult<Vec<u8>> {
        let row = self.blob_row(digest, false)?;
        if row.is_some_and(|row| row.encoding == ENCODING_FILE) && offset > 0 {
            let file = world.disk.open(&layout.object(digest));
            let file = file.map_err(of_object)?;
            let mut piece = vec![0; length];
            let mut filled = 0;
            while let Some(rest) = piece.get_mut(filled..).filter(|rest| !rest.is_empty()) {
                match file.read_at(rest, offset + filled as u64)? {
                    0 => break,
                    count => filled += count,
                }
            }
            piece.truncate(filled);
            return Ok(piece);
        }
        let content = self.blob(world, layout, digest)?;
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(content.len());
        let end = start.saturating_add(length).min(content.len());
        Ok(content.get(start..end).unwrap_or_default().to_vec())
    }

    /// The bytes of a blob, checked against its digest.
    pub fn blob(
        &self,
        world: &World,
        layout: &Layout,
        digest: &BlobDigest,
    ) -> StoreResult<Vec<u8>> {
        match self.packed_blob(digest)?.0 {
            Packed::Fresh(content) => Ok(content.to_vec()),
            Packed::Row(row) => row.unpack(world, layout),
        }
    }

    /// A blob as the database has it.
    fn packed_blob(&self, digest: &BlobDigest) -> StoreResult<PackedBlob> {
        let found = self.blob_row(digest, true)?;
        let missing = || StoreError::damaged(format!("blob {digest} is not in the store"));
        Ok(PackedBlob(Packed::Row(found.ok_or_else(missing)?)))
    }
}

/// A blob that is not unpacked yet.
#[derive(Debug)]
pub struct PackedBlob(Packed);

#[derive(Debug)]
enum Packed {
    /// It is in memory whole.
    Fresh(Arc<Vec<u8>>),
    /// As the database has it.
    Row(BlobRow),
}

impl PackedBlob {
    /// Its bytes, checked against its digest.
    pub fn unpack(self, world: &World, layout: &Layout) -> StoreResult<Arc<Vec<u8>>> {
        match self.0 {
            Packed::Fresh(content) => Ok(content),
            Packed::Row(row) => row.unpack(world, layout).map(Arc::new),
        }
    }
}

impl BlobRow {
    /// The bytes, checked against the digest.
    fn unpack(self, world: &World, layout: &Layout) -> StoreResult<Vec<u8>> {
        let digest = self.info.digest;
        let content = match (self.encoding, self.data) {
            (ENCODING_RAW, Some(data)) => data,
            (ENCODING_ZSTD, Some(data)) => {
                // The length is believed only as far as a row may go.
                let capacity = usize::try_from(self.info.bytes)
                    .unwrap_or(0)
                    .min(INLINE_BLOB_BYTES);
                unpack(&data, capacity).map_err(|error| {
                    StoreError::damaged(format!("blob {digest} cannot be unpacked: {error}"))
                })?
            }
            (ENCODING_FILE, _) => {
                let content = world.disk.read(&layout.object(&digest));
                content.map_err(of_object)?
            }
            _ => {
                return Err(StoreError::damaged(format!(
                    "blob {digest} has an unknown encoding"
                )));
            }
        };
        if digest_of(&content) == digest {
            Ok(content)
        } else {
            Err(StoreError::damaged(format!(
                "blob {digest} does not match its digest"
            )))
        }
    }
}
