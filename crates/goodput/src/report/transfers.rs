//! The file-transfer table, and its conclusions.

use std::collections::BTreeMap;
use std::fmt::Write;

use goodput_model::transfers::{EndCost, Method, Transfers};
use goodput_model::{
    ArmResult, Bytes, Comparison, Effect, Judgement, Known, Response, Seconds, Verdict,
};

use super::delay;
use super::style;
use super::table::Table;

/// Headings of the numbers, in two lines.
const HEADINGS: [[&str; 2]; 9] = [
    ["", "n"],
    ["", "time"],
    ["", "goodput"],
    ["CPU s/GB,", "near"],
    ["user+system", "far"],
    ["calls/MB", "near+far"],
    ["", "segments"],
    ["bytes a", "segment"],
    ["peak MB", "near+far"],
];

/// One of several tables: with its delays and its number of runs.
pub fn one_of_several(transfers: &Transfers) -> String {
    let comparison = &transfers.comparison;
    let mut out = text(transfers) + &delay::table(comparison);
    if let Some(least) = delay::sentence(comparison) {
        let _ = writeln!(out, "{least}");
    }
    let _ = writeln!(out, "{}", style::faint(super::compare::runs(comparison)));
    out
}

/// The table of one size and number of clients, and the sentences below it.
pub fn text(transfers: &Transfers) -> String {
    let title = title(transfers.size_bytes, transfers.clients);
    let mut out = format!("\n{}\n", style::strong(title));
    out += &table(transfers).text();
    let _ = writeln!(out, "{}", sentence(transfers));
    out
}

fn table(transfers: &Transfers) -> Table {
    let settings = &transfers.comparison.settings;
    let names = settings.iter().map(|setting| (String::new(), setting.to_string()));
    let numbers = HEADINGS.iter().map(|[upper, lower]| (upper.to_string(), lower.to_string()));
    let headings: Vec<_> = names.chain(numbers).collect();
    let mut table = Table::of_numbers(&headings, settings.len());
    for method in &transfers.methods {
        let cells = cells(method);
        table.row(&cells.iter().map(String::as_str).collect::<Vec<_>>());
    }
    table
}

/// `9.44 MB, 16 clients at once`.
pub fn title(size_bytes: Option<u64>, clients: u16) -> String {
    let size = size_bytes.map(|bytes| format!("{}, ", Bytes(bytes))).unwrap_or_default();
    match clients {
        1 => format!("{size}1 client"),
        many => format!("{size}{many} clients at once"),
    }
}

fn cells(method: &Method) -> Vec<String> {
    let Method { near, far, .. } = method;
    let cpu = |end: &EndCost| pair(&end.user_s_per_gb, &end.system_s_per_gb, 2, 1.0);
    let time = method.time_s.value().map_or("?".into(), |s| Seconds(*s).to_string());
    let numbers = [
        method.n.to_string(),
        time,
        method.goodput_bits_per_s.value().map_or("?".into(), ToString::to_string),
        cpu(near),
        cpu(far),
        pair(&near.calls_per_mb, &far.calls_per_mb, 1, 1.0),
        number(&method.segments, 0, 1.0),
        number(&method.payload_per_segment_bytes, 0, 1.0),
        pair(&near.peak_memory_bytes, &far.peak_memory_bytes, 1, 1e-6),
    ];
    method.values.iter().cloned().chain(numbers).collect()
}

/// `?` if unknown; the reason is in the record.
fn number(value: &Known<f64>, places: usize, scale: f64) -> String {
    match value {
        Known::Value(value) => format!("{:.places$}", value * scale),
        Known::Missing(_) => "?".into(),
    }
}

fn pair(a: &Known<f64>, b: &Known<f64>, places: usize, scale: f64) -> String {
    format!("{}+{}", number(a, places, scale), number(b, places, scale))
}

/// Which way is fastest, what limits here, and which costs least: only what the comparison has shown.
fn sentence(transfers: &Transfers) -> String {
    let comparison = &transfers.comparison;
    format!("{}. {}. {}.", speed(comparison), limits(comparison), cost(transfers))
}

/// `mover=sendfile socket.cork=on`, as typed.
fn name(comparison: &Comparison, arm: &ArmResult) -> String {
    let both = comparison.settings.iter().zip(&arm.values);
    let named: Vec<_> = both.map(|(setting, value)| format!("{setting}={value}")).collect();
    named.join(" ")
}

/// `Limits: sender-cpu (The sender's CPU is full) in 20 of 24 runs, line-rate in 4`.
fn limits(comparison: &Comparison) -> String {
    let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
    for trial in comparison.trials.iter().filter(|trial| trial.discarded.is_none()) {
        *runs.entry(&trial.limit).or_default() += 1;
    }
    let all: usize = runs.values().sum();
    let mut runs: Vec<_> = runs.into_iter().collect();
    runs.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    let named = runs.iter().enumerate().map(|(place, (limit, times))| match (place, *limit) {
        (0, Verdict::NO_LIMIT) => format!("none known in {times} of {all} runs"),
        (0, limit) => format!("{limit}{} in {times} of {all} runs", title_of(limit)),
        (_, Verdict::NO_LIMIT) => format!("none known in {times}"),
        (_, limit) => format!("{limit} in {times}"),
    });
    format!("Limits: {}", named.collect::<Vec<_>>().join(", "))
}

fn title_of(limit: &str) -> String {
    let rule = goodput_diagnose::rules::ALL.iter().find(|rule| rule.id == limit);
    rule.map(|rule| format!(" ({})", rule.title)).unwrap_or_default()
}

/// The arm with the best proven effect.
fn best<'a>(
    comparison: &'a Comparison,
    effect: impl Fn(&'a ArmResult) -> Option<&'a Effect>,
    by: impl Fn(&Effect) -> f64,
) -> Option<(usize, &'a Effect)> {
    let arms = comparison.arms.iter().enumerate();
    let shown = arms.filter_map(|(number, arm)| Some((number, effect(arm)?)));
    shown
        .filter(|(_, effect)| effect.judgement == Judgement::Better)
        .max_by(|(_, a), (_, b)| by(a).total_cmp(&by(b)))
}

fn speed(comparison: &Comparison) -> String {
    let Some(baseline) = comparison.arms.first().map(|arm| name(comparison, arm)) else {
        return "No run was finished".into();
    };
    let goodput = |arm: &'_ ArmResult| arm.goodput.as_ref().map(|effect| effect.judgement);
    if let Some((arm, effect)) = best(comparison, |arm| arm.goodput.as_ref(), |e| e.percent) {
        let fastest = name(comparison, &comparison.arms[arm]);
        return format!("Fastest: {fastest}, {:.0} against {baseline}", effect.difference());
    }
    let judged: Vec<_> = comparison.arms.iter().skip(1).map(goodput).collect();
    if judged.iter().all(|judged| *judged == Some(Judgement::NoDifference)) {
        return format!("All are as fast as {baseline}, within {} %", comparison.threshold_percent);
    }
    let is_no_faster = |judged: &Option<Judgement>| {
        use Judgement::{NoDifference, Worse, WorsePerhapsBelowThreshold};
        matches!(judged, Some(NoDifference | Worse | WorsePerhapsBelowThreshold))
    };
    if judged.iter().all(is_no_faster) {
        return format!("{baseline} is as fast as any");
    }
    "The runs are too few, or differ too much, to show which is fastest".into()
}

/// `Least CPU: mover=sendfile, 0.21 s per GB at both ends, 34.0 % less CPU time per byte than
/// mover=copy`.
fn cost(transfers: &Transfers) -> String {
    let comparison = &transfers.comparison;
    let of = |number: usize| {
        let Method { near, far, .. } = transfers.methods.get(number)?;
        Some(near.cpu_s_per_gb().value()? + far.cpu_s_per_gb().value()?)
    };
    let (Some(base), Some(usual)) = (comparison.arms.first(), of(0)) else {
        return "The CPU cost at both ends is unknown".into();
    };
    let baseline = name(comparison, base);
    let least = best(comparison, |arm| arm.cpu.as_ref(), |e| -e.percent);
    let Some((arm, effect, least)) = least.and_then(|(arm, e)| Some((arm, e, of(arm)?))) else {
        return format!(
            "Least CPU: none is shown to cost less than {baseline}, {usual:.2} s per GB at both ends"
        );
    };
    let cheapest = name(comparison, &comparison.arms[arm]);
    let difference = effect.difference_of(Response::Cpu.burden());
    format!("Least CPU: {cheapest}, {least:.2} s per GB at both ends, {difference} than {baseline}")
}

#[cfg(test)]
mod tests {
    use super::super::examples;
    use super::*;
    use Judgement::{Better, Inconclusive, NoDifference};
    use goodput_model::{BitRate, Trial};

    fn method(name: &str, system: f64) -> Method {
        let end = |system| EndCost {
            user_s_per_gb: Known::Value(0.0),
            system_s_per_gb: Known::Value(system),
            calls_per_mb: Known::Value(8.0),
            peak_memory_bytes: Known::missing("not reported"),
        };
        Method {
            values: vec![name.into()],
            n: 6,
            time_s: Known::Value(5.4),
            goodput_bits_per_s: Known::Value(BitRate(99e6)),
            near: end(system),
            far: end(0.1),
            segments: Known::Value(46_000.0),
            payload_per_segment_bytes: Known::Value(1448.0),
        }
    }

    fn effect(percent: f64, judgement: Judgement) -> Option<Effect> {
        let (low_percent, high_percent) = (percent - 1.0, percent + 1.0);
        Some(Effect {
            percent,
            low_percent,
            high_percent,
            confidence_percent: 95.0,
            n: 6,
            adjusted_for: Vec::new(),
            judgement,
        })
    }

    fn arm(name: &str, goodput: Option<Effect>, cpu: Option<Effect>) -> ArmResult {
        ArmResult { n: 6, goodput, cpu, ..ArmResult::new(vec![name.into()]) }
    }

    fn trial(limit: &str) -> Trial {
        Trial { limit: limit.into(), ..Trial::new(1, 0, Known::Value(BitRate(1e9))) }
    }

    fn transfers(goodput: Option<Effect>, cpu: Option<Effect>, limits: &[&str]) -> Transfers {
        let arms = vec![arm("copy", None, None), arm("sendfile", goodput, cpu)];
        let trials = limits.iter().map(|limit| trial(limit)).collect();
        let comparison =
            Comparison { trials, ..Comparison::new(vec!["mover".parse().unwrap()], arms) };
        let methods = vec![method("copy", 0.9), method("sendfile", 0.3)];
        let (size_bytes, limit) = (Some(64 << 20), "none".into());
        Transfers { size_bytes, clients: 16, methods, limit, comparison }
    }

    #[test]
    fn it_ends_in_what_limits_and_what_costs_least() {
        let limits = ["line-rate", "line-rate", "none", "sender-cpu"];
        let text = text(&transfers(effect(0.2, NoDifference), effect(-60.0, Better), &limits));
        let last = text.trim_end().lines().last().unwrap();
        assert!(last.starts_with("All are as fast as mover=copy, within 3 %. Limits: line-rate ("));
        assert!(
            last.ends_with(
                "in 2 of 4 runs, none known in 1, sender-cpu in 1. Least CPU: \
                 mover=sendfile, 0.40 s per GB at both ends, 60.0 % less CPU time per byte than mover=copy."
            ),
            "{last}"
        );
        assert!(text.contains("16 clients") && text.contains("?+?"), "{text}");
        assert!(text.contains("5.40 s"), "{text}");
    }

    #[test]
    fn it_says_no_more_than_was_shown() {
        let fastest = transfers(effect(90.0, Better), effect(-9.0, Inconclusive), &["none"]);
        let said = sentence(&fastest);
        assert!(
            said.starts_with("Fastest: mover=sendfile, +90 % against mover=copy. Limits: none"),
            "{said}"
        );
        assert!(said.contains("none is shown to cost less than mover=copy, 1.00 s"), "{said}");
        let said = sentence(&transfers(effect(9.0, Inconclusive), None, &[]));
        assert!(said.starts_with("The runs are too few"), "{said}");
    }

    #[test]
    fn the_page_shows_a_table_as_it_is_printed() {
        let end = |user, system, calls, megabytes: f64| EndCost {
            user_s_per_gb: Known::Value(user),
            system_s_per_gb: Known::Value(system),
            calls_per_mb: Known::Value(calls),
            peak_memory_bytes: Known::Value(megabytes * 1e6),
        };
        let copy = Method {
            n: 26,
            time_s: Known::Value(0.0151),
            goodput_bits_per_s: Known::Value(BitRate(85.6e9)),
            near: end(0.01, 0.11, 15.4, 16.9),
            far: end(0.01, 0.08, 4.4, 15.4),
            segments: Known::Value(3350.0),
            payload_per_segment_bytes: Known::Value(45_140.0),
            ..method("copy", 0.0)
        };
        let sendfile = Method {
            n: 26,
            time_s: Known::Value(0.0113),
            goodput_bits_per_s: Known::Value(BitRate(112.5e9)),
            near: end(0.01, 0.04, 7.7, 16.9),
            far: end(0.00, 0.09, 4.3, 15.5),
            segments: Known::Value(3352.0),
            payload_per_segment_bytes: Known::Value(45_397.0),
            ..method("sendfile", 0.0)
        };
        let transfers = Transfers { methods: vec![copy, sendfile], ..transfers(None, None, &[]) };
        let shown = table(&transfers).within(Some(examples::COLUMNS));
        examples::assert_shown("docs/files.md", "a table of two movers", &shown);
    }
}
