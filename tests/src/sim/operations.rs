//! The operations of the simulated disk: each is counted, may fail, is done on the real directory, and
//! then told to the model.

use camino::Utf8Path;
use semaprax_daemon::world::{
    Disk, EntryType, FileLock, Filesystem, Metadata, OpenedFile, World, WorldError, WorldResult,
};

use super::disk::{Effect, Sim};

fn real() -> std::sync::Arc<dyn Disk> {
    World::real().disk
}

impl Disk for Sim {
    fn read(&self, path: &Utf8Path) -> WorldResult<Vec<u8>> {
        self.before("read", path, Effect::Reads)?;
        real().read(path)
    }

    fn open(&self, path: &Utf8Path) -> WorldResult<Box<dyn OpenedFile>> {
        self.before("open", path, Effect::Reads)?;
        real().open(path)
    }

    fn create(&self, path: &Utf8Path, content: &[u8], mode: u32) -> WorldResult<()> {
        let half = &content[..content.len() / 2];
        let make = |content: &[u8], mode| -> WorldResult<()> {
            real().create(path, content, mode)?;
            self.model(path, |model, path, now| {
                model.create(path, content, mode, now);
            });
            let now = self.times(|times| times.wall());
            real().set_mtime(path, now)
        };
        if let Err(error) = self.before("create", path, Effect::Adds) {
            // The name is made before the bytes have no room.
            if !matches!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem) {
                make(half, mode)?;
            }
            return Err(error);
        }
        self.torn(path, |model, path, now| {
            model.create(path, half, mode & 0o700, now);
        });
        make(content, mode)?;
        self.named(path);
        Ok(())
    }

    fn sync_file(&self, path: &Utf8Path) -> WorldResult<()> {
        self.adopt(path);
        if let Err(error) = self.before("sync_file", path, Effect::Changes) {
            self.forget(path, &error);
            return Err(error);
        }
        real().metadata(path)?;
        if !self.is_left_out("sync_file", path) {
            self.model(path, |model, path, _| model.sync_file(path));
        }
        Ok(())
    }

    fn sync_directory(&self, path: &Utf8Path) -> WorldResult<()> {
        if let Err(error) = self.before("sync_directory", path, Effect::Changes) {
            self.forget(path, &error);
            return Err(error);
        }
        // Fails where the real one would; the bytes need not reach a real disk.
        real().read_directory(path)?;
        if !self.is_left_out("sync_directory", path) {
            self.model(path, |model, path, _| model.sync_directory(path));
        }
        Ok(())
    }

    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> WorldResult<()> {
        self.adopt(from);
        self.before("rename", to, Effect::Changes)?;
        real().rename(from, to)?;
        self.named(to);
        if let Some(from) = self.relative(from) {
            self.model(to, |model, to, _| model.rename(&from, to));
        }
        Ok(())
    }

    fn exchange(&self, one: &Utf8Path, other: &Utf8Path) -> WorldResult<()> {
        self.before("exchange", one, Effect::Changes)?;
        real().exchange(one, other)?;
        panic!("the model does not know how to exchange `{one}` and `{other}`");
    }

    fn reflink(&self, from: &Utf8Path, to: &Utf8Path) -> WorldResult<()> {
        self.before("reflink", to, Effect::Adds)?;
        Err(WorldError::new(
            "share the blocks of",
            from,
            std::io::ErrorKind::Unsupported.into(),
        ))
    }

    fn link(&self, from: &Utf8Path, to: &Utf8Path) -> WorldResult<()> {
        self.before("link", to, Effect::Adds)?;
        real().link(from, to)?;
        if let Some(from) = self.relative(from) {
            self.model(to, |model, to, _| model.link(&from, to));
        }
        Ok(())
    }

    fn symlink(&self, target: &str, path: &Utf8Path) -> WorldResult<()> {
        self.before("symlink", path, Effect::Adds)?;
        real().symlink(target, path)?;
        self.model(path, |model, path, now| model.symlink(path, target, now));
        let now = self.times(|times| times.wall());
        real().set_mtime(path, now)
    }

    fn read_link(&self, path: &Utf8Path) -> WorldResult<Vec<u8>> {
        self.before("read_link", path, Effect::Reads)?;
        real().read_link(path)
    }

    fn remove_file(&self, path: &Utf8Path) -> WorldResult<()> {
        self.before("remove_file", path, Effect::Changes)?;
        real().remove_file(path)?;
        self.model(path, |model, path, _| model.remove(path));
        Ok(())
    }

    fn remove_directory(&self, path: &Utf8Path) -> WorldResult<()> {
        self.before("remove_directory", path, Effect::Changes)?;
        real().remove_directory(path)?;
        self.model(path, |model, path, _| model.remove(path));
        Ok(())
    }

    fn create_directory(&self, path: &Utf8Path, mode: u32) -> WorldResult<()> {
        self.before("create_directory", path, Effect::Adds)?;
        self.torn(path, |model, path, _| {
            model.create_directory(path, mode & 0o700);
        });
        real().create_directory(path, mode)?;
        self.model(path, |model, path, _| model.create_directory(path, mode));
        Ok(())
    }

    fn set_mode(&self, path: &Utf8Path, mode: u32) -> WorldResult<()> {
        self.before("set_mode", path, Effect::Changes)?;
        real().set_mode(path, mode)?;
        self.model(path, |model, path, _| model.set_mode(path, mode));
        Ok(())
    }

    fn set_mtime(&self, path: &Utf8Path, mtime: i64) -> WorldResult<()> {
        self.before("set_mtime", path, Effect::Changes)?;
        real().set_mtime(path, mtime)?;
        self.model(path, |model, path, _| model.set_mtime(path, mtime));
        Ok(())
    }

    fn metadata(&self, path: &Utf8Path) -> WorldResult<Option<Metadata>> {
        self.before("metadata", path, Effect::Reads)?;
        // The times at which inodes change differ from run to run: they are not known here.
        let found = real().metadata(path)?;
        Ok(found.map(|found| Metadata {
            changed: 0,
            ..found
        }))
    }

    fn read_directory(&self, path: &Utf8Path) -> WorldResult<Vec<(String, EntryType)>> {
        self.before("read_directory", path, Effect::Reads)?;
        real().read_directory(path)
    }

    fn try_lock(
        &self,
        path: &Utf8Path,
        exclusive: bool,
        create: bool,
    ) -> WorldResult<Option<Box<dyn FileLock>>> {
        let effect = if create { Effect::Adds } else { Effect::Reads };
        self.before("try_lock", path, effect)?;
        let Some(lock) = real().try_lock(path, exclusive, create)? else {
            return Ok(None);
        };
        if create {
            self.model(path, |model, path, now| {
                if model.find(path).is_none() {
                    model.create(path, b"", 0o600, now);
                }
            });
        }
        Ok(Some(Box::new(SimLock {
            lock,
            sim: self.clone(),
            path: path.to_owned(),
        })))
    }

    fn filesystem(&self, path: &Utf8Path) -> WorldResult<Filesystem> {
        self.before("filesystem", path, Effect::Reads)?;
        real().filesystem(path)
    }

    fn free_space(&self, path: &Utf8Path) -> WorldResult<(u64, u64)> {
        self.before("free_space", path, Effect::Reads)?;
        real().free_space(path)
    }
}

impl Sim {
    /// What could not be written is not written by the next sync either; a read-only disk tries nothing.
    fn forget(&self, path: &Utf8Path, error: &WorldError) {
        if error.kind() != std::io::ErrorKind::ReadOnlyFilesystem {
            self.model(path, |model, path, _| model.fail_sync(path));
        }
    }

    /// SQLite makes its files behind the back of the disk.
    fn adopt(&self, path: &Utf8Path) {
        if path.file_name() == Some("store.db") && path.as_std_path().exists() {
            self.model(path, |model, path, _| model.adopt(path));
        }
    }
}

#[derive(Debug)]
struct SimLock {
    lock: Box<dyn FileLock>,
    sim: Sim,
    path: camino::Utf8PathBuf,
}

impl FileLock for SimLock {
    fn inode(&self) -> (u64, u64) {
        self.lock.inode()
    }

    fn write(&self, content: &[u8]) -> WorldResult<()> {
        self.sim.before("write", &self.path, Effect::Changes)?;
        let half = &content[..content.len() / 2];
        self.sim.torn(&self.path, |model, path, now| {
            model.write(path, half, 0o600, now);
        });
        self.lock.write(content)?;
        self.sim.model(&self.path, |model, path, now| {
            model.write(path, content, 0o600, now);
        });
        Ok(())
    }
}
