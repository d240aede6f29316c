//! The journal: everything that was asked and what became of it, in a chain.

use semaprax_protocol::documents::JournalEntry;
use semaprax_protocol::request::{Journal, JournalHead};
use semaprax_tests::fixture::Fixture;

fn kinds(entries: &[JournalEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.kind.as_str()).collect()
}

#[test]
fn every_outcome_is_an_entry() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    fixture.run(
        "publish by=me id=5
           put a 2
         publish by=you id=6
           delete none
         publish by=me
           put a 2
         publish base=@1
           put b 1
         undo
         revert 9
         lease x @1 ttl=100
         release x
         pin @1
         unpin @1
         gc age=0 keep=0
         gc age=0 keep=0",
    );
    let entries = fixture.journal(0);
    assert_eq!(
        kinds(&entries),
        [
            "initialized",
            "published",
            "refused",
            "unchanged",
            "refused",
            "published",
            "refused",
            "lease-acquired",
            "lease-released",
            "pinned",
            "unpinned",
            "collected",
        ]
    );
    let published = &entries[1].detail;
    assert_eq!(published["seq"], 2);
    assert_eq!(published["author"], "me");
    assert_eq!(
        published["submission"],
        semaprax_tests::fixture::id(5).to_string()
    );
    assert_eq!(published["revision"], fixture.revision(2).to_string());
    let refused = &entries[2].detail;
    assert_eq!(refused["author"], "you");
    assert_eq!(refused["status"], "rejected");
    assert_eq!(
        refused["submission"],
        semaprax_tests::fixture::id(6).to_string()
    );
    assert_eq!(refused["diagnostics"][0]["code"], "not-found");
    assert_eq!(refused["diagnostics"][0]["path"], "none");
}

#[test]
fn entries_are_chained_and_paged() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    for round in 0..5 {
        fixture.put("a", &format!("{round}x"));
    }
    let all = fixture.journal(0);
    assert_eq!(all[0].prev, None);
    for (number, pair) in (1..).zip(all.windows(2)) {
        assert_eq!(pair[0].entry, number);
        assert_eq!(pair[1].prev, Some(pair[0].digest));
    }
    let page = fixture.ask(Journal {
        since: 2,
        limit: Some(2),
        wait_ms: None,
    });
    let page = page.unwrap();
    assert_eq!(page.entries, all[2..4]);
    assert!(page.more);
    let rest = fixture.ask(Journal {
        since: 4,
        limit: None,
        wait_ms: None,
    });
    let rest = rest.unwrap();
    assert_eq!(rest.entries, all[4..]);
    assert!(!rest.more);
    assert_eq!(fixture.ask(JournalHead {}).unwrap(), *all.last().unwrap());
    // A restart goes on with the chain.
    fixture.close();
    fixture.open().unwrap();
    fixture.put("a", "last");
    assert_eq!(fixture.journal(0)[..all.len()], all);
    assert_eq!(
        fixture.journal(all.len() as u64)[0].prev,
        Some(all.last().unwrap().digest)
    );
}

#[test]
fn a_changed_entry_is_found() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    fixture.put("a", "2");
    fixture.put("a", "3");
    let database =
        semaprax_daemon::store::database::Database::open_writer(&fixture.state("store.db"));
    let database = database.unwrap();
    let sql =
        "UPDATE events SET detail = replace(detail, '\"seq\":2', '\"seq\":9') WHERE entry = 2";
    assert_eq!(database.execute(sql, ()).unwrap(), 1);
    assert_eq!(fixture.run("verify"), "damaged: event\n");
    let sql = "DELETE FROM events WHERE entry = 2";
    assert_eq!(database.execute(sql, ()).unwrap(), 1);
    assert_eq!(fixture.run("verify"), "damaged: event\n");
}
