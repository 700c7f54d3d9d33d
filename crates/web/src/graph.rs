//! The picture of a running test: the rate of each interval over time. Its labels are text of the page beside the
//! picture, so that they stay readable on a narrow screen, where a picture and the text in it shrink.

use goodput_model::{BitRate, EndName};
use maud::{Markup, html};
use serde_json::{Value, json};

/// Where an axis may end, times a power of ten: a quarter of each is short to write.
const ENDS: [f64; 10] = [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 6.0, 8.0, 10.0];

/// Parts of an axis between two labels.
const PARTS: u32 = 4;

/// Width and height of the picture in its own units; a page stretches it.
const SIZE: f64 = 400.0;

/// The lines of the grid, where the labels are.
const GRID: &str = "M0 0H400M0 100H400M0 200H400M0 300H400M0 400H400\
                    M0 0V400M100 0V400M200 0V400M300 0V400M400 0V400";

/// What is drawn, of the direction in which each end sends: the end of an interval in seconds, and its rate in bit/s.
#[derive(Debug, Default)]
pub struct Lines {
    near: Vec<(f64, f64)>,
    far: Vec<(f64, f64)>,
}

impl Lines {
    /// Adds the rate of an interval that ended at `at_s`. Each run of a comparison counts from its own start: a time that
    /// steps back begins the line anew, as the script does it.
    pub fn push(&mut self, sender: EndName, at_s: f64, bits_per_s: f64) {
        let line = match sender {
            EndName::Near => &mut self.near,
            EndName::Far => &mut self.far,
        };
        if line.last().is_some_and(|(last_s, _)| at_s <= *last_s) {
            line.clear();
        }
        line.push((at_s, bits_per_s));
    }

    /// What the script goes on with.
    pub fn data(&self) -> Value {
        json!({ "near": self.near, "far": self.far })
    }

    /// Where axes may end, for the script.
    pub fn ends() -> Value {
        json!(ENDS)
    }

    /// Ends of the axes, seconds and bit/s.
    fn axes(&self) -> (f64, f64) {
        let all = || self.near.iter().chain(&self.far);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let until = most(&mut all().map(|(at_s, _)| *at_s));
        (axis_end(until), axis_end(most(&mut all().map(|(_, rate)| *rate))))
    }

    /// The picture with its labels. There are none before there is a point: no axis has a length then.
    pub fn picture(&self) -> Markup {
        let (until, top) = self.axes();
        let empty = self.near.is_empty() && self.far.is_empty();
        let label = |text: String| if empty { String::new() } else { text };
        let part = |end: f64, part: u32| end * f64::from(part) / f64::from(PARTS);
        let directions = [(&self.near, "#0072b2", None), (&self.far, "#d55e00", Some("6 4"))];
        html! {
            figure {
                div.axes {
                    div.rates aria-hidden="true" {
                        @for at in (0..=PARTS).rev() { span { (label(BitRate(part(top, at)).to_string())) } }
                    }
                    svg #graph role="img" aria-label="Goodput so far" viewBox="0 0 400 400"
                        preserveAspectRatio="none" {
                        path d=(GRID) fill="none" stroke="#888" stroke-opacity="0.4"
                            vector-effect="non-scaling-stroke" {}
                        @for (line, colour, dashes) in directions {
                            polyline fill="none" stroke=(colour) stroke-width="2" stroke-dasharray=[dashes]
                                vector-effect="non-scaling-stroke" points=(points(line, until, top)) {}
                        }
                    }
                    div.times aria-hidden="true" {
                        @for at in 0..=PARTS { span { span { (label(seconds(part(until, at)))) } } }
                    }
                }
                figcaption {
                    "Goodput of each interval over time: solid from near to far, dashed from far to near. "
                    "The numbers are below."
                }
            }
        }
    }
}

/// The places of a line in the picture.
fn points(line: &[(f64, f64)], until: f64, top: f64) -> String {
    let at = |(at_s, rate): &(f64, f64)| {
        format!("{:.1},{:.1}", SIZE * (at_s / until), SIZE - SIZE * (rate / top))
    };
    line.iter().map(at).collect::<Vec<_>>().join(" ")
}

/// Where an axis ends that shows values up to `most`. It has a length, whatever the values are.
fn axis_end(most: f64) -> f64 {
    let most = most.clamp(1.0, 1e300);
    let power = 10f64.powf(most.log10().floor());
    let end = ENDS.iter().map(|end| end * power).find(|end| *end >= most);
    end.unwrap_or(10.0 * power)
}

/// A time on the axis.
fn seconds(value: f64) -> String {
    let digits = format!("{value:.2}");
    format!("{} s", digits.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &Lines) -> String {
        lines.picture().into_string()
    }

    #[test]
    fn axes_end_at_round_numbers_above_all_values() {
        for (most, end) in [
            (0.0, 1.0),
            (1.0, 1.0),
            (1.01, 1.2),
            (9.4e9, 1e10),
            (941e6, 1e9),
            (-5.0, 1.0),
            (1000.0, 1000.0),
        ] {
            assert!((axis_end(most) / end - 1.0).abs() < 1e-12, "{most}: {}", axis_end(most));
        }
        assert!(axis_end(f64::INFINITY).is_finite());
    }

    #[test]
    fn labels_have_units_and_the_line_ends_where_its_numbers_are() {
        let mut lines = Lines::default();
        assert!(text(&lines).contains("<span></span>") && !text(&lines).contains("bit/s"));
        lines.push(EndName::Near, 1.0, 5e8);
        lines.push(EndName::Near, 2.0, 1e9);
        let picture = text(&lines);
        for label in ["1 Gbit/s", "750 Mbit/s", "0 bit/s", "0.5 s", "2 s", "0 s"] {
            assert!(picture.contains(&format!("<span>{label}</span>")), "{label}: {picture}");
        }
        assert!(picture.contains("points=\"200.0,200.0 400.0,0.0\""), "{picture}");
    }

    #[test]
    fn a_time_that_steps_back_begins_a_line_anew_and_leaves_the_other_direction() {
        let mut lines = Lines::default();
        for at_s in [1.0, 2.0, 3.0] {
            lines.push(EndName::Near, at_s, 1e6);
            lines.push(EndName::Far, at_s, 2e6);
        }
        lines.push(EndName::Near, 1.0, 3e6);
        let far = [[1.0, 2e6], [2.0, 2e6], [3.0, 2e6]];
        assert_eq!(lines.data(), json!({ "near": [[1.0, 3e6]], "far": far }));
        lines.push(EndName::Near, -7.0, f64::MAX);
        let picture = text(&lines);
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    }
}
