//! The stages in order: what `pipeline::publish` does, from outside.

use semaprax_daemon::pipeline::{Ledger, Proposal, build, flip, gate, verify};
use semaprax_protocol::Refusal;

fn publish(ledger: &mut Ledger, proposal: Proposal) -> Result<(), Refusal> {
    let candidate = build::build(ledger, proposal)?;
    let verified = verify::verify(ledger, candidate)?;
    let verdicts = gate::run(&verified);
    let turn = gate::Turn::begin(ledger);
    let Ok(approved) = gate::approve(turn, verified, verdicts) else {
        return Err(gate::moved_tip());
    };
    let published = flip::flip(approved);
    drop(published);
    Ok(())
}

fn main() {
    let _ = publish;
}
