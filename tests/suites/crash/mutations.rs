//! Leaving out each sync in turn: the suite must notice each one that matters.
//!
//! Owns: the table of syncs, each with the crash that shows what it is for. A sync that is not in it
//! fails the suite, and so does one that is not missed.

use semaprax_tests::sim::Mutation;

use crate::run::{Golden, crashes, golden, in_order, try_all};
use crate::script::Script;

/// Why a sync is there.
enum Why {
    /// Without it crashes of this name lose something that was promised.
    Missed(&'static str),
    /// The simulated disk cannot show it.
    Explained,
}

use Why::{Explained, Missed};

const SYNCS: [(&str, Why); 15] = [
    ("init sync_directory objects", Missed("/Lost")),
    ("init sync_file staging/object", Missed("/Lost")),
    ("init sync_directory objects/*", Missed("/Lost")),
    ("init sync_file ACTIVE.next", Missed("/Lost")),
    // Else the name of the database may last and that of ACTIVE not.
    ("init sync_directory state after ACTIVE", Missed("/Random")),
    // The model takes a database as durable; SQLite has synced it at the checkpoint. `init` does it
    // again rather than rely on that where the name is about to say that all is there.
    ("init sync_file staging/store.db", Explained),
    ("init sync_directory root", Missed("/Lost")),
    ("init sync_directory state after store.db", Missed("/Lost")),
    ("open sync_file ACTIVE.next", Missed("/Lost")),
    // A kill between the rename and the sync, a start that answers, a power cut.
    (
        "open sync_directory state after ACTIVE",
        Missed("/Kill (sync_directory state)"),
    ),
    ("publish sync_directory objects", Missed("/Lost")),
    ("publish sync_file staging/object", Missed("/Lost")),
    ("publish sync_directory objects/*", Missed("/Lost")),
    ("publish sync_file ACTIVE.next", Missed("/Lost")),
    ("publish sync_directory state after ACTIVE", Missed("/Lost")),
];

/// The syncs of a script that are not in the table, in words.
pub fn unknown(golden: &Golden) -> Vec<String> {
    let is_unknown = |sync: &&String| !SYNCS.iter().any(|(name, _)| name == sync);
    golden.syncs.iter().filter(is_unknown).cloned().collect()
}

/// The syncs of the table that matter and are not missed, in words.
pub fn not_missed(script: &Script) -> Vec<String> {
    let mut found = Vec::new();
    for (sync, why) in &SYNCS {
        let Missed(cut) = why else { continue };
        let mutation = Some(Mutation((*sync).to_owned()));
        let golden = in_order(|| golden(script, mutation.clone()));
        let mut cases = crashes(&golden, 1, mutation.as_ref());
        cases.retain(|case| case.name.contains(cut));
        // The later a crash, the more there is to lose.
        cases.reverse();
        match try_all(&cases, 1).0.first() {
            Some(failure) => println!("without {sync}: {}: {}", failure.case, failure.fault),
            None => found.push(format!("{sync} (of {} cases)", cases.len())),
        }
    }
    found
}
