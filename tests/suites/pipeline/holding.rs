//! Leases, pins, and the collector.

use std::time::Duration;

use semaprax_protocol::Code;
use semaprax_protocol::documents::LeaseReleased;
use semaprax_protocol::request::{LeaseAcquire, LeaseListParams, LeaseRelease, LeaseRenew};
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
