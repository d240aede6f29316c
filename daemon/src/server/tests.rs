//! A daemon on a real socket, in this process, with real workspaces. Waits are on answers and ends,
//! never on time.

mod client;
mod life;
mod work;

use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::Refusal;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::daemon::Daemon;
use super::listen;
use super::place::Place;
use crate::config::Config;
use crate::world::World;
use client::Client;

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// A daemon and the directory it works in; both end with it.
struct Running {
    directory: tempfile::TempDir,
    daemon: Arc<Daemon>,
    task: JoinHandle<Result<(), Refusal>>,
}

impl Running {
    async fn start(config: Config) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (daemon, task) = launch(&runtime_directory(directory.path()), config);
        let running = Self {
            directory,
            daemon,
            task,
        };
        drop(running.client().await);
        running
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        utf8(self.directory.path()).join(name)
    }

    async fn client(&self) -> Client {
        Client::connect(&self.daemon.place.socket()).await
    }

    /// A client that has said hello, about a workspace or about none.
    async fn greeted(&self, workspace: Option<&Utf8Path>) -> Client {
        let mut client = self.client().await;
        client.hello(workspace).await.unwrap();
        client
    }

    /// A workspace with two files, and a client of it.
    async fn workspace(&self) -> (Utf8PathBuf, Client) {
        let root = self.path("work");
        let disk = &*self.daemon.world.disk;
        disk.create_directory(&root, 0o755).unwrap();
        disk.create(&root.join("a"), b"one\n", 0o644).unwrap();
        disk.create(&root.join("b"), b"two\n", 0o644).unwrap();
        let mut first = self.greeted(None).await;
        first.init(&root).await.unwrap();
        let client = self.greeted(Some(&root)).await;
        (root, client)
    }

    /// Waits until it has left.
    async fn left(self) -> Result<(), Refusal> {
        timeout(PATIENCE, self.task)
            .await
            .expect("the daemon does not leave")
            .unwrap()
    }
}

fn launch(runtime: &Utf8Path, config: Config) -> (Arc<Daemon>, JoinHandle<Result<(), Refusal>>) {
    let world = World::real();
    let uid = rustix::process::geteuid().as_raw();
    let place = Place::prepare(&*world.disk, uid, runtime).unwrap();
    let daemon = Daemon::new(world, config, place, uid);
    let task = tokio::spawn(listen::serve(Arc::clone(&daemon)));
    (daemon, task)
}

fn runtime_directory(directory: &std::path::Path) -> Utf8PathBuf {
    utf8(directory).join("run")
}

fn utf8(path: &std::path::Path) -> Utf8PathBuf {
    Utf8PathBuf::from_path_buf(path.to_owned()).unwrap()
}
