//! Standard output and standard error: one document, colour, pipes that close early.

use semaprax_tests::process::World;
use serde_json::Value;

use crate::{story, world};

#[test]
fn with_json_there_is_one_document_and_nothing_else() {
    let world = story();
    for words in [
        &["status", "--drift", "--limits"][..],
        &["log"],
        &["show", "@2"],
        &["diff", "@1"],
        &["diff", "@1", "--stat"],
        &["diff", "@1", "--name-status"],
        &["ls"],
        &["blame", "src/a.rs"],
        &["lease", "acquire"],
        &["lease", "list"],
        &["export", "../exported"],
        &["publish", "--delete", "link"],
        &["publish", "--delete", "docs/new.md", "--dry-run"],
        &["rollback", "@1"],
        &["revert", "2"],
        &["undo"],
        &["pin", "@1"],
        &["unpin", "@1"],
        &["gc"],
        &["why", "@"],
        &["verify", "--deep"],
        &["doctor"],
        &["journal", "head"],
        &["queue"],
        &["explain", "io"],
        &["schema"],
        &["schema", "receipt"],
        &["daemon", "status"],
        &["daemon", "start"],
        &["daemon", "stop"],
    ] {
        // The flag may stand before and after the command.
        for flags in [
            [&["--json"][..], words].concat(),
            [words, &["--json"]].concat(),
        ] {
            let outcome = world.run(&flags);
            let text = outcome.text();
            let mut documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
            assert!(
                documents.next().is_some_and(|first| first.is_ok()),
                "{}",
                outcome.told()
            );
            assert!(documents.next().is_none(), "{}", outcome.told());
            assert!(text.ends_with('\n'));
        }
    }
    for words in [&["watch", "--since", "1", "--limit", "2"][..], &["journal"]] {
        let lines = world.with_json(words).run().ok().json_lines();
        assert!(lines.len() > 2, "{words:?}");
    }
}

/// Whether text holds an escape sequence.
fn is_colored(text: &[u8]) -> bool {
    text.contains(&0x1b)
}

#[test]
fn colour_is_for_who_asked_for_it() {
    let world = story();
    let check = |flags: &[&str], variables: &[(&str, &str)], expected: bool| {
        for words in [&["show", "@2"][..], &["log"], &["status"]] {
            let line = [flags, words].concat();
            let call = world.semaprax(&line).without_env("NO_COLOR");
            let call = variables
                .iter()
                .fold(call, |call, (name, value)| call.env(name, value));
            let outcome = call.run().ok();
            assert_eq!(
                is_colored(&outcome.out),
                expected,
                "{variables:?} {}",
                outcome.told()
            );
        }
        let line = [flags, &["show", "@99"]].concat();
        let call = world.semaprax(&line).without_env("NO_COLOR");
        let call = variables
            .iter()
            .fold(call, |call, (name, value)| call.env(name, value));
        let outcome = call.run();
        assert_eq!(
            is_colored(outcome.err.as_bytes()),
            expected,
            "{variables:?} {}",
            outcome.told()
        );
    };
    // A pipe is no terminal.
    check(&[], &[], false);
    check(&["--color", "auto"], &[("NO_COLOR", "1")], false);
    check(&["--color=never"], &[("CLICOLOR_FORCE", "1")], false);
    check(&["--color=always"], &[], true);
    check(&["--color=always"], &[("NO_COLOR", "1")], true);
    check(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false);
    // JSON has none in any case.
    let json = world.ok(&["--json", "--color=always", "show", "@2"]);
    assert!(!is_colored(&json.out));
}

/// Runs a pipeline in `bash`; answers what it printed and how its first command ended.
fn pipeline(world: &World, script: &str) -> (String, String) {
    let script = format!("{script}; echo \"exit ${{PIPESTATUS[0]}}\"");
    let script = script.replace("semaprax", &format!("'{}'", world.binary().display()));
    let outcome = world
        .program("bash", script.clone())
        .arg("-c")
        .arg(script)
        .run();
    (outcome.text(), outcome.err)
}

#[test]
fn a_pipe_that_closes_early_is_no_error() {
    let world = world();
    for n in 0..3000 {
        world.write(
            format!("ws/directory-with-a-long-name/file-with-a-long-name-{n}"),
            n.to_string(),
        );
    }
    world.write("ws/big", "line\n".repeat(200_000));
    world.json(&["init"]);
    for command in [
        "ls",
        "--json ls",
        "cat big",
        "diff @1 @1",
        "show @1",
        "log",
        "--help",
        "completions bash",
        "journal",
    ] {
        let (out, err) = pipeline(
            &world,
            &format!("semaprax {command} | head -n 1 >/dev/null"),
        );
        assert!(!err.contains("panicked"), "{command}: {err}");
        assert!(!err.contains("Broken pipe"), "{command}: {err}");
        assert!(out.ends_with("exit 0\n"), "{command}: {out}{err}");
    }
    // Nobody reads a refusal either.
    let (out, err) = pipeline(&world, "semaprax --json show @99 | true");
    assert!(out.ends_with("exit 2\n") && err.is_empty(), "{out}{err}");
    // A full disk is an error.
    if std::fs::exists("/dev/full").unwrap() {
        let (out, err) = pipeline(&world, "semaprax ls >/dev/full");
        assert!(
            out.ends_with("exit 2\n") && err.contains("standard output"),
            "{out}{err}"
        );
    }
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let world = world();
    world.fill();
    world.json(&["init", "-m", "\u{1b}[31mred\u{7}\nsecond line"]);
    for words in [&["log"][..], &["show", "@1"], &["status"]] {
        let outcome = world.ok(words);
        assert!(
            !is_colored(&outcome.out) && !outcome.out.contains(&7),
            "{}",
            outcome.told()
        );
    }
    assert_eq!(
        world.json(&["log"])["entries"][0]["message"],
        "\u{1b}[31mred\u{7}\nsecond line"
    );
    let refusal = world.run(&["cat", "no\u{1b}[31mpath"]);
    assert!(!is_colored(refusal.err.as_bytes()), "{}", refusal.told());
}
