//! What a copy of an image in use holds, which all the rest relies on.

use std::fs::{self, File};

use semaprax_tests::images::{Image, Kind, Place, Shelf, can_mount};

/// What is synced is in the copy, what is not is not.
fn check(place: &Place, shelf: &Shelf, kind: Kind) {
    let name = kind.name();
    let image = Image::make(&shelf.path(name), kind, kind.bytes(), &[]).unwrap();
    let mounted = image.mount(place, &place.directory().join(name)).unwrap();
    let synced = mounted.path().join("synced");
    fs::write(&synced, "first").unwrap();
    File::open(&synced).unwrap().sync_all().unwrap();
    File::open(mounted.path()).unwrap().sync_all().unwrap();
    fs::write(mounted.path().join("unsynced"), "second").unwrap();

    let copy = image.copy(&shelf.path(&format!("{name}-copy"))).unwrap();
    copy.start_again().unwrap();
    let after = copy
        .mount(place, &place.directory().join(format!("{name}-after")))
        .unwrap();
    let kept = fs::read_to_string(after.path().join("synced")).unwrap();
    assert_eq!(kept, "first", "{name}");
    let unsynced = fs::read_to_string(after.path().join("unsynced")).unwrap_or_default();
    assert_eq!(unsynced, "", "{name}");
    let live = fs::read_to_string(mounted.path().join("unsynced")).unwrap();
    assert_eq!(live, "second", "{name}: the live one is not touched");
}

#[test]
fn a_copy_holds_what_was_written_to_the_device() {
    if !can_mount(&Kind::ALL) {
        return;
    }
    let place = Place::new().unwrap();
    let directory = place.directory().to_owned();
    let shelf = Shelf::new(&place, 4 << 30).unwrap();
    for kind in Kind::ALL {
        check(&place, &shelf, kind);
    }
    drop(shelf);
    drop(place);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(directory.to_str().unwrap()), "{mounts}");
    assert!(!directory.exists());
}
