//! P6 and `lease`: what it costs to hold a tree that is on disk.

use semaprax_client::Client;
use semaprax_protocol::documents::LeaseGrant;
use semaprax_protocol::request::{LeaseAcquire, LeaseRelease};
use serde_json::json;

use super::super::peers::{PingPong, bare_lease};
use super::super::place::Place;
use super::super::report::{Finding, Target, note};
use super::super::samples::{Samples, ratio};
use super::super::{Measured, Row, Settings};

/// Leases for each round of the settings: they are short.
const EACH: usize = 20;
/// What is around parameters and around an answer in a line.
const QUESTION_BYTES: usize =
    r#"{"jsonrpc":"2.0","id":12,"method":"lease.acquire","params":}"#.len() + 1;
const ANSWER_BYTES: usize = r#"{"jsonrpc":"2.0","id":12,"result":}"#.len() + 1;

/// A lease of a revision, or of ACTIVE, for as long as the connection.
pub(super) fn acquire(revision: Option<String>) -> LeaseAcquire {
    LeaseAcquire {
        revision,
        ttl_ms: None,
        owner: "bench".to_owned(),
    }
}

fn release(granted: &LeaseGrant) -> LeaseRelease {
    LeaseRelease {
        lease: granted.lease,
    }
}

/// Two pairs of messages as long as those of a lease and of its end.
fn bare_messages(client: &mut Client) -> Measured<[PingPong; 2]> {
    let bytes = |text: serde_json::Result<String>| Measured::Ok(text?.len());
    let granted = client.call(acquire(None))?;
    let asked = bytes(serde_json::to_string(&acquire(None)))?;
    let answered = bytes(serde_json::to_string(&granted))?;
    let ended = bytes(serde_json::to_string(&release(&granted)))?;
    let last = bytes(serde_json::to_string(&client.call(release(&granted))?))?;
    Ok([
        PingPong::new(asked + QUESTION_BYTES, answered + ANSWER_BYTES)?,
        PingPong::new(ended + QUESTION_BYTES, last + ANSWER_BYTES)?,
    ])
}

pub(super) fn measure(settings: &Settings) -> Measured<Vec<Finding>> {
    note("making the tree");
    let place = Place::new(settings)?;
    place.init()?;
    let mut client = place.client()?;
    let mut of_disk = place.client_of_disk()?;
    let state = place.root().join(".semaprax-workspace");
    let [mut there, mut back] = bare_messages(&mut client)?;
    place.settle();
    note("leases in turn with bare messages, and from disk");
    let [
        mut calls,
        mut messages,
        mut by_socket,
        mut by_file,
        mut bare,
    ] = [(); 5].map(|()| Samples::default());
    for _ in 0..settings.rounds * EACH {
        calls.take(|| {
            let granted = client.call(acquire(None))?;
            client.call(release(&granted)).map(drop)
        })?;
        messages.take(|| there.round().and_then(|()| back.round()))?;
        by_socket.take(|| {
            let held = client.hold(None, "bench")?;
            client.release(held)
        })?;
        by_file.take(|| of_disk.hold(None, "bench").map(drop))?;
        bare.take(|| bare_lease(&state).map(drop))?;
    }
    Ok(vec![
        Finding {
            row: Row::P6,
            work: "lease acquire and release on one connection".to_owned(),
            against: "two bare messages there and back".to_owned(),
            ratio: Some(ratio(calls.median(), messages.median())),
            target: Target::AtMost(2.0),
            details: json!({"lease": calls.document(), "messages": messages.document()}),
        },
        Finding {
            row: Row::Lease,
            work: "`hold` and release by the file rule".to_owned(),
            against: "`hold` and release over the socket".to_owned(),
            ratio: Some(ratio(by_file.median(), by_socket.median())),
            target: Target::AtMost(1.0),
            details: json!({
                "byFile": by_file.document(),
                "bySocket": by_socket.document(),
                "bareFile": bare.document(),
            }),
        },
    ])
}
