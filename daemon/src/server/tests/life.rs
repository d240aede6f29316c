//! How a daemon begins and leaves, whom it serves, and what it refuses before any workspace.

use semaprax_protocol::limits::LINE_BYTES;
use semaprax_protocol::request::{DaemonStatusParams, DaemonStop, QueueParams};
use semaprax_protocol::rpc::Incoming;
use semaprax_protocol::{Code, Limits};

use super::*;
use crate::server::place::Place;

fn code(incoming: Option<Incoming>) -> Code {
    match incoming {
        Some(Incoming::Answer {
            id: None,
            result: Err(refusal),
        }) => refusal.code(),
        other => panic!("no refusal: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_answers_and_stops() {
    let running = Running::start(Config::default()).await;
    let mut client = running.greeted(None).await;
    let status = client.call(DaemonStatusParams {}).await.unwrap();
    assert!(status.running && status.workspaces.is_empty());
    assert_eq!(status.socket, running.daemon.place.socket());
    let refusal = client.call(QueueParams {}).await.unwrap_err();
    assert_eq!(refusal.code(), Code::NotAWorkspace);
    client.call(DaemonStop { if_idle: false }).await.unwrap();
    assert!(client.is_closed().await);
    let (socket, disk) = (
        running.daemon.place.socket(),
        running.daemon.world.disk.clone(),
    );
    running.left().await.unwrap();
    assert!(disk.metadata(&socket).unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_stops_if_idle_only_when_it_is() {
    let running = Running::start(Config::default()).await;
    let mut first = running.greeted(None).await;
    let mut second = running.greeted(None).await;
    let stop = DaemonStop { if_idle: true };
    assert_eq!(
        first.call(stop.clone()).await.unwrap_err().code(),
        Code::WorkspaceLocked
    );
    drop(second.call(DaemonStatusParams {}).await);
    drop(second);
    while first.call(DaemonStatusParams {}).await.unwrap().connections > 1 {}
    first.call(stop).await.unwrap();
    running.left().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_daemons_end_up_as_one() {
    let running = Running::start(Config::default()).await;
    let runtime = runtime_directory(running.directory.path());
    let (_, second) = launch(&runtime, Config::default());
    timeout(PATIENCE, second).await.unwrap().unwrap().unwrap();
    running.greeted(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_daemon_waits_for_one_that_leaves() {
    let running = Running::start(Config::default()).await;
    let (disk, runtime) = (
        running.daemon.world.disk.clone(),
        runtime_directory(running.directory.path()),
    );
    // The lock is held and nothing listens: as while another one finishes its work.
    running.daemon.stop();
    let directory = running.directory.path().to_owned();
    timeout(PATIENCE, running.task)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    let lock = disk
        .try_lock(&runtime.join("daemon.lock"), true, true)
        .unwrap();
    let (daemon, task) = launch(&runtime, Config::default());
    drop(lock);
    let mut client = Client::connect(&daemon.place.socket()).await;
    client.hello(None).await.unwrap();
    client.call(DaemonStop { if_idle: false }).await.unwrap();
    timeout(PATIENCE, task).await.unwrap().unwrap().unwrap();
    assert!(directory.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_socket_is_replaced_and_another_file_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = runtime_directory(directory.path());
    let (daemon, task) = launch(&runtime, Config::default());
    drop(Client::connect(&daemon.place.socket()).await);
    // Ended without its farewell, as by a kill: the name of the socket stays.
    daemon.stop();
    timeout(PATIENCE, task).await.unwrap().unwrap().unwrap();
    drop(std::os::unix::net::UnixListener::bind(daemon.place.socket()).unwrap());
    let (daemon, task) = launch(&runtime, Config::default());
    Client::connect(&daemon.place.socket())
        .await
        .hello(None)
        .await
        .unwrap();
    daemon.stop();
    timeout(PATIENCE, task).await.unwrap().unwrap().unwrap();
    daemon
        .world
        .disk
        .create(&daemon.place.socket(), b"", 0o600)
        .unwrap();
    let (_, task) = launch(&runtime, Config::default());
    let refusal = timeout(PATIENCE, task).await.unwrap().unwrap().unwrap_err();
    assert!(refusal.to_string().contains("not a socket"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_daemon_leaves() {
    let idle_timeout = Duration::from_millis(300);
    let running = Running::start(Config {
        idle_timeout,
        ..Config::default()
    })
    .await;
    let client = running.greeted(None).await;
    drop(client);
    running.left().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_clients_than_may_be_are_told_so() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let running = Running::start(Config {
        limits,
        ..Config::default()
    })
    .await;
    // The one of `start` may not be forgotten yet.
    let mut first = loop {
        let mut client = running.client().await;
        if client.hello(None).await.is_ok() {
            break client;
        }
    };
    let mut second = running.client().await;
    assert_eq!(code(second.next().await), Code::LimitExceeded);
    assert!(second.is_closed().await);
    first.call(DaemonStatusParams {}).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_without_end_ends_the_connection() {
    let running = Running::start(Config::default()).await;
    let mut client = running.greeted(None).await;
    client.send_bytes(&vec![b'x'; LINE_BYTES + 1]).await;
    assert_eq!(code(client.next().await), Code::LimitExceeded);
    assert!(client.is_closed().await);
}

#[test]
fn a_runtime_directory_is_made_or_judged() {
    let directory = tempfile::tempdir().unwrap();
    let root = utf8(directory.path());
    let world = World::real();
    let disk = &*world.disk;
    let uid = rustix::process::geteuid().as_raw();
    let check = |name: &str, uid: u32, expected: Result<(), &str>| {
        let found = Place::prepare(disk, uid, &root.join(name));
        match (found, expected) {
            (Ok(_), Ok(())) => {
                let mode = disk.metadata(&root.join(name)).unwrap().unwrap().mode;
                assert_eq!(mode & 0o777, 0o700, "{name}");
            }
            (Err(refusal), Err(reason)) => {
                assert!(refusal.to_string().contains(reason), "{name}: {refusal}");
            }
            (found, _) => panic!("{name}: {found:?}"),
        }
    };
    check("new/below", uid, Ok(()));
    check("new/below", uid + 1, Err("belongs to another user"));
    disk.create_directory(&root.join("wide"), 0o755).unwrap();
    check("wide", uid, Ok(()));
    disk.create_directory(&root.join("used"), 0o700).unwrap();
    disk.create(&root.join("used/file"), b"", 0o600).unwrap();
    check("used", uid, Ok(()));
    disk.set_mode(&root.join("used"), 0o755).unwrap();
    check("used", uid, Err("open to other users"));
    disk.create_directory(&root.join("open"), 0o700).unwrap();
    disk.set_mode(&root.join("open"), 0o777).unwrap();
    check("open", uid, Err("open to other users"));
    disk.symlink("wide", &root.join("link")).unwrap();
    check("link", uid, Err("is a symlink"));
    disk.create(&root.join("file"), b"", 0o600).unwrap();
    check("file", uid, Err("not a directory"));
    check(&"x".repeat(100), uid, Err("socket path of"));
    let relative = Place::prepare(disk, uid, Utf8Path::new("run")).unwrap_err();
    assert!(relative.to_string().contains("not an absolute path"));
}
