//! How much changed, in numbers and as `git diff --stat` shows it.
//!
//! Owns: counting lines, and the layout of the table.
//!
//! Never: knows the terminal; the caller gives the width.

use super::quote::quote;
use super::{FileSide, is_text, lines};

/// How much of one file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Lines added and removed.
    Text {
        /// Lines only the new side has.
        added: u64,
        /// Lines only the old side had.
        removed: u64,
    },
    /// Sizes of a file of which at least one side is not text, and which changed.
    Binary {
        /// Bytes of the old side.
        before_bytes: u64,
        /// Bytes of the new side.
        after_bytes: u64,
    },
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatLine {
    /// The old path, if the file was there.
    pub old: Option<String>,
    /// The new path, if the file is there.
    pub new: Option<String>,
    /// How much changed.
    pub counts: Counts,
}

/// Counts what changed between two sides of a file; a missing side counts as empty.
pub fn count(old: Option<&FileSide>, new: Option<&FileSide>) -> Counts {
    let before = old.map_or(&[][..], |side| &side.content);
    let after = new.map_or(&[][..], |side| &side.content);
    if before == after {
        return Counts::Text {
            added: 0,
            removed: 0,
        };
    }
    if !is_text(before) || !is_text(after) {
        return Counts::Binary {
            before_bytes: before.len() as u64,
            after_bytes: after.len() as u64,
        };
    }
    let (mut added, mut removed) = (0, 0);
    for change in lines::changes(&lines::split(before), &lines::split(after)) {
        added += change.after.len() as u64;
        removed += change.before.len() as u64;
    }
    Counts::Text { added, removed }
}

/// The table of `git diff --stat` for `rows`, `width` columns wide, with its summary line.
pub fn render_stat(rows: &[StatLine], width: usize) -> String {
    let names: Vec<String> = rows.iter().map(display_name).collect();
    let layout = Layout::fit(rows, &names, width);
    let mut table = String::new();
    let (mut insertions, mut deletions) = (0, 0);
    for (row, name) in rows.iter().zip(&names) {
        let name = layout.shortened(name);
        let padding = " ".repeat(layout.name.saturating_sub(name.chars().count()));
        let number = layout.number;
        let value = match row.counts {
            Counts::Binary {
                before_bytes,
                after_bytes,
            } => {
                format!("{:>number$} {before_bytes} -> {after_bytes} bytes", "Bin")
            }
            Counts::Text { added, removed } => {
                insertions += added;
                deletions += removed;
                let total = added + removed;
                let gap = if total == 0 { "" } else { " " };
                format!("{total:>number$}{gap}{}", layout.graph(added, removed))
            }
        };
        table = table + " " + &name + &padding + " | " + &value + "\n";
    }
    table + &summary(rows.len(), insertions, deletions)
}

fn summary(files: usize, insertions: u64, deletions: u64) -> String {
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    if files == 0 {
        return " 0 files changed\n".to_owned();
    }
    let mut text = format!(" {files} file{} changed", plural(files as u64));
    if insertions > 0 || deletions == 0 {
        text = format!("{text}, {insertions} insertion{}(+)", plural(insertions));
    }
    if deletions > 0 || insertions == 0 {
        text = format!("{text}, {deletions} deletion{}(-)", plural(deletions));
    }
    text + "\n"
}

/// The widths of the columns, in the proportions git uses.
struct Layout {
    name: usize,
    number: usize,
    graph: usize,
    max_change: u64,
}

impl Layout {
    fn fit(rows: &[StatLine], names: &[String], width: usize) -> Self {
        let digits = |number: u64| number.to_string().len();
        let (mut max_change, mut binary_width, mut number) = (0, 0, 0);
        for row in rows {
            match row.counts {
                Counts::Text { added, removed } => max_change = max_change.max(added + removed),
                Counts::Binary {
                    before_bytes,
                    after_bytes,
                } => {
                    binary_width =
                        binary_width.max(14 + digits(before_bytes) + digits(after_bytes));
                    number = 3;
                }
            }
        }
        number = number.max(digits(max_change));
        let width = width.max(16 + 6 + number);
        let change_width = usize::try_from(max_change).unwrap_or(usize::MAX);
        let mut graph = change_width.max(binary_width.saturating_sub(4));
        let mut name = names
            .iter()
            .map(|name| name.chars().count())
            .max()
            .unwrap_or(0);
        if name.saturating_add(number + 6).saturating_add(graph) > width {
            let share = (width * 3 / 8).saturating_sub(number + 6);
            if graph > share {
                graph = share.max(6);
            }
            let left = width.saturating_sub(number + 6 + graph);
            if name > left {
                name = left;
            } else {
                graph = width.saturating_sub(number + 6 + name);
            }
        }
        Self {
            name,
            number,
            graph,
            max_change,
        }
    }

    /// A name too long loses its beginning, at a slash if there is one.
    fn shortened(&self, name: &str) -> String {
        let count = name.chars().count();
        if count <= self.name {
            return name.to_owned();
        }
        let kept = self.name.saturating_sub(3);
        let tail: String = name.chars().skip(count - kept).collect();
        let at_slash = tail
            .find('/')
            .and_then(|slash| tail.get(slash..))
            .unwrap_or(&tail);
        format!("...{at_slash}")
    }

    fn graph(&self, added: u64, removed: u64) -> String {
        let (mut plus, mut minus) = (added, removed);
        let graph = self.graph as u64;
        if graph <= self.max_change {
            let mut total = self.scaled(added + removed);
            if total < 2 && added > 0 && removed > 0 {
                total = 2;
            }
            if added < removed {
                plus = self.scaled(added);
                minus = total.saturating_sub(plus);
            } else {
                minus = self.scaled(removed);
                plus = total.saturating_sub(minus);
            }
        }
        let repeat = |mark: &str, count: u64| mark.repeat(usize::try_from(count).unwrap_or(0));
        repeat("+", plus) + &repeat("-", minus)
    }

    /// `count` in columns; what is not nothing shows at least once.
    fn scaled(&self, count: u64) -> u64 {
        if count == 0 {
            return 0;
        }
        1 + count.saturating_mul((self.graph as u64).saturating_sub(1)) / self.max_change.max(1)
    }
}

/// The path, or for a rename both with their common directories written once.
fn display_name(row: &StatLine) -> String {
    match (&row.old, &row.new) {
        (Some(old), Some(new)) if old != new => rename_name(old, new),
        (_, Some(path)) | (Some(path), None) => quote(path),
        (None, None) => String::new(),
    }
}

fn rename_name(old: &str, new: &str) -> String {
    if quote(old) != old || quote(new) != new {
        return format!("{} => {}", quote(old), quote(new));
    }
    let common = old
        .bytes()
        .zip(new.bytes())
        .take_while(|(one, other)| one == other);
    let prefix = common
        .enumerate()
        .filter(|(_, (byte, _))| *byte == b'/')
        .last()
        .map_or(0, |(place, _)| place + 1);
    let longest_suffix = old
        .len()
        .min(new.len())
        .saturating_sub(prefix.saturating_sub(1));
    let suffix = old
        .bytes()
        .rev()
        .zip(new.bytes().rev())
        .take(longest_suffix)
        .take_while(|(one, other)| one == other)
        .enumerate()
        .filter(|(_, (byte, _))| *byte == b'/')
        .last()
        .map_or(0, |(place, _)| place + 1);
    let middle = |path: &str| {
        let end = path.len() - suffix;
        path.get(prefix..end.max(prefix))
            .unwrap_or_default()
            .to_owned()
    };
    if prefix == 0 && suffix == 0 {
        return format!("{old} => {new}");
    }
    let head = old.get(..prefix).unwrap_or_default();
    let tail = old.get(old.len() - suffix..).unwrap_or_default();
    format!("{head}{{{} => {}}}{tail}", middle(old), middle(new))
}
