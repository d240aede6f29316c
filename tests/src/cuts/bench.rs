//! Where the cuts are made: a shelf with one fresh image of each kind.
//!
//! Owns: live file systems (`Site`), each a copy of a fresh one, and the names of copies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use camino::Utf8PathBuf;

use crate::images::{Image, Kind, Mounted, Place, Shelf};
use crate::torture::lab::Lab;
use crate::torture::{During as _, Outcome, violation};

/// Room on the shelf. It is taken only by what is written.
const ROOM: u64 = 16 << 30;
/// The boot of every daemon before its cut.
const BEFORE: &str = "before-the-cut";

/// The bench.
#[derive(Debug)]
pub struct Bench {
    program: PathBuf,
    fresh: BTreeMap<Kind, Image>,
    number: AtomicU64,
    // Before the place, which would find it busy.
    shelf: Shelf,
    place: Place,
}

/// A mounted image with a workspace directory on it.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) image: Image,
    mounted: Mounted,
}

impl Bench {
    /// A bench with file systems of these kinds. `program` is the daemon under test.
    pub fn new(program: &Path, kinds: &[Kind]) -> Outcome<Self> {
        let place = Place::new().during(|| "a place for images".to_owned())?;
        let shelf = Shelf::new(&place, ROOM).during(|| "a shelf".to_owned())?;
        let mut fresh = BTreeMap::new();
        for &kind in kinds {
            let image = Image::make(&shelf.path(kind.name()), kind, kind.bytes(), &[])
                .during(|| format!("making {}", kind.name()))?;
            fresh.insert(kind, image);
        }
        Ok(Self {
            program: program.to_owned(),
            fresh,
            number: AtomicU64::new(0),
            shelf,
            place,
        })
    }

    /// The kinds it has.
    pub fn kinds(&self) -> Vec<Kind> {
        self.fresh.keys().copied().collect()
    }

    /// A fresh file system of a kind, mounted.
    pub(super) fn site(&self, kind: Kind) -> Outcome<Site> {
        let fresh = self
            .fresh
            .get(&kind)
            .ok_or_else(|| violation("a kind the bench does not have"))?;
        let image = self.copy(fresh)?;
        self.mount(image)
    }

    /// The image as it is at this instant.
    pub(super) fn copy(&self, image: &Image) -> Outcome<Image> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        image
            .copy(&self.shelf.path(&format!("copy-{number}")))
            .during(|| "copying an image".to_owned())
    }

    /// Mounts an image under a name nothing else has.
    pub(super) fn mount(&self, image: Image) -> Outcome<Site> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let at = self.place.directory().join(format!("m{number}"));
        let mounted = image
            .mount(&self.place, &at)
            .during(|| format!("mounting {}", image.kind().name()))?;
        Ok(Site { image, mounted })
    }

    /// A lab for the workspace at a site.
    pub(super) fn lab(&self, site: &Site, boot: Option<&str>) -> Outcome<Lab> {
        let mut lab = Lab::new_in(&self.program, self.place.directory())?;
        lab.settle(site.workspace()?);
        lab.order_boot(boot.unwrap_or(BEFORE))?;
        Ok(lab)
    }

    /// A lab with a directory to import, which is on the disk: it is not the daemon's to sync.
    pub(super) fn filled(&self, site: &Site) -> Outcome<Lab> {
        let mut lab = self.lab(site, None)?;
        lab.fill(site.workspace()?.as_str())?;
        site.mounted
            .sync()
            .during(|| "syncing what is imported".to_owned())?;
        Ok(lab)
    }
}

impl Site {
    fn workspace(&self) -> Outcome<Utf8PathBuf> {
        Utf8PathBuf::from_path_buf(self.mounted.path().join("ws"))
            .map_err(|path| violation(format!("{} is not UTF-8", path.display())))
    }

    /// Unmounts it and removes the image.
    pub(super) fn clear(self) -> Outcome<()> {
        drop(self.mounted);
        self.image
            .remove()
            .during(|| "removing an image".to_owned())
    }
}
