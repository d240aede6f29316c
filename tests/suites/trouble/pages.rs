//! What each page of a database file is, read from its bytes.
//!
//! Owns: the little of the format of SQLite (<https://www.sqlite.org/fileformat.html>) that says which kind a
//! page is. Never: SQLite itself; a page is classified before it is damaged.

use std::collections::BTreeMap;
use std::ops::Range;

/// A kind of place in the files of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Header,
    Schema,
    TableInterior,
    TableLeaf,
    IndexInterior,
    IndexLeaf,
    Overflow,
    FreelistTrunk,
    FreelistLeaf,
    LogHeader,
    LogFrameHeader,
    LogFrame,
    Active,
    Manifest,
    Object,
}

/// The kinds of the database file itself.
pub const OF_DATABASE: [Kind; 9] = [
    Kind::Header,
    Kind::Schema,
    Kind::TableInterior,
    Kind::TableLeaf,
    Kind::IndexInterior,
    Kind::IndexLeaf,
    Kind::Overflow,
    Kind::FreelistTrunk,
    Kind::FreelistLeaf,
];

const HEADER: usize = 100;
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

fn number(bytes: &[u8], at: usize) -> usize {
    let four: [u8; 4] = bytes[at..at + 4].try_into().unwrap();
    usize::try_from(u32::from_be_bytes(four)).unwrap()
}

/// Bytes of a page.
pub fn page_bytes(database: &[u8]) -> usize {
    match u16::from_be_bytes([database[16], database[17]]) {
        1 => 65_536,
        bytes => usize::from(bytes),
    }
}

/// Where in a database file each kind lies.
pub fn of_database(bytes: &[u8]) -> BTreeMap<Kind, Vec<Range<usize>>> {
    let size = page_bytes(bytes);
    let place = |page: usize| (page - 1) * size..page * size;
    let mut kinds = BTreeMap::new();
    let mut trunk = number(bytes, 32);
    while trunk != 0 {
        kinds.insert(trunk, Kind::FreelistTrunk);
        let start = place(trunk).start;
        for leaf in 0..number(bytes, start + 4) {
            kinds.insert(number(bytes, start + 8 + 4 * leaf), Kind::FreelistLeaf);
        }
        trunk = number(bytes, start);
    }
    let mut found: BTreeMap<Kind, Vec<Range<usize>>> = BTreeMap::new();
    found.entry(Kind::Header).or_default().push(0..HEADER);
    found.entry(Kind::Schema).or_default().push(HEADER..size);
    for page in 2..=bytes.len() / size {
        let kind = kinds.get(&page).copied();
        let kind = kind.unwrap_or_else(|| match bytes[place(page).start] {
            2 => Kind::IndexInterior,
            5 => Kind::TableInterior,
            10 => Kind::IndexLeaf,
            13 => Kind::TableLeaf,
            // The number of the next page: no file of a test has 2^24 of them.
            0 => Kind::Overflow,
            other => panic!("page {page} starts with {other}"),
        });
        found
            .entry(kind)
            .or_default()
            .extend(used(bytes, place(page), kind));
    }
    found
}

/// What of a page is in use: of a b-tree the header with the pointers to the cells, and the cells.
fn used(bytes: &[u8], page: Range<usize>, kind: Kind) -> Vec<Range<usize>> {
    let header = match kind {
        Kind::TableInterior | Kind::IndexInterior => 12,
        Kind::TableLeaf | Kind::IndexLeaf => 8,
        _ => return vec![page],
    };
    let short = |at: usize| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    let (cells, content) = (short(page.start + 3), short(page.start + 5));
    vec![
        page.start..page.start + header + 2 * cells,
        page.start + content..page.end,
    ]
}

/// Where in a write-ahead log each kind lies.
pub fn of_log(log: &[u8]) -> BTreeMap<Kind, Vec<Range<usize>>> {
    let frame = FRAME_HEADER + number(log, 8);
    let mut found: BTreeMap<Kind, Vec<Range<usize>>> = BTreeMap::new();
    found
        .entry(Kind::LogHeader)
        .or_default()
        .push(0..LOG_HEADER);
    let mut at = LOG_HEADER;
    while at + frame <= log.len() {
        let body = at + FRAME_HEADER;
        found
            .entry(Kind::LogFrameHeader)
            .or_default()
            .push(at..body);
        found
            .entry(Kind::LogFrame)
            .or_default()
            .push(body..at + frame);
        at += frame;
    }
    found
}
