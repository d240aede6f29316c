//! `wide`: one file changes in a very large directory, in turn with an ordinary one.

use serde_json::json;

use super::super::place::{Place, publish, submission};
use super::super::report::{Finding, Target, note};
use super::super::samples::{Samples, ratio};
use super::super::tree::{Shape, Sizes};
use super::super::{Measured, Row, Settings};
use super::edit::WARM_UP;

/// Files in an ordinary directory.
const ORDINARY: u64 = 100;

pub(super) fn measure(settings: &Settings) -> Measured<Finding> {
    note("making two trees");
    let shape = |in_directory| Shape {
        files: settings.wide,
        in_directory,
        sizes: Sizes::Source,
    };
    let mut places = [
        Place::shaped(settings, shape(ORDINARY))?,
        Place::shaped(settings, shape(settings.wide))?,
    ];
    let mut clients = Vec::new();
    for place in &mut places {
        place.init()?;
        let mut client = place.client()?;
        for _ in 0..WARM_UP {
            publish(&mut client, submission(&place.edits(1)))?;
        }
        place.settle();
        clients.push(client);
    }
    note("publishing in both in turn");
    let mut times = [(); 2].map(|()| Samples::default());
    for _ in 0..settings.rounds {
        for ((place, client), times) in places.iter_mut().zip(&mut clients).zip(&mut times) {
            let sent = submission(&place.edits(1));
            times.take(|| publish(client, sent))?;
        }
    }
    let [ordinary, wide] = &times;
    Ok(Finding {
        row: Row::Wide,
        work: format!("publish of one file in a directory of {}", settings.wide),
        against: format!("of {ORDINARY}, as many files in all"),
        ratio: Some(ratio(wide.median(), ordinary.median())),
        target: Target::AtMost(3.0),
        details: json!({"ordinary": ordinary.document(), "wide": wide.document()}),
    })
}
