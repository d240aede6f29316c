//! From a submission to a publication, stage by stage.
//!
//! ```text
//! Proposal -> Candidate -> Verified -> Approved -> (decided in the turn) -> Published
//!  admit       build        verify      gate        flip                     flip       notify
//! ```
//!
//! Owns: the order of the stages, and which submissions share a turn: publications, as long as each can
//! be judged on what the one before it made. Everything else is decided only about what is ACTIVE. Each
//! stage's value can be made only in its own module, holds private fields, and is consumed by the next:
//! leaving one out, or doing one twice, does not compile.
//! Never: sockets, the queue, or which client asks.
//!
//! Keeps invariants 1, 2, 3, 6, 8, 10 and 11.

pub mod admit;
pub mod build;
pub mod evaluate;
pub mod flip;
pub mod gate;
pub mod integrate;
pub mod ledger;
pub mod notify;
pub mod plan;
pub mod verify;

use semaprax_protocol::Refusal;
use semaprax_protocol::documents::Receipt;

pub use admit::Proposal;
pub use ledger::Ledger;

use build::Candidate;
use gate::{Turn, Verdicts};
use verify::Verified;

/// What a request comes to when it is its turn.
#[derive(Debug)]
pub enum Asked {
    /// It was decided before.
    Replayed(Box<Receipt>),
    /// This is proposed.
    New(Box<Proposal>),
}

/// A request that waits for the turn. It may be asked twice, each time on another tip.
pub type Ask<'ask> = dyn Fn(&Ledger) -> Result<Asked, Refusal> + 'ask;

/// What became of a submission.
pub type Decision = Result<Receipt, Refusal>;

/// What a submission comes to that is not to be published.
enum Other {
    Replayed(Box<Receipt>),
    Unchanged(Box<Candidate>),
    Ready(Box<Verified>, Verdicts),
    Refused(Refusal),
    /// It is only to be decided about what is ACTIVE.
    Later,
}

/// Takes one turn of the writer: the whole flow, for the first of `asks` and for as many after it as are
/// publications too. They become durable in one transaction, and visible by one flip to the last of them.
/// What is refused on the way changed nothing.
pub fn take_turn(ledger: &mut Ledger, asks: &[&Ask<'_>]) -> Vec<Decision> {
    if let Err(refusal) = ledger.check_writable() {
        return vec![Err(refusal)];
    }
    let mut turn = match Turn::begin(ledger) {
        Ok(turn) => turn,
        Err(error) => return vec![Err(error.into())],
    };
    let mut stopped = None;
    for ask in asks {
        match decide(turn, ask) {
            Ok(next) => turn = next,
            Err((back, other)) => {
                turn = back;
                stopped = Some(other);
                break;
            }
        }
    }
    let (count, is_sound) = (turn.count(), turn.is_sound());
    match stopped {
        Some(other) if count == 0 => {
            drop(turn);
            return vec![settle(ledger, other)];
        }
        Some(Other::Refused(refusal)) if !is_sound => {
            // Nothing of this turn can be made durable.
            drop(turn);
            return vec![Err(refusal); count + 1];
        }
        // Its turn comes when what was decided is ACTIVE.
        Some(_) | None => {}
    }
    match flip::flip(turn) {
        Ok(published) => published
            .into_iter()
            .map(|one| Ok(notify::published(one)))
            .collect(),
        Err(failure) => vec![Err(ledger.after_failed_flip(failure)); count],
    }
}

/// Publishes one proposal.
pub fn publish(ledger: &mut Ledger, proposal: Proposal) -> Decision {
    let proposal = std::cell::RefCell::new(Some(Box::new(proposal)));
    let ask = |_: &Ledger| match proposal.borrow_mut().take() {
        Some(proposal) => Ok(Asked::New(proposal)),
        None => Err(gate::moved_tip()),
    };
    let mut decisions = take_turn(ledger, &[&ask]);
    decisions.pop().unwrap_or_else(|| Err(gate::moved_tip()))
}

/// Decides one more publication in the turn, on the tip as the turn has made it so far.
fn decide<'writer>(
    mut turn: Turn<'writer>,
    ask: &Ask<'_>,
) -> Result<Turn<'writer>, (Turn<'writer>, Other)> {
    let verified = match examine(&mut turn, ask) {
        Ok(verified) => verified,
        Err(other) => return Err((turn, other)),
    };
    let verdicts = gate::run(&verified);
    if verified.is_dry_run() {
        return Err((turn, Other::Ready(Box::new(verified), verdicts)));
    }
    match gate::approve(turn, verified, verdicts) {
        Ok(approved) => flip::decide(approved).map_err(|(mut turn, error)| {
            turn.ledger().distrust(&error);
            (turn, Other::Refused((*error).into()))
        }),
        // It was built in this turn: the tip cannot have moved since.
        Err((mut turn, gate::NotApproved::Stale(verified))) => {
            verified.discard(turn.ledger());
            Err((turn, Other::Refused(gate::moved_tip())))
        }
    }
}

fn examine(turn: &mut Turn<'_>, ask: &Ask<'_>) -> Result<Verified, Other> {
    let is_empty = turn.is_empty();
    let ledger = turn.ledger();
    let proposal = match ask(ledger).map_err(Other::Refused)? {
        Asked::Replayed(receipt) => return Err(Other::Replayed(receipt)),
        Asked::New(proposal) => *proposal,
    };
    if let Some(binding) = proposal.binding()
        && let Some(receipt) = ledger.replay(binding).map_err(Other::Refused)?
    {
        return Err(Other::Replayed(Box::new(receipt)));
    }
    if proposal.is_dry_run() && !is_empty {
        return Err(Other::Later);
    }
    let candidate = build::build(ledger, proposal).map_err(Other::Refused)?;
    if candidate.is_unchanged(ledger) {
        return Err(Other::Unchanged(Box::new(candidate)));
    }
    verify::verify(ledger, candidate).map_err(Other::Refused)
}

/// The decision about the first of a turn, when nothing is published.
fn settle(ledger: &mut Ledger, other: Other) -> Decision {
    match other {
        Other::Replayed(receipt) => Ok(*receipt),
        Other::Unchanged(candidate) => notify::unchanged(ledger, &candidate),
        Other::Ready(verified, verdicts) => notify::ready(ledger, *verified, verdicts),
        Other::Refused(refusal) => Err(refusal),
        Other::Later => Err(gate::moved_tip()),
    }
}
