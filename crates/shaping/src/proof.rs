//! What a comparison of a shaper's settings shows: which of them give its rate.

use goodput_model::{
    ArmRate, BitRate, Comparison, Confirmation, Estimate, Known, Missing, ShapingProof, ShapingTest,
};

use crate::judge::confirmation;

/// Error of the interval of a median.
const INTERVAL_ERROR: f64 = 0.05;

/// What a comparison shows. `goodput` is the goodput of TCP in `test`, bits per second.
pub fn proof(
    test: &ShapingTest,
    goodput: f64,
    comparison: &Comparison,
    left_out: Vec<String>,
) -> ShapingProof {
    let nothing = || Missing::because("TCP got nothing through");
    let scale = test.tcp_bits_per_s.get().and_then(|tcp| match goodput > 0.0 {
        true => Ok(tcp.value / goodput),
        false => Err(nothing()),
    });
    let arms: Vec<ArmRate> =
        (0..comparison.arms.len()).map(|arm| rate(test, comparison, arm, &scale)).collect();
    let changes = |arm: &usize| {
        let values = comparison.arms[*arm].values.iter().zip(&comparison.arms[0].values);
        values.filter(|(value, base)| value != base).count()
    };
    let does = |arm: usize, gives: bool| arms[arm].gives == Known::Value(gives);
    let give = (0..arms.len()).filter(|arm| does(*arm, true)).min_by_key(changes);
    // If what is set now may give the rate, nothing else is shown to be needed.
    let gives = give.filter(|arm| *arm == 0 || does(0, false));
    ShapingProof {
        arms,
        gives,
        left_out,
        commands: Vec::new(),
        networkd: Vec::new(),
        permanent: Vec::new(),
    }
}

/// TCP's rate in the runs of an arm that count, as the shaper counts it, and whether that is the configured one; `scale`
/// converts goodput to this rate.
fn rate(
    test: &ShapingTest,
    comparison: &Comparison,
    arm: usize,
    scale: &Result<f64, Missing>,
) -> ArmRate {
    let scale = match scale {
        Ok(scale) => *scale,
        Err(why) => {
            let (median, interval) = (Known::Missing(why.clone()), Known::Missing(why.clone()));
            let gives = Known::Missing(why.clone());
            return ArmRate { median_bits_per_s: median, interval_bits_per_s: interval, gives };
        }
    };
    let counted = comparison.trials.iter().filter(|t| t.arm == arm && t.discarded.is_none());
    let mut rates: Vec<f64> =
        counted.filter_map(|trial| Some(trial.goodput_bits_per_s.value()?.0 * scale)).collect();
    rates.sort_by(f64::total_cmp);
    let median = goodput_model::median(rates.iter().copied());
    let ends = lower_place(rates.len()).map(|place| [rates[place], rates[rates.len() - 1 - place]]);
    let few = || match rates.len() {
        1 => Missing::because("one run is too few"),
        n => Missing::because(format!("{n} runs are too few")),
    };
    let known = median.zip(ends).map(|(value, [low, high])| Estimate { value, low, high });
    ArmRate {
        median_bits_per_s: median.map(BitRate).ok_or_else(few).into(),
        interval_bits_per_s: ends.map(|ends| ends.map(BitRate)).ok_or_else(few).into(),
        gives: known.ok_or_else(|| more(rates.len())).and_then(|rate| gives(test, &rate)).into(),
    }
}

/// Whether a rate is the configured one, by the rule for that of the test itself.
fn gives(test: &ShapingTest, rate: &Estimate) -> Result<bool, Missing> {
    match confirmation(rate, test.configured_bits_per_s, test.tolerance_percent) {
        Confirmation::Confirmed => Ok(true),
        Confirmation::Missed => Ok(false),
        Confirmation::Inconclusive => {
            Err(Missing::because("its interval is too wide; a longer --max-time narrows it"))
        }
    }
}

/// What is missing to judge `n` runs.
fn more(n: usize) -> Missing {
    let enough = (n..).find(|n| lower_place(*n).is_some()).unwrap_or(n);
    Missing::because(match enough - n {
        1 => "1 more block shows it, with a longer --max-time".into(),
        more => format!("{more} more blocks show it, with a longer --max-time"),
    })
}

/// The place, from 0, of the lower end of a distribution-free interval of the median among `n` sorted values: the number
/// of values below the median is distributed like the heads of a fair coin (Conover, Practical Nonparametric
/// Statistics, section 3.2). `None` if even the interval from the smallest to the largest is too narrow.
fn lower_place(n: usize) -> Option<usize> {
    let (mut probability, mut below) = (0.5f64.powi(i32::try_from(n).ok()?), 0.0);
    let mut place = None;
    for k in 0..n / 2 {
        below += probability;
        if 2.0 * below > INTERVAL_ERROR {
            break;
        }
        place = Some(k);
        probability *= (n - k) as f64 / (k + 1) as f64;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::tests::test;
    use goodput_model::{ArmResult, ShapingKind, Trial};

    /// The proof of arms with these rates, Mbit/s, in as many blocks: TSO and bucket, of 100 Mbit/s ± 2 %.
    fn proof_of(rates: [&[f64]; 4]) -> ShapingProof {
        let values = [["on", "1600"], ["on", "68130"], ["off", "1600"], ["off", "68130"]];
        let run = |arm, (block, rate): (usize, &f64)| {
            Trial::new(block as u32, arm, Known::Value(BitRate(rate * 1e6)))
        };
        let all = rates.iter().enumerate();
        let trials =
            all.flat_map(|(arm, rates)| rates.iter().enumerate().map(move |one| run(arm, one)));
        let trials = trials.collect();
        let arms = values.map(|arm| ArmResult::new(arm.map(String::from).to_vec())).to_vec();
        let comparison = Comparison { trials, ..Comparison::new(Vec::new(), arms) };
        proof(&test(ShapingKind::Shaper, 93e6, 93e6), 93e6, &comparison, Vec::new())
    }

    fn said(proof: &ShapingProof) -> Vec<String> {
        let word = |arm: &ArmRate| match &arm.gives {
            Known::Value(gives) => gives.to_string(),
            Known::Missing(why) => why.missing.to_string(),
        };
        proof.arms.iter().map(word).collect()
    }

    #[test]
    fn the_fewest_changes_that_give_the_rate_are_named() {
        let around =
            |rate: f64| (0..8).map(|block| rate + f64::from(block) * 1e-3).collect::<Vec<_>>();
        let rates = [93.0, 99.5, 93.0, 99.6].map(around);
        let shown = proof_of([&rates[0], &rates[1], &rates[2], &rates[3]]);
        assert_eq!(
            (shown.gives, said(&shown)),
            (Some(1), ["false", "true", "false", "true"].map(String::from).to_vec())
        );
        let first = &shown.arms[0];
        assert_eq!(first.median_bits_per_s, Known::Value(BitRate(93_003_500.0)));
        assert_eq!(first.interval_bits_per_s, Known::Value([BitRate(93e6), BitRate(93_007_000.0)]));
    }

    /// The median of what is set now is a little too low, its interval reaches the rate.
    #[test]
    fn nothing_is_chosen_unless_what_is_set_now_is_shown_to_miss_the_rate() {
        let good = [99.5; 8];
        let shown =
            proof_of([&[97.0, 97.1, 97.2, 97.3, 97.4, 97.5, 98.5, 99.0], &good, &good, &good]);
        assert_eq!((shown.gives, &said(&shown)[1]), (None, &"true".to_owned()));
        assert_eq!(said(&shown)[0], "its interval is too wide; a longer --max-time narrows it");
        assert_eq!(proof_of([&good; 4]).gives, Some(0));
    }

    #[test]
    fn too_few_runs_show_neither() {
        let shown = proof_of([&[], &[103.0, 103.0], &[93.0; 5], &[99.5; 6]]);
        let more = ["6 more blocks show", "4 more blocks show", "1 more block shows"];
        let expected = more.map(|more| format!("{more} it, with a longer --max-time"));
        assert_eq!((shown.gives, &said(&shown)[..3]), (None, &expected[..]));
        assert_eq!(said(&shown)[3], "true");
    }

    /// Conover's table: with 6 values the extremes, with 10 the second from each end.
    #[test]
    fn the_interval_of_a_median_needs_six_values() {
        assert_eq!(
            [5, 6, 8, 9, 10, 20].map(lower_place),
            [None, Some(0), Some(0), Some(1), Some(1), Some(5)]
        );
    }
}
