//! The stages in order: what `pipeline::take_turn` does, from outside.

use semaprax_daemon::pipeline::gate::Turn;
use semaprax_daemon::pipeline::{Ledger, Proposal, build, flip, gate, verify};
use semaprax_protocol::Refusal;

fn publish(ledger: &mut Ledger, proposals: Vec<Proposal>) -> Result<(), Refusal> {
    let mut turn = Turn::begin(ledger)?;
    for proposal in proposals {
        let candidate = build::build(turn.ledger(), proposal)?;
        let verified = verify::verify(turn.ledger(), candidate)?;
        let verdicts = gate::run(&verified);
        let Ok(approved) = gate::approve(turn, verified, verdicts) else {
            return Err(gate::moved_tip());
        };
        turn = match flip::decide(approved) {
            Ok(turn) => turn,
            Err((_, error)) => return Err((*error).into()),
        };
    }
    let published = flip::flip(turn);
    drop(published);
    Ok(())
}

fn main() {
    let _ = publish;
}
