//! Who acts in a run: the writer that publishes and collects, readers of both kinds, and those that
//! only look.
//!
//! Owns: what each does, through the real `Writer`, `Workspace` and `Client`, and what it must find.

use std::fs::File;
use std::time::Duration;

use semaprax_client::{Client, Options, Runtime, Start};
use semaprax_daemon::store::{Layout, active, trash};
use semaprax_daemon::workspace::{Acquired, Job, Uploads, Workspace, Writer};
use semaprax_protocol::documents::LeaseGrant;
use semaprax_protocol::request::{
    Collect, LeaseAcquire, LeaseRelease, Method, Publish, PublishOptions, Response, WhyParams,
};
use semaprax_protocol::submission::Change;
use semaprax_protocol::{Code, LeaseId, Refusal, Revision};
use semaprax_tests::fixture::{put, submission};
use semaprax_tests::world::TestClock;
use shuttle::sync::mpsc::{Receiver, Sender, channel};

use crate::scene::{Scene, VIOLATION, content};

/// A lease whose tree the writer is asked to make, as the server asks it.
pub(crate) type Wanted = (LeaseId, Revision, Sender<Result<LeaseGrant, Refusal>>);

/// The changes that make publication `seq`.
pub(crate) fn changes(seq: u64) -> Vec<Change> {
    ["a", "b"]
        .map(|path| put(path, &content(path, seq)))
        .to_vec()
}

fn perform<M: Method>(writer: &mut Writer, params: M) -> Result<M::Reply, Refusal> {
    let job = Job {
        request: params.request(),
        submission: None,
        uploads: Uploads::new(),
        pid: None,
    };
    let response: Response = writer.perform(&job)?;
    Ok(M::reply(response).expect("an answer of the same method"))
}

/// The thread of the writer: publications, collections and a detached lease by its own plan, and the
/// trees that readers ask for in between, until no reader can ask any more.
pub(crate) fn collector_and_writer(
    scene: &Scene,
    mut writer: Writer,
    clock: &TestClock,
    asked: &Receiver<Wanted>,
) {
    for seq in 3..5 {
        collect(scene, &mut writer);
        serve_waiting(scene, &mut writer, asked);
        publish(scene, &mut writer, clock, seq);
        serve_waiting(scene, &mut writer, asked);
    }
    detached(scene, &mut writer);
    serve_the_rest(scene, &mut writer, asked);
    writer.idle();
    writer.close();
}

fn serve(scene: &Scene, writer: &mut Writer, (lease, revision, answer): Wanted) {
    let made = writer
        .materialize(revision)
        .and_then(|()| scene.workspace.grant(lease));
    drop(answer.send(made));
}

fn serve_waiting(scene: &Scene, writer: &mut Writer, asked: &Receiver<Wanted>) {
    while let Ok(wanted) = asked.try_recv() {
        serve(scene, writer, wanted);
    }
}

/// Until no reader can ask any more.
fn serve_the_rest(scene: &Scene, writer: &mut Writer, asked: &Receiver<Wanted>) {
    while let Ok(wanted) = asked.recv() {
        serve(scene, writer, wanted);
        collect(scene, writer);
    }
    collect(scene, writer);
}

fn publish(scene: &Scene, writer: &mut Writer, clock: &TestClock, seq: u64) {
    clock.advance(Duration::from_secs(1));
    let publish = Publish {
        submission: submission(changes(seq)),
        options: PublishOptions::default(),
    };
    let receipt = perform(writer, publish).unwrap();
    let revision = receipt.revision.unwrap();
    scene.published.lock().unwrap().insert(revision, seq);
    writer.tidy();
}

/// The writer where each publication takes the tree of one before it, if nobody ever had a lease of it.
pub(crate) fn recycler(
    scene: &Scene,
    mut writer: Writer,
    clock: &TestClock,
    asked: &Receiver<Wanted>,
) {
    for seq in 3..8 {
        publish(scene, &mut writer, clock, seq);
        // What was recycled is made ready for the next one.
        writer.idle();
        serve_waiting(scene, &mut writer, asked);
    }
    serve_the_rest(scene, &mut writer, asked);
    writer.close();
}

/// The writer where nothing is published: the tree of the oldest publication is collected, and made
/// again for a detached lease, over and over.
pub(crate) fn collector_and_maker(scene: &Scene, mut writer: Writer, asked: &Receiver<Wanted>) {
    for _ in 0..2 {
        collect(scene, &mut writer);
        serve_waiting(scene, &mut writer, asked);
        detached(scene, &mut writer);
    }
    serve_the_rest(scene, &mut writer, asked);
    writer.close();
}

fn collect(scene: &Scene, writer: &mut Writer) {
    let collected = perform(
        writer,
        Collect {
            dry_run: false,
            min_age_ms: Some(0),
            keep: Some(0),
        },
    )
    .unwrap();
    for revision in &collected.removed {
        let seq = scene.published.lock().unwrap().get(revision).copied();
        assert!(
            seq.is_some(),
            "{VIOLATION} a tree nobody published was there"
        );
    }
}

/// A detached lease of the oldest publication: collected around, then given back.
fn detached(scene: &Scene, writer: &mut Writer) {
    let grant = perform(
        writer,
        LeaseAcquire {
            revision: Some("@1".to_owned()),
            ttl_ms: Some(60_000),
            owner: "detached".to_owned(),
        },
    )
    .unwrap();
    collect(scene, writer);
    scene.check_held("a detached lease", &grant.path, 1);
    perform(writer, LeaseRelease { lease: grant.lease }).unwrap();
}

/// A client with a connection: takes a lease twice, reads its tree, gives it back.
pub(crate) fn socket_reader(scene: &Scene, revision: Option<&str>, ask: &Sender<Wanted>) {
    for _ in 0..3 {
        let params = LeaseAcquire {
            revision: revision.map(str::to_owned),
            ttl_ms: None,
            owner: "socket".to_owned(),
        };
        let grant = match scene.workspace.acquire(&params, None).unwrap() {
            Acquired::Ready(grant) => grant,
            Acquired::NeedsTree(lease, revision) => {
                let (answer, answered) = channel();
                ask.send((lease, revision, answer)).unwrap();
                answered.recv().unwrap().unwrap()
            }
        };
        scene.check_held("a lease of a connection", &grant.path, grant.seq.get());
        assert!(
            is_held(&scene.workspace, &grant),
            "{VIOLATION} a granted lease is not in the table"
        );
        let tree = File::open(&grant.path).unwrap();
        scene.workspace.release(grant.lease).unwrap();
        for _ in 0..4 {
            scene.check_left(&tree, grant.seq.get());
        }
    }
}

fn is_held(workspace: &Workspace, grant: &LeaseGrant) -> bool {
    workspace
        .grant(grant.lease)
        .is_ok_and(|again| again.path == grant.path)
}

/// A reader without a daemon: the real client, reading the workspace from disk.
pub(crate) fn file_reader(scene: &Scene, revision: Option<&str>) {
    let options = Options {
        workspace: Some(scene.root.clone()),
        start: Start::Never,
        runtime: Runtime::at(&scene.root.join("nowhere")).unwrap(),
        follow_lock: false,
        idle_timeout: None,
    };
    let mut client = Client::connect(options).unwrap();
    for _ in 0..4 {
        let held = client.hold(revision, "file").unwrap();
        let seq = held.seq.get();
        scene.check_held("a reader by LEASE", &held.tree, seq);
        if held.is_private_copy() {
            continue;
        }
        let generation = scene.generation(&held.revision);
        assert!(
            held.tree == generation.join("files"),
            "{VIOLATION} {} is held",
            held.tree
        );
        // What a collector would try.
        let lease = generation.join("LEASE");
        let lock = scene.world.disk.try_lock(&lease, true, false).unwrap();
        assert!(
            lock.is_none(),
            "{VIOLATION} a reader holds @{seq}, and its LEASE is free"
        );
    }
}

/// Asks why trees are kept: that locks LEASE for a moment, too.
pub(crate) fn looker(scene: &Scene) {
    for revision in ["@1", "@"] {
        let why = WhyParams {
            revision: revision.to_owned(),
        };
        match scene.workspace.answer(&why.request()) {
            Ok(_) => {}
            Err(refusal) => assert!(refusal.code() == Code::UnknownRevision, "{refusal}"),
        }
    }
}

/// Empties the trash, as the thread of that name does.
pub(crate) fn sweeper(scene: &Scene) {
    let layout = Layout::new(&scene.root);
    for _ in 0..2 {
        // Another may be at it.
        drop(trash::empty(&scene.world, &layout, &|| true));
    }
}

/// What ACTIVE names is there, whole, whenever it is looked at.
pub(crate) fn observer(scene: &Scene) {
    let layout = Layout::new(&scene.root);
    for _ in 0..3 {
        let before = active::read(&scene.world, &layout).unwrap().unwrap();
        let generation = scene.generation(&before.revision);
        let found = ["files/a", "files/d/same", "LEASE", "BOOT", "manifest.json"]
            .map(|name| scene.world.disk.metadata(&generation.join(name)));
        let after = active::read(&scene.world, &layout).unwrap().unwrap();
        if before == after {
            assert!(
                found.iter().all(|found| matches!(found, Ok(Some(_)))),
                "{VIOLATION} ACTIVE names @{}, and its tree is not whole",
                before.seq
            );
        }
    }
}
