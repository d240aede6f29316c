//! A disk under the whole daemon that counts its operations and dies at one of them.
//!
//! Owns: the files by which a harness says when (`plan`) and learns what happened (`trace`, `killed`),
//! and the death: SIGKILL, as from outside, with the operation done or not done.
//! Never: changes an operation, but for a sync that it is told to leave out (`omissions`). The daemon itself
//! has no code for any of this.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::Utf8Path;
use rustix::process::{Signal, getpid, kill_process};
use semaprax_daemon::world::{
    Disk, EntryType, FileLock, Filesystem, Metadata, OpenedFile, RealWorld, WorldResult,
};

use super::plan::{Plan, Side, Step, class_of};

/// The word that asks for a trace and no death.
pub const TRACE: &str = "trace";

/// Where a daemon under test and its harness meet.
#[derive(Debug, Clone)]
pub struct Control {
    directory: PathBuf,
}

impl Control {
    /// The control files in `directory`.
    pub fn at(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The plan: the text of a [`Plan`], or [`TRACE`]. Counting starts when it appears.
    pub fn plan(&self) -> PathBuf {
        self.directory.join("plan")
    }

    /// One operation a line, while the plan says so.
    pub fn trace(&self) -> PathBuf {
        self.directory.join("trace")
    }

    /// The syncs to leave out, a [`Step`] a line. Read when a daemon starts.
    pub fn omissions(&self) -> PathBuf {
        self.directory.join("omissions")
    }

    /// The boot this is to be taken for. Read when a daemon starts.
    pub fn boot(&self) -> PathBuf {
        self.directory.join("boot")
    }

    /// Where it died.
    pub fn killed(&self) -> PathBuf {
        self.directory.join("killed")
    }
}

#[derive(Debug)]
enum Order {
    Live,
    Trace(File),
    Die(Plan, u64),
}

#[derive(Debug)]
struct Orders {
    /// Inode and change time of the plan that is followed.
    stamp: Option<(u64, i64, i64)>,
    order: Order,
}

#[derive(Debug)]
struct Counter {
    control: Control,
    orders: Mutex<Orders>,
}

/// The disk.
#[derive(Debug)]
pub struct KillingDisk {
    counter: Arc<Counter>,
    omissions: Vec<String>,
}

impl KillingDisk {
    /// The real disk, with a death by these control files. A `plan` given here is followed until another
    /// appears there.
    pub fn new(control: Control, plan: Option<Plan>) -> Self {
        let order = plan.map_or(Order::Live, |plan| Order::Die(plan, 0));
        let orders = Mutex::new(Orders { stamp: None, order });
        let omissions = fs::read_to_string(control.omissions()).unwrap_or_default();
        Self {
            counter: Arc::new(Counter { control, orders }),
            omissions: omissions.lines().map(str::to_owned).collect(),
        }
    }

    /// A sync, unless it is to be left out: then it says to have synced and did nothing.
    fn sync(
        &self,
        kind: &str,
        path: &Utf8Path,
        sync: impl FnOnce() -> WorldResult<()>,
    ) -> WorldResult<()> {
        let name = format!("{kind} {}", class_of(path));
        let is_omitted = self.omissions.contains(&name);
        self.step(kind, path, || if is_omitted { Ok(()) } else { sync() })
    }

    fn step<T>(
        &self,
        kind: &str,
        path: &Utf8Path,
        work: impl FnOnce() -> WorldResult<T>,
    ) -> WorldResult<T> {
        self.counter.step(kind, || class_of(path), work)
    }

    fn between<T>(
        &self,
        kind: &str,
        (from, to): (&Utf8Path, &Utf8Path),
        work: impl FnOnce() -> WorldResult<T>,
    ) -> WorldResult<T> {
        let class = || format!("{}>{}", class_of(from), class_of(to));
        self.counter.step(kind, class, work)
    }
}

impl Counter {
    fn step<T>(
        &self,
        kind: &str,
        class: impl FnOnce() -> String,
        work: impl FnOnce() -> WorldResult<T>,
    ) -> WorldResult<T> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        self.look(&mut orders);
        if matches!(orders.order, Order::Live) {
            drop(orders);
            return work();
        }
        let step = Step {
            kind: kind.to_owned(),
            class: class(),
        };
        let side = Self::note(&mut orders, &step);
        drop(orders);
        if side == Some(Side::Before) {
            self.die(Side::Before, &step);
        }
        let outcome = work();
        if side == Some(Side::After) {
            self.die(Side::After, &step);
        }
        outcome
    }

    /// Takes a new plan over, if there is one.
    fn look(&self, orders: &mut MutexGuard<'_, Orders>) {
        let path = self.control.plan();
        let Ok(found) = fs::metadata(&path) else {
            if orders.stamp.take().is_some() {
                orders.order = Order::Live;
            }
            return;
        };
        let stamp = Some((found.ino(), found.ctime(), found.ctime_nsec()));
        if orders.stamp == stamp {
            return;
        }
        orders.stamp = stamp;
        let text = fs::read_to_string(&path).unwrap_or_default();
        orders.order = if text.trim() == TRACE {
            let opened = OpenOptions::new()
                .append(true)
                .create(true)
                .open(self.control.trace());
            opened.map_or(Order::Live, Order::Trace)
        } else {
            text.parse().map_or(Order::Live, |plan| Order::Die(plan, 0))
        };
    }

    /// Notes an operation; answers on which side of it to die.
    fn note(orders: &mut Orders, step: &Step) -> Option<Side> {
        match &mut orders.order {
            Order::Live => None,
            Order::Trace(file) => {
                drop(writeln!(file, "{step}"));
                None
            }
            Order::Die(plan, seen) => {
                if !plan.fits(step) {
                    return None;
                }
                *seen += 1;
                (*seen == plan.nth).then_some(plan.side)
            }
        }
    }

    fn die(&self, side: Side, step: &Step) -> ! {
        // The plan has had its day: the next daemon is to live.
        drop(fs::remove_file(self.control.plan()));
        drop(fs::write(
            self.control.killed(),
            format!("{} {step}\n", side.word()),
        ));
        let _ = kill_process(getpid(), Signal::KILL);
        loop {
            std::thread::park();
        }
    }
}

#[derive(Debug)]
struct KillingLock {
    lock: Box<dyn FileLock>,
    counter: Arc<Counter>,
    class: String,
}

impl FileLock for KillingLock {
    fn inode(&self) -> (u64, u64) {
        self.lock.inode()
    }

    fn write(&self, content: &[u8]) -> WorldResult<()> {
        let class = || self.class.clone();
        self.counter
            .step("write", class, || self.lock.write(content))
    }
}

const REAL: RealWorld = RealWorld;

impl Disk for KillingDisk {
    fn read(&self, path: &Utf8Path) -> WorldResult<Vec<u8>> {
        self.step("read", path, || REAL.read(path))
    }

    fn open(&self, path: &Utf8Path) -> WorldResult<Box<dyn OpenedFile>> {
        self.step("open", path, || REAL.open(path))
    }

    fn create(&self, path: &Utf8Path, content: &[u8], mode: u32) -> WorldResult<()> {
        self.step("create", path, || REAL.create(path, content, mode))
    }

    fn sync_file(&self, path: &Utf8Path) -> WorldResult<()> {
        self.sync("sync-file", path, || REAL.sync_file(path))
    }

    fn sync_directory(&self, path: &Utf8Path) -> WorldResult<()> {
        self.sync("sync-directory", path, || REAL.sync_directory(path))
    }

    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> WorldResult<()> {
        self.between("rename", (from, to), || REAL.rename(from, to))
    }

    fn exchange(&self, one: &Utf8Path, other: &Utf8Path) -> WorldResult<()> {
        self.between("exchange", (one, other), || REAL.exchange(one, other))
    }

    fn reflink(&self, from: &Utf8Path, to: &Utf8Path) -> WorldResult<()> {
        self.between("reflink", (from, to), || REAL.reflink(from, to))
    }

    fn link(&self, from: &Utf8Path, to: &Utf8Path) -> WorldResult<()> {
        self.between("link", (from, to), || REAL.link(from, to))
    }

    fn symlink(&self, target: &str, path: &Utf8Path) -> WorldResult<()> {
        self.step("symlink", path, || REAL.symlink(target, path))
    }

    fn read_link(&self, path: &Utf8Path) -> WorldResult<Vec<u8>> {
        self.step("read-link", path, || REAL.read_link(path))
    }

    fn remove_file(&self, path: &Utf8Path) -> WorldResult<()> {
        self.step("remove-file", path, || REAL.remove_file(path))
    }

    fn remove_directory(&self, path: &Utf8Path) -> WorldResult<()> {
        self.step("remove-directory", path, || REAL.remove_directory(path))
    }

    fn create_directory(&self, path: &Utf8Path, mode: u32) -> WorldResult<()> {
        self.step("create-directory", path, || {
            REAL.create_directory(path, mode)
        })
    }

    fn set_mode(&self, path: &Utf8Path, mode: u32) -> WorldResult<()> {
        self.step("set-mode", path, || REAL.set_mode(path, mode))
    }

    fn set_mtime(&self, path: &Utf8Path, mtime: i64) -> WorldResult<()> {
        self.step("set-mtime", path, || REAL.set_mtime(path, mtime))
    }

    fn metadata(&self, path: &Utf8Path) -> WorldResult<Option<Metadata>> {
        self.step("metadata", path, || REAL.metadata(path))
    }

    fn read_directory(&self, path: &Utf8Path) -> WorldResult<Vec<(String, EntryType)>> {
        self.step("read-directory", path, || REAL.read_directory(path))
    }

    fn give_names(&self, path: &Utf8Path) -> WorldResult<Vec<String>> {
        REAL.give_names(path)
    }

    fn try_lock(
        &self,
        path: &Utf8Path,
        exclusive: bool,
        create: bool,
    ) -> WorldResult<Option<Box<dyn FileLock>>> {
        let lock = self.step("lock", path, || REAL.try_lock(path, exclusive, create))?;
        Ok(lock.map(|lock| {
            let (counter, class) = (Arc::clone(&self.counter), class_of(path));
            let lock: Box<dyn FileLock> = Box::new(KillingLock {
                lock,
                counter,
                class,
            });
            lock
        }))
    }

    fn filesystem(&self, path: &Utf8Path) -> WorldResult<Filesystem> {
        REAL.filesystem(path)
    }

    fn free_space(&self, path: &Utf8Path) -> WorldResult<(u64, u64)> {
        REAL.free_space(path)
    }
}
