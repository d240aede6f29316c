//! A workspace on a small file system of its own, served by the daemon of a world that also serves another
//! workspace elsewhere.
//!
//! Owns: the image, the daemon, what was acknowledged, and the comparison with it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use semaprax_tests::images::{Image, Kind, Mounted, Place, can_mount};
use semaprax_tests::process::{Call, World, until_true};
use semaprax_tests::sim::Chance;
use serde_json::Value;

/// Bytes that do not get smaller.
pub fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    Chance::new(seed).bytes(bytes)
}

const IMAGE_BYTES: u64 = 32 << 20;
/// Files of the reserve.
const RESERVE: usize = 8;

pub struct Lab {
    pub world: World,
    /// Before the place: what is mounted goes first.
    pub mounted: Option<Mounted>,
    pub image: Image,
    pub place: Place,
    /// What was acknowledged: path -> bytes, and how often.
    pub known: BTreeMap<String, Vec<u8>>,
    pub seq: u64,
}

impl Lab {
    /// `None`, and why, where images cannot be mounted.
    pub fn new(name: &str, more: &[&str]) -> Option<Self> {
        if !can_mount(&[Kind::Ext4]) {
            return None;
        }
        let place = Place::new().unwrap();
        let path = place.directory().join(format!("{name}.img"));
        let image = Image::make(&path, Kind::Ext4, IMAGE_BYTES, more).unwrap();
        let mounted = image.mount(&place, &place.directory().join(name)).unwrap();
        let world = World::new(env!("CARGO_BIN_EXE_semaprax-under-test"));
        let lab = Self {
            world,
            mounted: Some(mounted),
            image,
            place,
            known: BTreeMap::new(),
            seq: 0,
        };
        fs::create_dir(lab.root()).unwrap();
        Some(lab)
    }

    fn at(&self) -> &Path {
        self.mounted.as_ref().unwrap().path()
    }

    /// The directory of the workspace.
    pub fn root(&self) -> PathBuf {
        self.at().join("ws")
    }

    pub fn state(&self) -> PathBuf {
        self.root().join(".semaprax-workspace")
    }

    /// `semaprax --json` in the workspace.
    pub fn call(&self, words: &[&str]) -> Call {
        self.world.with_json(words).cwd(self.root())
    }

    pub fn json(&self, words: &[&str]) -> Value {
        self.call(words).run().ok().json()
    }

    /// Imports some files, and waits until room is kept back.
    pub fn init(&mut self) {
        for (path, content) in [("a", noise(1, 3_000)), ("d/b", noise(2, 90_000))] {
            let place = self.root().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, &content).unwrap();
            self.known.insert(path.to_owned(), content);
        }
        self.json(&["init"]);
        self.seq = 1;
        self.json(&["status"]);
        self.await_reserve();
        self.world.seed();
    }

    pub fn has_reserve(&self) -> bool {
        let names = fs::read_dir(self.state().join("reserve"));
        names.is_ok_and(|names| names.count() == RESERVE)
    }

    pub fn await_reserve(&self) {
        until_true("room is kept back", || self.has_reserve());
    }

    /// Collects all but one tree; answers how many went.
    pub fn collect(&self) -> usize {
        let collected = self.json(&["gc", "--min-age", "0s", "--keep", "1"]);
        collected["removed"].as_array().unwrap().len()
    }

    /// There is room again: it goes on, and the next idle moment keeps some back.
    pub fn check_goes_on(&mut self) {
        self.put("again", 10).unwrap();
        self.await_reserve();
        self.check_whole();
    }

    /// Publishes noise; answers the code when it is refused.
    pub fn put(&mut self, path: &str, bytes: usize) -> Result<(), String> {
        let content = noise(self.seq * 1_000_003 + bytes as u64, bytes);
        let source = self.world.write("source", &content);
        let put = format!("{path}={}", source.display());
        let outcome = self.call(&["publish", "--put", &put]).run();
        let document = outcome.json();
        if outcome.code == Some(0) {
            self.seq += 1;
            assert_eq!(document["seq"], self.seq, "{document}");
            self.known.insert(path.to_owned(), content);
            return Ok(());
        }
        Err(document["diagnostics"][0]["code"]
            .as_str()
            .unwrap()
            .to_owned())
    }

    /// Every reading command gives what was acknowledged.
    pub fn check_reads(&self) {
        let status = self.json(&["status"]);
        assert_eq!(status["active"]["seq"], self.seq, "{status}");
        let log = self.json(&["log"]);
        let entries = log["entries"].as_array().unwrap();
        assert_eq!(entries.len() as u64, self.seq, "{log}");
        let listing = self.json(&["ls"]);
        let listed: Vec<&str> = listing["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["path"].as_str().unwrap())
            .collect();
        let known: Vec<&str> = self.known.keys().map(String::as_str).collect();
        assert_eq!(listed, known);
        for (path, content) in &self.known {
            let read = self
                .world
                .semaprax(&["cat", &format!(":{path}")])
                .cwd(self.root())
                .run()
                .ok();
            assert!(read.out == *content, "`{path}` has other bytes");
        }
        self.json(&["show", "@"]);
        self.json(&["diff", "@1", "@"]);
    }

    /// And the other workspace is served as if nothing had happened.
    pub fn check_other(&self) {
        let text = format!("{}", self.seq);
        let before = self.world.json(&["status"])["active"]["seq"]
            .as_u64()
            .unwrap();
        let put = self.world.put("n", &format!("{text} after {before}"));
        assert_eq!(put["seq"], before + 1);
    }

    pub fn check_whole(&self) {
        let found = self.call(&["verify", "--deep"]).run();
        assert_eq!(found.json()["status"], "ok", "{}", found.told());
    }

    /// Fills the file system to the last block.
    pub fn fill(&self) -> PathBuf {
        let filler = self.at().join("filler");
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(&filler)
            .unwrap();
        for size in [1 << 20, 1 << 16, 4096, 1024] {
            let block = vec![0xA5; size];
            while file.write_all(&block).is_ok() {}
        }
        drop(file.sync_all());
        assert_eq!(statvfs(self.at()).unwrap().f_bavail, 0, "there is room");
        filler
    }

    /// Uses up all inodes.
    pub fn use_up_inodes(&self) -> PathBuf {
        let place = self.at().join("many");
        fs::create_dir_all(&place).unwrap();
        let first = fs::read_dir(&place).unwrap().count();
        for number in first.. {
            if File::create_new(place.join(number.to_string())).is_err() {
                return place;
            }
        }
        unreachable!("there is an end of inodes")
    }

    pub fn free_blocks(&self) -> u64 {
        statvfs(self.at()).unwrap().f_bfree
    }
}
