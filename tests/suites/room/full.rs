//! A file system of 32 MiB that is filled up, runs out of inodes, or turns read-only under the daemon.
//!
//! Owns: what must be true in each of these: nothing that was acknowledged is lost, what cannot be done is
//! refused by name, reading goes on, `gc` makes room, the daemon serves its other workspaces, and with room
//! all is as before.

use std::fs;

use semaprax_tests::process::{Wire, until, until_true};
use serde_json::json;

use crate::lab::{Lab, noise};

const LARGE: usize = 1_500_000;

/// Publishes until there is no more room.
fn fill_by_publishing(lab: &mut Lab) -> usize {
    for count in 0..100 {
        if let Err(code) = lab.put("large", LARGE) {
            assert_eq!(code, "no-space");
            return count;
        }
    }
    panic!("the image takes more than it holds");
}

#[test]
fn a_disk_filled_by_publishing_is_freed_by_the_collector() {
    let Some(mut lab) = Lab::new("publish", &[]) else {
        return;
    };
    lab.init();
    for round in 0..2 {
        let count = fill_by_publishing(&mut lab);
        println!("round {round}: {count} publications, then no-space");
        assert!(round == 1 || count >= 4, "only {count}");
        lab.check_reads();
        lab.check_other();
        assert!(lab.collect() > 0);
        lab.check_reads();
        lab.check_whole();
    }
    // Nothing of the refusals is lost: each is in the journal, in order.
    let entries = lab.call(&["journal"]).run().ok().json_lines();
    let refused = entries
        .iter()
        .filter(|entry| entry["type"] == "refused")
        .count();
    assert_eq!(refused, 2);
    lab.put("small", 10).unwrap();
    lab.world.stop();
    lab.check_reads();
    lab.check_whole();
}

/// The last bytes are taken by somebody else, and then nobody has the workspace open.
#[test]
fn a_workspace_on_a_full_disk_is_opened_with_what_was_kept_back() {
    let Some(mut lab) = Lab::new("closed", &[]) else {
        return;
    };
    lab.init();
    lab.put("large", LARGE).unwrap();
    lab.put("large", LARGE).unwrap();
    lab.world.stop();
    let filler = lab.fill();
    lab.check_reads();
    lab.check_other();
    assert_eq!(lab.put("large", LARGE).unwrap_err(), "no-space");
    let doctor = lab.call(&["doctor"]).run();
    assert!(doctor.text().contains("no-space"), "{}", doctor.told());
    let before = lab.free_blocks();
    assert_eq!(lab.collect(), 2);
    assert!(lab.free_blocks() > before, "nothing was freed");
    lab.check_reads();
    lab.check_whole();
    fs::remove_file(filler).unwrap();
    lab.check_goes_on();
}

/// The same without a reserve: it was used before, or taken away.
#[test]
fn without_a_reserve_a_full_disk_is_named_and_reading_goes_on() {
    let Some(mut lab) = Lab::new("bare", &[]) else {
        return;
    };
    lab.init();
    lab.put("large", LARGE).unwrap();
    lab.world.stop();
    fs::remove_dir_all(lab.state().join("reserve")).unwrap();
    let filler = lab.fill();
    lab.check_reads();
    lab.check_other();
    for words in [
        &["gc"][..],
        &["publish", "--delete", "a"],
        &["pin", "@1"],
        &["verify"],
    ] {
        let refused = lab.call(words).run().refused("no-space");
        assert!(refused["diagnostics"][0]["hint"].is_string(), "{refused}");
    }
    let doctor = lab.call(&["doctor"]).run();
    assert!(doctor.text().contains("no-space"), "{}", doctor.told());
    lab.check_reads();
    fs::remove_file(filler).unwrap();
    lab.put("small", 10).unwrap();
    lab.await_reserve();
    lab.check_reads();
    lab.check_whole();
}

/// The journal grows while there is no room for it: what is refused waits, and is recorded.
#[test]
fn refusals_on_a_full_disk_are_recorded_when_there_is_room() {
    let Some(mut lab) = Lab::new("journal", &[]) else {
        return;
    };
    lab.init();
    lab.json(&["status"]);
    let filler = lab.fill();
    // The log has room of its own until it has to grow.
    let mut refused = 0;
    let full = until("the log has to grow", || {
        let outcome = lab.call(&["publish", "--delete", "missing"]).run();
        let code = outcome.json()["diagnostics"][0]["code"]
            .as_str()
            .unwrap()
            .to_owned();
        refused += 1;
        (code == "no-space").then_some(refused)
    });
    println!("{full} refusals until the disk was full");
    lab.check_reads();
    lab.check_other();
    fs::remove_file(filler).unwrap();
    lab.put("small", 10).unwrap();
    let entries = lab.call(&["journal"]).run().ok().json_lines();
    let recorded = entries
        .iter()
        .filter(|entry| entry["type"] == "refused")
        .count();
    assert_eq!(recorded, refused);
    lab.check_whole();
}

#[test]
fn an_import_into_a_full_disk_leaves_nothing_behind() {
    let Some(mut lab) = Lab::new("import", &[]) else {
        return;
    };
    for number in 0..6 {
        fs::write(lab.root().join(number.to_string()), noise(number, LARGE)).unwrap();
    }
    let filler = lab.fill();
    for spared in [0, 300_000, 4_000_000] {
        let length = fs::metadata(&filler).unwrap().len();
        fs::File::options()
            .write(true)
            .open(&filler)
            .unwrap()
            .set_len(length - spared)
            .unwrap();
        let refused = lab.call(&["init"]).run().refused("no-space");
        assert!(!lab.state().exists(), "{refused}");
        lab.fill();
    }
    fs::remove_file(filler).unwrap();
    // Half of the image is files, and the trees of publication 1 are the other.
    for number in 3..6 {
        fs::remove_file(lab.root().join(number.to_string())).unwrap();
    }
    let made = lab.json(&["init"]);
    assert_eq!(made["files"], 3, "{made}");
    lab.seq = 1;
    for number in 0..3 {
        lab.known.insert(number.to_string(), noise(number, LARGE));
    }
    lab.check_reads();
    lab.check_whole();
}

#[test]
fn inodes_used_up_are_no_space_and_the_collector_gives_some_back() {
    let Some(mut lab) = Lab::new("inodes", &["-N", "300"]) else {
        return;
    };
    lab.init();
    for number in 0..3 {
        lab.put(&format!("f{number}"), 100).unwrap();
    }
    let many = lab.use_up_inodes();
    assert_eq!(lab.put("one", 10).unwrap_err(), "no-space");
    lab.check_reads();
    lab.check_other();
    // Closed, without a single inode.
    lab.world.stop();
    lab.use_up_inodes();
    lab.check_reads();
    assert!(lab.collect() > 0);
    lab.check_reads();
    lab.check_whole();
    fs::remove_dir_all(many).unwrap();
    lab.check_goes_on();
}

#[test]
fn a_file_system_that_turns_read_only_is_named_and_read() {
    let Some(mut lab) = Lab::new("readonly", &[]) else {
        return;
    };
    lab.init();
    lab.put("large", LARGE).unwrap();
    // A connection that is there already goes on with the daemon; clients that come look at the disk.
    let root = lab.root();
    let mut wire = Wire::connect(&lab.world.socket()).unwrap();
    wire.hello(Some(&root));
    // What an error of the disk does to ext4.
    lab.mounted.as_ref().unwrap().abort().unwrap();
    until_true("it is read-only", || {
        fs::write(root.join("x"), "x").is_err()
    });
    let refused = wire
        .call("undo", &json!({"attribution": {}, "options": {}}))
        .unwrap_err();
    let code = refused["diagnostics"][0]["code"].as_str();
    assert!(matches!(code, Some("read-only" | "io")), "{refused}");
    lab.check_reads();
    lab.check_other();
    lab.world.stop();
    lab.check_reads();
    let (image, place) = (lab.image.clone(), lab.place.directory().join("again"));
    lab.mounted = None;
    lab.mounted = Some(image.mount(&lab.place, &place).unwrap());
    lab.check_reads();
    lab.put("small", 10).unwrap();
    lab.check_reads();
    lab.check_whole();
}
