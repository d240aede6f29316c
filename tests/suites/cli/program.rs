//! What the program says about itself: help, codes, schemas, completions.

use serde_json::Value;

use crate::{both, check, shown, world};

/// Every command, with its own commands.
const COMMANDS: &[&[&str]] = &[
    &[],
    &["init"],
    &["status"],
    &["publish"],
    &["log"],
    &["show"],
    &["diff"],
    &["ls"],
    &["cat"],
    &["blame"],
    &["lease"],
    &["lease", "acquire"],
    &["lease", "renew"],
    &["lease", "list"],
    &["lease", "release"],
    &["with"],
    &["export"],
    &["watch"],
    &["rollback"],
    &["revert"],
    &["undo"],
    &["pin"],
    &["unpin"],
    &["gc"],
    &["why"],
    &["verify"],
    &["doctor"],
    &["journal"],
    &["queue"],
    &["cancel"],
    &["daemon"],
    &["daemon", "run"],
    &["daemon", "start"],
    &["daemon", "stop"],
    &["daemon", "status"],
    &["explain"],
    &["schema"],
    &["completions"],
    &["demo"],
];

#[test]
fn help() {
    let world = world();
    let overview = world.ok(&["--help"]).text();
    for words in COMMANDS {
        let line: Vec<&str> = words.iter().copied().chain(["--help"]).collect();
        let outcome = world.ok(&line);
        assert_eq!(outcome.err, "");
        let name = if words.is_empty() {
            "help".to_owned()
        } else {
            format!("help-{}", words.join("-"))
        };
        check(&world, &name, &shown(&outcome, &line));
        if let [command] = words {
            assert!(
                overview.contains(&format!("  {command} ")),
                "{command} is not in the overview"
            );
        }
    }
    for line in overview
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
    {
        if let Some(name) = line
            .strip_prefix("  ")
            .filter(|rest| !rest.starts_with(' '))
        {
            let name = name.split(' ').next().unwrap();
            assert!(
                name == "help" || COMMANDS.contains(&&[name][..]),
                "{name} has no snapshot"
            );
        }
    }
    // Without arguments the overview is an error, not a result.
    let nothing: [&str; 0] = [];
    let outcome = world.run(&nothing).exits(1);
    assert!(
        outcome.out.is_empty() && outcome.err.contains("Usage: semaprax"),
        "{}",
        outcome.told()
    );
    assert!(world.ok(&["--version"]).text().starts_with("semaprax "));
}

#[test]
fn every_code_is_explained() {
    let world = world();
    let listed = world.run(&["explain", "no-such-code"]).exits(1).err;
    let known = listed
        .split("there are: ")
        .nth(1)
        .expect("the list of codes");
    let codes: Vec<&str> = known
        .split_whitespace()
        .map(|word| word.trim_end_matches(','))
        .collect();
    assert!(codes.len() > 30, "{codes:?}");
    for code in &codes {
        let explained = world.json(&["explain", code]);
        assert_eq!(explained["code"], *code);
        let meaning = explained["meaning"].as_str().unwrap();
        assert!(meaning.len() > 40, "{explained}");
        assert!(world.ok(&["explain", code]).out.len() > 80, "{code}");
    }
    for code in ["stale-base", "in-doubt"] {
        check(
            &world,
            &format!("explain-{code}"),
            &both(&world, &["explain", code]),
        );
    }
}

#[test]
fn schemas() {
    let world = world();
    check(&world, "schema", &both(&world, &["schema"]));
    let names = world.json(&["schema"])["names"].clone();
    for name in names.as_array().unwrap() {
        let text = world.ok(&["schema", name.as_str().unwrap()]).text();
        let schema: Value = serde_json::from_str(&text).unwrap();
        assert!(
            schema["$schema"].is_string() && schema.is_object(),
            "{name}"
        );
    }
    check(
        &world,
        "schema-error",
        &world.ok(&["schema", "error"]).text(),
    );
}

#[test]
fn every_document_names_a_schema_that_is_printed() {
    let world = crate::story();
    let names = world.json(&["schema"])["names"].clone();
    let known = |document: &Value| {
        let schema = document["schema"]
            .as_str()
            .unwrap_or_else(|| panic!("{document}"));
        let name = schema
            .strip_prefix("semaprax.")
            .and_then(|rest| rest.strip_suffix("/1"));
        let name = name.unwrap_or_else(|| panic!("{schema}"));
        assert!(
            names.as_array().unwrap().iter().any(|known| known == name),
            "{schema} is not printed"
        );
    };
    for words in [
        &["status"][..],
        &["log"],
        &["show", "@"],
        &["diff", "@1"],
        &["ls"],
        &["blame", "src/a.rs"],
        &["lease", "acquire"],
        &["lease", "list"],
        &["pin", "@1"],
        &["gc"],
        &["why", "@1"],
        &["verify"],
        &["journal", "head"],
        &["queue"],
        &["undo"],
        &["export", "../out"],
        &["daemon", "status"],
        &["explain", "io"],
        &["schema"],
    ] {
        known(&world.json(words));
    }
    known(&world.with_json(&["doctor"]).run().json());
    known(&world.with_json(&["show", "@99"]).run().json());
    for line in world
        .with_json(&["watch", "--since", "1", "-n", "1"])
        .run()
        .json_lines()
    {
        known(&line);
    }
}

#[test]
fn completions_name_every_command() {
    let world = world();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = world.ok(&["completions", shell]).text();
        for words in COMMANDS {
            if let [command] = words {
                assert!(script.contains(command), "{shell}: {command}");
            }
        }
        assert!(!script.contains("under-test"), "{shell}");
    }
    world.refused(&["completions", "dos"], "usage");
}
