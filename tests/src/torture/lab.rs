//! One private place with a workspace and a daemon that dies.
//!
//! Owns: the directories, clients, orders to the daemon, its deaths, and cleaning up.
//! Never: kills a process that no client of this lab was answered by.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::process::{Signal, kill_process};
use semaprax_client::{Client, Options, Runtime, Start};
use semaprax_protocol::Refusal;
use semaprax_protocol::documents::{Receipt, Verification};
use semaprax_protocol::request::{Init, Request, Response, Verify};
use semaprax_protocol::submission::EntryKind;

use super::disk::{Control, TRACE};
use super::plan::Plan;
use super::story::{self, Files};
use super::{During as _, Outcome, violation};
use crate::process::{PATIENCE, is_alive, make_writable, pid_of, within};

/// A daemon nobody needs any more leaves by itself, should the harness be killed.
const IDLE: &str = "60s";

/// The place.
#[derive(Debug)]
pub struct Lab {
    directory: Utf8PathBuf,
    program: PathBuf,
    runtime: Runtime,
    control: Control,
    workspace: Utf8PathBuf,
    /// Kept for a look at it, when something was wrong.
    pub keep: bool,
}

impl Lab {
    /// A new place. `program` is the daemon under test.
    pub fn new(program: &Path) -> Outcome<Self> {
        Self::new_in(program, &base())
    }

    /// The same below a directory.
    pub fn new_in(program: &Path, base: &Path) -> Outcome<Self> {
        let made = tempfile::Builder::new()
            .prefix("spx-kill-")
            .tempdir_in(base)
            .map_err(|error| violation(format!("no place for a lab: {error}")))?;
        let directory = Utf8PathBuf::from_path_buf(made.keep())
            .map_err(|path| violation(format!("{} is not UTF-8", path.display())))?;
        let runtime = Runtime::at(&directory.join("run"))
            .map_err(|refusal| violation(refusal.to_string()))?;
        Ok(Self {
            control: Control::at(directory.as_std_path().to_owned()),
            workspace: directory.join("ws"),
            program: program.to_owned(),
            runtime,
            directory,
            keep: false,
        })
    }

    /// Another workspace directory from now on, filled with the first tree.
    pub fn fill(&mut self, name: &str) -> Outcome<()> {
        self.workspace = self.directory.join(name);
        write_tree(&self.workspace, &story::render(&story::first()))
            .map_err(|error| violation(format!("the first tree cannot be written: {error}")))
    }

    /// Another workspace directory from now on, which may be anywhere and is what it is.
    pub fn settle(&mut self, workspace: Utf8PathBuf) {
        self.workspace = workspace;
    }

    /// The directory of the workspace.
    pub fn workspace(&self) -> &Utf8Path {
        &self.workspace
    }

    /// The place itself.
    pub fn directory(&self) -> &Utf8Path {
        &self.directory
    }

    /// Its state directory.
    pub fn state(&self) -> Utf8PathBuf {
        self.workspace.join(".semaprax-workspace")
    }

    /// The names in a directory of the state.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.state().join(directory))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn options(&self, starts: bool, workspace: bool) -> Options {
        Options {
            workspace: workspace.then(|| self.workspace.clone()),
            start: if starts {
                Start::Program(self.program.clone())
            } else {
                Start::Never
            },
            runtime: self.runtime.clone(),
            follow_lock: false,
            idle_timeout: Some(IDLE.to_owned()),
        }
    }

    /// A client that starts a daemon when none answers, as every command does.
    pub fn client(&self) -> Result<Client, Refusal> {
        Client::connect(self.options(true, true))
    }

    /// A client that does not.
    pub fn modest_client(&self) -> Result<Client, Refusal> {
        Client::connect(self.options(false, true))
    }

    /// Imports the directory as a workspace.
    pub fn init(&self) -> Result<(), Refusal> {
        let mut client = Client::connect(self.options(true, false))?;
        let params = Init {
            directory: self.workspace.clone(),
            names: None,
            force: false,
            shared: false,
            author: "torture".to_owned(),
            message: String::new(),
        };
        client.call(params).map(drop)
    }

    /// `verify --repair` of a workspace that may not open.
    pub fn restore(&self) -> Result<Verification, Refusal> {
        let mut client = Client::connect(self.options(true, false))?;
        client.call(Verify {
            deep: true,
            repair: true,
            directory: Some(self.workspace.clone()),
        })
    }

    /// Settings of the workspace, for daemons that open it from now on.
    pub fn configure(&self, text: &str) -> Outcome<()> {
        let path = self.state().join("config.toml");
        fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o600)))
            .map_err(|error| violation(format!("the settings cannot be written: {error}")))
    }

    /// The daemon's process, if one answers.
    pub fn daemon(&self) -> Option<u32> {
        let client = Client::find(self.options(false, false)).ok()??;
        Some(client.daemon()?.pid)
    }

    /// Tells the daemon that runs, or the next one, when to die.
    pub fn order(&self, plan: &Plan) -> Outcome<()> {
        self.write_order(&plan.to_string())
    }

    /// Tells it to write down what it does.
    pub fn order_trace(&self) -> Outcome<()> {
        drop(fs::remove_file(self.control.trace()));
        self.write_order(TRACE)
    }

    /// Daemons that are started from now on take this for their boot.
    pub fn order_boot(&self, boot: &str) -> Outcome<()> {
        fs::write(self.control.boot(), boot).during(|| "giving a boot".to_owned())
    }

    /// Daemons that are started from now on leave these syncs out.
    pub fn order_omissions(&self, steps: &[&str]) -> Outcome<()> {
        fs::write(self.control.omissions(), steps.join("\n"))
            .during(|| "leaving out syncs".to_owned())
    }

    /// Takes every order back.
    pub fn order_nothing(&self) {
        drop(fs::remove_file(self.control.plan()));
    }

    fn write_order(&self, text: &str) -> Outcome<()> {
        // A new inode under the name at once: the daemon never reads half an order.
        let aside = self.directory.join("plan.next");
        fs::write(&aside, text)
            .and_then(|()| fs::rename(&aside, self.control.plan()))
            .map_err(|error| violation(format!("no order can be given: {error}")))
    }

    /// What the daemon wrote down.
    pub fn trace(&self) -> Vec<String> {
        let text = fs::read_to_string(self.control.trace()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Where the daemon died by an order, told once.
    pub fn death(&self) -> Option<String> {
        let text = fs::read_to_string(self.control.killed()).ok()?;
        drop(fs::remove_file(self.control.killed()));
        Some(text.trim().to_owned())
    }

    /// Kills the daemon from outside.
    pub fn kill(daemon: u32) -> Outcome<()> {
        // It may have died by an order just now.
        if let Some(process) = pid_of(daemon) {
            let _ = kill_process(process, Signal::KILL);
        }
        Self::await_death(daemon)
    }

    /// Waits until a daemon that was killed is gone.
    pub fn await_death(daemon: u32) -> Outcome<()> {
        within(PATIENCE, || (!is_alive(daemon)).then_some(()))
            .ok_or_else(|| violation("a killed daemon does not end"))
    }

    /// The log of the daemon.
    pub fn log(&self) -> String {
        fs::read_to_string(self.runtime.log()).unwrap_or_default()
    }
}

/// Where labs are: in memory where there is such a place, for a death of a process asks nothing of a
/// disk. `SEMAPRAX_TORTURE_DIR` wins over it.
fn base() -> PathBuf {
    let memory = Path::new("/dev/shm");
    match std::env::var_os("SEMAPRAX_TORTURE_DIR") {
        Some(given) => PathBuf::from(given),
        None if memory.is_dir() => memory.to_owned(),
        None => std::env::temp_dir(),
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(daemon) = self.daemon() {
            drop(Self::kill(daemon));
        }
        if self.keep {
            eprintln!("kept for a look: {}", self.directory);
            return;
        }
        make_writable(self.directory.as_std_path());
        drop(fs::remove_dir_all(&self.directory));
    }
}

/// Sends a submission that publishes, with large content ahead of it.
pub fn send(client: &mut Client, request: &Request) -> Result<Receipt, Refusal> {
    if let Request::Publish(params) = request {
        return client.publish(
            params.submission.clone(),
            params.options.clone(),
            &mut |_| {},
        );
    }
    match client.request(request.clone(), &mut |_| {})? {
        Response::Rollback(receipt) | Response::Publish(receipt) => Ok(receipt),
        other => panic!("a submission was answered with {other:?}"),
    }
}

/// Reads a whole tree; `None` when it changes or goes away meanwhile.
pub fn read_tree(root: &Utf8Path) -> std::io::Result<Files> {
    let mut files = BTreeMap::new();
    collect(root.as_std_path(), "", &mut files)?;
    Ok(files)
}

fn collect(root: &Path, prefix: &str, files: &mut Files) -> std::io::Result<()> {
    for entry in fs::read_dir(root.join(prefix))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}/{name}")
        };
        let found = fs::symlink_metadata(entry.path())?;
        if found.is_dir() {
            collect(root, &path, files)?;
        } else if found.is_symlink() {
            let target = fs::read_link(entry.path())?;
            let target = target.as_os_str().as_encoded_bytes().to_vec();
            files.insert(path, (EntryKind::Symlink, target));
        } else {
            let kind = if found.permissions().mode() & 0o100 == 0 {
                EntryKind::File
            } else {
                EntryKind::Executable
            };
            files.insert(path, (kind, fs::read(entry.path())?));
        }
    }
    Ok(())
}

fn write_tree(root: &Utf8Path, files: &Files) -> std::io::Result<()> {
    for (path, (kind, content)) in files {
        let place = root.join(path);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        match kind {
            EntryKind::Symlink => {
                let target = String::from_utf8_lossy(content).into_owned();
                std::os::unix::fs::symlink(target, &place)?;
            }
            EntryKind::File => fs::write(&place, content)?,
            EntryKind::Executable => {
                fs::write(&place, content)?;
                fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
            }
        }
    }
    Ok(())
}

/// Waits for as long as it takes to be random, or until `over` tells.
pub fn pause(time: Duration, mut over: impl FnMut() -> bool) {
    let _ = within(time, || over().then_some(()));
}
