//! The report of a comparison: each arm against the baseline, and whether the mechanism changed.

use std::fmt::Write;

use goodput_model::{
    ArmResult, BitRate, Comparison, Effect, Judgement, Known, Record, Response, ResponseResult,
    counted, thousands_apart,
};

use super::combined;
use super::delay;
use super::effect::{with_interval, word};
use super::mechanism;
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
    for line in combined::lines(comparison) {
        let _ = writeln!(out, "{line}");
    }
    if let Some(least) = delay::sentence(comparison) {
        let _ = writeln!(out, "{least}");
    }
    out += &notes(record);
    let _ = writeln!(out, "{}", style::faint(runs(comparison)));
    out
}

/// The hosts that were changed over SSH, and the doubts.
pub fn notes(record: &Record) -> String {
    let mut out = String::new();
    for host in &record.changed_hosts {
        let label = style::faint(format!("{:<12}", format!("{} host", host.end)));
        let _ = writeln!(out, "{label}{}, changed by SSH ({})", host.address, host.system);
    }
    for doubt in &record.doubts {
        let _ = writeln!(out, "{}{doubt}", style::faint("note        "));
    }
    out
}

/// `28 runs, 4 not counted; every arm was decided after 6 blocks`.
pub fn runs(comparison: &Comparison) -> String {
    let of_arms = comparison.arms.len().saturating_sub(1);
    let shared = if of_arms > 1 {
        format!("; {of_arms} arms share the 5 % error of each claim (Holm)")
    } else {
        String::new()
    };
    let discarded = comparison.trials.iter().filter(|t| t.discarded.is_some()).count();
    let (all, stopped) = (counted(comparison.trials.len(), "run"), &comparison.stopped);
    format!("{all} ({discarded} not counted); {stopped}{shared}")
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
        let again = if comparison.is_again(arm) { "  again" } else { "" };
        let values = arm.values.join("  ") + again;
        table.row(&[&values, &arm.n.to_string(), &goodput, &cost]);
    }
    table.text()
}

fn conclusion(comparison: &Comparison, number: usize, arm: &ArmResult) -> String {
    let base = comparison.arms.first().map(|arm| arm.values.join(" ")).unwrap_or_default();
    let again = if comparison.is_again(arm) { " again" } else { "" };
    let mut out = format!("{}{again} against {base} (arm {number})\n", arm.values.join(" "));
    let mut say = |label: &str, text: String| {
        let _ = writeln!(out, "  {}{text}", style::faint(format!("{label:11}")));
    };
    match &arm.goodput {
        Some(effect) if nothing_arrived(comparison) => say("goodput", from_nothing(effect)),
        Some(effect) => say("goodput", judged(effect, Response::Throughput)),
        None => say("goodput", format!("inconclusive: {}", comparison.why_unjudged(number))),
    }
    if let Some(effect) = &arm.cpu {
        say("cpu", judged(effect, Response::Cpu));
    }
    for (label, text) in arm.latency.iter().flat_map(delay::lines) {
        say(label, text);
    }
    for result in &arm.responses {
        if let Some(line) = named(comparison, result) {
            say(result.response.name(), line);
        }
    }
    let base = comparison.arms.first().into_iter();
    for (label, line) in base.flat_map(|base| mechanism::lines(base, arm)) {
        say(label, line);
    }
    if let Some(text) = mechanism::placebo(arm).filter(|_| comparison.is_again(arm)) {
        say("placebo", text);
    }
    let mut label = "for good";
    for text in permanent::lines(&arm.permanent) {
        say(label, text);
        label = "";
    }
    out
}

/// A response without a line of its own: its old value, its new value, and the meaning. The difference is that of the runs
/// of one block, so it is not always that of the medians.
fn named(comparison: &Comparison, result: &ResponseResult) -> Option<String> {
    if matches!(result.response, Response::Throughput | Response::Cpu | Response::Latency) {
        return None;
    }
    let of_baseline = comparison.arms.first()?.responses.iter();
    let before = of_baseline.clone().find(|before| before.response == result.response)?;
    let (before, after) = match (&before.median, &result.median) {
        (Known::Value(before), Known::Value(after)) => (before, after),
        (Known::Missing(why), _) | (_, Known::Missing(why)) => {
            return Some(format!("unknown: {why}"));
        }
    };
    let numbers = numbers(result.response, *before, *after);
    Some(match &result.against {
        // Here runs with zero are common, and a ratio to zero is meaningless.
        Some(effect) if matches!(result.response, Response::Loss | Response::Drops) => {
            format!(
                "{}: {numbers} (n = {})",
                word(effect, ["better", "worse"]),
                counted(effect.n, "pair")
            )
        }
        Some(effect) => format!("{}; medians {numbers}", judged(effect, result.response)),
        None => format!("inconclusive: {numbers}"),
    })
}

/// The old and the new value of a response.
fn numbers(response: Response, before: f64, after: f64) -> String {
    match response {
        Response::PerCpu => {
            format!("{} → {} per 100 % of CPU", BitRate(before), BitRate(after))
        }
        _ => format!("{} → {} {}", short(before), short(after), response.unit()),
    }
}

fn short(number: f64) -> String {
    match number.abs() {
        0.0 => "0".into(),
        size if size < 0.01 => format!("{number:.1e}"),
        size if size < 10.0 => format!("{number:.2}"),
        _ => thousands_apart(number),
    }
}

/// Whether nothing arrived with the baseline, so that a ratio to it is meaningless.
fn nothing_arrived(comparison: &Comparison) -> bool {
    let base = comparison.arms.first().and_then(|arm| arm.goodput_bits_per_s.value());
    base.is_some_and(|rate| rate.0 == 0.0)
}

fn from_nothing(effect: &Effect) -> String {
    match effect.judgement {
        Judgement::Better | Judgement::BetterPerhapsBelowThreshold => {
            format!(
                "{}: nothing arrived before (n = {})",
                style::good("better"),
                counted(effect.n, "pair")
            )
        }
        _ => format!("nothing arrived in the baseline either (n = {})", counted(effect.n, "pair")),
    }
}

/// `better: +28.1 % (95 % interval +27.4 to +28.9 %, n = 6)`.
pub(super) fn judged(effect: &Effect, response: Response) -> String {
    let names = match response {
        Response::Cpu => ["cheaper", "dearer"],
        _ => ["better", "worse"],
    };
    with_interval(&word(effect, names), effect, response.burden())
}
