//! `history`: `log --path` and `blame` of a file that changed once, after many publications and after few.

use semaprax_client::Client;
use semaprax_protocol::request::{BlameParams, Log};
use serde_json::json;

use super::super::place::{Place, publish, submission};
use super::super::report::{Finding, Target, note};
use super::super::samples::{Samples, ratio};
use super::super::tree::{Shape, Sizes};
use super::super::{Measured, Row, Settings};

/// The short history has so many times fewer publications.
const FEWER: u64 = 20;
/// Files of the trees, at most.
const FILES: u64 = 1_000;

struct Side {
    /// Removed at the end.
    _place: Place,
    client: Client,
    path: String,
    logs: Samples,
    blames: Samples,
}

impl Side {
    fn new(settings: &Settings, publications: u64) -> Measured<Self> {
        let shape = Shape {
            files: settings.files.min(FILES),
            in_directory: 20,
            sizes: Sizes::Source,
        };
        let mut place = Place::shaped(settings, shape)?;
        place.init()?;
        let mut client = place.client()?;
        let first = place.edits(1);
        publish(&mut client, submission(&first))?;
        let path = first.into_iter().next().ok_or("no edit")?.0;
        for _ in 0..publications {
            let mut edits = place.edits(2);
            edits.retain(|(other, _)| *other != path);
            publish(&mut client, submission(&edits))?;
        }
        place.settle();
        Ok(Self {
            _place: place,
            client,
            path,
            logs: Samples::default(),
            blames: Samples::default(),
        })
    }

    fn ask(&mut self) -> Measured<()> {
        let log = Log {
            limit: None,
            before: None,
            path: Some(self.path.clone()),
            author: None,
        };
        let page = self.logs.take(|| self.client.call(log))?;
        if page.entries.len() != 2 {
            return Err(format!("{} publications changed it, not 2", page.entries.len()).into());
        }
        let blame = BlameParams {
            path: self.path.clone(),
            revision: None,
        };
        Ok(self.blames.take(|| self.client.call(blame)).map(drop)?)
    }
}

pub(super) fn measure(settings: &Settings) -> Measured<Finding> {
    note("publishing a short history and a long one");
    let few = (settings.publications / FEWER).max(1);
    let mut short = Side::new(settings, few)?;
    let mut long = Side::new(settings, settings.publications)?;
    note("asking both in turn");
    for _ in 0..settings.rounds * 4 {
        short.ask()?;
        long.ask()?;
    }
    let logs = ratio(long.logs.median(), short.logs.median());
    let blames = ratio(long.blames.median(), short.blames.median());
    Ok(Finding {
        row: Row::History,
        work: format!(
            "log --path, blame after {} publications",
            settings.publications
        ),
        against: format!("the same after {few}"),
        ratio: Some(logs.max(blames)),
        target: Target::AtMost(1.5),
        details: json!({
            "log": {"short": short.logs.document(), "long": long.logs.document(), "ratio": logs},
            "blame": {"short": short.blames.document(), "long": long.blames.document(), "ratio": blames},
        }),
    })
}
