//! Tests of the text parts; those of merge stand against the real git.

mod against_git;
mod blame;
mod merge;

use proptest::prelude::*;

use super::is_text;

#[test]
fn text_is_what_has_no_nul_early() {
    let check = |content: &[u8], expect: bool| assert_eq!(is_text(content), expect);
    let with_nul_at = |at: usize| {
        let mut content = vec![b'a'; 20_000];
        content[at] = 0;
        content
    };
    check(b"", true);
    check(b"abc\n", true);
    check(b"\xff\xfe\x80", true);
    check(b"\0", false);
    check(&with_nul_at(8191), false);
    check(&with_nul_at(8192), true);
}

/// A text of few distinct lines, so that repeats are common, with and without a final newline.
fn any_text(lines: usize) -> impl Strategy<Value = Vec<u8>> {
    let line = prop::sample::select(vec!["a", "b", "", "}", "a\r"]);
    (prop::collection::vec(line, 0..=lines), any::<bool>()).prop_map(|(lines, ended)| {
        let text = lines.join("\n");
        if ended && !lines.is_empty() {
            format!("{text}\n").into_bytes()
        } else {
            text.into_bytes()
        }
    })
}
