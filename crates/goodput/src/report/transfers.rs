//! The file-transfer table, and what it says.

use std::fmt::Write;

use goodput_model::transfers::{EndCost, Method, Transfers};
use goodput_model::{ArmResult, Bytes, Comparison, Effect, Judgement, Known};

use super::style;
use super::table::Table;

/// Headings of the table.
const HEADINGS: [&str; 10] = [
    "arm",
    "n",
    "time",
    "goodput",
    "near user+sys s/GB",
    "far user+sys s/GB",
    "calls/MB near+far",
    "segments",
    "payload",
    "peak MB near+far",
];

/// The table of one size and number of clients, and the sentence it ends in.
pub fn text(transfers: &Transfers) -> String {
    let clients = match transfers.clients {
        1 => "1 client".to_string(),
        many => format!("{many} clients at once"),
    };
    let size = transfers.size_bytes.map(|bytes| format!("{}, ", Bytes(bytes))).unwrap_or_default();
    let mut out = format!("\n{}\n", style::strong(format!("{size}{clients}")));
    let mut table = Table::new(&HEADINGS);
    for method in &transfers.methods {
        let cells = cells(method);
        table.row(&cells.iter().map(String::as_str).collect::<Vec<_>>());
    }
    out += &table.text();
    let _ = writeln!(out, "{}", sentence(transfers));
    out
}

fn cells(method: &Method) -> Vec<String> {
    let Method { near, far, .. } = method;
    let cpu = |end: &EndCost| pair(&end.user_s_per_gb, &end.system_s_per_gb, 2, 1.0);
    vec![
        method.values.join(" "),
        method.n.to_string(),
        number(&method.time_s, 3, 1.0) + " s",
        method.goodput_bits_per_s.value().map_or("?".into(), ToString::to_string),
        cpu(near),
        cpu(far),
        pair(&near.calls_per_mb, &far.calls_per_mb, 1, 1.0),
        number(&method.segments, 0, 1.0),
        number(&method.payload_per_segment_bytes, 0, 1.0),
        pair(&near.peak_memory_bytes, &far.peak_memory_bytes, 1, 1e-6),
    ]
}

/// `?` for what is not known; the reason is in the record.
fn number(value: &Known<f64>, places: usize, scale: f64) -> String {
    match value {
        Known::Value(value) => format!("{:.places$}", value * scale),
        Known::Missing(_) => "?".into(),
    }
}

fn pair(a: &Known<f64>, b: &Known<f64>, places: usize, scale: f64) -> String {
    format!("{}+{}", number(a, places, scale), number(b, places, scale))
}

/// What limits here, and which method costs least: only what the comparison has shown.
fn sentence(transfers: &Transfers) -> String {
    let limit = match transfers.limit.as_str() {
        "none" => "nothing that goodput knows limits most runs".to_string(),
        limit => format!("most runs are limited by {limit}"),
    };
    let (speed, cost) = (speed(&transfers.comparison), cost(transfers));
    format!("{speed}; {limit}{}.", cost.unwrap_or_default())
}

fn name(arm: &ArmResult) -> String {
    arm.values.join(" ")
}

/// The arm of the best effect that was shown to be one.
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
    let Some(baseline) = comparison.arms.first().map(name) else {
        return "No run was finished".into();
    };
    let goodput = |arm: &'_ ArmResult| arm.goodput.as_ref().map(|effect| effect.judgement);
    if let Some((arm, effect)) = best(comparison, |arm| arm.goodput.as_ref(), |e| e.percent) {
        let fastest = name(&comparison.arms[arm]);
        return format!("{fastest} is fastest, {:+.0} % against {baseline}", effect.percent);
    }
    let judged: Vec<_> = comparison.arms.iter().skip(1).map(goodput).collect();
    if judged.iter().all(|judged| *judged == Some(Judgement::NoDifference)) {
        return format!("All are as fast as {baseline}, within {} %", comparison.threshold_percent);
    }
    if judged
        .iter()
        .all(|judged| matches!(judged, Some(Judgement::NoDifference | Judgement::Worse)))
    {
        return format!("{baseline} is as fast as any");
    }
    "The runs are too few, or differ too much, to tell which is fastest".into()
}

/// `; sendfile costs least: 0.21 CPU seconds per GB at both ends, 34 % of copy's`.
fn cost(transfers: &Transfers) -> Option<String> {
    let comparison = &transfers.comparison;
    let of = |number: usize| {
        let method = transfers.methods.get(number)?;
        Some(method.near.cpu_s_per_gb().value()? + method.far.cpu_s_per_gb().value()?)
    };
    let (baseline, usual) = (name(comparison.arms.first()?), of(0)?);
    let Some((arm, _)) = best(comparison, |arm| arm.cpu.as_ref(), |e| -e.percent) else {
        return Some(format!(
            "; none is shown to cost less than {baseline}, {usual:.2} CPU seconds per GB at both ends"
        ));
    };
    let least = of(arm)?;
    Some(format!(
        "; {} costs least: {least:.2} CPU seconds per GB at both ends, {:.0} % of {baseline}'s",
        name(&comparison.arms[arm]),
        least / usual * 100.0,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Judgement::{Better, Inconclusive, NoDifference};
    use goodput_model::BitRate;

    fn method(name: &str, system: f64) -> Method {
        let end = |system| EndCost {
            user_s_per_gb: Known::Value(0.0),
            system_s_per_gb: Known::Value(system),
            calls_per_mb: Known::Value(8.0),
            peak_memory_bytes: Known::missing("not told"),
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
            judgement,
        })
    }

    fn arm(name: &str, goodput: Option<Effect>, cpu: Option<Effect>) -> ArmResult {
        ArmResult {
            values: vec![name.into()],
            n: 6,
            goodput_bits_per_s: Known::missing("not asked"),
            cpu_s_per_gb: Known::missing("not asked"),
            goodput,
            cpu,
            mechanism: None,
            permanent: Vec::new(),
        }
    }

    fn table(goodput: Option<Effect>, cpu: Option<Effect>, limit: &str) -> Transfers {
        let comparison = Comparison {
            settings: Vec::new(),
            arms: vec![arm("copy", None, None), arm("sendfile", goodput, cpu)],
            trials: Vec::new(),
            threshold_percent: 3.0,
            stopped: String::new(),
        };
        let methods = vec![method("copy", 0.9), method("sendfile", 0.3)];
        let (size_bytes, limit) = (Some(64 << 20), limit.into());
        Transfers { size_bytes, clients: 16, methods, limit, comparison }
    }

    #[test]
    fn it_ends_in_what_limits_and_what_costs_least() {
        let table = table(effect(0.2, NoDifference), effect(-60.0, Better), "line-rate");
        let text = text(&table);
        let last = text.trim_end().lines().last().unwrap();
        assert_eq!(
            last,
            "All are as fast as copy, within 3 %; most runs are limited by line-rate; sendfile costs \
             least: 0.40 CPU seconds per GB at both ends, 40 % of copy's."
        );
        assert!(text.contains("16 clients") && text.contains("?+?"), "{text}");
    }

    #[test]
    fn it_says_no_more_than_was_shown() {
        let said = sentence(&table(effect(90.0, Better), effect(-9.0, Inconclusive), "none"));
        assert!(said.starts_with("sendfile is fastest, +90 % against copy; nothing"), "{said}");
        assert!(said.contains("none is shown to cost less than copy, 1.00 CPU"), "{said}");
        let said = sentence(&table(effect(9.0, Inconclusive), None, "none"));
        assert!(said.starts_with("The runs are too few"), "{said}");
    }
}
