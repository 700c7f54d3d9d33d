//! Results of several arms together: the curve of a setting's numbers, and how combined settings affect each other.

use goodput_model::{
    ArmResult, BitRate, Burden, Bytes, Comparison, DoseCurve, Effect, FactorEffect, Judgement,
    Known,
};

use super::effect::{with_interval, word};
use super::style;

/// The lines below the arms.
pub fn lines(comparison: &Comparison) -> Vec<String> {
    let curve = comparison.curve.iter().map(|fitted| curve(comparison, fitted));
    let burden = comparison.deciding().burden();
    curve.chain(comparison.factors.iter().map(|effects| factor(effects, burden))).collect()
}

/// `curve       goodput rises with the value up to 65.5 kB (61.4 kB to 69.6 kB), then stays at 941 Mbit/s; …`.
fn curve(comparison: &Comparison, curve: &DoseCurve) -> String {
    let said = match (&curve.knee, &curve.asymptote_bits_per_s) {
        (Known::Value(knee), Known::Value(rate)) => {
            let between = curve
                .knee_between
                .map(|[low, high]| format!(" ({} to {})", number(low), number(high)));
            let between = between.unwrap_or_default();
            let knee = number(*knee);
            let then = match unlike_beyond(comparison, curve) {
                None => format!("stays at {rate}"),
                Some([least, most]) => {
                    format!("is not shown to rise: the medians are {least} to {most}")
                }
            };
            format!("goodput rises with the value up to {knee}{between}, then {then}")
        }
        (Known::Missing(why), Known::Value(rate)) => {
            format!("no knee: {why}, goodput stays at {rate}")
        }
        (Known::Missing(why), Known::Missing(_)) | (Known::Value(_), Known::Missing(why)) => {
            format!("no knee: {why}")
        }
    };
    let label = style::faint("curve       ");
    let off = curve.misfit_percent;
    format!("{label}{said}; the medians are {off:.1} % off the closest curve")
}

/// The smallest and the largest median beyond the knee, if they differ by an effect that counts: "stays" would be false.
fn unlike_beyond(comparison: &Comparison, curve: &DoseCurve) -> Option<[BitRate; 2]> {
    let knee = *curve.knee.value()?;
    let is_beyond = |arm: &&ArmResult| arm.number().is_some_and(|number| number >= knee);
    let beyond = comparison.arms.iter().filter(is_beyond);
    let medians = beyond.filter_map(|arm| Some(arm.goodput_bits_per_s.value()?.0));
    let (least, most) = medians.fold((f64::INFINITY, 0.0_f64), |(least, most), median| {
        (least.min(median), most.max(median))
    });
    let counts = 1.0 + comparison.threshold_percent / 100.0;
    (most > least * counts).then_some([BitRate(least), BitRate(most)])
}

/// A value of a setting as people write it; most values are sizes.
fn number(value: f64) -> String {
    if value < 1024.0 { format!("{value:.0}") } else { Bytes(value.round() as u64).to_string() }
}

fn factor(factor: &FactorEffect, burden: Option<Burden>) -> String {
    let Some(beside) = &factor.beside else {
        let judged = word(&factor.effect, ["better", "worse"]);
        let all = with_interval(&judged, &factor.effect, burden);
        return format!(
            "{}{}, over all combinations: {all}",
            style::faint("effect      "),
            factor.change
        );
    };
    let (change, label) = (&factor.change, style::faint("together    "));
    match factor.effect.judgement {
        Judgement::NoDifference => {
            format!("{label}{change} does the same with {beside} as without")
        }
        Judgement::Inconclusive => {
            format!(
                "{label}{change} and {beside}: whether one changes what the other does is inconclusive"
            )
        }
        _ => format!("{label}{}", together(factor, change, beside, burden)),
    }
}

/// `burst=125K matters only without tso=off`, or its effect with and without.
fn together(factor: &FactorEffect, change: &str, beside: &str, burden: Option<Burden>) -> String {
    let percent = |effect: &Option<Effect>| {
        effect.as_ref().map_or("unknown".into(), |effect| effect.difference_of(burden))
    };
    let numbers =
        format!("{} with it, {} without", percent(&factor.with), percent(&factor.without));
    let is_nothing = |effect: &Option<Effect>| {
        effect.as_ref().is_some_and(|effect| effect.judgement == Judgement::NoDifference)
    };
    match (is_nothing(&factor.without), is_nothing(&factor.with)) {
        (true, false) => format!("{change} matters only with {beside}: {numbers}"),
        (false, true) => format!("{change} matters only without {beside}: {numbers}"),
        _ => format!("{change} has another effect with {beside}: {numbers}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of one setting; value and median goodput of each arm, Mbit/s.
    fn compared(arms: &[(&str, f64)]) -> Comparison {
        let arm = |(value, mbit): &(&str, f64)| ArmResult {
            goodput_bits_per_s: Known::Value(BitRate(mbit * 1e6)),
            ..ArmResult::new(vec![(*value).into()])
        };
        let settings = vec!["socket.sndbuf".parse().unwrap()];
        Comparison::new(settings, arms.iter().map(arm).collect())
    }

    fn effect(percent: f64, judgement: Judgement) -> Effect {
        Effect {
            percent,
            low_percent: percent - 1.0,
            high_percent: percent + 1.0,
            confidence_percent: 99.0,
            n: 10,
            adjusted_for: Vec::new(),
            judgement,
        }
    }

    #[test]
    fn a_value_that_matters_only_with_another_is_said_in_words() {
        let one = FactorEffect {
            change: "qdisc.tbf.burst=125K".into(),
            beside: Some("offload.tso=on".into()),
            effect: effect(28.0, Judgement::Better),
            without: Some(effect(0.1, Judgement::NoDifference)),
            with: Some(effect(28.0, Judgement::Better)),
        };
        let said = factor(&one, None);
        let matters = "qdisc.tbf.burst=125K matters only with offload.tso=on: +28.0 % with it, +0.1 % without";
        assert!(said.ends_with(matters), "{said}");
        let swapped = FactorEffect { without: one.with.clone(), with: one.without.clone(), ..one };
        assert!(factor(&swapped, None).contains("matters only without offload.tso=on"));
    }

    #[test]
    fn a_curve_has_its_knee_or_the_reason_why_not() {
        let beside = |arms: &[(&str, f64)], knee, knee_between, asymptote_bits_per_s| {
            let rises = Known::Value(true);
            let misfit_percent = 1.23;
            let fitted =
                DoseCurve { knee, knee_between, asymptote_bits_per_s, misfit_percent, rises };
            curve(&compared(arms), &fitted)
        };
        let stays = [("16K", 300.0), ("128K", 940.0), ("256K", 945.0)];
        let of = |knee, between, rate| beside(&stays, knee, between, rate);
        let rate = || Known::Value(BitRate(941e6));
        let found = of(Known::Value(65536.0), Some([61440.0, 69632.0]), rate());
        let facts = ["up to 65.5 kB (61.4 kB to 69.6 kB), then stays at 941 Mbit/s", "1.2 % off"];
        assert!(facts.iter().all(|fact| found.contains(fact)), "{found}");
        let rising = [("16K", 300.0), ("128K", 800.0), ("256K", 945.0)];
        let unlike = beside(&rising, Known::Value(65536.0), None, rate());
        let honest = "then is not shown to rise: the medians are 800 Mbit/s to 945 Mbit/s;";
        assert!(unlike.contains(honest), "{unlike}");
        let enough = of(Known::missing("the smallest value is enough"), None, rate());
        assert!(
            enough.contains("no knee: the smallest value is enough, goodput stays at 941 Mbit/s")
        );
        let other = of(Known::missing("another form"), None, Known::missing("another form"));
        assert!(other.contains("no knee: another form; "), "{other}");
    }

    #[test]
    fn what_lies_beyond_the_knee_is_judged_by_what_the_kernel_took() {
        let mut compared = compared(&[("16K", 300.0), ("128K", 800.0), ("256K", 945.0)]);
        let fitted = DoseCurve {
            knee: Known::Value(65536.0),
            knee_between: None,
            asymptote_bits_per_s: Known::Value(BitRate(941e6)),
            misfit_percent: 1.0,
            rises: Known::Value(true),
        };
        assert!(unlike_beyond(&compared, &fitted).is_some());
        compared.arms[1].in_effect = Some(32768.0);
        assert_eq!(unlike_beyond(&compared, &fitted), None);
    }
}
