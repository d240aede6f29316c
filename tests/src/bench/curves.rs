//! The pictures: time of a publication against the size of the tree, and against how many clients wait.
//!
//! Owns: what they show and their names. Never: how a chart is drawn.

use std::fs;

use camino::Utf8Path;

use super::place::Place;
use super::plot::{Chart, Line, Point};
use super::report::note;
use super::rows::crowd::at_once;
use super::rows::edit::EDITS;
use super::rows::scale::Side;
use super::samples::{Samples, micros};
use super::{Measured, Settings};

/// Sizes of trees; those up to the large one of the settings are made.
const SIZES: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// Times that all clients publish at once.
const CROWDS: usize = 12;

/// Measures and writes both pictures into a directory.
pub fn draw(settings: &Settings, directory: &Utf8Path) -> Measured<()> {
    fs::create_dir_all(directory)?;
    fs::write(
        directory.join("performance-size.svg"),
        by_size(settings)?.svg(),
    )?;
    fs::write(
        directory.join("performance-clients.svg"),
        by_clients(settings)?.svg(),
    )?;
    Ok(())
}

fn by_size(settings: &Settings) -> Measured<Chart> {
    let mut sides = Vec::new();
    for files in SIZES.into_iter().filter(|&files| files <= settings.sizes.1) {
        sides.push((files, Side::new(settings, files)?, Samples::default()));
    }
    note("publishing in all of them in turn");
    for _ in 0..settings.rounds {
        for (_, side, times) in &mut sides {
            side.publish(times)?;
        }
    }
    let points = |share: f64| {
        sides
            .iter()
            .map(|(files, _, times)| point(*files, times, share))
            .collect()
    };
    Ok(Chart {
        title: format!("A publication of {EDITS} files, by the size of the tree"),
        across: "files in the tree".to_owned(),
        up: "milliseconds".to_owned(),
        lines: lines(points),
    })
}

fn by_clients(settings: &Settings) -> Measured<Chart> {
    note("making the tree");
    let mut place = Place::new(settings)?;
    place.init()?;
    let mut found = Vec::new();
    let mut count = 1;
    while count <= settings.clients {
        let clients = (0..count).map(|_| place.client());
        found.push((
            count,
            clients.collect::<Measured<Vec<_>>>()?,
            Samples::default(),
        ));
        count *= 2;
    }
    note("publishing by ever more clients at once");
    for _ in 0..settings.rounds.min(CROWDS) {
        for (_, clients, times) in &mut found {
            place.settle();
            times.add(at_once(&mut place, clients)?);
        }
    }
    let points = |share: f64| {
        found
            .iter()
            .map(|(count, _, times)| point(*count, times, share))
            .collect()
    };
    Ok(Chart {
        title: "Until all of the clients that publish one file at once have their receipts"
            .to_owned(),
        across: "clients that wait".to_owned(),
        up: "milliseconds".to_owned(),
        lines: lines(points),
    })
}

fn lines(points: impl Fn(f64) -> Vec<Point>) -> Vec<Line> {
    let shares = [("median", 0.5), ("9 of 10", 0.9)];
    let line = |(name, share): (&str, f64)| Line {
        name: name.to_owned(),
        points: points(share),
    };
    shares.into_iter().map(line).collect()
}

#[expect(clippy::cast_precision_loss, reason = "places in a picture")]
fn point(across: u64, times: &Samples, share: f64) -> Point {
    Point {
        across: across as f64,
        up: micros(times.quantile(share)) as f64 / 1000.0,
    }
}
