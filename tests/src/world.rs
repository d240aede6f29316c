//! A world for tests: the real disk with faults on request, a clock that is moved by hand, and
//! identifiers in order.
//!
//! Owns: `TestWorld`. A file that is made carries the time of the test's clock, so that ages are
//! decided by the test and not by the machine.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::Utf8Path;
use semaprax_daemon::world::{
    Clock, Disk, Entropy, EntryType, FileLock, Filesystem, Metadata, OpenedFile, World, WorldError,
    WorldResult,
};
use semaprax_protocol::Timestamp;

/// Where the clock of a test starts: 2030-01-01T00:00:00Z.
pub const START_NANOS: i64 = 1_893_456_000_000_000_000;

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct TestClock {
    times: Mutex<Times>,
}

#[derive(Debug)]
struct Times {
    wall: i64,
    boot: Duration,
    boot_id: Option<String>,
}

impl TestClock {
    fn new() -> Self {
        Self {
            times: Mutex::new(Times {
                wall: START_NANOS,
                boot: Duration::from_secs(1000),
                boot_id: Some("boot-one".to_owned()),
            }),
        }
    }

    /// Time goes by.
    pub fn advance(&self, time: Duration) {
        let mut times = self.times.lock().unwrap();
        times.wall += i64::try_from(time.as_nanos()).unwrap();
        times.boot += time;
    }

    /// Someone sets the wall clock: forward or back, in seconds.
    pub fn set_wall_by(&self, seconds: i64) {
        self.times.lock().unwrap().wall += seconds * 1_000_000_000;
    }

    /// The machine starts again as boot `id`.
    pub fn reboot(&self, id: Option<&str>) {
        let mut times = self.times.lock().unwrap();
        times.boot = Duration::from_secs(10);
        times.boot_id = id.map(str::to_owned);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.times.lock().unwrap().wall)
    }

    fn since_boot(&self) -> Duration {
        self.times.lock().unwrap().boot
    }

    fn pause(&self, time: Duration) {
        self.advance(time);
    }

    fn boot_id(&self) -> Option<String> {
        self.times.lock().unwrap().boot_id.clone()
    }
}

/// Identifiers 1, 2, 3 ...
#[derive(Debug, Default)]
pub struct TestEntropy {
    last: AtomicU64,
}

impl Entropy for TestEntropy {
    fn uuid(&self) -> uuid::Uuid {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        uuid::Uuid::from_u128(0x7000_8000_0000_0000_0000 << 48 | u128::from(number))
    }
}

/// Decides for an operation on a path whether it fails, and how.
pub type Fault = Arc<dyn Fn(&str, &Utf8Path) -> Option<io::ErrorKind> + Send + Sync>;

/// The real disk, with faults on request.
pub struct TestDisk {
    real: Arc<dyn Disk>,
    clock: Arc<TestClock>,
    fault: Mutex<Option<Fault>>,
}

impl TestDisk {
    /// From now on `fault` decides which operations fail.
    pub fn fail_when(
        &self,
        fault: impl Fn(&str, &Utf8Path) -> Option<io::ErrorKind> + Send + Sync + 'static,
    ) {
        *self.fault.lock().unwrap() = Some(Arc::new(fault));
    }

    /// Nothing fails any more.
    pub fn mend(&self) {
        *self.fault.lock().unwrap() = None;
    }

    fn ask(&self, operation: &'static str, path: &Utf8Path) -> WorldResult<()> {
        // Not asked under the lock: it may let others go on.
        let fault = self.fault.lock().unwrap().clone();
        match fault.as_ref().and_then(|fault| fault(operation, path)) {
            Some(kind) => Err(WorldError::new(operation, path, kind.into())),
            None => Ok(()),
        }
    }
}

impl Disk for TestDisk {
    fn read(&self, path: &Utf8Path) -> WorldResult<Vec<u8>> {
        self.ask("read", path)?;
        self.real.read(path)
    }

    fn open(&self, path: &Utf8Path) -> WorldResult<Box<dyn OpenedFile>> {
        self.ask("open", path)?;
        self.real.open(path)
    }

    fn create(&self, path: &Utf8Path, content: &[u8], mode: u32) -> WorldResult<()> {
        self.ask("create", path)?;
        self.real.create(path, content, mode)?;
        self.real.set_mtime(path, self.clock.now().as_nanos())
    }

    fn sync_file(&self, path: &Utf8Path) -> WorldResult<()> {
        self.ask("sync_file", path)?;
        self.real.sync_file(path)
    }

    fn sync_directory(&self, path: &Utf8Path) -> WorldResult<()> {
        self.ask("sync_directory", path)?;
        self.real.sync_directory(path)
    }

    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> WorldResult<()> {
        self.ask("rename", to)?;
        self.real.rename(from, to)
    }

    fn exchange(&self, one: &Utf8Path, other: &Utf8Path) -> WorldResult<()> {
        self.ask("exchange", one)?;
        self.real.exchange(one, other)
    }

    fn reflink(&self, from: &Utf8Path, to: &Utf8Path) -> WorldResult<()> {
        self.ask("reflink", to)?;
        self.real.reflink(from, to)
    }

    fn link(&self, from: &Utf8Path, to: &Utf8Path) -> WorldResult<()> {
        self.ask("link", to)?;
        self.real.link(from, to)
    }

    fn symlink(&self, target: &str, path: &Utf8Path) -> WorldResult<()> {
        self.ask("symlink", path)?;
        self.real.symlink(target, path)
    }

    fn read_link(&self, path: &Utf8Path) -> WorldResult<Vec<u8>> {
        self.ask("read_link", path)?;
        self.real.read_link(path)
    }

    fn remove_file(&self, path: &Utf8Path) -> WorldResult<()> {
        self.ask("remove_file", path)?;
        self.real.remove_file(path)
    }

    fn remove_directory(&self, path: &Utf8Path) -> WorldResult<()> {
        self.ask("remove_directory", path)?;
        self.real.remove_directory(path)
    }

    fn create_directory(&self, path: &Utf8Path, mode: u32) -> WorldResult<()> {
        self.ask("create_directory", path)?;
        self.real.create_directory(path, mode)
    }

    fn set_mode(&self, path: &Utf8Path, mode: u32) -> WorldResult<()> {
        self.ask("set_mode", path)?;
        self.real.set_mode(path, mode)
    }

    fn set_mtime(&self, path: &Utf8Path, mtime: i64) -> WorldResult<()> {
        self.ask("set_mtime", path)?;
        self.real.set_mtime(path, mtime)
    }

    fn metadata(&self, path: &Utf8Path) -> WorldResult<Option<Metadata>> {
        self.ask("metadata", path)?;
        self.real.metadata(path)
    }

    fn read_directory(&self, path: &Utf8Path) -> WorldResult<Vec<(String, EntryType)>> {
        self.ask("read_directory", path)?;
        self.real.read_directory(path)
    }

    fn give_names(&self, path: &Utf8Path) -> WorldResult<Vec<String>> {
        self.real.give_names(path)
    }

    fn try_lock(
        &self,
        path: &Utf8Path,
        exclusive: bool,
        create: bool,
    ) -> WorldResult<Option<Box<dyn FileLock>>> {
        self.ask("try_lock", path)?;
        self.real.try_lock(path, exclusive, create)
    }

    fn filesystem(&self, path: &Utf8Path) -> WorldResult<Filesystem> {
        self.ask("filesystem", path)?;
        self.real.filesystem(path)
    }

    fn free_space(&self, path: &Utf8Path) -> WorldResult<(u64, u64)> {
        self.ask("free_space", path)?;
        self.real.free_space(path)
    }
}

/// The three parts, for the test's hands, and the world made of them.
#[derive(Clone)]
pub struct TestWorld {
    /// The clock.
    pub clock: Arc<TestClock>,
    /// The disk.
    pub disk: Arc<TestDisk>,
    /// What the daemon is given.
    pub world: World,
}

impl TestWorld {
    /// A new world.
    pub fn new() -> Self {
        let clock = Arc::new(TestClock::new());
        let disk = Arc::new(TestDisk {
            real: World::real().disk,
            clock: Arc::clone(&clock),
            fault: Mutex::new(None),
        });
        let world = World {
            disk: disk.clone(),
            clock: clock.clone(),
            entropy: Arc::new(TestEntropy::default()),
        };
        Self { clock, disk, world }
    }
}

impl Default for TestWorld {
    fn default() -> Self {
        Self::new()
    }
}
