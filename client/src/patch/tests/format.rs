//! The small formats: quoting, base85, deltas, and the exact text of a rendered diff.

use proptest::prelude::*;

use super::super::{
    DeltaError, FileMode, FileSide, base85, delta, git_blob_id, quote, render_file,
};

fn side(mode: FileMode, content: &str) -> FileSide {
    FileSide {
        mode,
        content: content.into(),
    }
}

#[test]
fn names_are_quoted_as_git_does() {
    let check = |name: &str, expect: &str| assert_eq!(quote::quote(name), expect);
    check("plain name", "plain name");
    check("é", "\"\\303\\251\"");
    check("a\tb", "\"a\\tb\"");
    check("a\"b\\", "\"a\\\"b\\\\\"");
    check("\u{1}\u{7f}", "\"\\001\\177\"");
}

#[test]
fn ids_are_those_of_git() {
    assert_eq!(git_blob_id(b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    assert_eq!(
        git_blob_id(b"a\n"),
        "78981922613b2afb6025042ff6bd878ac1994e85"
    );
}

#[test]
fn a_diff_reads_as_that_of_git() {
    let (old, new) = (side(FileMode::File, "a\n"), side(FileMode::Executable, "b"));
    let mut out = Vec::new();
    render_file(&mut out, Some(("x y", &old)), Some(("é", &new))).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "diff --git a/x y \"b/\\303\\251\"\nold mode 100644\nnew mode 100755\n\
         similarity index 0%\nrename from x y\nrename to \"\\303\\251\"\nindex 7898192..63d8dbd\n\
         --- a/x y\t\n+++ \"b/\\303\\251\"\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n"
    );
    let mut out = Vec::new();
    render_file(&mut out, Some(("x", &old)), Some(("x", &old))).unwrap();
    assert_eq!(out, b"");
}

#[test]
fn deltas_are_checked() {
    let check = |old: &[u8], bytes: &[u8], expect: Result<&[u8], DeltaError>| {
        assert_eq!(
            delta::apply(old, bytes, 10).as_deref(),
            expect.as_ref().copied()
        );
    };
    check(b"abc", &[3, 4, 0x90, 3, 1, b'd'], Ok(b"abcd"));
    check(b"abc", &[3, 2, 0x91, 1, 2], Ok(b"bc"));
    check(b"abc", &[3, 3, 0x91, 1, 3], Err(DeltaError::WrongNewSize));
    check(b"abc", &[3, 3, 0x90, 2], Err(DeltaError::WrongNewSize));
    check(
        b"ab",
        &[3, 0],
        Err(DeltaError::WrongOldSize {
            expected: 3,
            found: 2,
        }),
    );
    check(
        b"",
        &[0, 11],
        Err(DeltaError::TooLarge { size: 11, max: 10 }),
    );
    check(b"", &[0, 1, 0], Err(DeltaError::Malformed));
    check(b"", &[0, 2, 2, b'a'], Err(DeltaError::Malformed));
    check(b"", &[], Err(DeltaError::Malformed));
}

proptest! {
    #[test]
    fn a_quoted_name_reads_back(name in any::<String>()) {
        let quoted = quote::quote(&name);
        prop_assert!(quoted.is_ascii());
        if quoted == name {
            prop_assert!(!name.contains('"'));
        } else {
            let back = quote::unquote(quoted.as_bytes());
            prop_assert_eq!(back, Some((name.into_bytes(), &b""[..])));
        }
    }

    #[test]
    fn base85_reads_back(bytes in prop::collection::vec(any::<u8>(), 1..=52)) {
        let mut line = Vec::new();
        base85::encode_line(&bytes, &mut line);
        prop_assert_eq!(line.pop(), Some(b'\n'));
        let mut back = Vec::new();
        prop_assert_eq!(base85::decode_line(&line, &mut back), Some(()));
        prop_assert_eq!(back, bytes);
    }

    #[test]
    fn small_readers_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        drop(delta::apply(b"some old content", &bytes, 1_000));
        prop_assert!(base85::decode_line(&bytes, &mut Vec::new()).is_none_or(|()| !bytes.is_empty()));
        drop(quote::unquote(&bytes));
    }
}
