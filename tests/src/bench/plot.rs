//! A chart as SVG: lines over a logarithmic axis.
//!
//! Owns: how it looks. Never: what the numbers are.

use std::fmt::Write as _;

/// A place on a line.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// Above zero: this axis is logarithmic.
    pub across: f64,
    /// From zero on.
    pub up: f64,
}

/// A line with its name.
#[derive(Debug)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// In order.
    pub points: Vec<Point>,
}

/// A chart.
#[derive(Debug)]
pub struct Chart {
    /// What is shown.
    pub title: String,
    /// What the axis across counts.
    pub across: String,
    /// What the axis upwards counts.
    pub up: String,
    /// What is drawn; all lines have points at the same places across.
    pub lines: Vec<Line>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 60.0;
/// To be told apart by those who see colours differently, on light and on dark.
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];
const INK: &str = "#808080";

/// Where the axes are.
struct Frame {
    least: f64,
    most: f64,
    top: f64,
}

impl Frame {
    fn of(lines: &[Line]) -> Self {
        let points = || lines.iter().flat_map(|line| &line.points);
        let fold = |start: f64, pick: fn(f64, f64) -> f64, of: fn(&Point) -> f64| {
            points().map(of).fold(start, pick)
        };
        let least = fold(f64::INFINITY, f64::min, |point| point.across);
        let most = fold(0.0, f64::max, |point| point.across);
        Self {
            least: if least.is_finite() { least } else { 1.0 },
            most,
            top: round_up(fold(0.0, f64::max, |point| point.up)),
        }
    }

    fn x(&self, across: f64) -> f64 {
        let whole = (self.most / self.least).ln();
        let part = (across / self.least).ln();
        let share = if whole > 0.0 { part / whole } else { 0.5 };
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, up: f64) -> f64 {
        HEIGHT - BOTTOM - up / self.top * (HEIGHT - TOP - BOTTOM)
    }
}

/// 1, 2 or 5 times a power of ten, not less than `value`.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|&step| step >= value)
        .unwrap_or(value)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

impl Chart {
    /// The picture.
    pub fn svg(&self) -> String {
        let frame = Frame::of(&self.lines);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"13\" fill=\"{INK}\">\n"
        );
        let middle = WIDTH / 2.0;
        text(&mut svg, middle, 24.0, "middle", &self.title);
        text(&mut svg, middle, HEIGHT - 12.0, "middle", &self.across);
        text(&mut svg, LEFT, TOP - 10.0, "end", &self.up);
        for step in 0..=4 {
            let value = frame.top * f64::from(step) / 4.0;
            let y = frame.y(value);
            let (from, to) = (LEFT, WIDTH - RIGHT);
            stroke(&mut svg, (from, y), (to, y));
            text(&mut svg, LEFT - 8.0, y + 4.0, "end", &number(value));
        }
        for point in self.lines.first().map_or(&[][..], |line| &line.points) {
            let x = frame.x(point.across);
            let y = HEIGHT - BOTTOM;
            stroke(&mut svg, (x, y), (x, y + 5.0));
            text(&mut svg, x, y + 20.0, "middle", &number(point.across));
        }
        for (place, line) in self.lines.iter().enumerate() {
            draw(&mut svg, &frame, line, place);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn draw(svg: &mut String, frame: &Frame, line: &Line, place: usize) {
    let colour = COLOURS[place % COLOURS.len()];
    let places: Vec<String> = line
        .points
        .iter()
        .map(|point| format!("{:.1},{:.1}", frame.x(point.across), frame.y(point.up)))
        .collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        places.join(" ")
    );
    for point in &line.points {
        let (x, y) = (frame.x(point.across), frame.y(point.up));
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"><title>{}: {}</title></circle>",
            number(point.across),
            number(point.up)
        );
    }
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let y = TOP + 4.0 + 18.0 * place as f64;
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{}</text>",
        LEFT + 12.0,
        escaped(&line.name)
    );
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = escaped(words);
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
    );
}

fn stroke(svg: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{INK}\" stroke-opacity=\"0.4\"/>",
        from.0, from.1, to.0, to.1
    );
}

/// A number without digits that say nothing; thousands apart.
fn number(value: f64) -> String {
    if value < 1_000.0 {
        let text = format!("{value:.2}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let check = |value: f64, expect: &str| assert_eq!(number(value), expect);
        check(0.0, "0");
        check(2.5, "2.5");
        check(64.0, "64");
        check(1_000_000.0, "1,000,000");
        check(10_000.0, "10,000");
    }

    #[test]
    fn the_axis_ends_at_a_round_number() {
        let check = |value: f64, expect: f64| {
            assert!((round_up(value) - expect).abs() < 1e-9, "{value}");
        };
        check(0.0, 1.0);
        check(0.7, 1.0);
        check(1.2, 2.0);
        check(17.0, 20.0);
        check(21.0, 50.0);
    }

    #[test]
    fn every_point_is_inside_of_the_picture() {
        let points = [1.0, 10.0, 1000.0].map(|across| Point {
            across,
            up: across / 10.0,
        });
        let chart = Chart {
            title: "a < b".to_owned(),
            across: "files".to_owned(),
            up: "ms".to_owned(),
            lines: vec![Line {
                name: "median".to_owned(),
                points: points.to_vec(),
            }],
        };
        let frame = Frame::of(&chart.lines);
        for point in points {
            assert!((LEFT..=WIDTH - RIGHT + 1e-9).contains(&frame.x(point.across)));
            assert!((TOP - 1e-9..=HEIGHT - BOTTOM).contains(&frame.y(point.up)));
        }
        let svg = chart.svg();
        assert!(svg.contains("a &lt; b"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
    }
}
