//! `doctor`: whether the environment can keep what Semaprax promises.
//!
//! Owns: the checks and the advice. Never: changes anything but probe files of its own, which it takes
//! away again.

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_protocol::documents::{Finding, FindingStatus, Health};
use semaprax_protocol::limits::SOCKET_PATH_BYTES;
use semaprax_protocol::{Code, SchemaTag};

use super::tidying;
use crate::reader::Offline;
use crate::store::{Layout, trash};
use crate::world::{EntryType, World, WorldResult};

/// Less room than this is worth a warning.
const LOW_BYTES: u64 = 1 << 30;
const LOW_INODES: u64 = 10_000;

struct Doctor<'doctor> {
    world: &'doctor World,
    findings: Vec<Finding>,
}

/// Looks at `root` and, when it is a workspace, at its state.
pub fn doctor(world: &World, root: &Utf8Path, socket: &Utf8Path) -> Health {
    examine(world, root, socket, false)
}

/// The same of an open workspace by its writer, which may put right what is not as it was made.
pub(super) fn examine(world: &World, root: &Utf8Path, socket: &Utf8Path, repair: bool) -> Health {
    let mut doctor = Doctor {
        world,
        findings: Vec::new(),
    };
    let layout = Layout::new(root);
    let is_workspace = matches!(world.disk.metadata(&layout.database()), Ok(Some(_)));
    doctor.filesystem(root);
    doctor.space(root);
    doctor.features(if is_workspace { layout.state() } else { root });
    doctor.clock(root);
    doctor.watches();
    doctor.socket(socket);
    if is_workspace {
        doctor.store(root);
        let found = tidying::state_directory(world, &layout, repair);
        doctor.findings.extend(found);
        doctor.holder(&layout);
        doctor.leftovers(&layout);
    } else {
        let detail = format!("`{root}` is no workspace");
        doctor.add(
            "workspace",
            FindingStatus::Warning,
            detail,
            Some("run `semaprax init`"),
        );
    }
    Health {
        schema: SchemaTag::new(),
        findings: doctor.findings,
    }
}

/// The code that a request meets which this check keeps from succeeding.
fn code_of(check: &str) -> Option<Code> {
    Some(match check {
        "file-system" | "durable-rename" | "locks" => Code::UnsupportedFilesystem,
        "free-space" | "free-inodes" => Code::NoSpace,
        "writable" => Code::ReadOnly,
        "socket-path" | "socket-directory" => Code::DaemonUnreachable,
        "workspace" => Code::NotAWorkspace,
        "lock-holder" => Code::UntidyState,
        "leftovers" => Code::Io,
        _ => return None,
    })
}

impl Doctor<'_> {
    fn add(&mut self, check: &str, status: FindingStatus, detail: String, fix: Option<&str>) {
        let fix = fix.map(str::to_owned);
        let code = code_of(check).filter(|_| status != FindingStatus::Ok);
        self.findings.push(Finding {
            check: check.to_owned(),
            status,
            detail,
            code,
            fix,
            repaired: false,
        });
    }

    fn filesystem(&mut self, root: &Utf8Path) {
        match self.world.disk.filesystem(root) {
            Ok(found) if found.is_refused() => {
                let detail = format!(
                    "{} does not keep locks and renames as promised",
                    found.name().unwrap_or("it")
                );
                self.add(
                    "file-system",
                    FindingStatus::Problem,
                    detail,
                    Some("move the workspace to a local file system"),
                );
            }
            Ok(found) if found.name() == Some("overlay") => {
                let detail = "an overlay: its durability is that of the layer below".to_owned();
                self.add(
                    "file-system",
                    FindingStatus::Warning,
                    detail,
                    Some("keep the workspace on a volume"),
                );
            }
            Ok(found) => {
                let detail = found.name().map_or_else(
                    || format!("unknown (magic {:#x})", found.magic),
                    str::to_owned,
                );
                self.add("file-system", FindingStatus::Ok, detail, None);
            }
            Err(error) => self.add(
                "file-system",
                FindingStatus::Problem,
                error.to_string(),
                None,
            ),
        }
    }

    fn space(&mut self, root: &Utf8Path) {
        match self.world.disk.free_space(root) {
            Ok((bytes, inodes)) => {
                let low = bytes < LOW_BYTES;
                let status = if low {
                    FindingStatus::Warning
                } else {
                    FindingStatus::Ok
                };
                let fix = low.then_some("make room, for example with `semaprax gc`");
                self.add(
                    "free-space",
                    status,
                    format!("{} MiB free", bytes >> 20),
                    fix,
                );
                let low = inodes < LOW_INODES;
                let status = if low {
                    FindingStatus::Warning
                } else {
                    FindingStatus::Ok
                };
                self.add(
                    "free-inodes",
                    status,
                    format!("{inodes} free"),
                    low.then_some("remove files, or run `semaprax gc`"),
                );
            }
            Err(error) => self.add(
                "free-space",
                FindingStatus::Problem,
                error.to_string(),
                None,
            ),
        }
    }

    /// What the file system can do, tried out in a directory that is taken away again.
    fn features(&mut self, place: &Utf8Path) {
        let probe = place.join(format!(".semaprax-probe-{}", self.world.entropy.uuid()));
        if let Err(error) = self.world.disk.create_directory(&probe, 0o700) {
            let detail = format!("no probe could be made: {error}");
            let fix = "a read-only workspace can be read, not published to";
            return self.add("writable", FindingStatus::Warning, detail, Some(fix));
        }
        self.hard_links(&probe);
        self.case_folding(&probe);
        self.durable_rename(&probe);
        self.extras(&probe);
        self.locks(&probe);
        if let Err(error) = trash::remove(self.world, &probe, EntryType::Directory) {
            let detail = format!("the probe stays behind: {error}");
            self.add("writable", FindingStatus::Warning, detail, None);
        }
    }

    fn hard_links(&mut self, probe: &Utf8Path) {
        let (disk, first) = (&self.world.disk, probe.join("a"));
        let linked = disk
            .create(&first, b"x", 0o644)
            .and_then(|()| disk.link(&first, &probe.join("b")));
        match linked {
            Ok(()) => self.add(
                "hard-links",
                FindingStatus::Ok,
                "supported".to_owned(),
                None,
            ),
            Err(error) => {
                let detail = format!("not supported, so every generation is a full copy: {error}");
                let fix = "use a file system with hard links";
                self.add("hard-links", FindingStatus::Warning, detail, Some(fix));
            }
        }
    }

    fn case_folding(&mut self, probe: &Utf8Path) {
        if let Ok(None) = self.world.disk.metadata(&probe.join("A")) {
            let detail = "names keep their case".to_owned();
            self.add("case-folding", FindingStatus::Ok, detail, None);
        } else {
            let detail = "names that differ in case only are one name here".to_owned();
            let fix = "keep the name policy `portable`";
            self.add("case-folding", FindingStatus::Warning, detail, Some(fix));
        }
    }

    fn durable_rename(&mut self, probe: &Utf8Path) {
        let (disk, first) = (&self.world.disk, probe.join("a"));
        let durable = disk
            .sync_file(&first)
            .and_then(|()| disk.rename(&first, &probe.join("c")))
            .and_then(|()| disk.sync_directory(probe));
        match durable {
            Ok(()) => {
                let detail = "files and directories can be synced".to_owned();
                self.add("durable-rename", FindingStatus::Ok, detail, None);
            }
            Err(error) => {
                let fix = Some("use another file system");
                self.add(
                    "durable-rename",
                    FindingStatus::Problem,
                    error.to_string(),
                    fix,
                );
            }
        }
    }

    /// What is used where it is there and not missed where it is not.
    fn extras(&mut self, probe: &Utf8Path) {
        let (disk, one, other) = (&self.world.disk, probe.join("c"), probe.join("d"));
        let exchange = disk
            .create(&other, b"y", 0o644)
            .and_then(|()| disk.exchange(&one, &other));
        let reflink = disk.reflink(&one, &probe.join("e"));
        let say = |there: bool, yes: &str, no: &str| if there { yes } else { no }.to_owned();
        let detail = say(
            exchange.is_ok(),
            "two names can be exchanged at once",
            "not supported; not needed",
        );
        self.add("rename-exchange", FindingStatus::Ok, detail, None);
        let detail = say(
            reflink.is_ok(),
            "copies can share blocks",
            "not supported; copies are full",
        );
        self.add("reflink", FindingStatus::Ok, detail, None);
    }

    fn locks(&mut self, probe: &Utf8Path) {
        let fix = Some("use a local file system");
        match self.world.disk.try_lock(&probe.join("lock"), true, true) {
            Ok(Some(_)) => self.add("locks", FindingStatus::Ok, "supported".to_owned(), None),
            Ok(None) => {
                let detail = "a fresh file is locked already".to_owned();
                self.add("locks", FindingStatus::Problem, detail, fix);
            }
            Err(error) => self.add("locks", FindingStatus::Problem, error.to_string(), fix),
        }
    }

    fn clock(&mut self, root: &Utf8Path) {
        let tip = Offline::open(self.world, root).and_then(|offline| offline.published_at());
        let now = self.world.clock.now();
        match tip {
            Ok(last) if last > now => {
                let detail = format!("the last publication is of {last}, the clock says {now}");
                self.add(
                    "clock",
                    FindingStatus::Warning,
                    detail,
                    Some("set the clock; publication times go on increasing"),
                );
            }
            _ => self.add("clock", FindingStatus::Ok, format!("{now}"), None),
        }
        let boot = self.world.clock.boot_id();
        let (status, detail) = match boot {
            Some(id) => (FindingStatus::Ok, id),
            None => (
                FindingStatus::Warning,
                "no boot id: trees are verified at every start".to_owned(),
            ),
        };
        self.add("boot-id", status, detail, None);
    }

    fn watches(&mut self) {
        let read = |name: &str| -> Option<u64> {
            let path = Utf8PathBuf::from(format!("/proc/sys/fs/inotify/{name}"));
            let bytes = self.world.disk.read(&path).ok()?;
            String::from_utf8(bytes).ok()?.trim().parse().ok()
        };
        let found = read("max_user_instances").zip(read("max_user_watches"));
        match found {
            Some((instances, watches)) => {
                let low = instances < 16 || watches < 64;
                let status = if low {
                    FindingStatus::Warning
                } else {
                    FindingStatus::Ok
                };
                let fix = low.then_some("raise fs.inotify.max_user_instances and max_user_watches");
                let detail = format!(
                    "{instances} instances, {watches} watches; `watch` without a daemon needs one of each"
                );
                self.add("inotify", status, detail, fix);
            }
            None => self.add(
                "inotify",
                FindingStatus::Ok,
                "no limits are told here".to_owned(),
                None,
            ),
        }
    }

    /// The daemon's socket: short enough for every system, in a directory that only its user may enter.
    fn socket(&mut self, socket: &Utf8Path) {
        let length = socket.as_str().len();
        if length > SOCKET_PATH_BYTES {
            let detail = format!("`{socket}` has {length} bytes; {SOCKET_PATH_BYTES} are safe");
            let fix = "choose a shorter directory with SEMAPRAX_RUNTIME_DIR";
            self.add("socket-path", FindingStatus::Problem, detail, Some(fix));
        } else {
            let detail = format!("`{socket}`, {length} of {SOCKET_PATH_BYTES} bytes");
            self.add("socket-path", FindingStatus::Ok, detail, None);
        }
        let directory = socket.parent().unwrap_or(socket);
        match self.world.disk.metadata(directory) {
            // No bit for group or others.
            Ok(Some(found)) if found.mode.trailing_zeros() >= 6 => {
                let detail = format!("`{directory}` has mode {:o}", found.mode);
                self.add("socket-directory", FindingStatus::Ok, detail, None);
            }
            Ok(Some(found)) => {
                let detail = format!(
                    "`{directory}` has mode {:o}: others may reach the socket",
                    found.mode
                );
                self.add(
                    "socket-directory",
                    FindingStatus::Problem,
                    detail,
                    Some("chmod it to 0700"),
                );
            }
            Ok(None) => {
                let detail = format!("`{directory}` is gone: no client can find the daemon");
                let fix = "run `semaprax daemon stop`; the next command starts a new one";
                self.add(
                    "socket-directory",
                    FindingStatus::Problem,
                    detail,
                    Some(fix),
                );
            }
            Err(error) => {
                self.add(
                    "socket-directory",
                    FindingStatus::Problem,
                    error.to_string(),
                    None,
                );
            }
        }
    }

    fn store(&mut self, root: &Utf8Path) {
        match Offline::open(self.world, root).and_then(|offline| offline.published_at()) {
            Ok(_) => {
                let detail = format!("version {}", crate::store::database::STORE_VERSION);
                self.add("store", FindingStatus::Ok, detail, None);
            }
            Err(refusal) => {
                let hint = refusal
                    .diagnostics
                    .first()
                    .and_then(|diagnostic| diagnostic.hint.clone());
                let detail = refusal.to_string();
                self.findings.push(Finding {
                    check: "store".to_owned(),
                    status: FindingStatus::Problem,
                    detail,
                    code: Some(refusal.code()),
                    fix: hint,
                    repaired: false,
                });
            }
        }
    }

    fn holder(&mut self, layout: &Layout) {
        if let Some(stale) = tidying::stale_lock(self.world, layout) {
            let fix = "run `semaprax doctor --repair`, or any command that starts a daemon";
            return self.add("lock-holder", FindingStatus::Warning, stale, Some(fix));
        }
        let detail = match self.world.disk.read(&layout.lock()) {
            Ok(bytes) if bytes.is_empty() => "nobody".to_owned(),
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => error.to_string(),
        };
        self.add("lock-holder", FindingStatus::Ok, detail, None);
    }

    fn leftovers(&mut self, layout: &Layout) {
        let count = |place: &Utf8Path| -> WorldResult<usize> {
            Ok(self.world.disk.read_directory(place)?.len())
        };
        let found =
            count(&layout.staging()).and_then(|staging| Ok((staging, count(&layout.trash())?)));
        match found {
            Ok((0, 0)) => self.add("leftovers", FindingStatus::Ok, "none".to_owned(), None),
            Ok((staging, trash)) => {
                let detail =
                    format!("{staging} in staging, {trash} in trash; the next start clears them");
                self.add("leftovers", FindingStatus::Ok, detail, None);
            }
            Err(error) => self.add("leftovers", FindingStatus::Problem, error.to_string(), None),
        }
    }
}
