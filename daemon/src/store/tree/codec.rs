//! The bytes of a node, and the two digests of a directory.
//!
//! Owns: the encoding. An entry is: kind, length of the name, name, and for a leaf digest, bytes,
//! stamp; for a directory both digests, files, bytes, stamp; for a page its height, its number of names,
//! both digests, files, bytes. Numbers are LEB128. The digest with stamps is that of these bytes; the digest of the
//! content leaves sums and stamps out.

use semaprax_protocol::limits::SEGMENT_BYTES;
use semaprax_protocol::submission::EntryKind;
use semaprax_protocol::{BlobDigest, LogicalPath, StampedDigest, TreeDigest};

use super::page::{Node, Page};
use super::{Branch, Entry, Leaf, Named, UNSTAMPED};

const CONTENT_CONTEXT: &str = "semaprax 1 tree content";
const STAMPED_CONTEXT: &str = "semaprax 1 tree node with stamps";

const KIND_DIRECTORY: u8 = 0;
const KIND_FILE: u8 = 1;
const KIND_EXECUTABLE: u8 = 2;
const KIND_SYMLINK: u8 = 3;
const KIND_PAGE: u8 = 4;

fn kind_byte(kind: EntryKind) -> u8 {
    match kind {
        EntryKind::File => KIND_FILE,
        EntryKind::Executable => KIND_EXECUTABLE,
        EntryKind::Symlink => KIND_SYMLINK,
    }
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

fn put_name(out: &mut Vec<u8>, kind: u8, name: &str) {
    out.push(kind);
    put_number(out, name.len() as u64);
    out.extend_from_slice(name.as_bytes());
}

fn put_branch(out: &mut Vec<u8>, branch: &Branch) {
    out.extend_from_slice(branch.content().as_bytes());
    out.extend_from_slice(branch.stamped().as_bytes());
    put_number(out, branch.files());
    put_number(out, branch.bytes());
}

/// The bytes of a node.
pub(super) fn encode(node: &Node) -> Vec<u8> {
    let mut out = Vec::with_capacity(node.len() * 96);
    match node {
        Node::Names(names) => {
            for (name, entry) in names {
                match entry {
                    Entry::Leaf(leaf) => {
                        put_name(&mut out, kind_byte(leaf.kind), name);
                        out.extend_from_slice(leaf.blob.as_bytes());
                        put_number(&mut out, leaf.bytes);
                        put_number(&mut out, leaf.stamp);
                    }
                    Entry::Branch(branch) => {
                        put_name(&mut out, KIND_DIRECTORY, name);
                        put_branch(&mut out, branch);
                        put_number(&mut out, branch.stamp());
                    }
                }
            }
        }
        Node::Pages(pages) => {
            for page in pages {
                put_name(&mut out, KIND_PAGE, page.last());
                put_number(&mut out, u64::from(page.height()));
                put_number(&mut out, page.names());
                put_branch(&mut out, page.branch());
            }
        }
    }
    out
}

/// The digest that names a node.
pub(super) fn stamped_digest(encoded: &[u8]) -> StampedDigest {
    StampedDigest::from_bytes(blake3::derive_key(STAMPED_CONTEXT, encoded))
}

/// Both digests of a node.
pub(super) fn digests(node: &Node) -> (TreeDigest, StampedDigest) {
    let mut out = Vec::with_capacity(node.len() * 64);
    match node {
        Node::Names(names) => {
            for (name, entry) in names {
                match entry {
                    Entry::Leaf(leaf) => {
                        put_name(&mut out, kind_byte(leaf.kind), name);
                        out.extend_from_slice(leaf.blob.as_bytes());
                    }
                    Entry::Branch(branch) => {
                        put_name(&mut out, KIND_DIRECTORY, name);
                        out.extend_from_slice(branch.content().as_bytes());
                    }
                }
            }
        }
        Node::Pages(pages) => {
            for page in pages {
                put_name(&mut out, KIND_PAGE, page.last());
                out.extend_from_slice(page.branch().content().as_bytes());
            }
        }
    }
    let content = TreeDigest::from_bytes(blake3::derive_key(CONTENT_CONTEXT, &out));
    (content, stamped_digest(&encode(node)))
}

struct Cursor<'bytes> {
    rest: &'bytes [u8],
}

impl<'bytes> Cursor<'bytes> {
    fn take(&mut self, count: usize) -> Option<&'bytes [u8]> {
        let (head, tail) = self.rest.split_at_checked(count)?;
        self.rest = tail;
        Some(head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return None;
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                // The shortest spelling is the only one: a last group of nothing adds nothing.
                return (part > 0 || shift == 0).then_some(number);
            }
        }
        None
    }

    fn digest(&mut self) -> Option<[u8; 32]> {
        self.take(32)?.try_into().ok()
    }

    fn name(&mut self) -> Option<(u8, &'bytes str)> {
        let kind = self.byte()?;
        let length = usize::try_from(self.number()?)
            .ok()
            .filter(|&length| length <= SEGMENT_BYTES)?;
        let name = std::str::from_utf8(self.take(length)?).ok()?;
        LogicalPath::is_segment(name).then_some((kind, name))
    }

    /// Digests and sums, and of a directory its stamp.
    fn branch(&mut self, is_directory: bool) -> Option<Branch> {
        let content = TreeDigest::from_bytes(self.digest()?);
        let stamped = StampedDigest::from_bytes(self.digest()?);
        let (files, bytes) = (self.number()?, self.number()?);
        let stamp = if is_directory {
            self.number()?
        } else {
            UNSTAMPED
        };
        Some(Branch::closed(content, stamped, files, bytes, stamp))
    }
}

/// Reads a node; `None` when the bytes are not one. What is read is written as the same bytes, and what it
/// sums up is a number.
pub(super) fn decode(bytes: &[u8]) -> Option<Node> {
    let node = if bytes.first() == Some(&KIND_PAGE) {
        decode_pages(bytes)?
    } else {
        decode_names(bytes)?
    };
    has_sums(&node).then_some(node)
}

fn has_sums(node: &Node) -> bool {
    let mut sums = [0u64; 3];
    let mut add = |parts: [u64; 3]| {
        sums.iter_mut().zip(parts).all(|(sum, part)| {
            let added = sum.checked_add(part);
            *sum = added.unwrap_or_default();
            added.is_some()
        })
    };
    match node {
        Node::Names(names) => names.iter().all(|(_, entry)| match entry {
            Entry::Leaf(leaf) => add([1, leaf.bytes, 0]),
            Entry::Branch(branch) => add([branch.files(), branch.bytes(), 0]),
        }),
        Node::Pages(pages) => pages.iter().all(|page| {
            let branch = page.branch();
            add([branch.files(), branch.bytes(), page.names()])
        }),
    }
}

fn decode_names(bytes: &[u8]) -> Option<Node> {
    let mut cursor = Cursor { rest: bytes };
    let mut names: Vec<Named> = Vec::new();
    while !cursor.rest.is_empty() {
        let (kind, name) = cursor.name()?;
        if names.last().is_some_and(|(last, _)| **last >= *name) {
            return None;
        }
        names.push((name.into(), decode_entry(kind, &mut cursor)?));
    }
    Some(Node::Names(names))
}

fn decode_pages(bytes: &[u8]) -> Option<Node> {
    let mut cursor = Cursor { rest: bytes };
    let mut pages: Vec<Page> = Vec::new();
    while !cursor.rest.is_empty() {
        let (kind, last) = cursor.name()?;
        let height = u8::try_from(cursor.number()?).ok()?;
        let names = cursor.number()?;
        let follows = pages
            .last()
            .is_none_or(|before| before.last() < last && before.height() == height);
        if kind != KIND_PAGE || names == 0 || !follows {
            return None;
        }
        let branch = cursor.branch(false)?.into();
        pages.push(Page::stored(last.into(), height, names, branch));
    }
    Some(Node::Pages(pages))
}

fn decode_entry(kind: u8, cursor: &mut Cursor<'_>) -> Option<Entry> {
    let kind = match kind {
        KIND_DIRECTORY => return Some(Entry::Branch(cursor.branch(true)?.into())),
        KIND_FILE => EntryKind::File,
        KIND_EXECUTABLE => EntryKind::Executable,
        KIND_SYMLINK => EntryKind::Symlink,
        _ => return None,
    };
    let blob = BlobDigest::from_bytes(cursor.digest()?);
    Some(Entry::Leaf(Leaf {
        kind,
        blob,
        bytes: cursor.number()?,
        stamp: cursor.number()?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_a_segment_and_a_number_is_short() {
        let node = |name: &str, number: &[u8]| {
            let mut bytes = Vec::new();
            put_name(&mut bytes, KIND_FILE, name);
            bytes.extend([7; 32]);
            bytes.extend(number);
            bytes.push(1);
            bytes
        };
        let check = |name: &str, number: &[u8], good: bool| {
            assert_eq!(
                decode(&node(name, number)).is_some(),
                good,
                "{name:?} {number:?}"
            );
        };
        check("a", &[0], true);
        check("a", &[0x80, 1], true);
        check("a", &[0x80, 0], false);
        check("a", &[0xff, 0x80, 0], false);
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "/",
            ".git",
            ".Semaprax-Workspace",
            "a\u{0}",
            "a\n",
        ] {
            check(bad, &[0], false);
        }
    }

    #[test]
    fn the_sums_of_a_node_are_numbers() {
        let node = |names: &[(&str, u64)]| {
            let mut bytes = Vec::new();
            for (name, number) in names {
                put_name(&mut bytes, KIND_FILE, name);
                bytes.extend([7; 32]);
                put_number(&mut bytes, *number);
                bytes.push(1);
            }
            bytes
        };
        assert!(decode(&node(&[("a", u64::MAX), ("b", 0)])).is_some());
        assert!(decode(&node(&[("a", u64::MAX), ("b", 1)])).is_none());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            drop(decode(&bytes));
        }

        /// A good node with bytes changed, cut or doubled is none, or is written as it was read.
        #[test]
        fn there_is_one_spelling_of_a_node(
            names in prop::collection::btree_map("[a-z]{1,9}", any::<u64>(), 1..6),
            place in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            how in 0..4u8,
        ) {
            let entries = names.iter().map(|(name, number)| {
                let leaf = Leaf { kind: EntryKind::File, blob: BlobDigest::from_bytes([7; 32]), bytes: *number, stamp: number % 300 };
                (name.as_str().into(), Entry::Leaf(leaf))
            }).collect();
            let mut bytes = encode(&Node::Names(entries));
            let place = place.index(bytes.len());
            match how {
                0 => bytes[place] = byte,
                1 => bytes.truncate(place),
                2 => bytes.insert(place, byte),
                // Makes a longer spelling of a number that ends here.
                _ => {
                    bytes[place] |= 0x80;
                    bytes.insert(place + 1, 0);
                }
            }
            if let Some(back) = decode(&bytes) {
                prop_assert_eq!(encode(&back), bytes);
            }
        }

        #[test]
        fn numbers_survive(number in any::<u64>()) {
            let mut out = Vec::new();
            put_number(&mut out, number);
            prop_assert_eq!(Cursor { rest: &out }.number(), Some(number));
        }

        #[test]
        fn nodes_survive(names in prop::collection::btree_map("[a-z]{1,9}", (any::<u64>(), any::<u64>(), 0u8..3), 0..20)) {
            let entries = names.iter().map(|(name, (bytes, stamp, kind))| {
                let kind = [EntryKind::File, EntryKind::Executable, EntryKind::Symlink][usize::from(*kind)];
                let blob = BlobDigest::from_bytes([7; 32]);
                (name.as_str().into(), Entry::Leaf(Leaf { kind, blob, bytes: bytes / 100, stamp: *stamp }))
            }).collect();
            let directory = Node::Names(entries);
            let bytes = encode(&directory);
            let back = decode(&bytes).unwrap();
            prop_assert_eq!(encode(&back), bytes);
            prop_assert_eq!(digests(&back), digests(&directory));
        }
    }
}
