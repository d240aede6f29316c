//! P2, P8, P11 and `reads`: the same work in a large tree and in a small one, in turn.

use std::collections::BTreeSet;
use std::time::Duration;

use semaprax_client::Client;
use semaprax_protocol::request::{
    BlameParams, Content, Diff, LeaseAcquire, LeaseRelease, List, Log, Show, StatusParams,
    WhyParams,
};
use serde_json::{Value, json};

use super::super::place::{Place, publish, submission};
use super::super::report::{Finding, Target, note};
use super::super::samples::{Samples, micros, ratio, rounded};
use super::super::tree::{Shape, Sizes};
use super::super::{Measured, Row, Settings};
use super::edit::{EDITS, WARM_UP};
use crate::process::status_field;

/// Files in a directory.
const IN_DIRECTORY: u64 = 100;
/// From here on what a file costs is judged with all that the daemon holds beside.
const WHOLE: u64 = 1_000_000;

/// A workspace of one of the sizes.
pub struct Side {
    files: u64,
    place: Place,
    client: Client,
    init: Duration,
    /// Kilobytes resident after the import.
    resident: u64,
}

impl Side {
    /// Makes it, and publishes a few times.
    pub fn new(settings: &Settings, files: u64) -> Measured<Self> {
        note(&format!("making a tree of {files} files"));
        let shape = Shape {
            files,
            in_directory: IN_DIRECTORY,
            sizes: Sizes::Source,
        };
        let mut place = Place::shaped(settings, shape)?;
        note("importing it");
        let mut init = Samples::default();
        init.take(|| place.init())?;
        let mut client = place.client()?;
        place.settle();
        let daemon = client.daemon().ok_or("no daemon")?.pid;
        let resident = status_field(daemon, "VmRSS").ok_or("no /proc")?;
        for _ in 0..WARM_UP {
            publish(&mut client, submission(&place.edits(EDITS)))?;
        }
        place.settle();
        Ok(Self {
            files,
            place,
            client,
            init: init.median(),
            resident,
        })
    }

    /// Publishes an edit of five files.
    pub fn publish(&mut self, times: &mut Samples) -> Measured<()> {
        let sent = submission(&self.place.edits(EDITS));
        times.take(|| publish(&mut self.client, sent).map(drop))
    }
}

/// A question, by name.
type Question = (&'static str, fn(&mut Side) -> Measured<()>);

const QUESTIONS: [Question; 9] = [
    ("status", |side| {
        let params = StatusParams {
            drift: false,
            limits: false,
        };
        Ok(side.client.call(params).map(drop)?)
    }),
    ("cat", |side| {
        let params = Content {
            revision: None,
            path: side.place.some_path(),
            offset: 0,
            length: None,
        };
        Ok(side.client.call(params).map(drop)?)
    }),
    ("show", |side| {
        let revision = "@".to_owned();
        Ok(side.client.call(Show { revision }).map(drop)?)
    }),
    ("diff", |side| diff(side)),
    ("ls", |side| {
        let path = side.place.some_path();
        let params = List {
            revision: None,
            prefix: path.rsplit_once('/').map(|(parent, _)| parent.to_owned()),
            after: None,
            limit: None,
        };
        Ok(side.client.call(params).map(drop)?)
    }),
    ("why", |side| {
        let revision = "@-1".to_owned();
        Ok(side.client.call(WhyParams { revision }).map(drop)?)
    }),
    ("lease", |side| {
        let granted = side.client.call(LeaseAcquire {
            revision: None,
            ttl_ms: None,
            owner: "bench".to_owned(),
        })?;
        let lease = granted.lease;
        Ok(side.client.call(LeaseRelease { lease }).map(drop)?)
    }),
    ("log --path", |side| {
        let params = Log {
            limit: None,
            before: None,
            path: Some(side.place.some_path()),
            author: None,
        };
        Ok(side.client.call(params).map(drop)?)
    }),
    ("blame", |side| {
        let params = BlameParams {
            path: side.place.some_path(),
            revision: None,
        };
        Ok(side.client.call(params).map(drop)?)
    }),
];

fn diff(side: &mut Side) -> Measured<()> {
    let params = Diff {
        from: "@-1".to_owned(),
        to: None,
    };
    let differing = side.client.call(params)?.changes.len() as u64;
    if differing == EDITS {
        Ok(())
    } else {
        Err(format!("{differing} files differ, and {EDITS} were published").into())
    }
}

pub(super) fn measure(settings: &Settings, rows: &BTreeSet<Row>) -> Measured<Vec<Finding>> {
    let (few, many) = settings.sizes;
    let mut small = Side::new(settings, few)?;
    let mut large = Side::new(settings, many)?;
    let mut found = vec![memory(&small, &large)];
    if rows.contains(&Row::P2) {
        note("publishing in both in turn");
        found.push(publications(settings, &mut small, &mut large)?);
    }
    if rows.contains(&Row::P11) {
        note("`diff` in both in turn");
        found.push(differences(settings, &mut small, &mut large)?);
    }
    if rows.contains(&Row::Reads) {
        note("asking both in turn");
        found.push(reads(settings, &mut small, &mut large)?);
    }
    Ok(found)
}

fn memory(small: &Side, large: &Side) -> Finding {
    let (less, more) = (small.resident * 1024, large.resident * 1024);
    let each = if large.files >= WHOLE {
        per_file(more, large.files)
    } else {
        per_file(more.saturating_sub(less), large.files - small.files)
    };
    let times = |side: &Side| {
        json!({
            "files": side.files,
            "residentKiB": side.resident,
            "initMs": micros(side.init) / 1000,
        })
    };
    Finding {
        row: Row::P8,
        work: format!("bytes resident for each of {} files", large.files),
        against: if large.files >= WHOLE {
            "all that is resident".to_owned()
        } else {
            format!("what is more than for {} files", small.files)
        },
        ratio: Some(each),
        target: Target::AtMost(200.0),
        details: json!({
            "small": times(small),
            "large": times(large),
            "wholePerFile": per_file(more, large.files),
        }),
    }
}

#[expect(clippy::cast_precision_loss, reason = "bytes of memory, for people")]
fn per_file(bytes: u64, files: u64) -> f64 {
    rounded(bytes as f64 / files.max(1) as f64)
}

fn publications(settings: &Settings, small: &mut Side, large: &mut Side) -> Measured<Finding> {
    let [mut few, mut many] = [(); 2].map(|()| Samples::default());
    for _ in 0..settings.rounds {
        small.publish(&mut few)?;
        large.publish(&mut many)?;
    }
    Ok(Finding {
        row: Row::P2,
        work: format!("publish of {EDITS} of {} files", large.files),
        against: format!("the same of {} files", small.files),
        ratio: Some(ratio(many.median(), few.median())),
        target: Target::AtMost(1.5),
        details: json!({"small": few.document(), "large": many.document()}),
    })
}

fn in_turn(
    settings: &Settings,
    small: &mut Side,
    large: &mut Side,
    ask: impl Fn(&mut Side) -> Measured<()>,
) -> Measured<(f64, Value)> {
    let [mut few, mut many] = [(); 2].map(|()| Samples::default());
    ask(small)?;
    ask(large)?;
    for _ in 0..settings.rounds * 4 {
        few.take(|| ask(small))?;
        many.take(|| ask(large))?;
    }
    let times = ratio(many.median(), few.median());
    let details = json!({"small": few.document(), "large": many.document(), "ratio": times});
    Ok((times, details))
}

fn differences(settings: &Settings, small: &mut Side, large: &mut Side) -> Measured<Finding> {
    let (times, details) = in_turn(settings, small, large, diff)?;
    Ok(Finding {
        row: Row::P11,
        work: format!("diff of {EDITS} of {} files", large.files),
        against: format!("the same of {} files", small.files),
        ratio: Some(times),
        target: Target::AtMost(2.0),
        details,
    })
}

fn reads(settings: &Settings, small: &mut Side, large: &mut Side) -> Measured<Finding> {
    let mut details = serde_json::Map::new();
    let mut worst = (0.0, "");
    for (name, ask) in QUESTIONS {
        let (times, found) = in_turn(settings, small, large, ask)?;
        details.insert(name.to_owned(), found);
        if times > worst.0 {
            worst = (times, name);
        }
    }
    Ok(Finding {
        row: Row::Reads,
        work: format!("the worst of {}: `{}`", QUESTIONS.len(), worst.1),
        against: format!("{} files against {}", large.files, small.files),
        ratio: Some(worst.0),
        target: Target::AtMost(1.5),
        details: Value::Object(details),
    })
}
