//! Stage 4: may it be published, here and now?
//!
//! Owns: `Verdicts`, the one `Turn` of the writer, and `Approved`, which holds the turn: two
//! approvals at once do not compile. Gate commands run on `Verified`, without the writer.
//!
//! Keeps invariants 6 and 12: holding any of these values publishes nothing by itself.

use semaprax_protocol::documents::{GateOutcome, Receipt};
use semaprax_protocol::{Code, Diagnostic, Refusal};

use super::ledger::{Ledger, Tip};
use super::verify::Verified;
use crate::store::StoreResult;
use crate::store::objects::FreshBlobs;

/// What the gates said of a candidate. No workspace declares gates yet, so the list is empty.
#[derive(Debug, Default)]
pub struct Verdicts {
    outcomes: Vec<GateOutcome>,
}

impl Verdicts {
    /// One line per gate.
    pub fn into_outcomes(self) -> Vec<GateOutcome> {
        self.outcomes
    }
}

/// Runs the gates that apply to `verified`.
pub fn run(_verified: &Verified) -> Verdicts {
    Verdicts::default()
}

/// The writer's turn: the one right to change what is ACTIVE, used up by one flip. What is decided in it
/// is in one open transaction; dropped without a flip, all of it is void.
#[derive(Debug)]
#[must_use]
pub struct Turn<'writer> {
    pub(super) ledger: &'writer mut Ledger,
    /// What is ACTIVE until the flip; the ledger's tip is what was decided last.
    pub(super) active: Box<Tip>,
    /// Whether what was decided last is ACTIVE.
    pub(super) is_flipped: bool,
    /// The receipts of what was decided, in order.
    pub(super) decided: Vec<Receipt>,
    /// The contents of all of it.
    pub(super) fresh: FreshBlobs,
}

impl<'writer> Turn<'writer> {
    /// Takes the turn.
    pub fn begin(ledger: &'writer mut Ledger) -> StoreResult<Self> {
        ledger.store.database.begin_turn()?;
        Ok(Self {
            active: Box::new(ledger.tip.clone()),
            is_flipped: false,
            ledger,
            decided: Vec::new(),
            fresh: FreshBlobs::default(),
        })
    }

    /// The ledger as the turn has made it so far: the next candidate is built on its tip.
    pub fn ledger(&mut self) -> &mut Ledger {
        self.ledger
    }

    /// How many publications were decided.
    pub fn count(&self) -> usize {
        self.decided.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.decided.is_empty()
    }

    /// Whether what was decided can still be made durable: the transaction stands, and the disk is
    /// trusted.
    pub fn is_sound(&self) -> bool {
        self.ledger.store.database.check_turn().is_ok() && self.ledger.check_collectable().is_ok()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.ledger.store.database.roll_turn_back();
        if !self.is_flipped {
            self.ledger.tip = Tip::clone(&self.active);
        }
    }
}

/// A verified candidate on the tip, with the writer's turn.
#[derive(Debug)]
#[must_use]
pub struct Approved<'writer> {
    pub(super) turn: Turn<'writer>,
    pub(super) verified: Verified,
    pub(super) verdicts: Verdicts,
}

/// Why a candidate was not approved; the candidate comes back.
#[derive(Debug)]
pub enum NotApproved {
    /// The tip moved since it was built: it may be built again.
    Stale(Box<Verified>),
}

/// Approves `verified` in this turn, which comes back when it does not.
pub fn approve(
    turn: Turn<'_>,
    verified: Verified,
    verdicts: Verdicts,
) -> Result<Approved<'_>, (Turn<'_>, NotApproved)> {
    if verified.candidate.tip != turn.ledger.tip.stored.digest {
        return Err((turn, NotApproved::Stale(Box::new(verified))));
    }
    Ok(Approved {
        turn,
        verified,
        verdicts,
    })
}

/// The refusal of a candidate whose tip moved.
pub fn moved_tip() -> Refusal {
    Diagnostic::new(
        Code::StaleBase,
        "ACTIVE moved while the candidate was built",
    )
    .into()
}
