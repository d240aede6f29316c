//! P7: a publication that many connections are told of, in turn with one that none is.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use serde_json::json;

use super::super::peers::PingPong;
use super::super::place::{Place, publish, submission};
use super::super::report::{Finding, Target, note};
use super::super::samples::{Samples, ratio, rounded};
use super::super::{Measured, Row, Settings};
use super::edit::{EDITS, WARM_UP};
use crate::process::{PATIENCE, line_of};

/// Bytes of a message of the round trip that the last notice is measured against.
const MESSAGE: usize = 200;
/// Round trips for each round of the settings.
const TRIPS: usize = 20;
/// So many subscribers may take twenty round trips.
const PORTION: usize = 100;

/// A connection that watches, and reads no more than lines.
struct Subscriber {
    reader: BufReader<UnixStream>,
    line: Vec<u8>,
}

impl Subscriber {
    fn new(socket: &Utf8Path, workspace: &Utf8Path) -> Measured<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut subscriber = Self {
            reader: BufReader::with_capacity(2048, stream),
            line: Vec::new(),
        };
        let hello = json!({
            "protocol": {"oldest": 1, "newest": 1},
            "client": "bench",
            "workspace": workspace,
        });
        subscriber.ask(&line_of(1, "hello", &hello))?;
        subscriber.ask(&line_of(2, "watch", &json!({})))?;
        Ok(subscriber)
    }

    fn ask(&mut self, line: &[u8]) -> Measured<()> {
        self.reader.get_ref().write_all(line)?;
        self.next()?;
        let answer: serde_json::Value = serde_json::from_slice(&self.line)?;
        match answer.get("error") {
            Some(error) => Err(error.to_string().into()),
            None => Ok(()),
        }
    }

    /// Waits for the next line.
    fn next(&mut self) -> Measured<()> {
        self.line.clear();
        match self.reader.read_until(b'\n', &mut self.line)? {
            0 => Err("the daemon has closed".into()),
            _ => Ok(()),
        }
    }
}

pub(super) fn measure(settings: &Settings) -> Measured<Vec<Finding>> {
    note("making two trees");
    let (mut watched, mut alone) = (Place::new(settings)?, Place::new(settings)?);
    watched.init()?;
    alone.init()?;
    let (mut to_watched, mut to_alone) = (watched.client()?, alone.client()?);
    for _ in 0..WARM_UP {
        publish(&mut to_watched, submission(&watched.edits(EDITS)))?;
        publish(&mut to_alone, submission(&alone.edits(EDITS)))?;
    }
    note("subscribing");
    let (socket, root) = (watched.socket(), watched.root());
    let mut subscribers = Vec::new();
    for _ in 0..settings.subscribers {
        subscribers.push(Subscriber::new(&socket, &root)?);
    }
    watched.settle();
    alone.settle();
    note("publishing in turn with and without subscribers");
    let mut messages = PingPong::new(MESSAGE, MESSAGE)?;
    let [mut with, mut without, mut last, mut trips] = [(); 4].map(|()| Samples::default());
    for _ in 0..settings.rounds {
        let sent = submission(&watched.edits(EDITS));
        with.take(|| publish(&mut to_watched, sent))?;
        let answered = Instant::now();
        subscribers.iter_mut().try_for_each(Subscriber::next)?;
        last.add(answered.elapsed());
        let sent = submission(&alone.edits(EDITS));
        without.take(|| publish(&mut to_alone, sent))?;
        for _ in 0..TRIPS {
            trips.take(|| messages.round())?;
        }
    }
    let count = subscribers.len();
    let details = json!({
        "withSubscribers": with.document(),
        "without": without.document(),
        "receiptToLastNotice": last.document(),
        "roundTrip": trips.document(),
    });
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let portions = count as f64 / PORTION as f64;
    let told =
        last.median().as_secs_f64() / trips.median().max(Duration::from_nanos(1)).as_secs_f64();
    Ok(vec![
        Finding {
            row: Row::P7,
            work: format!("from the receipt to the last of {count} notices"),
            against: "a bare round trip, each 100 subscribers".to_owned(),
            ratio: Some(rounded(told / portions)),
            target: Target::AtMost(20.0),
            details: details.clone(),
        },
        Finding {
            row: Row::P7,
            work: format!("publish of {EDITS} files with {count} subscribers"),
            against: "the same without".to_owned(),
            ratio: Some(ratio(with.median(), without.median())),
            target: Target::AtMost(1.1),
            details,
        },
    ])
}
