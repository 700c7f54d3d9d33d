//! What a comparison of a shaper's settings shows: the rate with each of them, which of them matters, and what gives the
//! rate.

use goodput_model::{ArmResult, Comparison, Known, Record, Response, ShapingProof, ShapingTest};

use super::labelled::{line, lines};
use super::table::Table;
use super::{combined, compare, permanent, style};

/// Adds these lines to a report.
pub(super) fn add(out: &mut String, record: &Record, test: &ShapingTest) {
    if let Some(not) = &test.not_proven {
        *out += "\nproof\n";
        match not.nothing_in_question {
            true => line(out, "not needed", &not.why),
            false => line(out, "not proven", &style::bad(&not.why)),
        }
    }
    let Some((proof, comparison)) = test.proof.as_ref().zip(record.comparison.as_ref()) else {
        return;
    };
    *out += "\nproof\n";
    *out += &rates(proof, comparison);
    for words in matters(comparison) {
        *out += &words;
        out.push('\n');
    }
    lines(out, "left out", proof.left_out.iter().cloned());
    line(out, "result", &gives(test, proof, comparison));
    lines(out, "commands", proof.commands.iter().map(style::strong));
    lines(out, "networkd", proof.networkd.iter().cloned());
    lines(out, "for good", permanent::lines(&proof.permanent));
    line(out, "runs", &compare::runs(comparison));
}

/// `arm  n  rate  interval`, with a column for each setting.
fn rates(proof: &ShapingProof, comparison: &Comparison) -> String {
    let settings: Vec<String> = comparison.settings.iter().map(ToString::to_string).collect();
    let mut headings: Vec<&str> = settings.iter().map(String::as_str).collect();
    headings.extend(["n", "rate", "interval"]);
    let mut table = Table::new(&headings);
    for (arm, rate) in comparison.arms.iter().zip(&proof.arms) {
        let interval = match &rate.interval_bits_per_s {
            Known::Value([low, high]) => format!("{low} to {high}"),
            Known::Missing(why) => why.missing.to_string(),
        };
        let rate = match &rate.median_bits_per_s {
            Known::Value(rate) => rate.to_string(),
            Known::Missing(_) => "unknown".into(),
        };
        let n = arm.n.to_string();
        let mut cells: Vec<&str> = arm.values.iter().map(String::as_str).collect();
        cells.extend([n.as_str(), &rate, &interval]);
        table.row(&cells);
    }
    table.text()
}

/// What each setting does, and whether one changes what the other does.
fn matters(comparison: &Comparison) -> Vec<String> {
    let combined = combined::lines(comparison);
    if !combined.is_empty() {
        return combined;
    }
    comparison.arms.iter().skip(1).map(|arm| alone(comparison, arm)).collect()
}

/// The effect of the only setting.
fn alone(comparison: &Comparison, arm: &ArmResult) -> String {
    let settings = comparison.settings.iter().zip(&arm.values);
    let named: Vec<_> = settings.map(|(setting, value)| format!("{setting}={value}")).collect();
    let effect = match &arm.goodput {
        Some(effect) => compare::judged(effect, Response::Throughput),
        None => "inconclusive: too few runs".into(),
    };
    format!("{}{}: {effect}", style::faint("effect      "), named.join(" "))
}

fn gives(test: &ShapingTest, proof: &ShapingProof, comparison: &Comparison) -> String {
    let configured = format!("{} ± {} %", test.configured_bits_per_s, test.tolerance_percent);
    match proof.gives {
        Some(0) => style::good(format!("what is set now gives {configured}")),
        Some(arm) => format!("{} gives {configured}", style::good(changes(comparison, arm))),
        None => {
            let none = style::bad(format!("none of these gives {configured}"));
            let medians = proof.arms.iter().map(|arm| arm.median_bits_per_s.value());
            let known = medians.enumerate().filter_map(|(arm, rate)| Some((arm, *rate?)));
            match known.max_by(|(_, one), (_, other)| one.0.total_cmp(&other.0)) {
                Some((0, rate)) => format!("{none}; the most is {rate}, with what is set now"),
                Some((arm, rate)) => {
                    format!("{none}; the most is {rate}, with {}", changes(comparison, arm))
                }
                None => none,
            }
        }
    }
}

/// What an arm has otherwise than the baseline.
fn changes(comparison: &Comparison, arm: usize) -> String {
    let (arm, base) = (&comparison.arms[arm].values, &comparison.arms[0].values);
    let values = comparison.settings.iter().zip(arm).zip(base);
    let changed = values.filter(|((_, value), base)| value != base);
    changed.map(|((setting, value), _)| format!("{setting}={value}")).collect::<Vec<_>>().join(" ")
}
