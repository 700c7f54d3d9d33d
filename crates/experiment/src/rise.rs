//! What the values of a setting show if goodput does not rise in proportion to them and then stay: up to which value more
//! of it brings more.
//!
//! Each value is compared with the largest one, within blocks, by exact signed-rank tests that share the error. So no
//! curve is assumed, and nothing is fitted.

use goodput_model::Response;

use crate::dose::EXCLUDED_LEVEL;
use crate::pairs::{Runs, goodput};
use crate::responses::for_ratio;
use crate::signed_rank::Ranked;

/// What the largest value brings beyond one of the others.
#[derive(Clone, Copy, PartialEq)]
enum Beyond {
    More,
    Less,
    Unknown,
}

/// What the values show without a curve.
pub(crate) struct Rise {
    /// The largest value beside which the largest of all is shown to bring more.
    pub(crate) short: f64,
    /// In words: `goodput rises, but not in proportion to the value: 4M brings over 3 % more than 512K, but not more than
    /// 1M; by the medians 1M is within 3 % of the best`.
    pub(crate) words: String,
}

/// Up to which of the values goodput rises. `doses` are arms with their values, `texts` the values of all arms as they
/// were written. `None` if the largest value is not shown to bring more than the smallest.
pub(crate) fn rise(
    runs: &Runs,
    doses: &[(usize, f64)],
    texts: &[Vec<String>],
    threshold_percent: f64,
) -> Option<Rise> {
    let mut doses = doses.to_vec();
    doses.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (largest, smaller) = doses.split_last()?;
    let level = EXCLUDED_LEVEL / smaller.len().max(1) as f64;
    let margin = (threshold_percent / 100.0).ln_1p();
    let beyond: Vec<Beyond> =
        smaller.iter().map(|(arm, _)| beyond(runs, *arm, largest.0, level, margin)).collect();
    let text = |place: usize| {
        doses.get(place).and_then(|(arm, _)| texts.get(*arm)).map_or(String::new(), |t| t.join(" "))
    };
    let last_short = beyond.iter().rposition(|beyond| *beyond == Beyond::More)?;
    if beyond.first() != Some(&Beyond::More) {
        return None;
    }
    // The smallest value from which on none lacks anything.
    let enough = beyond.iter().rposition(|beyond| *beyond != Beyond::Less).map_or(0, |at| at + 1);
    let rises = "goodput rises, but not in proportion to the value";
    let brings = format!("{} brings over {threshold_percent} % more than", text(smaller.len()));
    let words = match enough {
        enough if last_short + 1 == smaller.len() => {
            format!("{rises}, and still at the end: {brings} {}", text(enough - 1))
        }
        enough if enough == smaller.len() => format!(
            "{rises}: {brings} {}; whether it does beyond {} the runs don't show",
            text(last_short),
            text(last_short + 1)
        ),
        enough => {
            format!("{rises}: {brings} {}, but not more than {}", text(last_short), text(enough))
        }
    };
    let near_best = text(near_best(runs, &doses, margin)?);
    let words =
        format!("{words}; by the medians {near_best} is within {threshold_percent} % of the best");
    Some(Rise { short: doses[last_short].1, words })
}

/// The place of the smallest value whose median the best one exceeds by no effect that counts.
fn near_best(runs: &Runs, doses: &[(usize, f64)], margin: f64) -> Option<usize> {
    let median = |(arm, _): &(usize, f64)| goodput_model::median(runs.compared(*arm).map(goodput));
    let medians: Vec<f64> = doses.iter().map(median).collect::<Option<_>>()?;
    let best = medians.iter().copied().fold(0.0, f64::max);
    medians.iter().position(|median| median * margin.exp() >= best)
}

/// What the arm `largest` brings beyond `arm`: at least the smallest effect that counts, or less.
fn beyond(runs: &Runs, arm: usize, largest: usize, level: f64, margin: f64) -> Beyond {
    let read = for_ratio(Response::Throughput);
    let pairs = runs.contrast(&[(largest, 1.0), (arm, -1.0)], read);
    let ratios: Vec<f64> = pairs.iter().map(|pair| pair.log_ratio).collect();
    match Ranked::new(&ratios).map(|ranked| ranked.locate(level)).filter(|it| it.reaches_level) {
        Some(shown) if shown.low > margin => Beyond::More,
        Some(shown) if shown.high < margin => Beyond::Less,
        _ => Beyond::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::tests::trial;
    use goodput_model::Trial;

    const TEXTS: [&str; 6] = ["32K", "64K", "128K", "256K", "512K", "1M"];

    fn said(goodputs: [f64; 6], spread: f64) -> Option<String> {
        let of_block = |block: u32| {
            let run = |arm: usize| {
                let noise = 1.0 + spread * f64::from((block * (arm as u32 + 8)) % 7) / 7.0;
                trial(block, arm, goodputs[arm] * noise)
            };
            (0..6).map(run).collect::<Vec<_>>()
        };
        let trials: Vec<Trial> = (1..=10).flat_map(of_block).collect();
        let doses: Vec<(usize, f64)> = (0..6).map(|arm| (arm, f64::from(32_768 << arm))).collect();
        let texts: Vec<Vec<String>> = TEXTS.iter().map(|text| vec![(*text).into()]).collect();
        rise(&Runs::of(&trials, 6), &doses, &texts, 3.0).map(|rise| rise.words)
    }

    #[test]
    fn values_that_saturate_slowly_say_up_to_where_more_brings_more() {
        let slow = said([50.0, 96.0, 189.0, 350.0, 400.0, 403.0], 0.01).unwrap();
        let facts =
            ["1M brings over 3 % more than 256K, but not more than 512K; ", "512K is within 3 %"];
        assert!(facts.iter().all(|fact| slow.contains(fact)), "{slow}");
        let rising = said([50.0, 96.0, 189.0, 350.0, 446.0, 526.0], 0.01).unwrap();
        assert!(
            rising.contains("still at the end: 1M brings over 3 % more than 512K; "),
            "{rising}"
        );
        let open = said([50.0, 96.0, 189.0, 350.0, 446.0, 450.0], 0.3).unwrap();
        assert!(open.contains("beyond 512K the runs don't show; "), "{open}");
    }

    #[test]
    fn what_does_not_rise_has_no_such_words() {
        assert_eq!(said([100.0; 6], 0.01), None);
        assert_eq!(said([500.0, 400.0, 300.0, 200.0, 100.0, 50.0], 0.01), None);
        assert_eq!(said([50.0, 96.0, 189.0, 350.0, 400.0, 30.0], 0.01), None);
    }
}
