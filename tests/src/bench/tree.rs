//! The files of a workspace to be measured.
//!
//! Owns: their paths and contents, which a seed decides. Never: a workspace.

use std::fmt::Write as _;
use std::fs;

use camino::Utf8Path;
use rayon::prelude::*;

use super::Measured;
use crate::torture::chance::Chance;

/// Bytes of a file whose size the table names.
pub const FILE_BYTES: usize = 4_000;

/// How many files there are, in directories of which size.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Files.
    pub files: u64,
    /// Files in each directory.
    pub in_directory: u64,
    /// How long they are.
    pub sizes: Sizes,
}

/// How long the files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// All of them 4,000 bytes.
    Even,
    /// As in source trees: many short ones, 64 bytes to 4 KiB, evenly over the powers of two.
    Source,
}

impl Shape {
    /// The path of a file by its number.
    pub fn path(&self, number: u64) -> String {
        let directory = number / self.in_directory.max(1);
        format!(
            "part{}/mod{}/file{number}.rs",
            directory % 10,
            directory / 10
        )
    }

    /// Writes all files, below a directory.
    pub fn write(&self, root: &Utf8Path, seed: u64) -> Measured<()> {
        let in_directory = self.in_directory.max(1);
        let directories: Vec<u64> = (0..self.files.div_ceil(in_directory)).collect();
        directories.par_iter().try_for_each(|directory| {
            let first = directory * in_directory;
            let numbers = first..(first + in_directory).min(self.files);
            if let Some(parent) = root.join(self.path(first)).parent() {
                fs::create_dir_all(parent)?;
            }
            for number in numbers {
                let mut chance = Chance::new(seed).part(number);
                let content = self.content(&mut chance);
                fs::write(root.join(self.path(number)), content)?;
            }
            Ok(())
        })
    }

    /// Content of a file.
    pub fn content(&self, chance: &mut Chance) -> String {
        let bytes = match self.sizes {
            Sizes::Even => FILE_BYTES,
            Sizes::Source => {
                let least = 64_usize << chance.below(6);
                least + usize::try_from(chance.below(least as u64)).unwrap_or(0)
            }
        };
        text(chance, bytes)
    }
}

/// Text of words, so that it packs as source does.
pub fn text(chance: &mut Chance, bytes: usize) -> String {
    const WORDS: [&str; 16] = [
        "let", "value", "fn", "return", "match", "self", "state", "index", "(&mut", "=>",
        "{\n    ", "}\n", "store", "result", "error", "0x",
    ];
    let mut text = String::with_capacity(bytes + 24);
    while text.len() < bytes {
        text.push_str(chance.pick(&WORDS).copied().unwrap_or("end"));
        if chance.percent(30) {
            let _ = write!(text, "{:x}", chance.below(1 << 24));
        }
        text.push(if chance.percent(12) { '\n' } else { ' ' });
    }
    text.truncate(bytes);
    text
}
