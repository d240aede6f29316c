//! `Sim`: the disk of a simulated machine.
//!
//! Owns: passing each operation on to the real directory and to the model, counting them, leaving a
//! `Point` before each change, and the faults. Never: which crash comes of a point.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::io::Errno;
use semaprax_daemon::store::layout::STATE_DIRECTORY;
use semaprax_daemon::world::{World, WorldError, WorldResult};

use super::clock::Times;
use super::cut::Database;
use super::image::{Image, Point};
use super::model::Model;

/// What goes wrong without a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// This operation fails, no other.
    Once(Errno),
    /// From this operation on nothing new has room.
    Full,
    /// From this operation on nothing may be changed.
    ReadOnly,
}

/// Leaves out every sync of this name (see [`Sim::syncs`]), and says that it was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutation(pub String);

#[derive(Debug)]
struct Core {
    model: Model,
    times: Times,
    operations: u64,
    fault: Option<(u64, Fault)>,
    mutation: Option<Mutation>,
    phase: &'static str,
    note: usize,
    points: Option<Vec<Point>>,
    database: Option<Arc<Database>>,
    trace: Vec<String>,
    syncs: Vec<String>,
    last_name: String,
}

#[derive(Debug)]
struct Machine {
    root: Utf8PathBuf,
    core: Mutex<Core>,
}

/// A simulated machine. Clones are the same machine.
#[derive(Debug, Clone)]
pub struct Sim {
    machine: Arc<Machine>,
}

/// What an operation does to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    Adds,
    Changes,
}

impl Sim {
    /// A machine whose workspace lies at `root`.
    pub fn new(root: &Utf8Path, model: Model, times: Times) -> Self {
        let core = Core {
            model,
            times,
            operations: 0,
            fault: None,
            mutation: None,
            phase: "",
            note: 0,
            points: None,
            database: None,
            trace: Vec::new(),
            syncs: Vec::new(),
            last_name: String::new(),
        };
        Self {
            machine: Arc::new(Machine {
                root: root.to_owned(),
                core: Mutex::new(core),
            }),
        }
    }

    /// The world that the daemon is given.
    pub fn world(&self) -> World {
        World {
            disk: Arc::new(self.clone()),
            clock: Arc::new(self.clone()),
            entropy: Arc::new(self.clone()),
        }
    }

    /// The directory of the workspace.
    pub fn root(&self) -> &Utf8Path {
        &self.machine.root
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        self.machine.core.lock().unwrap()
    }

    pub(super) fn times<T>(&self, work: impl FnOnce(&mut Times) -> T) -> T {
        work(&mut self.core().times)
    }

    /// Time goes by.
    pub fn advance(&self, time: std::time::Duration) {
        self.times(|times| times.advance(time));
    }

    /// From now on a point is left before each change.
    pub fn record(&self) {
        self.core().points = Some(Vec::new());
    }

    /// The points left so far; none are left any more.
    pub fn points(&self) -> Vec<Point> {
        self.core().points.take().unwrap_or_default()
    }

    /// What the script is doing, and what it noted.
    pub fn begin(&self, phase: &'static str, note: usize) {
        let mut core = self.core();
        core.phase = phase;
        core.note = note;
    }

    /// The operations so far.
    pub fn operations(&self) -> u64 {
        self.core().operations
    }

    /// The operations since the last call, without what differs from run to run.
    pub fn take_trace(&self) -> Vec<String> {
        std::mem::take(&mut self.core().trace)
    }

    /// Lets the operation number `at` fail.
    pub fn fail(&self, at: u64, fault: Fault) {
        self.core().fault = Some((at, fault));
    }

    /// Nothing fails any more.
    pub fn mend(&self) {
        self.core().fault = None;
    }

    /// Leaves out a sync.
    pub fn mutate(&self, mutation: Option<Mutation>) {
        self.core().mutation = mutation;
    }

    /// The names of the syncs asked for so far.
    pub fn syncs(&self) -> Vec<String> {
        self.core().syncs.clone()
    }

    /// The machine as it is now.
    pub fn image(&self) -> Image {
        let mut core = self.core();
        core.look_at_database(&self.machine.root);
        Image {
            model: core.model.clone(),
            database: core.database.clone(),
            times: core.times,
        }
    }

    /// Leaves a point when a transaction has changed the database.
    pub(super) fn note_database(&self) {
        let mut core = self.core();
        if core.points.is_some() && core.look_at_database(&self.machine.root) {
            core.point("clock".to_owned(), false);
        }
    }

    /// Damage from outside: the file at a path of the state directory holds something else.
    pub fn damage(&self, path: &str, content: &[u8]) {
        std::fs::write(self.machine.root.join(path), content).unwrap();
        self.core().model.damage(path, content);
    }

    /// The path as the model knows it; `None` for what lies outside.
    pub(super) fn relative(&self, path: &Utf8Path) -> Option<String> {
        let relative = path.strip_prefix(&self.machine.root).ok()?;
        let is_known = relative == "" || relative.starts_with(STATE_DIRECTORY);
        is_known.then(|| relative.as_str().to_owned())
    }

    pub(super) fn model(&self, path: &Utf8Path, work: impl FnOnce(&mut Model, &str, i64)) {
        if let Some(path) = self.relative(path) {
            let core = &mut *self.core();
            work(&mut core.model, &path, core.times.wall());
        }
    }

    pub(super) fn named(&self, path: &Utf8Path) {
        if path.parent().and_then(Utf8Path::file_name) == Some(STATE_DIRECTORY) {
            path.file_name()
                .unwrap_or_default()
                .clone_into(&mut self.core().last_name);
        }
    }

    pub(super) fn before(
        &self,
        operation: &'static str,
        path: &Utf8Path,
        effect: Effect,
    ) -> WorldResult<()> {
        let mut core = self.core();
        core.operations += 1;
        let class = self.class(path);
        core.trace.push(format!("{operation} {class}"));
        if core.points.is_some() {
            let changed = core.look_at_database(&self.machine.root);
            if changed || effect != Effect::Reads {
                core.point(format!("{operation} {class}"), false);
            }
        }
        let Some((at, fault)) = core.fault else {
            return Ok(());
        };
        let (is_now, is_later) = (core.operations == at, core.operations >= at);
        let errno = match fault {
            Fault::Once(errno) if is_now => errno,
            Fault::Full if is_later && effect == Effect::Adds => Errno::NOSPC,
            Fault::ReadOnly if is_later && effect != Effect::Reads => Errno::ROFS,
            _ => return Ok(()),
        };
        Err(WorldError::new(operation, path, io::Error::from(errno)))
    }

    /// A half-written file, for a point that only a kill has.
    pub(super) fn torn(&self, path: &Utf8Path, work: impl FnOnce(&mut Model, &str, i64)) {
        let Some(relative) = self.relative(path) else {
            return;
        };
        let core = &mut *self.core();
        if core.points.is_some() {
            let class = self.class(path);
            core.point(format!("half of {class}"), true);
            let wall = core.times.wall();
            if let Some(point) = core.points.as_mut().and_then(|points| points.last_mut()) {
                work(&mut point.image.model, &relative, wall);
            }
        }
    }

    /// Whether this sync is to be left out.
    pub(super) fn is_left_out(&self, operation: &str, path: &Utf8Path) -> bool {
        let mut core = self.core();
        let class = self.class(path);
        let after = if class == "state" {
            format!(" after {}", core.last_name)
        } else {
            String::new()
        };
        let site = format!("{} {operation} {class}{after}", core.phase);
        let is_left_out = core
            .mutation
            .as_ref()
            .is_some_and(|Mutation(left_out)| *left_out == site);
        if !core.syncs.contains(&site) {
            core.syncs.push(site);
        }
        is_left_out
    }

    /// The path without what differs from run to run.
    fn class(&self, path: &Utf8Path) -> String {
        let Some(relative) = self.relative(path) else {
            return "outside".to_owned();
        };
        let mut parts: Vec<&str> = relative.split('/').collect();
        parts.remove(0);

        match *parts.as_slice() {
            [] if relative.is_empty() => "root".to_owned(),
            [] => "state".to_owned(),
            [one] => one.to_owned(),
            ["staging", "store.db"] => "staging/store.db".to_owned(),
            ["staging", name] if name.starts_with("object-") => "staging/object".to_owned(),
            ["objects", _, _] => "objects/*/*".to_owned(),
            [one, _] => format!("{one}/*"),
            [one, _, rest] => format!("{one}/*/{rest}"),
            [one, _, rest, ..] => format!("{one}/*/{rest}/**"),
        }
    }
}

impl Core {
    /// Takes the files of the database over; answers whether they changed.
    fn look_at_database(&mut self, root: &Utf8Path) -> bool {
        let state = root.join(STATE_DIRECTORY);
        let found = Database::read(&state.join("store.db"))
            .or_else(|| Database::read(&state.join("staging/store.db")));
        if self.database.as_deref() == found.as_ref() {
            return false;
        }
        self.database = found.map(Arc::new);
        true
    }

    fn point(&mut self, what: String, is_torn: bool) {
        let point = Point {
            operation: self.operations,
            what,
            note: self.note,
            is_torn,
            image: Image {
                model: self.model.clone(),
                database: self.database.clone(),
                times: self.times,
            },
        };
        if let Some(points) = &mut self.points {
            points.push(point);
        }
    }
}
