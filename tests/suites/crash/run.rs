//! Running cases: a golden run of a script, then everything that can go wrong in it.
//!
//! Owns: `Golden` (a script played once, with a point before each change), the cases of crashes, and
//! the threads that try them. A failure names script, point, cut and seed.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use semaprax_daemon::store::trash;
use semaprax_daemon::world::{EntryType, World};
use semaprax_tests::sim::model::Model;
use semaprax_tests::sim::{Cut, Image, Mutation, Point, Sim, Wreck};

use crate::known::{Fate, Known};
use crate::oracle::{Verdict, check_tip, judge, restart};
use crate::script::{Player, Script, write_source};

/// A script played once, without trouble.
pub struct Golden {
    /// The script.
    pub script: Script,
    /// The moments before each change.
    pub points: Vec<Point>,
    /// What was known at them, by their note.
    pub notes: Vec<Known>,
    /// For each step: the machine, what was known, and whether a daemon ran.
    pub starts: Vec<(Image, Known, bool)>,
    /// The syncs asked for.
    pub syncs: Vec<String>,
}

/// A directory that is removed at the end, sealed trees included.
pub struct Scratch {
    directory: tempfile::TempDir,
}

impl Scratch {
    /// A new one, in memory where that is possible.
    pub fn new() -> Self {
        let memory = std::path::Path::new("/dev/shm");
        let directory = if memory.is_dir() {
            tempfile::Builder::new()
                .prefix("semaprax-crash-")
                .tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        Self {
            directory: directory.unwrap(),
        }
    }

    /// An empty directory in it, with the files to be imported.
    pub fn root(&self, name: &str, script: &Script) -> Utf8PathBuf {
        let base = Utf8Path::from_path(self.directory.path()).unwrap();
        let root = base.canonicalize_utf8().unwrap().join(name);
        std::fs::create_dir(&root).unwrap();
        write_source(&root, &script.source);
        root
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let place = Utf8Path::from_path(self.directory.path()).unwrap();
        let names: Vec<_> = place.read_dir_utf8().unwrap().flatten().collect();
        for name in names {
            drop(trash::remove(
                &World::real(),
                name.path(),
                EntryType::Directory,
            ));
        }
    }
}

/// Plays a script without trouble.
pub fn golden(script: &Script, mutation: Option<Mutation>) -> Golden {
    let scratch = Scratch::new();
    let root = scratch.root("golden", script);
    let sim = Sim::new(&root, Model::default(), script.times);
    sim.mutate(mutation);
    sim.record();
    let mut player = Player::new(sim.clone(), Known::default(), &script.config);
    let mut starts = Vec::new();
    for step in &script.steps {
        starts.push((sim.image(), player.known.clone(), player.open.is_some()));
        let outcome = player.play(step, &script.source);
        assert!(
            matches!(outcome, Ok(Ok(()))),
            "{}: {step:?}: {outcome:?}",
            script.name
        );
    }
    player.notes.push(player.known.clone());
    let mut points = sim.points();
    points.push(Point {
        operation: sim.operations(),
        what: "the end".to_owned(),
        note: player.notes.len() - 1,
        is_torn: false,
        image: sim.image(),
    });
    Golden {
        script: script.clone(),
        points,
        notes: player.notes,
        starts,
        syncs: sim.syncs(),
    }
}

/// Tries a case; answers how the restart went.
pub type Attempt<'run> = Box<dyn Fn(&Scratch) -> Verdict<Vec<String>> + Send + Sync + 'run>;

/// One thing to try: its name, and how.
pub struct Case<'run> {
    /// Says everything that is needed to try it again.
    pub name: String,
    /// What a crash left, what was known then, and what may still be lost; for the cases of crashes.
    pub wreck: Option<(Wreck, &'run Known, Blackouts)>,
    /// Tries it.
    pub run: Attempt<'run>,
}

/// A case that failed.
pub struct Failure {
    /// Which.
    pub case: String,
    /// The broken promise.
    pub fault: String,
}

/// Cuts that a point is tried with. More seeds on request.
fn cuts(point: &Point, index: usize, seeds: u64) -> Vec<Cut> {
    if point.is_torn {
        return vec![Cut::Kill];
    }
    let ordered = |seed: u64| Cut::Ordered(seed << 32 | index as u64);
    let random = |seed: u64| Cut::Random(seed << 32 | index as u64);
    let mut cuts = vec![Cut::Kill, Cut::Lost, random(0)];
    if seeds > 1 {
        cuts.extend([Cut::Names, Cut::Kept, ordered(0)]);
    } else {
        // In turn: what one point leaves, the next one leaves, too, for the most part.
        cuts.push([Cut::Names, Cut::Kept, ordered(0)][index % 3]);
    }
    cuts.extend((1..seeds).flat_map(|seed| [ordered(seed), random(seed)]));
    cuts
}

/// Every crash of a script: each point with each cut, those left out that leave what another left.
pub fn crashes<'run>(
    golden: &'run Golden,
    seeds: u64,
    mutation: Option<&Mutation>,
) -> Vec<Case<'run>> {
    let mut seen = BTreeSet::new();
    let mut cases = Vec::new();
    for (index, point) in golden.points.iter().enumerate() {
        // The first two notes are those of `init`.
        if point.note < 2 && !golden.script.tries_init {
            continue;
        }
        for cut in cuts(point, index, seeds) {
            let wreck = point.image.crash(cut);
            if !seen.insert((point.note, wreck.digest())) {
                continue;
            }
            let name = format!("{}/{index}/{cut:?} ({})", golden.script.name, point.what);
            let mutation = mutation.cloned();
            let known = &golden.notes[point.note];
            let blackouts = if cut == Cut::Kill {
                Blackouts::AtStartAndEnd
            } else {
                Blackouts::None
            };
            let kept = (wreck.clone(), known, blackouts);
            let run = move |scratch: &Scratch| {
                let sim = wreck.start(&scratch.root("a", &golden.script));
                sim.mutate(mutation.clone());
                survive(sim, known.clone(), blackouts, &golden.script, scratch)
            };
            cases.push(Case {
                name,
                wreck: Some(kept),
                run: Box::new(run),
            });
        }
    }
    cases
}

/// When the power goes while a case is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blackouts {
    /// Never: all that is there was made durable by a power cut.
    None,
    /// At the end.
    AtEnd,
    /// Just after the start, and at the end.
    AtStartAndEnd,
}

/// Starts on what a crash left, and asks the oracle; when what is not durable may still be lost
/// the power goes afterwards, too: just after the start, and at the end.
pub fn survive(
    sim: Sim,
    known: Known,
    blackouts: Blackouts,
    script: &Script,
    scratch: &Scratch,
) -> Verdict<Vec<String>> {
    let mut player = Player::new(sim, known, &script.config);
    player.sim.begin("open", 0);
    player.sim.take_trace();
    restart(&mut player)?;
    let way = way(player.sim.take_trace());
    check_tip(&mut player)?;
    if blackouts == Blackouts::AtStartAndEnd {
        let mut known = player.known.clone();
        // What the start did not show can never come.
        if let Some((_, fate)) = &mut known.pending {
            *fate = Fate::Refused;
        }
        let root = scratch.root("b", script);
        blackout(&player.sim.image(), Cut::Lost, &known, script, &root)
            .map_err(|fault| format!("after the restart, Lost: {fault}"))?;
    }
    player.sim.begin("publish", 0);
    judge(&mut player)?;
    let (_, writer) = player.open.take().unwrap();
    writer.close();
    if blackouts != Blackouts::None {
        let root = scratch.root("d", script);
        blackout(&player.sim.image(), Cut::Lost, &player.known, script, &root)
            .map_err(|fault| format!("after going on, Lost: {fault}"))?;
    }
    Ok(way)
}

/// What tells one way to recover from another: the kinds of operations. Making a workspace anew is
/// none of them.
fn way(trace: Vec<String>) -> Vec<String> {
    let kinds: BTreeSet<String> = trace.into_iter().collect();
    if kinds.contains("create .gitignore") {
        return Vec::new();
    }
    kinds.into_iter().collect()
}

/// The power goes; nothing that was acknowledged may go with it.
pub fn blackout(
    image: &Image,
    cut: Cut,
    known: &Known,
    script: &Script,
    root: &Utf8Path,
) -> Verdict {
    let sim = image.crash(cut).start(root);
    let mut player = Player::new(sim, known.clone(), &script.config);
    restart(&mut player)?;
    check_tip(&mut player)?;
    crate::oracle::check_leases(&mut player)?;
    crate::oracle::check_verify(&mut player)
}

fn number(variable: &str, default: usize) -> usize {
    let text = std::env::var(variable).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// How many seeds each point is tried with.
pub fn seeds() -> u64 {
    number("SEMAPRAX_CRASH_SEEDS", 1) as u64
}

/// How many troubles in recovery are tried for each script.
pub fn recoveries() -> usize {
    number("SEMAPRAX_CRASH_RECOVERIES", 60)
}

/// Tries the cases, on as many threads as there are processors; answers the failures. Only those that
/// `SEMAPRAX_CRASH_CASE` begins the name of, when it is set. Stops early after `enough` failures.
/// Answers also, for each way that a restart took, the first case that took it.
pub fn try_all(cases: &[Case<'_>], enough: usize) -> (Vec<Failure>, Vec<usize>) {
    let only = std::env::var("SEMAPRAX_CRASH_CASE").ok();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let ways: Mutex<BTreeMap<Vec<String>, usize>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { break };
                    let is_wanted = only.as_ref().is_none_or(|only| case.name.starts_with(only));
                    if !is_wanted || failures.lock().unwrap().len() >= enough {
                        continue;
                    }
                    match try_one(case) {
                        Ok(way) => {
                            let mut ways = ways.lock().unwrap();
                            let first = ways.entry(way).or_insert(index);
                            *first = index.min(*first);
                        }
                        Err(fault) => {
                            let case = case.name.clone();
                            failures.lock().unwrap().push(Failure { case, fault });
                        }
                    }
                }
            });
        }
    });
    let mut ways = ways.into_inner().unwrap();
    ways.remove(&Vec::new());
    let firsts = ways.into_values().collect();
    (failures.into_inner().unwrap(), firsts)
}

fn try_one(case: &Case<'_>) -> Verdict<Vec<String>> {
    let scratch = Scratch::new();
    in_order(|| {
        catch_unwind(AssertUnwindSafe(|| (case.run)(&scratch)))
            .unwrap_or_else(|panic| Err(format!("panic: {:?}", panic.downcast_ref::<String>())))
    })
}

/// Runs `work` where parallel iterators go one by one, so that operations have an order.
pub fn in_order<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    pool.build().unwrap().install(work)
}
