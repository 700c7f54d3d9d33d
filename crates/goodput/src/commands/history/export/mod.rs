//! `goodput history export`: results for other programs.

mod days;
mod fields;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;
use goodput_compat::formats::{self, Style, pscheduler};
use goodput_model::Record;
use goodput_store::{Entry, Store, Summary};
use jiff::Timestamp;

use self::fields::{field, measured_with};
use super::wanted;
use crate::args::ExportArgs;
use crate::exit::Exit;
use crate::report::style::plain;
use crate::screen;

/// Prints the wanted results, oldest first.
pub fn run(store: &Store, args: &ExportArgs) -> Result<Exit> {
    let wanted = wanted::checked(store, &args.wanted, u32::MAX)?;
    if args.days {
        return days::run(store, &wanted);
    }
    if args.days_json {
        return days::counts(store, &wanted);
    }
    let mut entries = store.search(&wanted)?;
    entries.reverse();
    if args.json {
        return each(store, &entries, |_, record| {
            Ok(screen::print_data(|out| {
                record.write_json_line(&mut *out)?;
                writeln!(out)
            })?)
        });
    }
    if args.pscheduler {
        return runs(store, &entries);
    }
    if args.csv {
        return csv(store, &entries);
    }
    let (text, left_out) = openmetrics(&entries);
    screen::print_data(|out| out.write_all(text.as_bytes()))?;
    if !left_out.is_empty() {
        say_left_out(&left_out);
    }
    Ok(Exit::Fine)
}

/// Each record as it is read, so that they are never in memory together. One that can't be read is reported, and does not
/// keep the others.
fn each(
    store: &Store,
    entries: &[Entry],
    mut print: impl FnMut(i64, Record) -> Result<()>,
) -> Result<Exit> {
    let mut exit = Exit::Fine;
    for entry in entries {
        match store.get(entry.id) {
            Ok(record) => print(entry.id, record)?,
            Err(why) => {
                screen::say(format_args!("goodput: {why}"));
                exit = Exit::CouldNot;
            }
        }
    }
    Ok(exit)
}

/// A line of JSON for each direction that pScheduler could have tested, as its archivers get it.
fn runs(store: &Store, entries: &[Entry]) -> Result<Exit> {
    let mut unfit: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    let exit = each(store, entries, |id, record| {
        if let Some(why) = pscheduler::unfit(&record) {
            unfit.entry(why).or_default().push(id);
            return Ok(());
        }
        let text = formats::print(&pscheduler::FORMAT, &record, Style::default());
        Ok(screen::print_data(|out| out.write_all(text.as_bytes()))?)
    })?;
    for (why, ids) in unfit {
        screen::say(format_args!(
            "warning: results that are no throughput test of pScheduler: {} ({why})",
            numbers(&ids)
        ));
    }
    Ok(exit)
}

/// The columns that are in the list of the history.
const LISTED: &str =
    "id,started,kind,target,goodput_bits_per_s,limit,transport,direction,flows,answer,watched";
/// Those that only the record has.
const RECORDED: &str = "received_bytes,round_trip_s,smallest_round_trip_s,lost_ratio,incomplete";

/// Lines are printed when this much has come together.
const PIECE_BYTES: usize = 64 << 10;

/// A line for each record. One that can't be read has empty fields, is reported, and keeps no other.
fn csv(store: &Store, entries: &[Entry]) -> Result<Exit> {
    let watched = store.watched_among(entries)?;
    let mut exit = Exit::Fine;
    let mut text = format!("{LISTED},{RECORDED}\r\n");
    for entry in entries {
        let summary = store.summary(entry.id).inspect_err(|why| {
            screen::say(format_args!("goodput: {why}"));
            exit = Exit::CouldNot;
        });
        text += &csv_line(entry, watched.contains(&entry.id), &summary.unwrap_or_default());
        if text.len() > PIECE_BYTES {
            screen::print_data(|out| out.write_all(text.as_bytes()))?;
            text.clear();
        }
    }
    screen::print_data(|out| out.write_all(text.as_bytes()))?;
    Ok(exit)
}

fn csv_line(entry: &Entry, watched: bool, summary: &Summary) -> String {
    let Entry { id, started, kind, target, goodput, limit, traffic, answer, .. } = entry;
    let [started, kind, target, limit] = [started, kind, target, limit].map(|text| field(text));
    let [transport, direction, flows] = measured_with(traffic.as_ref()).map(|text| field(&text));
    let answer = field(answer.as_deref().unwrap_or_default());
    let Summary { figures, incomplete } = summary;
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let received = figures.received_bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
    let [round_trip, smallest, lost] =
        [figures.round_trip_s, figures.smallest_round_trip_s, figures.lost_share].map(number);
    let incomplete = field(incomplete.as_deref().unwrap_or_default());
    let goodput = goodput.0;
    format!(
        "{id},{started},{kind},{target},{goodput},{limit},{transport},{direction},{flows},{answer},{watched},\
         {received},{round_trip},{smallest},{lost},{incomplete}\r\n"
    )
}

/// The name of the family. The base unit of data is the byte, as in the metrics of a watch.
const FAMILY: &str = "goodput_result_bytes_per_second";

/// Samples of one metric stand together, with increasing times (OpenMetrics 1.0, "Text Format"). Also returned are the
/// numbers of the results that have none, since a metric has one sample at a time.
fn openmetrics(entries: &[Entry]) -> (String, Vec<i64>) {
    let mut metrics: BTreeMap<String, BTreeMap<i64, &Entry>> = BTreeMap::new();
    let mut left_out = Vec::new();
    for entry in entries {
        let Ok(at) = entry.started.parse::<Timestamp>() else {
            left_out.push(entry.id);
            continue;
        };
        let before = metrics.entry(labels(entry)).or_default().insert(at.as_second(), entry);
        left_out.extend(before.map(|before| before.id));
    }
    let mut text = format!(
        "# TYPE {FAMILY} gauge\n# UNIT {FAMILY} bytes_per_second\n# HELP {FAMILY} Goodput of a result of goodput.\n"
    );
    for (labels, samples) in metrics {
        for (at, entry) in samples {
            let _ = writeln!(text, "{FAMILY}{{{labels}}} {} {at}", entry.goodput.0 / 8.0);
        }
    }
    (text + "# EOF\n", left_out)
}

fn labels(entry: &Entry) -> String {
    let Entry { kind, target, limit, traffic, .. } = entry;
    let [kind, target, limit] = [kind, target, limit].map(|text| label(text));
    let [transport, direction, flows] = measured_with(traffic.as_ref()).map(|text| label(&text));
    // Only results that are parts have it: the names of the others stay as they are.
    let part = if entry.incomplete().is_some() { "incomplete=\"true\"," } else { "" };
    format!(
        "{part}direction=\"{direction}\",flows=\"{flows}\",kind=\"{kind}\",limit=\"{limit}\",target=\"{target}\",\
         transport=\"{transport}\""
    )
}

/// Says which results have no sample.
fn say_left_out(ids: &[i64]) {
    screen::say(format_args!(
        "warning: results without a sample: {}; Prometheus keeps one value a second of tests with the same labels, and \
         these began in the same second as a later one, or at no time; --csv has them all",
        numbers(ids)
    ));
}

/// How many results these are, and the numbers of the first: `12 (3, 4, …)`.
fn numbers(ids: &[i64]) -> String {
    /// Numbers that are named.
    const NAMED: usize = 10;
    let named: Vec<_> = ids.iter().take(NAMED).map(ToString::to_string).collect();
    let more = if ids.len() > NAMED { ", …" } else { "" };
    format!("{} ({}{more})", ids.len(), named.join(", "))
}

/// A text as the value of a label (OpenMetrics 1.0, "Escaping") that stays in its line.
fn label(text: &str) -> String {
    plain(text).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::BitRate;
    use goodput_store::{Figures, Traffic};

    fn entry(started: &str, target: &str) -> Entry {
        Entry {
            id: 7,
            started: started.into(),
            kind: "test".into(),
            target: target.into(),
            goodput: BitRate(9.5e8),
            limit: "none".into(),
            measured_by: None,
            format: 1,
            traffic: Some(Traffic {
                transport: "tcp".into(),
                direction: "reverse".into(),
                flows: 4,
            }),
            answer: None,
        }
    }

    #[test]
    fn hostile_targets_stay_within_their_field_and_label() {
        let evil = entry("2026-11-27T14:05:00Z", "a,\"b\"\nc\\\u{1b}\u{202e}");
        let line = csv_line(&evil, true, &Summary::default());
        let target = "\"a,\"\"b\"\"\u{fffd}c\\\u{fffd}\u{fffd}\"";
        assert_eq!(
            line,
            format!(
                "7,2026-11-27T14:05:00Z,test,{target},950000000,none,tcp,reverse,4,,true,,,,,\r\n"
            )
        );
        let (text, _) = openmetrics(&[evil]);
        let target = "a,\\\"b\\\"\u{fffd}c\\\\\u{fffd}\u{fffd}";
        let sample = format!("target=\"{target}\",transport=\"tcp\"}} 118750000 ");
        assert!(text.contains(&sample), "{text}");
    }

    #[test]
    fn a_line_has_what_only_the_record_knows_and_nothing_where_that_is_unknown() {
        let json = include_str!("../../../report/example/record.json");
        let record = Record::from_json(json).unwrap();
        let figures = Figures::of(&record);
        let summary = Summary { figures, incomplete: None };
        let line = csv_line(&entry("2026-11-27T14:05:00Z", "nas"), false, &summary);
        let fields: Vec<_> = line.trim_end().split(',').collect();
        let columns = format!("{LISTED},{RECORDED}");
        assert_eq!(fields.len(), columns.split(',').count());
        let at = LISTED.split(',').count();
        let numbers = fields[at..at + 4].iter().map(|field| field.parse::<f64>().ok());
        let known = figures.received_bytes.map(|bytes| bytes as f64);
        let expected =
            [known, figures.round_trip_s, figures.smallest_round_trip_s, figures.lost_share];
        assert_eq!(numbers.collect::<Vec<_>>(), expected);
        assert_eq!(fields[at - 1], "false");
    }

    #[test]
    fn a_part_of_a_test_is_marked() {
        let mut part = entry("2026-11-27T14:05:00Z", "nas");
        part.answer = Some("only a part: the budget was used up".into());
        let (text, _) = openmetrics(&[part.clone()]);
        assert!(text.contains("{incomplete=\"true\",direction="), "{text}");
        let incomplete = Some("the budget was used up".into());
        let line = csv_line(&part, true, &Summary { incomplete, ..Summary::default() });
        assert!(line.ends_with(",the budget was used up\r\n"), "{line}");
    }

    #[test]
    fn samples_of_a_metric_are_together_in_the_order_of_time_and_once() {
        let times = ["2026-11-27T14:05:01Z", "2026-11-27T14:05:00Z", "2026-11-27T14:05:01Z"];
        let mut all: Vec<_> = times.iter().map(|at| entry(at, "nas")).collect();
        all.insert(1, entry(times[0], "backup"));
        for (id, entry) in (1..).zip(&mut all) {
            entry.id = id;
        }
        let (text, left_out) = openmetrics(&all);
        assert_eq!(left_out, [1], "the later one of the same second is there");
        let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(samples.len(), 3, "{text}");
        assert!(
            samples[0].contains("backup")
                && samples[1].ends_with("300")
                && samples[2].ends_with("301"),
            "{text}"
        );
        assert!(text.ends_with("# EOF\n"));
    }
}
