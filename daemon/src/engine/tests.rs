//! Scripts of inputs and what must come out, and the promises under random input.

use super::*;
use proptest::prelude::*;
use semaprax_protocol::request::{Resolved, Response};
use semaprax_protocol::{Revision, Seq};

const SECOND: Duration = Duration::from_secs(1);

fn submission(number: u64) -> SubmissionId {
    format!("00000000-0000-7000-8000-{number:012}")
        .parse()
        .unwrap()
}

fn caller(connection: u64, request: u64) -> Caller {
    Caller {
        connection: ConnectionId::new(connection),
        request,
    }
}

fn binding(number: u8) -> Binding {
    Binding::from_bytes([number; 32])
}

fn arrival(connection: u64, request: u64) -> Arrival<u64> {
    Arrival {
        caller: caller(connection, request),
        submission: submission(request),
        binding: Some(binding(0)),
        author: String::new(),
        bytes: 1,
        deadline: None,
        detach: false,
        work: request,
    }
}

fn submit(arrival: Arrival<u64>) -> Input<u64> {
    Input::Submit(Box::new(arrival))
}

fn done(ticket: u64) -> Input<u64> {
    let revision = Revision::from_bytes([0; 32]);
    let answer = Response::Resolve(Resolved {
        seq: Seq::FIRST,
        revision,
    });
    Input::Finished(Ticket::new(ticket), Box::new(Ok(answer)), None)
}

/// One word per effect: `run W`, `ok C/R`, `CODE C/R`, `place C/R N`, `record W`, ...
fn words(effects: Vec<Effect<u64>>) -> String {
    let who = |caller: Caller| format!("{}/{}", caller.connection.get(), caller.request);
    let word = |effect| match effect {
        Effect::Run(_, work) => format!("run {work}"),
        Effect::Answer(caller, outcome) => match *outcome {
            Ok(_) => format!("ok {}", who(caller)),
            Err(refusal) => format!("{} {}", refusal.code(), who(caller)),
        },
        Effect::Queued(caller, _, place) => format!("place {} {place}", who(caller)),
        Effect::Record(unrecorded) => format!("record {}", unrecorded.work),
        Effect::Publish => "publish".to_owned(),
        Effect::Drained => "drained".to_owned(),
    };
    effects.into_iter().map(word).collect::<Vec<_>>().join(", ")
}

fn engine(queue: u64) -> Engine<u64> {
    Engine::new(Bounds {
        queue,
        queue_bytes: 100,
        batch: 1,
    })
}

/// Plays a script: at each second one input, and what must come out.
fn check(queue: u64, script: Vec<(Input<u64>, &str)>) {
    let mut engine = engine(queue);
    for (step, (input, expected)) in script.into_iter().enumerate() {
        let shown = format!("step {step}: {input:?}");
        let now = SECOND * u32::try_from(step).unwrap();
        assert_eq!(words(engine.handle(now, input)), expected, "{shown}");
    }
}

#[test]
fn connections_take_turns() {
    check(
        9,
        vec![
            (submit(arrival(1, 1)), "run 1"),
            (submit(arrival(1, 2)), "place 1/2 1"),
            (submit(arrival(1, 3)), "place 1/3 2"),
            (submit(arrival(2, 4)), "place 2/4 2, place 1/3 3"),
            (done(1), "ok 1/1, run 2, place 2/4 1, place 1/3 2"),
            (done(2), "ok 1/2, run 4, place 1/3 1"),
            (done(4), "ok 2/4, run 3"),
            (done(3), "ok 1/3"),
        ],
    );
}

#[test]
fn what_is_set_aside_keeps_nobody_waiting() {
    let aside = |ticket| Input::Aside(Ticket::new(ticket));
    let upkeep = |work| Input::Request(caller(1, work), Lane::Upkeep, work);
    check(
        9,
        vec![
            (upkeep(1), "run 1"),
            (submit(arrival(2, 2)), "place 2/2 1"),
            (aside(1), "run 2"),
            (done(1), "ok 1/1"),
            (done(1), ""),
            (done(2), "ok 2/2"),
            (upkeep(3), "run 3"),
            (Input::ShutDown, ""),
            (aside(3), "drained"),
            (done(3), "ok 1/3"),
        ],
    );
}

#[test]
fn a_full_queue_refuses_and_records() {
    let big = Arrival {
        bytes: 101,
        ..arrival(3, 9)
    };
    check(
        1,
        vec![
            (submit(arrival(1, 1)), "run 1"),
            (submit(arrival(1, 2)), "place 1/2 1"),
            (submit(arrival(2, 3)), "queue-full 2/3, record 3"),
            // As much is to be recorded as may wait: the answer waits for the record.
            (submit(arrival(2, 4)), "record 4"),
            (
                Input::Recorded(1, vec![caller(2, 4)], Box::new(refusals::shutting_down())),
                "shutting-down 2/4",
            ),
            (done(1), "ok 1/1, run 2"),
            (submit(big), "record 9"),
        ],
    );
}

#[test]
fn who_fills_the_queue_makes_room_for_others() {
    let detached = Arrival {
        detach: true,
        ..arrival(1, 5)
    };
    let big = Arrival {
        bytes: 99,
        ..arrival(4, 9)
    };
    check(
        3,
        vec![
            (submit(arrival(1, 1)), "run 1"),
            (submit(arrival(1, 2)), "place 1/2 1"),
            (submit(arrival(1, 3)), "place 1/3 2"),
            (submit(arrival(1, 4)), "place 1/4 3"),
            (submit(arrival(1, 6)), "queue-full 1/6, record 6"),
            // The newest of the flood goes, and the newcomer is second.
            (
                submit(arrival(2, 7)),
                "queue-full 1/4, record 4, place 2/7 2, place 1/3 3",
            ),
            // Two, one, and nothing: nobody has far more than a third.
            (
                submit(arrival(3, 8)),
                "queue-full 1/3, record 3, place 3/8 3",
            ),
            (submit(arrival(4, 10)), "record 10"),
            (submit(big), "record 9"),
            (
                Input::Disconnected(ConnectionId::new(2)),
                "record 7, place 3/8 2",
            ),
            // What is to stay without its client stays.
            (submit(detached), "place 1/5 3"),
            (submit(arrival(4, 11)), "record 11"),
        ],
    );
}

#[test]
fn deadlines_and_cancellation() {
    let late = Arrival {
        deadline: Some(SECOND * 2),
        ..arrival(1, 2)
    };
    check(
        9,
        vec![
            (submit(arrival(1, 1)), "run 1"),
            (submit(late), "place 1/2 1"),
            (submit(arrival(2, 3)), "place 2/3 2"),
            (Input::Tick, "deadline-passed 1/2, record 2, place 2/3 1"),
            (
                Input::Cancel(caller(3, 7), submission(3)),
                "ok 3/7, cancelled 2/3, record 3",
            ),
            (Input::Cancel(caller(3, 7), submission(3)), "not-found 3/7"),
            (Input::Cancel(caller(3, 7), submission(1)), "not-found 3/7"),
            (done(1), "ok 1/1"),
        ],
    );
}

#[test]
fn who_leaves_takes_back_what_was_not_detached() {
    check(
        9,
        vec![
            (submit(arrival(1, 1)), "run 1"),
            (submit(arrival(1, 2)), "place 1/2 1"),
            (
                submit(Arrival {
                    detach: true,
                    ..arrival(1, 3)
                }),
                "place 1/3 2",
            ),
            (Input::Request(caller(1, 4), Lane::Upkeep, 4), ""),
            (Input::Disconnected(ConnectionId::new(1)), "record 2"),
            (done(1), "run 3"),
            (done(3), ""),
        ],
    );
}

#[test]
fn a_repetition_joins_and_other_content_is_refused() {
    let again = |connection| Arrival {
        caller: caller(connection, 8),
        ..arrival(1, 2)
    };
    let other = Arrival {
        binding: Some(binding(1)),
        ..again(4)
    };
    let dry = Arrival {
        binding: None,
        work: 5,
        ..again(5)
    };
    check(
        9,
        vec![
            (submit(arrival(1, 1)), "run 1"),
            (submit(arrival(1, 2)), "place 1/2 1"),
            (submit(again(2)), "place 2/8 1"),
            (submit(other), "invalid-submission 4/8, record 2"),
            (submit(dry), "place 5/8 2"),
            (Input::Disconnected(ConnectionId::new(1)), ""),
            (done(1), "run 2, place 5/8 1"),
            (submit(again(3)), ""),
            (done(2), "ok 2/8, ok 3/8, run 5"),
        ],
    );
}

#[test]
fn trees_come_first_and_upkeep_takes_turns() {
    check(
        9,
        vec![
            (submit(arrival(1, 1)), "run 1"),
            (submit(arrival(1, 2)), "place 1/2 1"),
            (Input::Request(caller(2, 3), Lane::Upkeep, 3), ""),
            (Input::Request(caller(2, 4), Lane::Upkeep, 4), ""),
            (Input::Request(caller(3, 5), Lane::Tree, 5), ""),
            (done(1), "ok 1/1, run 5"),
            (done(5), "ok 3/5, run 3"),
            (done(3), "ok 2/3, run 2"),
            (done(2), "ok 1/2, run 4"),
        ],
    );
}

#[test]
fn shutdown_finishes_what_runs() {
    check(
        9,
        vec![
            (submit(arrival(1, 1)), "run 1"),
            (submit(arrival(1, 2)), "place 1/2 1"),
            (Input::ShutDown, "shutting-down 1/2, record 2"),
            (submit(arrival(1, 3)), "shutting-down 1/3, record 3"),
            (
                Input::Request(caller(2, 4), Lane::Upkeep, 4),
                "shutting-down 2/4",
            ),
            (done(1), "ok 1/1, drained"),
        ],
    );
    check(9, vec![(Input::ShutDown, "drained")]);
}

#[derive(Debug, Clone)]
enum Step {
    Submit {
        connection: u64,
        id: u64,
        deadline: Option<u32>,
        detach: bool,
        dry: bool,
    },
    Cancel(u64),
    Leave(u64),
    Done,
    Record,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let submit = (
        0..4u64,
        0..12u64,
        prop::option::of(0..5u32),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(connection, id, deadline, detach, dry)| Step::Submit {
            connection,
            id,
            deadline,
            detach,
            dry,
        });
    prop::collection::vec(
        prop_oneof![
            6 => submit,
            1 => (0..12u64).prop_map(Step::Cancel),
            1 => (0..4u64).prop_map(Step::Leave),
            4 => Just(Step::Done),
            2 => Just(Step::Record),
        ],
        0..60,
    )
}

/// What a run of random steps is judged by.
#[derive(Default)]
struct Judge {
    /// Callers that are owed an outcome.
    owed: BTreeSet<Caller>,
    answered: BTreeSet<Caller>,
    /// Connections by the step since when they wait without a break, and when last served.
    waiting_since: BTreeMap<u64, usize>,
    served: BTreeMap<u64, usize>,
    running: Vec<Ticket>,
    unrecorded: Vec<(u64, Vec<Caller>, Refusal)>,
}

impl Judge {
    fn take(&mut self, step: usize, effects: Vec<Effect<u64>>, owners: &BTreeMap<u64, u64>) {
        for effect in effects {
            match effect {
                Effect::Run(ticket, work) => {
                    assert!(self.running.is_empty(), "one at a time");
                    self.running.push(ticket);
                    let owner = owners[&work];
                    if let Some(&last) = self.served.get(&owner) {
                        for (other, &since) in &self.waiting_since {
                            let between = self.served.get(other).is_some_and(|&at| at > last);
                            assert!(
                                *other == owner || since > last || between,
                                "{owner} served twice while {other} waits"
                            );
                        }
                    }
                    self.served.insert(owner, step);
                }
                Effect::Answer(caller, _) => {
                    self.owed.remove(&caller);
                    assert!(self.answered.insert(caller), "{caller:?} answered twice");
                }
                Effect::Record(one) => {
                    self.unrecorded
                        .push((one.bytes, one.held.clone(), one.refusal.clone()));
                }
                Effect::Queued(caller, _, place) => {
                    assert!(self.owed.contains(&caller) && place >= 1);
                }
                Effect::Publish | Effect::Drained => {}
            }
        }
    }
}

proptest! {
    #[test]
    fn every_submission_gets_exactly_one_outcome(script in steps(), bound in 0..4u64) {
        let mut engine = engine(bound);
        let mut judge = Judge::default();
        let mut owners = BTreeMap::new();
        let rest = std::iter::repeat_n([Step::Done, Step::Record], 200).flatten();
        for (at, step) in script.into_iter().chain(rest).enumerate() {
            let now = SECOND * u32::try_from(at).unwrap();
            let work = at as u64;
            let input = match step {
                Step::Submit { connection, id, deadline, detach, dry } => {
                    owners.insert(work, connection);
                    judge.owed.insert(caller(connection, work));
                    submit(Arrival {
                        caller: caller(connection, work),
                        submission: submission(id),
                        binding: (!dry).then(|| binding(0)),
                        deadline: deadline.map(|seconds| SECOND * seconds),
                        detach,
                        work,
                        ..arrival(connection, 0)
                    })
                }
                Step::Cancel(id) => Input::Cancel(caller(99, 5000 + work), submission(id)),
                Step::Leave(connection) => {
                    judge.owed.retain(|caller| caller.connection.get() != connection);
                    Input::Disconnected(ConnectionId::new(connection))
                }
                Step::Done => match judge.running.pop() {
                    Some(ticket) => done(ticket.get()),
                    None => Input::Tick,
                },
                Step::Record => match judge.unrecorded.pop() {
                    Some((bytes, held, refusal)) => Input::Recorded(bytes, held, Box::new(refusal)),
                    None => Input::Tick,
                },
            };
            let effects = engine.handle(now, input);
            judge.take(at, effects, &owners);
            prop_assert!(engine.counts().waiting <= bound, "more wait than may");
            let waiting: BTreeSet<u64> =
                engine.waiting.keys().map(|ticket| engine.entries[ticket].owner.get()).collect();
            judge.waiting_since.retain(|connection, _| waiting.contains(connection));
            for connection in waiting {
                judge.waiting_since.entry(connection).or_insert(at);
            }
        }
        prop_assert!(judge.owed.is_empty(), "no outcome for {:?}", judge.owed);
        prop_assert!(engine.is_idle());
        prop_assert!(engine.bound.is_empty() && engine.deadlines.is_empty());
        prop_assert_eq!((engine.queued_bytes, engine.unrecorded_bytes), (0, 0));
    }
}
