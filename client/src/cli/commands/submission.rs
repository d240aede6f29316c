//! Submissions made from a JSON file, or from `--put`, `--delete` and `--move`.
//!
//! Owns: reading both forms, and the rule that flags win over what a file says.
//! Never: sends anything.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use clap::ArgMatches;
use semaprax_protocol::reading::read_json;
use semaprax_protocol::submission::{Change, FileMode, Submission};
use semaprax_protocol::{Code, Diagnostic, Refusal, SchemaTag};

use crate::cli::args::PublishArguments;
use crate::cli::parse::PathPair;
use crate::cli::settings;
use crate::{error, files, submit};

/// A submission without changes.
pub(super) fn empty() -> Submission {
    Submission {
        schema: SchemaTag::new(),
        id: None,
        base: None,
        on_stale: semaprax_protocol::submission::OnStale::default(),
        author: String::new(),
        message: String::new(),
        reads: Vec::new(),
        changes: Vec::new(),
    }
}

/// The bytes of a file, or of standard input for `-`.
pub(super) fn read_input(file: &Path) -> Result<Vec<u8>, Refusal> {
    if file.as_os_str() != "-" {
        return files::read(file).map_err(|source| error::of_io("read", file.display(), &source));
    }
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|source| error::of_io("read", "standard input", &source))?;
    Ok(bytes)
}

/// Reads a submission in JSON.
pub(super) fn from_json(file: &Path) -> Result<Submission, Refusal> {
    parse(&read_input(file)?)
}

fn parse(bytes: &[u8]) -> Result<Submission, Refusal> {
    read_json(bytes).map_err(|reason| {
        let message = format!("the submission cannot be read: {reason}");
        let mut bad = Diagnostic::new(Code::InvalidSubmission, message);
        if reason.line() > 0 {
            bad.lines = vec![reason.line() as u64];
        }
        bad.into()
    })
}

/// Puts what the flags say over what the submission says.
pub(super) fn override_with(submission: &mut Submission, arguments: &PublishArguments) {
    if let Some(id) = arguments.carry_out.id {
        submission.id = Some(id);
    }
    if let Some(base) = &arguments.base {
        submission.base = Some(base.clone());
    }
    if let Some(on_stale) = arguments.on_stale {
        submission.on_stale = on_stale;
    }
    if let Some(message) = &arguments.attribution.message {
        submission.message.clone_from(message);
    }
    if arguments.attribution.author.is_some() || submission.author.is_empty() {
        submission.author = settings::author(arguments.attribution.author.as_ref());
    }
}

/// One of the flags that make a change.
enum Flag<'arguments> {
    Put(&'arguments PathPair),
    Delete(&'arguments str),
    Move(&'arguments PathPair),
}

/// Makes a submission of `--put`, `--delete` and `--move`, in the order they were given.
pub(super) fn from_flags(
    arguments: &PublishArguments,
    matches: Option<&ArgMatches>,
) -> Result<Submission, Refusal> {
    let mut flags: Vec<(usize, Flag<'_>)> = Vec::new();
    let places = |name: &str| {
        let found = matches.and_then(|matches| matches.indices_of(name));
        found
            .into_iter()
            .flatten()
            .chain(std::iter::repeat(usize::MAX))
    };
    flags.extend(places("put").zip(arguments.put.iter().map(Flag::Put)));
    flags.extend(places("delete").zip(arguments.delete.iter().map(|path| Flag::Delete(path))));
    flags.extend(places("moves").zip(arguments.moves.iter().map(Flag::Move)));
    flags.sort_by_key(|(place, _)| *place);
    let mut submission = empty();
    for (_, flag) in flags {
        submission.changes.push(change_of(&flag)?);
    }
    Ok(submission)
}

fn change_of(flag: &Flag<'_>) -> Result<Change, Refusal> {
    Ok(match flag {
        Flag::Put(pair) => put_file(&pair.left, Path::new(&pair.right))?,
        Flag::Delete(path) => {
            let (path, recursive) = directory_or_file(path);
            Change::Delete {
                path,
                recursive,
                expect: None,
                reason: None,
            }
        }
        Flag::Move(pair) => {
            let (from, recursive) = directory_or_file(&pair.left);
            Change::Move {
                from,
                to: directory_or_file(&pair.right).0,
                recursive,
                expect: None,
                reason: None,
            }
        }
    })
}

/// A `/` at the end says that a directory is meant.
fn directory_or_file(path: &str) -> (String, bool) {
    match path.strip_suffix('/') {
        Some(directory) => (directory.to_owned(), true),
        None => (path.to_owned(), false),
    }
}

/// The content of a file for a path. An executable file makes the path executable; any other leaves
/// the mode of the path as it is.
fn put_file(path: &str, file: &Path) -> Result<Change, Refusal> {
    let mut change = submit::put(path, read_input(file)?);
    let executable = file.as_os_str() != "-"
        && std::fs::metadata(file).is_ok_and(|found| found.permissions().mode() & 0o100 != 0);
    if let Change::Put { mode, .. } = &mut change
        && executable
    {
        *mode = Some(FileMode::Executable);
    }
    Ok(change)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};

    use super::*;
    use crate::cli::args::{Arguments, Command};

    fn publish(line: &[&str]) -> (PublishArguments, ArgMatches) {
        let line = ["semaprax", "publish"].iter().chain(line);
        let matches = Arguments::command().try_get_matches_from(line).unwrap();
        let Command::Publish(arguments) = Arguments::from_arg_matches(&matches).unwrap().command
        else {
            panic!("another command");
        };
        let matches = matches.subcommand_matches("publish").unwrap().clone();
        (arguments, matches)
    }

    #[test]
    fn changes_keep_the_order_of_their_flags() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        files::write(&file, [0xff, 0x00]);
        let put = format!("b={}", file.display());
        let (arguments, matches) = publish(&[
            "--move", "a=b2", "--put", &put, "--delete", "old/", "--move", "x=y",
        ]);
        let changes = from_flags(&arguments, Some(&matches)).unwrap().changes;
        let said: Vec<String> = changes
            .iter()
            .map(|change| match change {
                Change::Move { from, to, .. } => format!("move {from} {to}"),
                Change::Put {
                    path,
                    content_base64,
                    ..
                } => {
                    format!(
                        "put {path} {}",
                        content_base64.as_deref().unwrap_or_default()
                    )
                }
                Change::Delete {
                    path, recursive, ..
                } => format!("delete {path} {recursive}"),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(
            said,
            ["move a b2", "put b /wA=", "delete old true", "move x y"]
        );
    }

    #[test]
    fn flags_win_over_the_file() {
        let (arguments, _) = publish(&["--from-json", "-", "--base", "@3", "--author", "flag"]);
        let mut submission = parse(
            br#"{"base":"@1","author":"file","message":"kept","onStale":"merge","changes":[]}"#,
        )
        .unwrap();
        override_with(&mut submission, &arguments);
        assert_eq!(submission.base.as_deref(), Some("@3"));
        assert_eq!(submission.author, "flag");
        assert_eq!(submission.message, "kept");
        assert_eq!(submission.on_stale.word(), "merge");
    }

    #[test]
    fn what_is_no_submission_says_where() {
        let check = |text: &str, part: &str| {
            let refusal = parse(text.as_bytes()).unwrap_err();
            assert_eq!(refusal.code(), Code::InvalidSubmission, "{text}");
            let message = &refusal.diagnostics[0].message;
            assert!(message.contains(part), "{message}");
        };
        check("{not json", "line 1, column 2");
        check("", "line 1, column 0");
        check("{\"changes\":[],\n\"colour\":1}", "no field `colour`");
        check(
            r#"{"schema":"semaprax.receipt/1","changes":[]}"#,
            "semaprax.submission/1",
        );
        check("[]", "has to be an object, and is a list");
    }
}
