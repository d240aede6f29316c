//! Refusals as text.
//!
//! Owns: the form `error[code]: message`, the place, the details and the hint.

use std::fmt::Write as _;

use semaprax_protocol::{Code, Diagnostic, Refusal};

use super::{clean, style, styled};

/// The most paths or lines of one diagnostic that are listed.
const LISTED: usize = 20;

/// The text of a refusal, line feeds included.
pub(in crate::cli) fn refusal_text(refusal: &Refusal) -> String {
    let mut out = String::new();
    let mut last_hint = None;
    for (index, diagnostic) in refusal.diagnostics.iter().enumerate() {
        let next = refusal.diagnostics.get(index + 1);
        write_diagnostic(&mut out, diagnostic);
        // The same advice is given once, after the last of those it is for.
        let repeated = next.is_some_and(|next| next.hint == diagnostic.hint);
        if let Some(hint) = diagnostic.hint.as_ref().filter(|_| !repeated)
            && last_hint != Some(hint)
        {
            push(
                &mut out,
                format_args!("{} {}", styled(style::STRONG, "hint:"), clean(hint)),
            );
            last_hint = Some(hint);
        }
    }
    out
}

fn push(out: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{line}");
}

fn write_diagnostic(out: &mut String, diagnostic: &Diagnostic) {
    let word = styled(style::ERROR, format_args!("error[{}]", diagnostic.code));
    if diagnostic.code == Code::Usage {
        // The text of the argument parser has lines of its own.
        push(out, format_args!("{word}: {}", diagnostic.message));
        return;
    }
    push(out, format_args!("{word}: {}", clean(&diagnostic.message)));
    if let Some(path) = &diagnostic.path
        && !diagnostic.message.contains(path.as_str())
    {
        push(
            out,
            format_args!("  {} {}", styled(style::PLACE, "-->"), clean(path)),
        );
    }
    if let Some(change) = diagnostic.change {
        push(
            out,
            format_args!("  in change {} of the submission", change + 1),
        );
    }
    if !diagnostic.lines.is_empty() {
        let lines: Vec<String> = diagnostic
            .lines
            .iter()
            .take(LISTED)
            .map(u64::to_string)
            .collect();
        push(
            out,
            format_args!(
                "  at lines {}{}",
                lines.join(", "),
                more(diagnostic.lines.len())
            ),
        );
    }
    if let (Some(expected), Some(found)) = (&diagnostic.expected, &diagnostic.found) {
        push(
            out,
            format_args!("  expected {}, found {}", clean(expected), clean(found)),
        );
    }
    if let Some(active) = &diagnostic.active {
        push(
            out,
            format_args!("  ACTIVE is @{} {}", active.seq, active.revision.short()),
        );
    }
    for path in diagnostic.paths.iter().take(LISTED) {
        push(out, format_args!("  moved: {}", clean(path.as_str())));
    }
    if diagnostic.paths.len() > LISTED {
        push(
            out,
            format_args!("  ... and {} more", diagnostic.paths.len() - LISTED),
        );
    }
    write_conflict(out, diagnostic);
}

fn write_conflict(out: &mut String, diagnostic: &Diagnostic) {
    let ranges = diagnostic
        .conflict
        .iter()
        .flat_map(|conflict| &conflict.ranges);
    for range in ranges.take(LISTED) {
        let text = |(first, last): (u64, u64)| match last {
            // Nothing on that side: the place is between two lines.
            _ if last < first => format!("after {last}"),
            _ if last == first => format!("{first}"),
            _ => format!("{first}-{last}"),
        };
        push(
            out,
            format_args!(
                "  lines {} of the base, {} of ACTIVE, {} of the submission",
                text(range.base),
                text(range.ours),
                text(range.theirs)
            ),
        );
    }
}

fn more(number: usize) -> String {
    if number > LISTED {
        format!(" and {} more", number - LISTED)
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(refusal: &Refusal) -> String {
        anstream::adapter::strip_str(&refusal_text(refusal)).to_string()
    }

    #[test]
    fn a_refusal_names_code_place_and_next_step() {
        let check = |diagnostic: Diagnostic, expect: &str| {
            assert_eq!(plain(&diagnostic.into()), expect);
        };
        check(
            Diagnostic::new(Code::UnknownRevision, "no publication is `ffffff`"),
            "error[unknown-revision]: no publication is `ffffff`\n\
             hint: `semaprax log` lists the publications\n",
        );
        check(
            Diagnostic::new(Code::NotFound, "there is no `a/b`")
                .at("a/b")
                .hint("look again"),
            "error[not-found]: there is no `a/b`\nhint: look again\n",
        );
        let mut unique = Diagnostic::new(Code::EditNotUnique, "the text occurs 2 times")
            .at("a.rs")
            .hint("more");
        unique.lines = vec![3, 9];
        unique.change = Some(1);
        check(
            unique,
            "error[edit-not-unique]: the text occurs 2 times\n  --> a.rs\n  \
             in change 2 of the submission\n  at lines 3, 9\nhint: more\n",
        );
        let mut stale = Diagnostic::new(Code::StaleBase, "ACTIVE has moved").hint("again");
        stale.paths = vec!["x".parse().unwrap(), "y".parse().unwrap()];
        check(
            stale,
            "error[stale-base]: ACTIVE has moved\n  moved: x\n  moved: y\nhint: again\n",
        );
        check(
            Diagnostic::new(Code::Cancelled, "\u{1b}[31mred"),
            "error[cancelled]: \\u{1b}[31mred\n",
        );
    }

    #[test]
    fn the_same_hint_is_given_once() {
        let one = Diagnostic::new(Code::PathRefused, "one").hint("h");
        let two = Diagnostic::new(Code::PathRefused, "two").hint("h");
        let refusal = Refusal::of(vec![one, two]).unwrap();
        assert_eq!(
            plain(&refusal),
            "error[path-refused]: one\nerror[path-refused]: two\nhint: h\n"
        );
    }
}
