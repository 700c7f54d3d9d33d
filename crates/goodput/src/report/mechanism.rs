//! The mechanism check of one arm in words: whether it changed what the diagnosis named.

use goodput_model::{
    AmountChange, ArmResult, BitRate, Bytes, Judgement, Known, Mechanism, Response, Seconds,
    Verdict,
};

use super::style;

/// The unit of a sign that is a time, which is printed like any other time.
const MICROSECONDS: &str = " µs";

/// How far the goodput may be from the prediction, as a share of the prediction: the next limit is only an estimate.
const AS_PREDICTED: f64 = 0.10;

/// The lines of `arm` beside `base`, with their labels: the cause with what shows it, what limits without the cause, and
/// whether the difference came and went with the change. None if there is no difference to explain.
pub fn lines(base: &ArmResult, arm: &ArmResult) -> Vec<(&'static str, String)> {
    let Some(mechanism) = arm.mechanism.as_ref().filter(|_| differs(arm)) else {
        return Vec::new();
    };
    let mut lines = vec![("because", because(mechanism))];
    if *mechanism.confirmed() == Known::Value(true) {
        let (label, free) = if mechanism.limits_arm { ("without", base) } else { ("next", arm) };
        if is_about_goodput(arm) {
            lines.push((label, next(mechanism, &free.goodput_bits_per_s)));
        }
        lines.extend(reversal(mechanism).map(|line| ("reversal", line)));
    }
    lines
}

/// What the baseline that ran again as this arm shows: whether anything but the settings changes between the runs. `None`
/// without a judgement.
pub fn placebo(arm: &ArmResult) -> Option<String> {
    let same = "the baseline that ran again";
    Some(match arm.primary()?.judgement {
        Judgement::NoDifference => {
            format!("{}: {same} makes no difference", style::good("confirmed"))
        }
        Judgement::Inconclusive => {
            format!("open: too few runs to show that {same} makes no difference")
        }
        _ => format!("NOT confirmed: {same} seems to differ from itself"),
    })
}

/// Whether an arm is shown to be better or worse: by its goodput, or by what decides.
fn differs(arm: &ArmResult) -> bool {
    let judged = [arm.goodput.as_ref(), arm.primary()].into_iter().flatten();
    judged
        .map(|effect| effect.judgement)
        .any(|judgement| !matches!(judgement, Judgement::NoDifference | Judgement::Inconclusive))
}

/// Whether goodput is what decides, and so what the next limit is about.
fn is_about_goodput(arm: &ArmResult) -> bool {
    arm.responses.first().is_none_or(|first| first.response == Response::Throughput)
}

fn because(mechanism: &Mechanism) -> String {
    let Mechanism { rule, moved, amount, .. } = mechanism;
    let sign = witness(mechanism);
    let way = unclear(mechanism);
    match (mechanism.confirmed(), amount) {
        (Known::Value(true), Some(amount)) if *moved != Known::Value(true) => {
            let amount = of_amount(amount);
            format!("{rule}, {}: {amount}, and the goodput with it", style::good("confirmed"))
        }
        (Known::Value(true), _) => format!("{rule}, {}: {sign}", style::good("confirmed")),
        (Known::Value(false), Some(amount)) => {
            let amount = of_amount(amount);
            format!(
                "not explained: {rule} was expected, but {sign} {way}, and {amount} does not explain the goodput"
            )
        }
        (Known::Value(false), None) => {
            format!("not explained: {rule} was expected, but {sign} {way}")
        }
        (Known::Missing(why), _) => {
            format!("not explained: whether it was {rule} is unknown ({why})")
        }
    }
}

/// Why a sign that was read shows no such cause: it went the other way, or its fall may be chance.
fn unclear(mechanism: &Mechanism) -> String {
    let Mechanism { limits_arm, witness_before, witness_after, .. } = mechanism;
    let [expected, other] = if *limits_arm { ["rise", "fall"] } else { ["fall", "rise"] };
    let (before, after) = match (witness_before, witness_after) {
        (Known::Value(before), Known::Value(after)) => (*before, *after),
        _ => return format!("is no clear {expected}"),
    };
    let [limited, free] = if *limits_arm { [after, before] } else { [before, after] };
    match limited < free {
        true => format!("is a {other}, not a {expected}"),
        false => format!("is no clear {expected} in all runs together"),
    }
}

/// The number that falls with the cause, in the baseline and in the arm.
fn witness(mechanism: &Mechanism) -> String {
    let Mechanism { rule, witness_before, witness_after, .. } = mechanism;
    let known = goodput_diagnose::rules::ALL.iter().find(|known| known.id == *rule);
    let (named, unit) = known.map_or(("its measure", ""), |known| known.witness_words);
    let value = |known: &Known<f64>| match known {
        Known::Value(us) if unit == MICROSECONDS => Seconds::of_us(*us).to_string(),
        Known::Value(value) => format!("{value:.1}{unit}"),
        Known::Missing(why) => format!("unknown ({why})"),
    };
    format!("{named} {} → {}", value(witness_before), value(witness_after))
}

/// What the cause lets through, in the baseline and in the arm: `receive window 65.5 kB → 131.1 kB`.
fn of_amount(AmountChange { name, before, after, .. }: &AmountChange) -> String {
    let named = |unit| name.strip_suffix(unit).map(|name| name.replace('_', " "));
    if let Some(name) = named("_bytes") {
        let [before, after] = [before, after].map(|bytes| Bytes(bytes.round() as u64));
        return format!("{name} {before} → {after}");
    }
    match named("_bits_per_s") {
        Some(name) => format!("{name} {} → {}", BitRate(*before), BitRate(*after)),
        None => format!("{} {before:.1} → {after:.1}", name.replace('_', " ")),
    }
}

/// What limits where the cause is absent, and how the goodput there compares with the prediction.
fn next(mechanism: &Mechanism, goodput: &Known<BitRate>) -> String {
    let Mechanism { rule, next_limit, .. } = mechanism;
    let limit = match (next_limit == rule, mechanism.limits_arm) {
        _ if next_limit == Verdict::NO_LIMIT => "no rule names the limit".into(),
        (true, false) => format!("{rule} still limits"),
        (true, true) => format!("{rule} limits there, too"),
        (false, false) => format!("the next limit is {next_limit}"),
        (false, true) => format!("the limit is {next_limit}"),
    };
    let (predicted, goodput) = match (mechanism.predicted_bits_per_s, goodput) {
        (Some(predicted), Known::Value(goodput)) => (predicted, goodput),
        (None, _) if next_limit != rule => {
            return format!("{limit}; no known limit was near enough to predict the goodput");
        }
        _ => return limit,
    };
    let is_near = (goodput.0 / predicted.0 - 1.0).abs() <= AS_PREDICTED;
    let compared = if is_near { "as predicted" } else { "NOT as predicted" };
    format!("{limit}; goodput {compared}: {goodput}, predicted {predicted}")
}

fn reversal(mechanism: &Mechanism) -> Option<String> {
    let happened = match mechanism.limits_arm {
        true => ["went away", "go away"],
        false => ["came back", "come back"],
    };
    match &mechanism.reversed {
        Known::Value(true) => {
            let [did, _] = happened;
            Some(format!(
                "confirmed: when the baseline followed, the symptom {did} in more pairs of runs than by chance"
            ))
        }
        Known::Value(false) => {
            let [_, does] = happened;
            Some(format!(
                "NOT confirmed: when the baseline followed, the symptom did not {does} in more pairs of runs than by chance"
            ))
        }
        Known::Missing(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Effect;

    fn effect(judgement: Judgement) -> Effect {
        Effect {
            percent: 20.0,
            low_percent: 18.0,
            high_percent: 22.0,
            confidence_percent: 96.9,
            n: 6,
            adjusted_for: Vec::new(),
            judgement,
        }
    }

    fn arm(moved: bool, next_limit: &str, goodput: f64) -> ArmResult {
        let mechanism = Mechanism {
            rule: "shaper-burst".into(),
            limits_arm: false,
            witness_before: Known::Value(202.2),
            witness_after: Known::Value(6.7),
            moved: Known::Value(moved),
            amount: None,
            next_limit: next_limit.into(),
            predicted_bits_per_s: Some(BitRate(95e6)),
            reversed: Known::Value(true),
        };
        ArmResult {
            mechanism: Some(mechanism),
            goodput_bits_per_s: Known::Value(BitRate(goodput)),
            goodput: Some(effect(Judgement::Better)),
            ..ArmResult::new(vec!["125K".into()])
        }
    }

    #[test]
    fn a_baseline_that_ran_again_confirms_that_only_the_settings_change() {
        let said = |judgement| {
            let goodput = Some(effect(judgement));
            let arm = ArmResult { goodput, ..ArmResult::new(vec!["1250".into()]) };
            placebo(&arm).map(|text| anstream::adapter::strip_str(&text).to_string())
        };
        assert!(said(Judgement::NoDifference).unwrap().starts_with("confirmed: "));
        assert!(said(Judgement::Inconclusive).unwrap().starts_with("open: "));
        assert!(said(Judgement::Better).unwrap().starts_with("NOT confirmed: "));
        assert_eq!(placebo(&base()), None, "nothing was judged");
    }

    fn base() -> ArmResult {
        ArmResult {
            goodput_bits_per_s: Known::Value(BitRate(96e6)),
            ..ArmResult::new(vec!["1250".into()])
        }
    }

    #[test]
    fn a_proof_has_its_witness_its_next_limit_and_its_reversal() {
        let lines = lines(&base(), &arm(true, "shaper-rate", 94e6));
        let labels: Vec<_> = lines.iter().map(|(label, _)| *label).collect();
        assert_eq!(labels, ["because", "next", "reversal"]);
        assert!(lines[0].1.contains("202.2 → 6.7"), "{lines:?}");
        for fact in ["shaper-rate", "as predicted", "94 Mbit/s, predicted 95 Mbit/s"] {
            assert!(lines[1].1.contains(fact), "{fact} in {lines:?}");
        }
    }

    #[test]
    fn an_arm_that_does_not_differ_has_nothing_to_explain() {
        let judged = |judgement| {
            let goodput = Some(effect(judgement));
            lines(&base(), &ArmResult { goodput, ..arm(false, "shaper-rate", 94e6) })
        };
        assert!(judged(Judgement::NoDifference).is_empty());
        assert!(judged(Judgement::Inconclusive).is_empty());
        assert_eq!(judged(Judgement::WorsePerhapsBelowThreshold).len(), 1);
        assert!(
            lines(&base(), &ArmResult { goodput: None, ..arm(true, "shaper-rate", 94e6) })
                .is_empty()
        );
    }

    #[test]
    fn a_worse_arm_has_its_cause_and_what_limits_without_it() {
        let mut worse = arm(true, "shaper-rate", 50e6);
        let mechanism = worse.mechanism.as_mut().unwrap();
        mechanism.limits_arm = true;
        std::mem::swap(&mut mechanism.witness_before, &mut mechanism.witness_after);
        let said = lines(&base(), &worse);
        let labels: Vec<_> = said.iter().map(|(label, _)| *label).collect();
        assert_eq!(labels, ["because", "without", "reversal"]);
        assert!(said[0].1.contains("confirmed") && !said[0].1.contains("NOT"), "{said:?}");
        assert!(said[0].1.ends_with("6.7 → 202.2"), "{said:?}");
        let without =
            "the limit is shaper-rate; goodput as predicted: 96 Mbit/s, predicted 95 Mbit/s";
        assert_eq!(said[1].1, without);
        assert!(said[2].1.contains("the symptom went away"), "{said:?}");
        worse.mechanism.as_mut().unwrap().moved = Known::Value(false);
        let not = lines(&base(), &worse);
        let unclear = "6.7 → 202.2 is no clear rise in all runs together";
        assert!(not[0].1.contains("not explained") && not[0].1.ends_with(unclear), "{not:?}");
    }

    #[test]
    fn a_sign_that_is_a_time_is_printed_like_one() {
        let mut shorter = arm(true, "path-rate", 94e6);
        let mechanism = shorter.mechanism.as_mut().unwrap();
        mechanism.rule = "queue-too-long".into();
        (mechanism.witness_before, mechanism.witness_after) =
            (Known::Value(39_179.0), Known::Value(8_900.9));
        let said = &lines(&base(), &shorter)[0].1;
        assert!(said.ends_with("delay in the queue 39.2 ms → 8.90 ms"), "{said}");
    }

    #[test]
    fn a_sign_that_goes_the_other_way_is_no_unclear_one() {
        let mut better = arm(false, "server-or-path", 94e6);
        let mechanism = better.mechanism.as_mut().unwrap();
        mechanism.rule = "server-or-path".into();
        (mechanism.witness_before, mechanism.witness_after) =
            (Known::Value(89.3), Known::Value(98.6));
        assert_eq!(
            lines(&base(), &better)[0].1,
            "not explained: server-or-path was expected, but time in which the reader was waiting 89.3 % → 98.6 % is a rise, \
             not a fall"
        );
    }

    #[test]
    fn a_goodput_without_a_prediction_says_why() {
        let mut arm = arm(true, "path-rate", 50e6);
        arm.mechanism.as_mut().unwrap().predicted_bits_per_s = None;
        let said =
            "the next limit is path-rate; no known limit was near enough to predict the goodput";
        assert_eq!(lines(&base(), &arm)[1].1, said);
    }

    #[test]
    fn a_cause_that_goes_on_limiting_has_its_amount() {
        let with = |name: &str, before, after, moved| {
            let mut arm = arm(false, "receive-window", 50e6);
            let mechanism = arm.mechanism.as_mut().unwrap();
            mechanism.rule = "receive-window".into();
            mechanism.predicted_bits_per_s = Some(BitRate(51e6));
            let (name, moved) = (name.into(), Known::Value(moved));
            mechanism.amount = Some(AmountChange { name, before, after, moved });
            lines(&base(), &arm)
        };
        let window = with("receive_window_bytes", 65_536.0, 131_072.0, true);
        assert!(window[0].1.contains("confirmed") && !window[0].1.contains("NOT"), "{window:?}");
        assert!(
            window[0].1.ends_with("receive window 65.5 kB → 131.1 kB, and the goodput with it"),
            "{window:?}"
        );
        assert!(
            window[1].1.starts_with("receive-window still limits; goodput as predicted"),
            "{window:?}"
        );
        assert_eq!(window.len(), 3);
        let rate = with("shaper_rate_bits_per_s", 5e7, 1e8, true);
        assert!(rate[0].1.contains("shaper rate 50 Mbit/s → 100 Mbit/s"), "{rate:?}");
        let no = with("receive_window_bytes", 65_536.0, 65_536.0, false);
        assert!(no.len() == 1 && no[0].1.contains("not explained"), "{no:?}");
    }

    #[test]
    fn what_was_not_predicted_and_what_did_not_move_is_said() {
        let lines_of = |arm| lines(&base(), &arm);
        let other = lines_of(arm(true, "shaper-burst", 50e6));
        let still = "shaper-burst still limits; goodput NOT as predicted";
        assert!(other[1].1.starts_with(still), "{other:?}");
        let still = lines_of(arm(false, "shaper-burst", 50e6));
        assert_eq!(still.len(), 1);
        assert!(still[0].1.starts_with("not explained: shaper-burst was expected"));
    }
}
