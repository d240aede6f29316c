//! Links out of the state directory, and names that nothing of ours has: what lies outside stays as it is, and
//! the workspace can still be opened.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_daemon::store::{Layout, own, reserve};
use semaprax_daemon::workspace::STACK_BYTES;
use semaprax_daemon::world::World;
use semaprax_protocol::Code;
use semaprax_tests::fixture::{Fixture, verification};
use semaprax_tests::oracle::check_whole;
use semaprax_tests::process::{contents, make_writable};

/// Somebody's directory, beside the workspace of a fixture.
struct Outside {
    place: Utf8PathBuf,
    before: String,
}

impl Outside {
    fn beside(fixture: &Fixture) -> Self {
        let place = fixture.beside("outside");
        fs::create_dir_all(place.join("deep")).unwrap();
        for name in ["one", "b", "0", "deep/two", "deep/x"] {
            fs::write(place.join(name), name).unwrap();
        }
        let before = said_of(&place);
        Self { place, before }
    }

    fn is_as_it_was(&self, case: &str) {
        assert_eq!(said_of(&self.place), self.before, "{case}");
    }
}

/// What is below a directory, and the modes of its directories.
fn said_of(place: &Utf8Path) -> String {
    let mode = |path: &Utf8Path| fs::metadata(path).unwrap().mode();
    let modes = [mode(place), mode(&place.join("deep"))];
    format!("{modes:?} {:?}", contents(place.as_std_path()))
}

fn fixture() -> Fixture {
    Fixture::with_files(&[("a", "1"), ("sub/b", "2"), ("sub/deep/x", "3")])
}

#[test]
fn an_init_does_not_clear_what_a_link_leads_to() {
    let mut fixture = Fixture::new();
    fixture.write("a", "1");
    let outside = Outside::beside(&fixture);
    symlink(&outside.place, fixture.root.join(".semaprax-workspace")).unwrap();
    assert_eq!(fixture.init().unwrap_err().code(), Code::WorkspaceDamaged);
    outside.is_as_it_was("init");
}

#[test]
fn the_reserve_is_only_what_was_put_there() {
    let fixture = fixture();
    let outside = Outside::beside(&fixture);
    let (world, layout) = (World::real(), Layout::new(&fixture.root));
    drop(fs::remove_dir_all(layout.reserve()));
    symlink(&outside.place, layout.reserve()).unwrap();
    assert!(!reserve::keep(&world, &layout).unwrap());
    assert!(!reserve::release(&world, &layout).unwrap());
    outside.is_as_it_was("a link");
    fs::remove_file(layout.reserve()).unwrap();
    fs::create_dir(layout.reserve()).unwrap();
    for number in 0..9 {
        fs::write(layout.reserve().join(format!("note-{number}")), "mine").unwrap();
    }
    assert!(reserve::keep(&world, &layout).unwrap());
    assert!(reserve::release(&world, &layout).unwrap());
    assert_eq!(fs::read_dir(layout.reserve()).unwrap().count(), 9);
}

#[test]
fn what_is_set_aside_stays_in_the_state_directory() {
    let check = |case: &str, plant: &dyn Fn(&Utf8Path, &Utf8Path)| {
        let fixture = fixture();
        let outside = Outside::beside(&fixture);
        let (world, layout) = (World::real(), Layout::new(&fixture.root));
        let aside = layout.state().join("set-aside");
        plant(&aside, &outside.place);
        let long = layout.state().join("n".repeat(255));
        fs::write(&long, "").unwrap();
        own::set_aside(&world, &layout, &long).unwrap();
        // In a repair its own turn comes too.
        own::set_aside(&world, &layout, &aside).unwrap();
        outside.is_as_it_was(case);
        assert!(fs::symlink_metadata(&aside).unwrap().is_dir(), "{case}");
        assert_eq!(fs::read_dir(&aside).unwrap().count(), 2, "{case}");
    };
    check("a link", &|aside, outside| symlink(outside, aside).unwrap());
    check("a dangling link", &|aside, _| {
        symlink("nowhere", aside).unwrap();
    });
    check("a file", &|aside, _| fs::write(aside, "").unwrap());
}

#[test]
fn a_link_in_a_spare_is_not_gone_through() {
    for script in [
        "publish\n  delete sub/b",
        "publish\n  delete! sub",
        "publish\n  put sub/new 1",
        "publish\n  put sub/b 1",
        "publish\n  put sub/deep/x 1",
        "publish\n  put a 1\n  put new 1",
    ] {
        for part in ["files", "files/sub", "files/sub/deep"] {
            let mut fixture = fixture();
            fixture.run("publish\n  put z 1\nidle");
            let outside = Outside::beside(&fixture);
            let staging = fixture.state("staging");
            let mut planted = 0;
            for spare in staging.read_dir_utf8().unwrap() {
                let place = spare.unwrap().path().join(part);
                let parent = place.parent().unwrap();
                let sealed = fs::metadata(parent).unwrap().permissions();
                fs::set_permissions(parent, Permissions::from_mode(0o755)).unwrap();
                make_writable(place.as_std_path());
                fs::remove_dir_all(&place).unwrap();
                symlink(&outside.place, &place).unwrap();
                fs::set_permissions(parent, sealed).unwrap();
                planted += 1;
            }
            assert_eq!(planted, 2);
            fixture.run(script);
            outside.is_as_it_was(&format!("{script}: {part}"));
            fixture.run("idle");
            outside.is_as_it_was(&format!("{script}: {part}, idle"));
        }
    }
}

#[test]
fn names_that_are_not_utf_8_close_nothing() {
    let odd = OsStr::from_bytes(b"bad\xff");
    for place in ["staging", "trash", "generations", "objects", "."] {
        let mut fixture = fixture();
        fixture.close();
        fs::write(fixture.state(place).as_std_path().join(odd), "").unwrap();
        fixture.open().unwrap();
        fixture.put("a", "2");
        fixture.run("gc age=0\nidle");
    }
    let mut fixture = fixture();
    let files = fixture.files_of(&fixture.active().1);
    make_writable(files.as_std_path());
    fs::write(files.as_std_path().join(odd), "").unwrap();
    fs::create_dir(files.as_std_path().join("sub").join(odd)).unwrap();
    fixture.verify(true, true);
    assert_eq!(verification(&fixture.verify(true, false)), "ok");
    fixture.close();
    fixture.open().unwrap();
    fixture.put("a", "2");
    check_whole(&mut fixture);
}

#[test]
fn names_that_are_not_utf_8_are_set_aside() {
    for place in [".", "objects", "generations"] {
        let mut fixture = fixture();
        fixture.close();
        let directory = fixture.state(place);
        for odd in [&b"bad\xff"[..], b"bad\xfe"] {
            fs::create_dir(directory.as_std_path().join(OsStr::from_bytes(odd))).unwrap();
        }
        let (world, layout) = (World::real(), Layout::new(&fixture.root));
        let found = own::look(&world, &layout).unwrap();
        assert_eq!(found.len(), 2, "{place}: {found:?}");
        for untidy in &found {
            own::mend(&world, &layout, untidy).unwrap();
        }
        assert_eq!(own::look(&world, &layout).unwrap(), [], "{place}");
        assert_eq!(
            fs::read_dir(fixture.state("set-aside")).unwrap().count(),
            2,
            "{place}"
        );
        fixture.open().unwrap();
        check_whole(&mut fixture);
    }
}

#[test]
fn a_path_that_no_tree_has_room_for_is_refused() {
    // As the threads of a daemon: two thousand directories in one another are as many calls.
    let deep = std::thread::Builder::new().stack_size(STACK_BYTES);
    let deep = deep.spawn(paths_near_the_longest).unwrap();
    deep.join().unwrap();
}

fn paths_near_the_longest() {
    let mut fixture = fixture();
    let room = Layout::new(&fixture.root).longest_path();
    let path = |bytes: usize| -> String {
        let mut path = "d/".repeat(bytes / 2 - 1);
        path.push_str(&"n".repeat(bytes - path.len()));
        path
    };
    let refusal = fixture
        .publish(vec![semaprax_tests::fixture::put(&path(room + 1), "1")])
        .unwrap_err();
    assert_eq!(refusal.code(), Code::PathRefused);
    // Segments of usual length: a deep tree takes its time.
    let mut longest = format!("{}/", "s".repeat(200)).repeat(room / 201 - 1);
    longest.push_str(&"n".repeat(room - longest.len()));
    let fits = longest
        .rsplit('/')
        .next()
        .is_some_and(|name| name.len() <= 255);
    if fits {
        fixture.put(&longest, "1");
        check_whole(&mut fixture);
        fixture.put("a", "2");
        assert_eq!(verification(&fixture.verify(true, false)), "ok");
    }
}
