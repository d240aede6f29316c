//! Leases, pins, the collector, and how long content is kept.

use std::time::Duration;

use semaprax_daemon::store::database::Database;
use semaprax_daemon::store::history::DetachedLease;
use semaprax_daemon::world::Clock as _;
use semaprax_protocol::documents::LeaseReleased;
use semaprax_protocol::request::{LeaseAcquire, LeaseListParams, LeaseRelease, LeaseRenew};
use semaprax_protocol::{Code, Seq};
use semaprax_tests::fixture::{Fixture, check, check_on};
use semaprax_tests::oracle::{check_whole, shown, tree_on_disk};

#[test]
fn the_collector_takes_what_nothing_keeps() {
    check(
        r"file a 1
          publish
            put a 2
          publish
            put a 3
          publish
            put a 4
          why @1
          gc
          gc age=0
          gc age=0 keep=2 dry
          gc age=0 keep=2
          why @1
          why @3
          why @
          gc age=0 keep=0
          why @
          cat @1:a
          show @2
          log",
        "published @2: modified a
         published @3: modified a
         published @4: modified a
         tree young retention
         removed
         removed
         removed @1 @2
         removed @1 @2
         no-tree retention
         tree young retention
         tree active young retention
         removed @3
         tree active young retention
         1
         @2 modified a
         @4(1) @3(1) @2(1) @1(1)",
    );
}

#[test]
fn young_trees_stay() {
    check(
        r"file a 1
          publish
            put a 2
          clock 100
          publish
            put a 3
          gc age=1000 keep=1
          gc age=50 keep=1
          why @2
          lease x @1
          why @1
          release x
          gc age=50 keep=1
          clock 100
          gc age=50 keep=1",
        "published @2: modified a
         -
         published @3: modified a
         removed
         removed @1 @2
         no-tree retention
         leased @1
         tree leased young retention
         released
         removed
         -
         removed @1",
    );
    // A clock that was set back makes a tree look made in the future: that is young.
    check(
        r"file a 1
          publish
            put a 2
          clock -100000
          gc age=10 keep=1",
        "published @2: modified a
         -
         removed",
    );
}

#[test]
fn leases_and_pins_keep_trees() {
    check(
        r"file a 1
          publish
            put a 2
          publish
            put a 3
          publish
            put a 4
          lease x @1
          lease y @2 ttl=100
          pin @3
          gc age=0 keep=0
          why @1
          why @2
          why @3
          release x
          unpin @3
          gc age=0 keep=0
          clock 100
          gc age=0 keep=0
          release y
          release x
          lease z @1
          cat @1:a",
        "published @2: modified a
         published @3: modified a
         published @4: modified a
         leased @1
         leased @2
         pinned true
         removed
         tree leased young retention
         tree leased young retention
         tree pinned young retention
         released
         pinned false
         removed @1 @3
         -
         removed @2
         failed lease-unknown
         failed lease-unknown
         leased @1
         1",
    );
}

#[test]
fn a_reader_without_a_daemon_keeps_its_tree() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let first = fixture.active().1;
    fixture.put("a", "2");
    let lease = fixture
        .state("generations")
        .join(first.to_string())
        .join("LEASE");
    let held = fixture
        .test
        .world
        .disk
        .try_lock(&lease, false, false)
        .unwrap();
    assert!(held.is_some());
    check_on(
        &mut fixture,
        "gc age=0 keep=0
         why @1",
        "removed
         tree leased young retention",
    );
    drop(held);
    check_on(&mut fixture, "gc age=0 keep=0", "removed @1");
    assert!(!lease.exists());
}

#[test]
fn a_tree_made_again_for_a_lease_is_the_same() {
    let mut fixture = Fixture::with_files(&[("a", "1"), ("d/b", "1")]);
    let expect = fixture.stored("@1").unwrap();
    fixture.put("a", "2");
    fixture.run("publish\n  chmod d/b executable\ngc age=0 keep=0");
    let grant = fixture.acquire(Some("@1")).unwrap();
    assert_eq!(shown(&tree_on_disk(&grant.path)), shown(&expect));
    assert_eq!(fixture.run("stamps @1"), "a@1 d/b@1\n");
    check_whole(&mut fixture);
}

#[test]
fn detached_leases_outlive_the_daemon() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    check_on(
        &mut fixture,
        "publish
           put a 2
         lease x @1 ttl=100
         lease y @1
         reopen
         gc age=0 keep=0
         clock 98
         gc age=0 keep=0
         reopen
         gc age=0 keep=0",
        "published @2: modified a
         leased @1
         leased @1
         -
         removed
         -
         removed @1
         -
         removed",
    );
    let lease = fixture.leases["x"].lease;
    assert_eq!(
        fixture.release(lease).unwrap_err().code(),
        Code::LeaseUnknown
    );
}

/// While a daemon runs, what is left of a lease is counted on the clock that nobody can set.
#[test]
fn setting_the_wall_clock_ends_no_lease() {
    check(
        r"file a 1
          publish
            put a 2
          lease x @1 ttl=100
          clock -100000
          gc age=0 keep=0
          clock 99
          gc age=0 keep=0",
        "published @2: modified a
         leased @1
         -
         removed
         -
         removed @1",
    );
}

#[test]
fn leases_are_listed_renewed_and_bounded() {
    let mut fixture = Fixture::with_files(&[("a", "1")]);
    let acquire = |ttl_ms: u64, owner: &str| LeaseAcquire {
        revision: None,
        ttl_ms: Some(ttl_ms),
        owner: owner.to_owned(),
    };
    for ttl_ms in [0, semaprax_protocol::limits::LEASE_TTL_MS + 1] {
        let refusal = fixture.perform(acquire(ttl_ms, "")).unwrap_err();
        assert_eq!(refusal.code(), Code::LimitExceeded, "{ttl_ms}");
    }
    let long = "x".repeat(257);
    let refusal = fixture.perform(acquire(1, &long)).unwrap_err();
    assert_eq!(refusal.code(), Code::LimitExceeded);
    let grant = fixture.perform(acquire(10_000, "me")).unwrap();
    fixture.tick();
    let connection = fixture.acquire(None).unwrap();
    let list = fixture.ask(LeaseListParams {}).unwrap().leases;
    let owners: Vec<&str> = list.iter().map(|lease| lease.owner.as_str()).collect();
    assert_eq!(owners, ["me", "reader"]);
    assert_eq!(list[0].age, 1000);
    assert_eq!(list[0].pid, Some(7));
    assert_eq!((list[0].expires, list[1].expires), (grant.expires, None));
    assert_eq!(fixture.status().leases, 2);

    let renewed = fixture.perform(LeaseRenew {
        lease: grant.lease,
        ttl_ms: None,
    });
    assert_eq!(
        renewed.unwrap().expires.unwrap().as_nanos(),
        grant.expires.unwrap().as_nanos() + 1_000_000_000
    );
    let refusal = fixture.perform(LeaseRenew {
        lease: connection.lease,
        ttl_ms: Some(1000),
    });
    assert_eq!(refusal.unwrap_err().code(), Code::LeaseUnknown);

    let LeaseReleased {
        released, revision, ..
    } = fixture
        .perform(LeaseRelease { lease: grant.lease })
        .unwrap();
    assert_eq!((released, revision), (grant.lease, grant.revision));
    fixture.test.clock.advance(Duration::from_mins(1));
    let list = fixture.ask(LeaseListParams {}).unwrap().leases;
    assert_eq!(list.len(), 1);
}

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
