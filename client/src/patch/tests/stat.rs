//! Counts and the table.

use super::super::{Counts, FileMode, FileSide, StatLine, count, render_stat};

fn row(old: &str, new: &str, counts: Counts) -> StatLine {
    let path = |path: &str| (!path.is_empty()).then(|| path.to_owned());
    StatLine {
        old: path(old),
        new: path(new),
        counts,
    }
}

fn text(added: u64, removed: u64) -> Counts {
    Counts::Text { added, removed }
}

fn check(rows: &[StatLine], expect: &str) {
    assert_eq!(render_stat(rows, 80), expect);
}

#[test]
fn lines_are_counted() {
    let side = |content: &[u8]| FileSide {
        mode: FileMode::File,
        content: content.to_vec(),
    };
    let check = |old: Option<&[u8]>, new: Option<&[u8]>, expect: Counts| {
        assert_eq!(
            count(old.map(side).as_ref(), new.map(side).as_ref()),
            expect
        );
    };
    check(Some(b"a\nb\n"), Some(b"a\nc\nd"), text(2, 1));
    check(None, Some(b"a\nb"), text(2, 0));
    check(Some(b"a\n"), None, text(0, 1));
    check(Some(b"\0"), Some(b"\0"), text(0, 0));
    let binary = Counts::Binary {
        before_bytes: 1,
        after_bytes: 2,
    };
    check(Some(b"\0"), Some(b"ab"), binary);
}

#[test]
fn the_table_is_that_of_git() {
    check(&[], " 0 files changed\n");
    check(
        &[row("x", "x", text(1, 1)), row("", "long/name", text(3, 0))],
        " x         | 2 +-\n long/name | 3 +++\n 2 files changed, 4 insertions(+), 1 deletion(-)\n",
    );
    check(
        &[row("x", "", text(0, 2))],
        " x | 2 --\n 1 file changed, 2 deletions(-)\n",
    );
    check(
        &[
            row("d/x/f", "d/y/f", text(0, 0)),
            row("d/f", "d/e/f", text(0, 0)),
            row("p", "q", text(0, 0)),
        ],
        " d/{x => y}/f | 0\n d/{ => e}/f  | 0\n p => q       | 0\n \
         3 files changed, 0 insertions(+), 0 deletions(-)\n",
    );
    let binary = Counts::Binary {
        before_bytes: 0,
        after_bytes: 12,
    };
    check(
        &[
            row("d/f", "d/e/f", text(0, 0)),
            row("d/x/f", "d/y/f", text(0, 0)),
            row("x", "x", binary),
            row("y", "y", text(1000, 500)),
        ],
        concat!(
            " d/{ => e}/f  |    0\n",
            " d/{x => y}/f |    0\n",
            " x            |  Bin 0 -> 12 bytes\n",
            " y            | 1500 ",
            "++++++++++++++++++++++++++++++++++++++--------------------\n",
            " 4 files changed, 1000 insertions(+), 500 deletions(-)\n"
        ),
    );
}
