//! What the arms of a comparison cost in delay: times under load, and which arm costs least.

use goodput_model::{
    ArmLatency, ArmResult, Comparison, Effect, Judgement, Known, LoadedTimes, Response, Seconds,
};

use super::effect::{with_interval, word};
use super::labelled::line;
use super::style;
use super::table::Table;

/// A column for each way to time that any arm has; empty if nothing was measured. Reasons for missing ways follow below.
pub fn table(comparison: &Comparison) -> String {
    let arms: Vec<_> = comparison
        .arms
        .iter()
        .filter_map(|arm| Some((values(comparison, arm), arm.latency.as_ref()?)))
        .collect();
    let Some((_, first)) = arms.first() else { return String::new() };
    let names = first.ways().map(|(name, _)| name);
    let known: Vec<usize> = (0..names.len())
        .filter(|way| arms.iter().any(|(_, arm)| arm.ways()[*way].1.p50_us.value().is_some()))
        .collect();
    let headings: Vec<_> = ["under load, median (p99)"]
        .into_iter()
        .chain(known.iter().map(|way| names[*way]))
        .collect();
    let mut table = Table::new(&headings);
    for (values, latency) in &arms {
        let cells = known.iter().map(|way| cell(latency.ways()[*way].1));
        let row: Vec<String> = [values.clone()].into_iter().chain(cells).collect();
        table.row(&row.iter().map(String::as_str).collect::<Vec<_>>());
    }
    table.text() + &unknown(first)
}

fn values(comparison: &Comparison, arm: &ArmResult) -> String {
    let again = if comparison.is_again(arm) { " again" } else { "" };
    arm.values.join(" ") + again
}

fn cell(times: &LoadedTimes) -> String {
    match (&times.p50_us, &times.p99_us) {
        (Known::Value(p50), Known::Value(p99)) => {
            format!("{} ({})", Seconds::of_us(*p50), Seconds::of_us(*p99))
        }
        _ => "?".into(),
    }
}

/// One line for each way that the baseline is missing.
fn unknown(latency: &ArmLatency) -> String {
    let line = |(name, times): (&str, &LoadedTimes)| match &times.p50_us {
        Known::Missing(why) => Some(style::faint(format!("{name} unknown: {why}")) + "\n"),
        Known::Value(_) => None,
    };
    latency.ways().into_iter().filter_map(line).collect()
}

/// The delay of one arm: a label and a text for each way that was compared.
pub fn lines(latency: &ArmLatency) -> Vec<(&'static str, String)> {
    let line =
        |(name, times): (&'static str, &LoadedTimes)| Some((name, judged(times.against.as_ref()?)));
    latency.ways().into_iter().filter_map(line).collect()
}

/// `shorter: 95.1 % less delay (96.9 % interval 94.8 to 95.4 % less, n = 6 pairs)`.
fn judged(effect: &Effect) -> String {
    with_interval(&word(effect, ["shorter", "longer"]), effect, Response::Latency.burden())
}

/// `least delay fq_codel, echo 1.20 ms under load instead of 40 ms`: the arm with the largest improvement, by the
/// first way to time that shows any; or that there is none.
pub fn sentence(comparison: &Comparison) -> Option<String> {
    let base = comparison.arms.first()?;
    let before = base.latency.as_ref()?.ways();
    for (way, (name, usual)) in before.into_iter().enumerate() {
        let times = |arm: usize| Some(comparison.arms[arm].latency.as_ref()?.ways()[way].1);
        let better = |arm: usize| {
            let effect = times(arm)?.against.as_ref()?;
            (effect.judgement == Judgement::Better).then_some((arm, effect.percent))
        };
        let best = (1..comparison.arms.len()).filter_map(better).min_by(|a, b| a.1.total_cmp(&b.1));
        let shorter = best.and_then(|(arm, _)| {
            let (now, was) = (times(arm)?.p50_us.value()?, usual.p50_us.value()?);
            let values = values(comparison, &comparison.arms[arm]);
            let (now, was) = (Seconds::of_us(*now), Seconds::of_us(*was));
            Some(least(&format!("{values}, {name} {now} under load instead of {was}")))
        });
        if shorter.is_some() {
            return shorter;
        }
    }
    Some(least(&format!("none is shown to be shorter than {}", base.values.join(" "))))
}

fn least(text: &str) -> String {
    let mut out = String::new();
    line(&mut out, "least delay", text);
    out.trim_end().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(us: f64, percent: Option<f64>) -> LoadedTimes {
        let against = percent.map(|percent| Effect {
            percent,
            low_percent: percent - 1.0,
            high_percent: percent + 1.0,
            confidence_percent: 96.9,
            n: 6,
            adjusted_for: Vec::new(),
            judgement: if percent < -3.0 { Judgement::Better } else { Judgement::Inconclusive },
        });
        LoadedTimes { p50_us: Known::Value(us), p99_us: Known::Value(2.0 * us), against }
    }

    fn comparison(change: Option<f64>) -> Comparison {
        let unknown = || LoadedTimes {
            p50_us: Known::missing("no echo"),
            p99_us: Known::missing("no echo"),
            against: None,
        };
        let arm = |value: &str, us, percent| ArmResult {
            n: 6,
            latency: Some(ArmLatency {
                tcp_connect: times(us, percent),
                udp_echo: unknown(),
                tcp_rtt: times(50_000.0, percent.map(|_| 0.0)),
                unsent: times(0.0, None),
            }),
            ..ArmResult::new(vec![value.into()])
        };
        let arms = vec![arm("pfifo", 40_000.0, None), arm("fq_codel", 1_200.0, change)];
        Comparison::new(Vec::new(), arms)
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn the_arm_with_the_least_delay_is_named_and_what_is_unknown_has_no_column() {
        let comparison = comparison(Some(-97.0));
        let text = table(&comparison);
        assert!(text.contains("fq_codel") && text.contains("1.20 ms (2.40 ms)"), "{text}");
        assert!(text.contains("echo unknown: no echo"), "{text}");
        assert_eq!(
            plain(&sentence(&comparison).unwrap()),
            "least delay fq_codel, connect 1.20 ms under load instead of 40 ms"
        );
        let lines = lines(comparison.arms[1].latency.as_ref().unwrap());
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0].1.contains("shorter") && lines[0].1.contains("97.0 % less delay"),
            "{lines:?}"
        );
    }

    #[test]
    fn the_baseline_that_ran_again_has_a_row_of_its_own_name() {
        let mut comparison = comparison(Some(0.0));
        comparison.arms[1].values = comparison.arms[0].values.clone();
        let text = table(&comparison);
        assert!(text.contains("\npfifo again "), "{text}");
    }

    #[test]
    fn nothing_is_claimed_that_was_not_shown() {
        let said = plain(&sentence(&comparison(Some(-1.0))).unwrap());
        assert_eq!(said, "least delay none is shown to be shorter than pfifo");
        let mut silent = comparison(None);
        silent.arms.iter_mut().for_each(|arm| arm.latency = None);
        assert_eq!((table(&silent), sentence(&silent)), (String::new(), None));
    }
}
