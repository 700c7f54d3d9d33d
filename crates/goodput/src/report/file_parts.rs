//! The report of `goodput test files`: each part alone, the whole transfer, and which part limits.

use std::fmt::Write;

use goodput_model::{BitRate, Direction, FilePart, FileParts, Known, PartRate, Record};

use super::compare::{notes, runs};
use super::effect::with_interval;
use super::style;
use super::table::Table;
use goodput_model::shell;

/// Arms, sizes and clients that show the differences between ways to send files.
const WAYS_TO_SEND: &str = "mover=copy,sendfile socket.cork=off,on socket.nodelay=off,on --sizes 9M,32M,64M --clients 1,16";

/// The whole report.
pub fn text(record: &Record) -> String {
    let Some(parts) = &record.file_parts else { return String::new() };
    let mut out = format!("\n{}\n", table(parts));
    let _ = writeln!(out, "{}", style::strong(sentence(parts)));
    for part in bounds(parts) {
        let _ = writeln!(out, "{part}");
    }
    let _ = writeln!(out, "{}", ways_to_send(&record.target, record.plan.direction));
    out += &notes(record);
    if let Some(comparison) = &record.comparison {
        let _ = writeln!(out, "{}", style::faint(runs(comparison)));
    }
    out
}

/// The command that compares ways to send files, for users who can't change disks and network.
fn ways_to_send(target: &str, direction: Direction) -> String {
    let target = shell::word(target);
    let reverse = if direction == Direction::Reverse { " --reverse" } else { "" };
    format!(
        "ways to send files, by size and number of clients, with what they cost:\n    goodput compare {target}{reverse} {WAYS_TO_SEND}"
    )
}

fn table(parts: &FileParts) -> String {
    let mut table = Table::new(&["part", "n", "rate", "against the slowest"]);
    for part in &parts.parts {
        let rate = known(&part.rate_bits_per_s);
        let against = part.against_slowest.as_ref();
        let against = against.map_or_else(String::new, |effect| with_interval("", effect, None));
        let against = against.trim_start_matches(": ");
        table.row(&[words(part.part), &parts.n.to_string(), &rate, against]);
    }
    table.text()
}

fn known(rate: &Known<BitRate>) -> String {
    rate.value().map_or("unknown".into(), ToString::to_string)
}

fn words(part: FilePart) -> &'static str {
    match part {
        FilePart::Source => "source alone",
        FilePart::Network => "network alone",
        FilePart::Sink => "sink alone",
        FilePart::Together => "all together",
    }
}

/// The part as the subject of a sentence.
fn subject(part: FilePart) -> &'static str {
    match part {
        FilePart::Source => "The disk of the source",
        FilePart::Network => "The network",
        FilePart::Sink => "The disk of the sink",
        FilePart::Together => "The transfer",
    }
}

fn sentence(parts: &FileParts) -> String {
    match &parts.limit {
        Known::Missing(why) => format!("Which part limits is unknown: {}.", why.missing),
        Known::Value(part) => {
            let next = parts.parts.iter().filter(|other| is_alone(other) && other.part != *part);
            let next = next.filter_map(|other| other.against_slowest.as_ref());
            let least = next.map(|effect| effect.percent).fold(f64::INFINITY, f64::min);
            format!(
                "{} limits: the next part is {:.1} times as fast.",
                subject(*part),
                least / 100.0 + 1.0
            )
        }
    }
}

fn is_alone(part: &PartRate) -> bool {
    part.part != FilePart::Together
}

/// The rate that a faster part would bring, one line each.
fn bounds(parts: &FileParts) -> impl Iterator<Item = String> {
    parts.parts.iter().filter(|part| is_alone(part)).filter_map(|part| {
        let most = part.without_it_bits_per_s.value()?;
        let what = match part.part {
            FilePart::Source => "a faster disk of the source",
            FilePart::Network => "a faster network",
            FilePart::Sink => "a faster disk of the sink",
            FilePart::Together => return None,
        };
        Some(format!("{what} would bring at most {most}"))
    })
}

#[cfg(test)]
mod tests {
    use goodput_model::{Effect, Judgement};

    use super::*;

    fn part(part: FilePart, rate: f64, percent: Option<f64>, without: Option<f64>) -> PartRate {
        let effect = |percent: f64| Effect {
            percent,
            low_percent: percent - 5.0,
            high_percent: percent + 5.0,
            confidence_percent: 95.0,
            n: 6,
            adjusted_for: Vec::new(),
            judgement: Judgement::Better,
        };
        PartRate {
            part,
            rate_bits_per_s: Known::Value(BitRate(rate)),
            against_slowest: percent.map(effect),
            without_it_bits_per_s: without
                .map_or(Known::missing("x"), |rate| Known::Value(BitRate(rate))),
        }
    }

    #[test]
    fn the_ways_to_send_are_one_command_away() {
        let text = ways_to_send("nas", Direction::Send);
        assert!(text.contains("goodput compare nas mover=copy,sendfile socket.cork"), "{text}");
        let text = ways_to_send("nas", Direction::Reverse);
        assert!(text.contains("goodput compare nas --reverse mover="), "{text}");
    }

    #[test]
    fn says_which_limits_and_what_a_faster_part_would_bring() {
        let parts = FileParts {
            parts: vec![
                part(FilePart::Network, 94e6, None, Some(400e6)),
                part(FilePart::Source, 400e6, Some(325.0), Some(94e6)),
                part(FilePart::Together, 93e6, Some(-1.0), None),
            ],
            n: 6,
            limit: Known::Value(FilePart::Network),
        };
        assert_eq!(sentence(&parts), "The network limits: the next part is 4.2 times as fast.");
        let bounds: Vec<_> = bounds(&parts).collect();
        assert_eq!(bounds[0], "a faster network would bring at most 400 Mbit/s");
        assert_eq!(bounds[1], "a faster disk of the source would bring at most 94 Mbit/s");
        assert!(table(&parts).contains("+325.0 % (95.0 %"), "{}", table(&parts));
        let unknown = FileParts { limit: Known::missing("too few runs"), ..parts };
        assert_eq!(sentence(&unknown), "Which part limits is unknown: too few runs.");
    }
}
