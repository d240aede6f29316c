//! One run: a workspace with some history, and who acts on it at once.
//!
//! Owns: what is prepared, who takes part, and what a tree of each publication must look like.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_daemon::workspace::Workspace;
use semaprax_daemon::world::World;
use semaprax_protocol::Revision;
use semaprax_tests::fixture::Fixture;
use semaprax_tests::process::contents;
use shuttle::sync::Mutex;
use shuttle::sync::mpsc::channel;
use shuttle::thread;

use crate::actors::{
    collector_and_maker, collector_and_writer, file_reader, looker, observer, recycler,
    socket_reader, sweeper,
};

/// How every failure of a promise begins.
pub(crate) const VIOLATION: &str = "violated:";

/// Who takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cast {
    /// One reader with leases of a connection, of a tree that is collected and made again all the time.
    Sockets,
    /// The same without a daemon.
    Files,
    /// Publications whose trees become those of later ones, and a reader of each kind that follows.
    Recycled,
    /// Publications, readers of both kinds, the sweeper, and whoever asks why a tree is kept.
    All,
}

impl Cast {
    pub(crate) const EACH: [Self; 4] = [Self::Sockets, Self::Files, Self::Recycled, Self::All];

    fn is_narrow(self) -> bool {
        matches!(self, Self::Sockets | Self::Files)
    }

    /// The publication that a narrow scene turns around; elsewhere readers follow what is ACTIVE.
    fn revision(self) -> Option<&'static str> {
        self.is_narrow().then_some("@1")
    }

    fn has_sockets(self) -> bool {
        self != Self::Files
    }

    fn has_files(self) -> bool {
        self != Self::Sockets
    }
}

/// What everybody in a run knows.
pub(crate) struct Scene {
    pub(crate) root: Utf8PathBuf,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) world: World,
    /// What was published, by revision.
    pub(crate) published: Mutex<BTreeMap<Revision, u64>>,
}

impl Scene {
    pub(crate) fn generation(&self, revision: &Revision) -> Utf8PathBuf {
        self.root
            .join(".semaprax-workspace/generations")
            .join(revision.to_string())
    }

    /// Looks at a held tree, name by name, with turns of others in between: it must be there, the
    /// same directory all the time, and hold what publication `seq` holds.
    pub(crate) fn check_held(&self, who: &str, files: &Utf8Path, seq: u64) {
        let inode = self.inode(who, files);
        for path in ["a", "b", "d/same"] {
            let found = self.world.disk.read(&files.join(path));
            let found = found.unwrap_or_else(|error| {
                panic!("{VIOLATION} {who} holds @{seq}, and its tree lost `{path}`: {error}")
            });
            let expect = content(path, seq);
            assert!(
                found == expect.as_bytes(),
                "{VIOLATION} {who} holds @{seq}, and `{path}` is {:?}",
                String::from_utf8_lossy(&found)
            );
        }
        let names = contents(files.as_std_path());
        let names: Vec<&String> = names.keys().collect();
        assert!(
            names == ["a", "b", "d/same"],
            "{VIOLATION} {who} holds @{seq}, and its tree has {names:?}"
        );
        assert!(
            self.inode(who, files) == inode,
            "{VIOLATION} {who} holds @{seq}, and its tree was replaced"
        );
    }

    /// Looks into the directory of a tree whose lease was given back: file by file it may be gone, and what
    /// is there is of that tree.
    pub(crate) fn check_left(&self, directory: &File, seq: u64) {
        let inside = Utf8PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        for path in ["a", "b"] {
            match self.world.disk.read(&inside.join(path)) {
                Ok(found) => assert!(
                    found == content(path, seq).as_bytes(),
                    "{VIOLATION} the tree of @{seq} became another, `{path}` is {:?}",
                    String::from_utf8_lossy(&found)
                ),
                Err(gone) => assert!(gone.kind() == std::io::ErrorKind::NotFound, "{gone}"),
            }
        }
    }

    fn inode(&self, who: &str, files: &Utf8Path) -> (u64, u64) {
        let found = self.world.disk.metadata(files).unwrap();
        found
            .unwrap_or_else(|| panic!("{VIOLATION} {who} holds `{files}`, and it is gone"))
            .inode
    }
}

/// What `path` holds in publication `seq`.
pub(crate) fn content(path: &str, seq: u64) -> String {
    match path {
        "d/same" => "the same in all\n".to_owned(),
        _ => format!("{path} of {seq}\n"),
    }
}

/// One run of a cast on a workspace of its own below `place`.
pub(crate) fn play(place: &Path, cast: Cast) {
    let mut fixture = Fixture::below(place);
    // So that a reader without a daemon takes the trees for made in this boot.
    let boot = World::real().clock.boot_id();
    fixture.test.clock.reboot(boot.as_deref());
    fixture.config.retention.trees = 1;
    fixture.config.retention.young = Duration::ZERO;
    for path in ["a", "b", "d/same"] {
        fixture.write(path, &content(path, 1));
    }
    fixture.init().unwrap();
    let mut published = BTreeMap::from([(fixture.active().1, 1)]);
    fixture.tick();
    let receipt = fixture.publish(crate::actors::changes(2)).unwrap();
    published.insert(receipt.revision.unwrap(), 2);
    let (workspace, writer) = fixture.take();
    let scene = Arc::new(Scene {
        root: fixture.root.clone(),
        workspace,
        world: fixture.test.world.clone(),
        published: Mutex::new(published),
    });
    take_turns(&fixture);

    let (ask, asked) = channel();
    let mut actors = vec![{
        let scene = Arc::clone(&scene);
        let clock = Arc::clone(&fixture.test.clock);
        thread::spawn(move || match cast {
            Cast::Sockets | Cast::Files => collector_and_maker(&scene, writer, &asked),
            Cast::Recycled => recycler(&scene, writer, &clock, &asked),
            Cast::All => collector_and_writer(&scene, writer, &clock, &asked),
        })
    }];
    let mut act = |actor: Box<dyn FnOnce(&Scene) + Send>| {
        let scene = Arc::clone(&scene);
        actors.push(thread::spawn(move || actor(&scene)));
    };
    if cast.has_sockets() {
        let asks = ask.clone();
        act(Box::new(move |scene| {
            socket_reader(scene, cast.revision(), &asks);
        }));
        if cast == Cast::All {
            let asks = ask.clone();
            act(Box::new(move |scene| {
                socket_reader(scene, Some("@1"), &asks);
            }));
        }
    }
    drop(ask);
    if cast.has_files() {
        act(Box::new(move |scene| file_reader(scene, cast.revision())));
        if cast == Cast::All {
            act(Box::new(|scene| file_reader(scene, Some("@1"))));
        }
    }
    if cast == Cast::All {
        act(Box::new(looker));
        act(Box::new(sweeper));
        act(Box::new(observer));
    }
    for actor in actors {
        actor.join().unwrap();
    }
    // What is torn down is no part of it.
    fixture.test.disk.mend();
}

/// From now on another may go on before every call of the disk.
fn take_turns(fixture: &Fixture) {
    let here = std::thread::current().id();
    fixture.test.disk.fail_when(move |operation, path| {
        // The threads that digest files side by side are a part of the step they are used in. What is
        // in `staging/` is the writer's alone, so that an order there is no other order; but what is
        // moved there was somewhere else before.
        let is_private = path.as_str().contains("/staging/") && operation != "rename";
        if std::thread::current().id() == here && !is_private {
            shuttle::sync::atomic::AtomicBool::new(false).load(Ordering::SeqCst);
        }
        None
    });
}
