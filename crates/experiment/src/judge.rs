//! From an interval to one of four words.

use goodput_model::{Effect, Judgement};

use crate::signed_rank::{Location, locate};

/// Which way is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Preference {
    /// More is better: goodput.
    Up,
    /// Less is better: CPU cost.
    Down,
}

/// The effect that the log-ratios show at `level`. `None` for fewer than two of them, and if it
/// is beyond any number of percent.
pub(crate) fn effect(
    log_ratios: &[f64],
    level: f64,
    threshold_percent: f64,
    good: Preference,
) -> Option<Effect> {
    let location = locate(log_ratios, level)?;
    let (low, high) = (percent(location.low), percent(location.high));
    high.is_finite().then(|| Effect {
        percent: percent(location.estimate),
        low_percent: low,
        high_percent: high,
        confidence_percent: 100.0 * location.confidence,
        n: log_ratios.len(),
        judgement: judge(&location, threshold_percent, good),
    })
}

/// Percent of the baseline that a log-ratio is.
fn percent(log_ratio: f64) -> f64 {
    100.0 * log_ratio.exp_m1()
}

/// The whole interval decides: beyond the threshold on one side, or within it on both (two
/// one-sided tests). An interval that excludes zero but reaches into the threshold is
/// inconclusive: the effect may be too small to count as one. No claim without the full level.
fn judge(location: &Location, threshold: f64, good: Preference) -> Judgement {
    let (low, high) = (percent(location.low), percent(location.high));
    let (up, down) = match good {
        Preference::Up => (Judgement::Better, Judgement::Worse),
        Preference::Down => (Judgement::Worse, Judgement::Better),
    };
    match () {
        () if !location.reaches_level => Judgement::Inconclusive,
        () if low > threshold => up,
        () if high < -threshold => down,
        () if low > -threshold && high < threshold => Judgement::NoDifference,
        () => Judgement::Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(low_percent: f64, high_percent: f64, good: Preference) -> Judgement {
        let ln = |percent: f64| (percent / 100.0).ln_1p();
        let location = Location {
            estimate: ln(low_percent),
            low: ln(low_percent),
            high: ln(high_percent),
            confidence: 0.98,
            reaches_level: true,
        };
        judge(&location, 3.0, good)
    }

    #[test]
    fn the_whole_interval_decides() {
        use Judgement::{Better, Inconclusive, NoDifference, Worse};
        assert_eq!(judged(4.0, 9.0, Preference::Up), Better);
        assert_eq!(judged(1.0, 9.0, Preference::Up), Inconclusive);
        assert_eq!(judged(-2.0, 2.0, Preference::Up), NoDifference);
        assert_eq!(judged(-20.0, 20.0, Preference::Up), Inconclusive);
        assert_eq!(judged(-9.0, -4.0, Preference::Up), Worse);
        assert_eq!(judged(-9.0, -4.0, Preference::Down), Better);
        assert_eq!(judged(4.0, 9.0, Preference::Down), Worse);
    }

    #[test]
    fn five_blocks_claim_nothing_however_large_the_effect() {
        let effect = effect(&[1.0; 5], 0.03125, 3.0, Preference::Up).unwrap();
        assert_eq!(effect.judgement, Judgement::Inconclusive);
        assert_eq!((effect.n, effect.confidence_percent), (5, 93.75));
    }

    #[test]
    fn an_effect_is_told_in_percent_of_the_baseline() {
        let effect = effect(&[1.25f64.ln(); 6], 0.03125, 3.0, Preference::Up).unwrap();
        assert!((effect.percent - 25.0).abs() < 1e-9);
        assert_eq!(effect.judgement, Judgement::Better);
    }
}
