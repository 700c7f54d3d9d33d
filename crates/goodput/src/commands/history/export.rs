//! `goodput history export`: results for other programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;
use goodput_store::{Entry, Store};
use jiff::Timestamp;

use crate::args::ExportArgs;
use crate::exit::Exit;
use crate::screen;

/// Prints the wanted results, oldest first.
pub fn run(store: &Store, args: &ExportArgs) -> Result<Exit> {
    let mut entries = store.search(&args.wanted.wanted(u32::MAX))?;
    entries.reverse();
    if args.json {
        return records(store, &entries);
    }
    let text = if args.csv { csv(&entries) } else { openmetrics(&entries) };
    screen::print_data(|out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Fine)
}

/// Each record as it is read, so that they are never in memory together. One that can't be read is reported, and does not
/// keep the others.
fn records(store: &Store, entries: &[Entry]) -> Result<Exit> {
    let mut exit = Exit::Fine;
    for entry in entries {
        match store.get(entry.id) {
            Ok(record) => screen::print_data(|out| {
                record.write_json_line(&mut *out)?;
                writeln!(out)
            })?,
            Err(why) => {
                screen::say(format_args!("goodput: {why}"));
                exit = Exit::CouldNot;
            }
        }
    }
    Ok(exit)
}

fn csv(entries: &[Entry]) -> String {
    let mut text = String::from("id,started,kind,target,goodput_bits_per_s,limit\r\n");
    for Entry { id, started, kind, target, goodput, limit, .. } in entries {
        let [started, kind, target, limit] = [started, kind, target, limit].map(|text| field(text));
        let _ = write!(text, "{id},{started},{kind},{target},{},{limit}\r\n", goodput.0);
    }
    text
}

/// A text as a field (RFC 4180, section 2).
fn field(text: &str) -> String {
    match text.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into(),
    }
}

/// The name of the family.
const FAMILY: &str = "goodput_result_bits_per_second";

/// Samples of one metric stand together, with increasing times (OpenMetrics 1.0, "Text Format").
fn openmetrics(entries: &[Entry]) -> String {
    let mut metrics: BTreeMap<String, BTreeMap<i64, f64>> = BTreeMap::new();
    for Entry { started, kind, target, goodput, limit, .. } in entries {
        let Ok(at) = started.parse::<Timestamp>() else { continue };
        let [kind, target, limit] = [kind, target, limit].map(|text| label(text));
        let labels = format!("kind=\"{kind}\",limit=\"{limit}\",target=\"{target}\"");
        metrics.entry(labels).or_default().insert(at.as_second(), goodput.0);
    }
    let mut text = format!(
        "# TYPE {FAMILY} gauge\n# UNIT {FAMILY} bits_per_second\n# HELP {FAMILY} Goodput of a result of goodput.\n"
    );
    for (labels, samples) in metrics {
        for (at, value) in samples {
            let _ = writeln!(text, "{FAMILY}{{{labels}}} {value} {at}");
        }
    }
    text + "# EOF\n"
}

/// A text as the value of a label (OpenMetrics 1.0, "Escaping").
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::BitRate;

    fn entry(started: &str, target: &str) -> Entry {
        Entry {
            id: 7,
            started: started.into(),
            kind: "test".into(),
            target: target.into(),
            goodput: BitRate(9.5e8),
            limit: "none".into(),
            format: 1,
        }
    }

    #[test]
    fn hostile_targets_stay_within_their_field_and_label() {
        let all = [entry("2026-11-27T14:05:00Z", "a,\"b\"\nc\\")];
        let text = csv(&all);
        assert!(
            text.ends_with("7,2026-11-27T14:05:00Z,test,\"a,\"\"b\"\"\nc\\\",950000000,none\r\n"),
            "{text}"
        );
        let text = openmetrics(&all);
        assert!(text.contains(r#"target="a,\"b\"\nc\\"} 950000000 "#), "{text}");
    }

    #[test]
    fn samples_of_a_metric_are_together_in_the_order_of_time_and_once() {
        let times = ["2026-11-27T14:05:01Z", "2026-11-27T14:05:00Z", "2026-11-27T14:05:01Z"];
        let mut all: Vec<_> = times.iter().map(|at| entry(at, "nas")).collect();
        all.insert(1, entry(times[0], "backup"));
        let text = openmetrics(&all);
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
