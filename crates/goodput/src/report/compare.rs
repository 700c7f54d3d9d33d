//! The report of a comparison: each arm against the baseline, and whether the mechanism moved.

use std::fmt::Write;

use goodput_model::{ArmResult, Comparison, Effect, Judgement, Known, Mechanism, Record};

use super::delay;
use super::effect::{perhaps, with_interval};
use super::permanent;
use super::style;
use super::table::Table;

/// The whole report.
pub fn text(record: &Record) -> String {
    let Some(comparison) = &record.comparison else { return String::new() };
    let settings: Vec<_> = comparison.settings.iter().map(ToString::to_string).collect();
    let mut out = format!("\n{}\n", style::strong(settings.join("  ")));
    out += &arms(comparison);
    out += &delay::table(comparison);
    for (number, arm) in comparison.arms.iter().enumerate().skip(1) {
        out += &conclusion(comparison, number, arm);
    }
    if let Some(least) = delay::sentence(comparison) {
        let _ = writeln!(out, "{least}");
    }
    out += &notes(record);
    let _ = writeln!(out, "{}", style::faint(runs(comparison)));
    out
}

/// The doubts.
pub fn notes(record: &Record) -> String {
    let mut out = String::new();
    for doubt in &record.doubts {
        let _ = writeln!(out, "{}{doubt}", style::faint("note        "));
    }
    out
}

/// `28 runs, 4 not counted; every arm was decided after 6 blocks`.
pub fn runs(comparison: &Comparison) -> String {
    let discarded = comparison.trials.iter().filter(|t| t.discarded.is_some()).count();
    let (all, stopped) = (comparison.trials.len(), &comparison.stopped);
    format!("{all} runs ({discarded} not counted); {stopped}")
}

fn arms(comparison: &Comparison) -> String {
    let mut table = Table::new(&["arm", "n", "goodput", "cpu-s/GB"]);
    for arm in &comparison.arms {
        let goodput = match &arm.goodput_bits_per_s {
            Known::Value(rate) => rate.to_string(),
            Known::Missing(_) => "unknown".into(),
        };
        let cost = match &arm.cpu_s_per_gb {
            Known::Value(cost) => format!("{cost:.2}"),
            Known::Missing(_) => "unknown".into(),
        };
        table.row(&[&arm.values.join("  "), &arm.n.to_string(), &goodput, &cost]);
    }
    table.text()
}

fn conclusion(comparison: &Comparison, number: usize, arm: &ArmResult) -> String {
    let base = comparison.arms.first().map(|arm| arm.values.join(" ")).unwrap_or_default();
    let mut out = format!("{} against {base} (arm {number})\n", arm.values.join(" "));
    let mut say = |label: &str, text: String| {
        let _ = writeln!(out, "  {}{text}", style::faint(format!("{label:10}")));
    };
    match &arm.goodput {
        Some(effect) if nothing_arrived(comparison) => say("goodput", from_nothing(effect)),
        Some(effect) => say("goodput", judged(effect, false)),
        None => say("goodput", "inconclusive: too few runs".into()),
    }
    if let Some(effect) = &arm.cpu {
        say("cpu", judged(effect, true));
    }
    for (label, text) in arm.latency.iter().flat_map(delay::lines) {
        say(label, text);
    }
    if let Some(mechanism) = &arm.mechanism {
        say("because", because(mechanism));
    }
    let mut label = "for good";
    for text in permanent::lines(&arm.permanent) {
        say(label, text);
        label = "";
    }
    out
}

/// Whether the baseline let nothing through, so that a ratio to it says nothing.
fn nothing_arrived(comparison: &Comparison) -> bool {
    let base = comparison.arms.first().and_then(|arm| arm.goodput_bits_per_s.value());
    base.is_some_and(|rate| rate.0 == 0.0)
}

fn from_nothing(effect: &Effect) -> String {
    match effect.judgement {
        Judgement::Better | Judgement::BetterPerhapsBelowThreshold => {
            format!("{}: nothing arrived before (n = {} pairs)", style::good("better"), effect.n)
        }
        _ => format!("nothing arrived in the baseline either (n = {} pairs)", effect.n),
    }
}

/// `better: +28.1 % (95 % interval +27.4 to +28.9 %, n = 6)`.
pub(super) fn judged(effect: &Effect, less_is_better: bool) -> String {
    let words = match (effect.judgement, less_is_better) {
        (Judgement::Better, false) => style::good("better"),
        (Judgement::Better, true) => style::good("cheaper"),
        (Judgement::Worse, false) => style::bad("worse"),
        (Judgement::Worse, true) => style::bad("dearer"),
        (Judgement::BetterPerhapsBelowThreshold, false) => perhaps("better"),
        (Judgement::BetterPerhapsBelowThreshold, true) => perhaps("cheaper"),
        (Judgement::WorsePerhapsBelowThreshold, false) => perhaps("worse"),
        (Judgement::WorsePerhapsBelowThreshold, true) => perhaps("dearer"),
        (Judgement::NoDifference, _) => "no difference".into(),
        (Judgement::Inconclusive, _) => "inconclusive".into(),
    };
    with_interval(&words, effect)
}

fn because(mechanism: &Mechanism) -> String {
    let value = |known: &Known<f64>| match known {
        Known::Value(value) => format!("{value:.1}"),
        Known::Missing(why) => format!("unknown ({why})"),
    };
    let moved = match &mechanism.moved {
        Known::Value(true) => "confirmed",
        Known::Value(false) => "NOT confirmed: the witness did not change",
        Known::Missing(why) => return format!("{}: not known, {why}", mechanism.rule),
    };
    let rule = goodput_diagnose::rules::ALL.iter().find(|rule| rule.id == mechanism.rule);
    format!(
        "{}, {moved}: {} {} → {}; the next limit is {}",
        mechanism.rule,
        rule.map_or("witness", |rule| rule.witness_name).replace('_', " "),
        value(&mechanism.witness_before),
        value(&mechanism.witness_after),
        mechanism.next_limit
    )
}
