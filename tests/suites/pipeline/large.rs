//! Directories of many names, which the store keeps in pages.

use std::collections::{BTreeMap, BTreeSet};

use semaprax_protocol::request::{List, Log};
use semaprax_protocol::submission::Change;
use semaprax_tests::fixture::{Fixture, put, verification};

/// Names that one draws from: enough for pages of two heights.
const NAMES: u64 = 1500;
const PUBLICATIONS: u64 = 24;

/// A number that follows from two others and looks like chance.
fn chance(round: u64, turn: u64) -> u64 {
    let digest = blake3::hash(format!("{round} {turn}").as_bytes());
    u64::from_le_bytes(*digest.as_bytes().first_chunk().unwrap())
}

/// One in sixteen lies one directory deeper, in one of three.
fn path(number: u64) -> String {
    let directory = match number % 16 {
        0 => format!("many/below-{}", number / 16 % 3),
        _ => "many".to_owned(),
    };
    format!("{directory}/{number:04}-{}.rs", number % 7)
}

fn delete(path: String) -> Change {
    Change::Delete {
        path,
        recursive: false,
        expect: None,
        reason: None,
    }
}

/// The changes of one publication, also done to the model.
fn changes(round: u64, model: &mut BTreeMap<String, String>) -> Vec<Change> {
    let mut changes = BTreeMap::new();
    for turn in 0..=chance(round, 0) % 8 {
        let name = path(chance(round, 10 + turn) % (NAMES + 50));
        if changes.contains_key(&name) {
            continue;
        }
        let change = if chance(round, 20 + turn).is_multiple_of(3) && model.contains_key(&name) {
            model.remove(&name);
            delete(name.clone())
        } else {
            let content = format!("{round} {turn}");
            model.insert(name.clone(), content.clone());
            put(&name, &content)
        };
        changes.insert(name, change);
    }
    changes.into_values().collect()
}

fn listed(fixture: &Fixture, revision: String) -> Vec<String> {
    let list = List {
        revision: Some(revision),
        prefix: None,
        after: None,
        limit: Some(10_000),
    };
    let entries = fixture.ask(list).unwrap().entries;
    entries
        .into_iter()
        .map(|entry| entry.path.to_string())
        .collect()
}

/// The publications in which a path, or anything below it, is not as in the one before, newest first.
fn changed_in(published: &[BTreeMap<String, String>], path: &str) -> Vec<u64> {
    let within = |model: &BTreeMap<String, String>| -> BTreeMap<String, String> {
        let below = format!("{path}/");
        let is_within = |name: &String| *name == path || name.starts_with(&below);
        let found = model.iter().filter(|(name, _)| is_within(name));
        found
            .map(|(name, content)| (name.clone(), content.clone()))
            .collect()
    };
    let mut before = BTreeMap::new();
    let mut changed = Vec::new();
    for (model, seq) in published.iter().zip(1..) {
        let now = within(model);
        if now != before {
            changed.push(seq);
        }
        before = now;
    }
    changed.reverse();
    changed
}

fn logged(fixture: &Fixture, path: &str) -> Vec<u64> {
    let log = Log {
        limit: None,
        before: None,
        path: Some(path.to_owned()),
        author: None,
    };
    let page = fixture.ask(log).unwrap();
    page.entries.iter().map(|entry| entry.seq.get()).collect()
}

#[test]
fn a_directory_of_many_names_is_what_a_fresh_one_would_be() {
    let mut fixture = Fixture::new();
    let mut model: BTreeMap<_, _> = (0..NAMES)
        .map(|number| (path(number), "0".to_owned()))
        .collect();
    for (path, content) in &model {
        fixture.write(path, content);
    }
    fixture.init().unwrap();
    let mut published = vec![model.clone()];
    for round in 1..=PUBLICATIONS {
        let changes = changes(round, &mut model);
        fixture.publish(changes).unwrap();
        published.push(model.clone());
        if round % 8 == 0 {
            // From here on the nodes come from the store.
            fixture.close();
            fixture.open().unwrap();
        }
    }
    for (place, model) in published.iter().enumerate() {
        let revision = format!("@{}", place + 1);
        assert_eq!(
            listed(&fixture, revision.clone()),
            model.keys().cloned().collect::<Vec<_>>(),
            "{revision}"
        );
        let (path, content) = model.iter().nth(place * 50).unwrap();
        assert_eq!(
            fixture.content(Some(&revision), path).unwrap(),
            content.as_bytes(),
            "{revision} {path}"
        );
    }
    assert_eq!(verification(&fixture.verify(true, false)), "ok");

    let touched: BTreeSet<&String> = published
        .windows(2)
        .flat_map(|pair| {
            let differs = |name: &&String| pair[0].get(*name) != pair[1].get(*name);
            pair[0].keys().chain(pair[1].keys()).filter(differs)
        })
        .collect();
    let directories = ["many", "many/below-0", "many/below-1", "many/below-2"].map(str::to_owned);
    let missing = ["many/never", "none"].map(str::to_owned);
    for path in touched.into_iter().chain(&directories).chain(&missing) {
        assert_eq!(
            logged(&fixture, path),
            changed_in(&published, path),
            "{path}"
        );
    }

    let mut fresh = Fixture::new();
    for (path, content) in &model {
        fresh.write(path, content);
    }
    fresh.init().unwrap();
    assert_eq!(fresh.status().active.tree, fixture.status().active.tree);
}
