//! What a comparison of a shaper's settings shows: the rate with each of them, which of them matters, and what gives the
//! rate.

use goodput_model::{
    ArmRate, ArmResult, Comparison, Known, Missing, Record, Response, ShapingProof, ShapingTest,
};

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
    if test.train.value().is_none() {
        line(out, "judged by", "TCP alone: what datagrams get is unknown");
    }
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

/// `arm  n  rate  interval  gives`, with a column for each setting.
fn rates(proof: &ShapingProof, comparison: &Comparison) -> String {
    let settings: Vec<String> = comparison.settings.iter().map(ToString::to_string).collect();
    let mut headings: Vec<&str> = settings.iter().map(String::as_str).collect();
    headings.extend(["n", "rate", "interval", "gives"]);
    let mut table = Table::new(&headings);
    for (arm, ArmRate { median_bits_per_s: rate, interval_bits_per_s: interval, gives }) in
        comparison.arms.iter().zip(&proof.arms)
    {
        let interval = match interval {
            Known::Value([low, high]) => format!("{low} to {high}"),
            Known::Missing(why) => why.missing.to_string(),
        };
        let rate = match rate {
            Known::Value(rate) => rate.to_string(),
            Known::Missing(_) => "unknown".into(),
        };
        let (n, gives) = (arm.n.to_string(), answer(gives));
        let mut cells: Vec<&str> = arm.values.iter().map(String::as_str).collect();
        cells.extend([n.as_str(), &rate, &interval, gives]);
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

/// Whether an arm gives the configured rate, in a word.
fn answer(gives: &Known<bool>) -> &'static str {
    match gives {
        Known::Value(true) => "yes",
        Known::Value(false) => "no",
        Known::Missing(_) => "undecided",
    }
}

fn gives(test: &ShapingTest, proof: &ShapingProof, comparison: &Comparison) -> String {
    let configured = format!("{} ± {} %", test.configured_bits_per_s, test.tolerance_percent);
    let named = |arm: usize| match arm {
        0 => "what is set now".to_owned(),
        _ => changes(comparison, arm),
    };
    match (proof.gives, first_undecided(proof)) {
        (Some(0), _) => style::good(format!("what is set now gives {configured}")),
        (Some(arm), _) => format!("{} gives {configured}", style::good(named(arm))),
        (None, Some((arm, why))) => {
            let arm = named(arm);
            format!("undecided whether {arm} gives {configured}: {}", why.missing)
        }
        (None, None) => {
            let none = style::bad(format!("none of these gives {configured}"));
            let medians = proof.arms.iter().map(|arm| arm.median_bits_per_s.value());
            let known = medians.enumerate().filter_map(|(arm, rate)| Some((arm, *rate?)));
            match known.max_by(|(_, one), (_, other)| one.0.total_cmp(&other.0)) {
                Some((arm, rate)) => format!("{none}; the most is {rate}, with {}", named(arm)),
                None => none,
            }
        }
    }
}

/// The first arm of which the runs don't show whether it gives the rate, and why.
fn first_undecided(proof: &ShapingProof) -> Option<(usize, Missing)> {
    let mut all = proof.arms.iter().enumerate();
    all.find_map(|(arm, rate)| Some((arm, rate.gives.get().err()?)))
}

/// What an arm has otherwise than the baseline.
fn changes(comparison: &Comparison, arm: usize) -> String {
    let (arm, base) = (&comparison.arms[arm].values, &comparison.arms[0].values);
    let values = comparison.settings.iter().zip(arm).zip(base);
    let changed = values.filter(|((_, value), base)| value != base);
    changed.map(|((setting, value), _)| format!("{setting}={value}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anstream::adapter::strip_str;
    use goodput_model::BitRate;

    fn result(gives: Option<usize>, arms: [Known<bool>; 2]) -> String {
        let median = |mbit: f64| Known::Value(BitRate(mbit * 1e6));
        let rates = arms.into_iter().zip([93.0, 96.0]).map(|(gives, rate)| ArmRate {
            median_bits_per_s: median(rate),
            interval_bits_per_s: Known::missing("2 runs are too few"),
            gives,
        });
        let proof = ShapingProof {
            arms: rates.collect(),
            gives,
            left_out: Vec::new(),
            commands: Vec::new(),
            networkd: Vec::new(),
            permanent: Vec::new(),
        };
        let settings = vec!["qdisc.tbf.burst@eth0".parse().unwrap()];
        let arms = ["1600", "68130"].map(|value| ArmResult::new(vec![value.into()]));
        let comparison = Comparison::new(settings, arms.to_vec());
        let test = ShapingTest { tolerance_percent: 2.0, ..ShapingTest::of(BitRate(1e8)) };
        strip_str(&super::gives(&test, &proof, &comparison)).to_string()
    }

    #[test]
    fn none_gives_the_rate_only_if_that_is_shown_of_each() {
        let more = || Known::missing("4 more blocks show it, with a longer --max-time");
        let (yes, no) = (|| Known::Value(true), || Known::Value(false));
        let ends = "gives 100 Mbit/s ± 2 %";
        assert_eq!(
            result(None, [no(), no()]),
            format!("none of these {ends}; the most is 96 Mbit/s, with qdisc.tbf.burst@eth0=68130")
        );
        let why = "4 more blocks show it, with a longer --max-time";
        assert_eq!(
            result(None, [no(), more()]),
            format!("undecided whether qdisc.tbf.burst@eth0=68130 {ends}: {why}")
        );
        assert_eq!(
            result(None, [more(), yes()]),
            format!("undecided whether what is set now {ends}: {why}")
        );
        assert_eq!(result(Some(1), [no(), yes()]), format!("qdisc.tbf.burst@eth0=68130 {ends}"));
        assert_eq!(result(Some(0), [yes(), yes()]), format!("what is set now {ends}"));
    }
}
