//! Turns intervals into a judgement.

use goodput_model::{Effect, Judgement};

use crate::conditions::{Copies, REFERENCE_COPY, adjusted};
use crate::looks::Levels;
use crate::pair::Pair;
use crate::signed_rank::{Location, Ranked};

/// Which direction is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Preference {
    /// More is better: goodput.
    Up,
    /// Less is better: CPU cost.
    Down,
}

/// Which effects count, and which direction is good.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Criterion {
    /// Smallest effect that counts, percent.
    pub(crate) threshold_percent: f64,
    pub(crate) good: Preference,
}

/// The effect that the log-ratios show at `levels`. `None` for fewer than two of them, or if the effect is too large
/// for a number of percent. `copies` are those of the whole comparison.
pub(crate) fn effect(
    pairs: &[Pair],
    copies: Copies,
    levels: Levels,
    criterion: Criterion,
) -> Option<Effect> {
    let (residuals, is_adjusted) = adjusted(pairs, copies);
    let ranked = Ranked::new(&residuals)?;
    let difference = ranked.locate(levels.difference);
    let equivalence = ranked.locate(levels.equivalence);
    let judgement = judge(&difference, &equivalence, criterion);
    // The reported interval is the interval that decided.
    let shown = if judgement == Judgement::NoDifference { equivalence } else { difference };
    let high_percent = percent(shown.high);
    high_percent.is_finite().then(|| Effect {
        percent: percent(shown.estimate),
        low_percent: percent(shown.low),
        high_percent,
        confidence_percent: 100.0 * shown.confidence,
        n: ranked.n(),
        adjusted_for: is_adjusted.then(|| REFERENCE_COPY.into()).into_iter().collect(),
        judgement,
    })
}

/// Whether nothing remains to be shown: another look could only revoke the judgement.
pub(crate) fn is_final(judgement: Judgement) -> bool {
    matches!(judgement, Judgement::Better | Judgement::Worse | Judgement::NoDifference)
}

/// A log-ratio as percent of the baseline.
fn percent(log_ratio: f64) -> f64 {
    100.0 * log_ratio.exp_m1()
}

/// The whole interval decides: beyond the threshold on one side, or within it on both (two one-sided tests). An
/// interval that excludes zero but reaches below the threshold shows only the direction. Nothing is claimed below the
/// full level.
fn judge(difference: &Location, equivalence: &Location, criterion: Criterion) -> Judgement {
    use Judgement::*;
    let threshold = criterion.threshold_percent;
    let (up, down, perhaps_up, perhaps_down) = match criterion.good {
        Preference::Up => (Better, Worse, BetterPerhapsBelowThreshold, WorsePerhapsBelowThreshold),
        Preference::Down => {
            (Worse, Better, WorsePerhapsBelowThreshold, BetterPerhapsBelowThreshold)
        }
    };
    let within = |interval: &Location| {
        percent(interval.low) > -threshold && percent(interval.high) < threshold
    };
    match () {
        () if difference.reaches_level && percent(difference.low) > threshold => up,
        () if difference.reaches_level && percent(difference.high) < -threshold => down,
        () if equivalence.reaches_level && within(equivalence) => NoDifference,
        () if difference.reaches_level && difference.low > 0.0 => perhaps_up,
        () if difference.reaches_level && difference.high < 0.0 => perhaps_down,
        () => Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: Criterion = Criterion { threshold_percent: 3.0, good: Preference::Up };
    const DOWN: Criterion = Criterion { threshold_percent: 3.0, good: Preference::Down };
    const FIRST: Levels = Levels { difference: 0.03125, equivalence: 0.03125 };

    fn interval(low_percent: f64, high_percent: f64) -> Location {
        let ln = |percent: f64| (percent / 100.0).ln_1p();
        Location {
            estimate: ln(low_percent),
            low: ln(low_percent),
            high: ln(high_percent),
            confidence: 0.98,
            reaches_level: true,
        }
    }

    fn judged(low_percent: f64, high_percent: f64, criterion: Criterion) -> Judgement {
        let interval = interval(low_percent, high_percent);
        judge(&interval, &interval, criterion)
    }

    #[test]
    fn the_whole_interval_decides() {
        use Judgement::*;
        assert_eq!(judged(4.0, 9.0, UP), Better);
        assert_eq!(judged(1.0, 9.0, UP), BetterPerhapsBelowThreshold);
        assert_eq!(judged(1.0, 9.0, DOWN), WorsePerhapsBelowThreshold);
        assert_eq!(judged(-9.0, -1.0, UP), WorsePerhapsBelowThreshold);
        assert_eq!(judged(-2.0, 2.0, UP), NoDifference);
        assert_eq!(judged(1.0, 2.0, UP), NoDifference);
        assert_eq!(judged(-1.0, 9.0, UP), Inconclusive);
        assert_eq!(judged(-20.0, 20.0, UP), Inconclusive);
        assert_eq!(judged(-9.0, -4.0, UP), Worse);
        assert_eq!(judged(-9.0, -4.0, DOWN), Better);
        assert_eq!(judged(4.0, 9.0, DOWN), Worse);
    }

    #[test]
    fn the_narrower_interval_shows_that_there_is_no_difference() {
        let narrow = interval(-2.0, 2.0);
        assert_eq!(judge(&interval(-4.0, 4.0), &narrow, UP), Judgement::NoDifference);
        assert_eq!(judge(&narrow, &interval(-4.0, 4.0), UP), Judgement::Inconclusive);
    }

    fn pairs(log_ratio: f64, blocks: u32) -> Vec<Pair> {
        (1..=blocks).map(|block| Pair { block, log_ratio, beside: None }).collect()
    }

    #[test]
    fn five_blocks_claim_nothing_however_large_the_effect() {
        let effect = effect(&pairs(1.0, 5), Copies::Independent, FIRST, UP).unwrap();
        assert_eq!(effect.judgement, Judgement::Inconclusive);
        assert_eq!((effect.n, effect.confidence_percent), (5, 93.75));
    }

    #[test]
    fn an_effect_is_reported_in_percent_of_the_baseline() {
        let effect = effect(&pairs(1.25f64.ln(), 6), Copies::Independent, FIRST, UP).unwrap();
        assert!((effect.percent - 25.0).abs() < 1e-9);
        assert_eq!(effect.judgement, Judgement::Better);
    }
}
