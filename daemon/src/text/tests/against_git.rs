//! The merge against `git merge-file`.
//!
//! What is guaranteed: where no line repeats, verdict and bytes are those of git. Where lines
//! repeat, git's own answer is one reading of several; there a merge of ours that git also merges
//! has the same bytes, and we refuse at least what git refuses, save for the rare input whose
//! alignment git breaks in its own way (bounded here, on a fixed list of inputs).

use std::fs;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;

use super::super::three_way;

/// What `git merge-file` makes of three texts; `None` is a conflict.
#[expect(
    clippy::disallowed_methods,
    reason = "a test writes its own scratch files"
)]
fn git_merge(dir: &Path, base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    for (name, content) in [("base", base), ("ours", ours), ("theirs", theirs)] {
        fs::write(dir.join(name), content).unwrap();
    }
    let output = Command::new("git")
        .args(["merge-file", "-p", "-q", "ours", "base", "theirs"])
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    let code = output.status.code().unwrap();
    assert!(code < 128, "{}", String::from_utf8_lossy(&output.stderr));
    (code == 0).then_some(output.stdout)
}

/// One edit of a list of lines: at a place, insert, delete or replace.
#[derive(Debug, Clone, Copy)]
enum Edit {
    Insert,
    Delete,
    Replace,
}

fn edit(lines: &[String], edits: &[(usize, Edit)], fresh: &str) -> Vec<String> {
    let mut lines = lines.to_vec();
    for (count, &(place, edit)) in edits.iter().enumerate() {
        let line = format!("{fresh}{count}");
        let place = place % (lines.len() + 1);
        match edit {
            Edit::Insert => lines.insert(place, line),
            Edit::Delete if place < lines.len() => drop(lines.remove(place)),
            Edit::Replace if place < lines.len() => lines[place] = line,
            Edit::Delete | Edit::Replace => {}
        }
    }
    lines
}

fn text(lines: &[String], line_end: &str, ended: bool) -> Vec<u8> {
    let mut text = lines.join(line_end);
    if ended && !lines.is_empty() {
        text.push_str(line_end);
    }
    text.into_bytes()
}

fn any_edits() -> impl Strategy<Value = Vec<(usize, Edit)>> {
    let edit = prop_oneof![Just(Edit::Insert), Just(Edit::Delete), Just(Edit::Replace)];
    prop::collection::vec((0..64_usize, edit), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn where_no_line_repeats_the_answer_is_that_of_git(
        count in 0..16_usize,
        ours in any_edits(),
        theirs in any_edits(),
        ended in any::<[bool; 3]>(),
        same_fresh_lines in any::<bool>(),
        line_end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        let base: Vec<String> = (0..count).map(|line| format!("line {line}")).collect();
        let fresh = if same_fresh_lines { ["new ", "new "] } else { ["our ", "their "] };
        let ours = text(&edit(&base, &ours, fresh[0]), line_end, ended[0]);
        let theirs = text(&edit(&base, &theirs, fresh[1]), line_end, ended[1]);
        let base = text(&base, line_end, ended[2]);
        let dir = tempfile::tempdir().unwrap();
        let git = git_merge(dir.path(), &base, &ours, &theirs);
        prop_assert_eq!(three_way(&base, &ours, &theirs).ok(), git);
    }
}

/// Repeatable pseudo-random numbers (xorshift), so that the list of inputs is the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn edited(&mut self, lines: &[String], distinct: usize) -> Vec<String> {
        let mut lines = lines.to_vec();
        for _ in 0..=self.below(3) {
            let (place, line) = (
                self.below(lines.len() + 1),
                self.below(distinct).to_string(),
            );
            match self.below(3) {
                0 => lines.insert(place, line),
                1 if place < lines.len() => drop(lines.remove(place)),
                2 if place < lines.len() => lines[place] = line,
                _ => {}
            }
        }
        lines
    }
}

#[test]
fn where_lines_repeat_we_are_no_bolder_than_git() {
    const CASES: usize = 1_200;
    let mut numbers = Numbers(0x5eed);
    let dir = tempfile::tempdir().unwrap();
    let (mut agreed, mut bolder, mut shyer) = (0, 0, 0);
    for case in 0..CASES {
        let (distinct, length) = [(2, 8), (3, 14), (4, 10), (6, 30)][case % 4];
        let length = numbers.below(length);
        let base: Vec<String> = (0..length)
            .map(|_| numbers.below(distinct).to_string())
            .collect();
        let ours = numbers.edited(&base, distinct);
        let theirs = numbers.edited(&base, distinct);
        let [base, ours, theirs] =
            [base, ours, theirs].map(|lines| text(&lines, "\n", numbers.below(4) > 0));
        let git = git_merge(dir.path(), &base, &ours, &theirs);
        match (three_way(&base, &ours, &theirs), git) {
            (Ok(merged), Some(git)) => {
                assert_eq!(merged, git, "{base:?} {ours:?} {theirs:?}");
                agreed += 1;
            }
            (Err(_), None) => agreed += 1,
            (Ok(_), None) => bolder += 1,
            (Err(_), Some(_)) => shyer += 1,
        }
    }
    assert!(bolder <= CASES / 400, "{bolder} merges that git refuses");
    assert!(shyer <= CASES / 40, "{shyer} refusals of what git merges");
    assert_eq!(agreed + bolder + shyer, CASES);
}
