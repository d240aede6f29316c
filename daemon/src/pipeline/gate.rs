//! Stage 4: may it be published, here and now?
//!
//! Owns: `Verdicts`, the one `Turn` of the writer, and `Approved`, which borrows the writer: two
//! approvals at once do not compile. Gate commands run on `Verified`, without the writer.
//!
//! Keeps invariants 6 and 12: holding any of these values publishes nothing by itself.

use semaprax_protocol::documents::GateOutcome;
use semaprax_protocol::{Code, Diagnostic, Refusal};

use super::ledger::Ledger;
use super::verify::Verified;

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

/// The writer's turn: the one right to change what is ACTIVE, used up by one flip.
#[derive(Debug)]
#[must_use]
pub struct Turn<'writer> {
    ledger: &'writer mut Ledger,
}

impl<'writer> Turn<'writer> {
    /// Takes the turn.
    pub fn begin(ledger: &'writer mut Ledger) -> Self {
        Self { ledger }
    }

    pub(super) fn into_ledger(self) -> &'writer mut Ledger {
        self.ledger
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
    /// ACTIVE moved since it was built: it may be built again.
    Stale(Box<Verified>),
}

/// Approves `verified` in this turn.
pub fn approve(
    turn: Turn<'_>,
    verified: Verified,
    verdicts: Verdicts,
) -> Result<Approved<'_>, NotApproved> {
    if verified.candidate.tip != turn.ledger.tip.stored.digest {
        return Err(NotApproved::Stale(Box::new(verified)));
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
