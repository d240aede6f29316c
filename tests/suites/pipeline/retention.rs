//! How long content is kept, and what holds it.

use std::time::Duration;

use semaprax_daemon::store::database::Database;
use semaprax_daemon::store::history::DetachedLease;
use semaprax_daemon::world::Clock as _;
use semaprax_protocol::Seq;
use semaprax_tests::fixture::{Fixture, check_on};
use semaprax_tests::oracle::check_whole;

fn retaining(publications: u64, age: Duration) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.config.retention.content_publications = publications;
    fixture.config.retention.content_age = age;
    fixture.write("a", "1");
    fixture.write("big", &"x".repeat(100_000));
    fixture.init().unwrap();
    fixture
}

#[test]
fn old_content_goes_and_records_stay() {
    let mut fixture = retaining(2, Duration::from_secs(50));
    check_on(
        &mut fixture,
        "publish
           put a 2
           put big small
         publish
           put a 3
         publish
           put a 4
         gc age=0 keep=1
         cat @1:a
         clock 100
         gc age=0 keep=1
         cat @1:a
         tree @2
         rollback @1
         show @3
         show @2
         diff @1 @
         cat @3:a
         lease x @1
         pin @1
         log
         log path=a
         blame a
         events 1
         verify",
        "published @2: modified a, modified big
         published @3: modified a
         published @4: modified a
         removed @1 @2 @3
         1
         -
         removed content 2
         failed content-collected
         failed content-collected
         failed content-collected
         failed content-collected
         failed content-collected
         failed content-collected
         3
         failed content-collected
         failed content-collected
         @4(1) @3(1) @2(2) @1(2)
         @4(1) @3(1)
         4
         @2 ; @3 ; @4 modified a
         ok",
    );
    // The large blob of @1 was a file; nothing needs it any more.
    let objects = fixture.state("objects");
    let left: usize = objects
        .read_dir_utf8()
        .unwrap()
        .map(|entry| entry.unwrap().path().read_dir_utf8().unwrap().count())
        .sum();
    assert_eq!(left, 0);
    // History that cannot be told any more is a fresh start.
    let workspace = fixture.workspace();
    let event = |token: &str| workspace.watch_start(Some(token)).unwrap().event;
    assert_eq!(event("2"), semaprax_protocol::documents::EventKind::Fresh);
    assert_eq!(
        event("3"),
        semaprax_protocol::documents::EventKind::Snapshot
    );
    check_whole(&mut fixture);
}

#[test]
fn held_content_stays() {
    let hold = |take: &str, give: &str| {
        let mut fixture = retaining(1, Duration::ZERO);
        fixture.run(&format!(
            "publish\n  put a 2\n{take}\npublish\n  put a 3\nclock 1000"
        ));
        fixture.run("gc age=0 keep=0");
        assert_eq!(fixture.run("cat @2:a"), "2\n", "{take}");
        assert_eq!(
            fixture.run("cat @1:a"),
            "failed content-collected\n",
            "{take}"
        );
        check_whole(&mut fixture);
        fixture.run(give);
        fixture.run("gc age=0 keep=0");
        assert_eq!(
            fixture.run("cat @2:a"),
            "failed content-collected\n",
            "{give}"
        );
    };
    hold("pin @2", "unpin @2");
    hold("lease x @2 ttl=2000", "release x");
    hold("lease x @2", "release x");
}

#[test]
fn content_under_a_file_lock_stays() {
    let mut fixture = retaining(1, Duration::ZERO);
    let first = fixture.active().1;
    let lease = fixture
        .state("generations")
        .join(first.to_string())
        .join("LEASE");
    let held = fixture
        .test
        .world
        .disk
        .try_lock(&lease, false, false)
        .unwrap()
        .unwrap();
    fixture.put("a", "2");
    fixture.run("clock 1000\ngc age=0 keep=0");
    assert_eq!(fixture.run("cat @1:a"), "1\n");
    drop(held);
    fixture.run("gc age=0 keep=0");
    assert_eq!(fixture.run("cat @1:a"), "failed content-collected\n");
}

#[test]
fn an_idle_writer_collects_now_and_then() {
    let mut fixture = Fixture::new();
    fixture.config.retention.trees = 1;
    fixture.config.retention.young = Duration::from_secs(5);
    fixture.write("a", "1");
    fixture.init().unwrap();
    fixture.put("a", "2");
    check_on(
        &mut fixture,
        "clock 10
         idle
         why @1
         publish
           put a 3
         clock 10
         idle
         why @2
         clock 60
         idle
         why @2",
        "-
         -
         no-tree
         published @3: modified a
         -
         -
         tree
         -
         -
         no-tree",
    );
}

#[test]
fn a_lease_on_content_that_is_gone_is_none() {
    let mut fixture = retaining(1, Duration::from_secs(50));
    let revision = fixture.active().1;
    check_on(
        &mut fixture,
        "publish
           put a 2
         gc age=0 keep=1
         clock 100
         gc age=0 keep=1
         lease x @1 ttl=100
         lease y @1",
        "published @2: modified a
         removed @1
         -
         removed content 1
         failed content-collected
         failed content-collected",
    );
    let kinds = |fixture: &Fixture| -> Vec<String> {
        let entries = fixture.journal(0).into_iter();
        entries
            .map(|entry| entry.kind)
            .filter(|kind| kind.starts_with("lease"))
            .collect()
    };
    assert_eq!(
        kinds(&fixture),
        [""; 0],
        "nothing was held, not even for a moment"
    );

    // Such a row all the same, of a build that took it first and looked then.
    let now = fixture.test.clock.now();
    let lease = DetachedLease {
        id: "01890000-0000-7000-8000-000000000001".parse().unwrap(),
        revision,
        seq: Seq::FIRST,
        owner: "reader".to_owned(),
        pid: None,
        acquired: now,
        ttl_ms: 1_000_000,
        expires: now.saturating_add(1_000_000_000_000),
    };
    fixture.close();
    let database = Database::open_writer(&fixture.state("store.db")).unwrap();
    database.put_lease(&lease).unwrap();
    database.close().unwrap();
    fixture.open().unwrap();
    fixture.put("a", "3");
}
