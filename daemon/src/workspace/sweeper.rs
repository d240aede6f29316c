//! Emptying the trash away from the writer: removing a tree takes as long as the file system likes.
//!
//! Owns: a thread for it, and telling when it is done. Never: touches what is not in the trash.
//!
//! Keeps invariant 7: what is in the trash was put there by the writer, and nobody can reach it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use super::STACK_BYTES;
use crate::store::{Layout, trash};
use crate::world::World;

/// What is done when the trash is empty, or when nobody will empty it any more.
/// It is told the bytes of disk that were given back for it.
pub type Swept = Box<dyn FnOnce(u64) + Send>;

/// The thread. Dropping it lets what is left in the trash for the next one.
#[derive(Debug)]
pub(super) struct Sweeper {
    requests: Option<Sender<Option<Swept>>>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sweeper {
    pub(super) fn start(world: World, layout: Layout) -> io::Result<Self> {
        let (requests, asked) = mpsc::channel();
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let thread = std::thread::Builder::new()
            .name("sweeper".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || run(&world, &layout, &asked, &stop))?;
        Ok(Self {
            requests: Some(requests),
            stopping,
            thread: Some(thread),
        })
    }

    /// Empties the trash, then does `then`.
    pub(super) fn sweep(&self, then: Option<Swept>) {
        let Some(requests) = &self.requests else {
            return;
        };
        // It ends only when dropped, or with a defect: then nobody waits in vain all the same.
        if let Err(mpsc::SendError(Some(then))) = requests.send(then) {
            then(0);
        }
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        self.requests = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("emptying the trash panicked");
        }
    }
}

fn run(world: &World, layout: &Layout, asked: &Receiver<Option<Swept>>, stop: &AtomicBool) {
    let goes_on = || !stop.load(Ordering::Acquire);
    for then in asked {
        let freed = trash::empty(world, layout, &goes_on).unwrap_or_else(|error| {
            tracing::warn!(%error, "the trash could not be emptied");
            0
        });
        if let Some(then) = then {
            then(freed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;

    #[test]
    fn the_trash_is_empty_when_it_says_so() {
        let place = tempfile::tempdir().unwrap();
        let root = camino::Utf8PathBuf::from_path_buf(place.path().to_owned()).unwrap();
        let layout = Layout::new(&root);
        let tree = layout.trash().join("tree/files/a");
        std::fs::create_dir_all(&tree).unwrap();
        World::real()
            .disk
            .create(&tree.join("b"), b"b", 0o444)
            .unwrap();
        World::real().disk.set_mode(&tree, 0o555).unwrap();
        let sweeper = Sweeper::start(World::real(), layout.clone()).unwrap();
        let (report, swept) = mpsc::channel();
        sweeper.sweep(Some(Box::new(move |freed| report.send(freed).unwrap())));
        assert!(swept.recv().unwrap() > 0);
        assert_eq!(std::fs::read_dir(layout.trash()).unwrap().count(), 0);
    }

    #[test]
    fn whoever_waits_is_told_also_when_it_stops() {
        let place = tempfile::tempdir().unwrap();
        let root = camino::Utf8PathBuf::from_path_buf(place.path().to_owned()).unwrap();
        let sweeper = Sweeper::start(World::real(), Layout::new(&root)).unwrap();
        let (report, swept) = mpsc::channel();
        for _ in 0..3 {
            let report = report.clone();
            sweeper.sweep(Some(Box::new(move |freed| report.send(freed).unwrap())));
        }
        drop(sweeper);
        assert_eq!(swept.try_iter().count(), 3);
    }
}
