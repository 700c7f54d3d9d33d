//! From the receiver's cumulative series to the measured window: goodput and its precision.

use goodput_model::{BitRate, Known, Measured};

use crate::curve::Curve;
use crate::mser::{INTERVALS_PER_BATCH, settled_from, steady_from};

/// Batches into which the window is divided. Ten to thirty suffice for any length of the run, because a few long
/// batches are less correlated than many short ones (Schmeiser, "Batch size effects in the analysis of simulation
/// output", Operations Research, 1982).
const WINDOW_BATCHES: usize = 10;

/// 97.5 % quantile of Student's t with `WINDOW_BATCHES - 1` degrees of freedom.
const STUDENT_T_QUANTILE: f64 = 2.262_157;

/// Intervals that must remain, whatever is left out: one batch of MSER-5. The mean of fewer would lose more than the
/// beginning distorts. If a run has no more, nothing is left out.
pub const MIN_INTERVALS_LEFT: usize = INTERVALS_PER_BATCH;

/// The measurement from the receiver's `series` of (seconds, payload bytes so far).
///
/// Leaves out slow start, up to `slow_start_end_s` on the same clock, and then the part that MSER-5 finds unsteady.
/// Each is left out only if it is slower than the rest: slow start never is faster, and a path that dies is not a slow
/// start. Both together are at most `max_trim_share` (0 to 1) of the run, and at least a few samples remain: a shorter
/// run is measured whole. The window starts and ends at points of the series, so its bytes are counted, never
/// interpolated. A stall inside it counts.
///
/// `None` if the series doesn't hold two instants or a counter ran backwards.
pub fn measure(
    series: &[(f64, u64)],
    slow_start_end_s: Option<f64>,
    max_trim_share: f64,
) -> Option<Measured> {
    let whole = Curve::new(series)?;
    let latest = whole.latest_start(max_trim_share, MIN_INTERVALS_LEFT);
    let slow_start_end = slow_start_end_s.unwrap_or(whole.start()).min(latest);
    let rest = without_slow(whole, slow_start_end);
    let steady = steady_from(&rest, latest);
    over(&without_slow(rest, steady))
}

/// The same of what holds a rate: it leaves out a beginning whose rate is not that of the rest, be it slower or faster.
pub fn settled(series: &[(f64, u64)], max_trim_share: f64) -> Option<Measured> {
    let whole = Curve::new(series)?;
    let latest = whole.latest_start(max_trim_share, MIN_INTERVALS_LEFT);
    over(&whole.since(settled_from(&whole, latest)).unwrap_or(whole))
}

/// The measurement over a whole window.
fn over(window: &Curve) -> Option<Measured> {
    Some(Measured {
        goodput: BitRate::over(window.bytes(), window.seconds())?,
        from_s: window.start(),
        to_s: window.end(),
        precision_percent: precision(window),
    })
}

/// The part of `curve` after `from_s`, if it is faster than the part before; else all of it.
fn without_slow(curve: Curve, from_s: f64) -> Curve {
    match curve.since(from_s) {
        Some(rest) if rest.mean() > curve.mean() => rest,
        _ => curve,
    }
}

/// Whether the mean is known to ± `percent`. False if the precision could not be computed.
pub fn is_precise_enough(measured: &Measured, percent: f64) -> bool {
    measured.precision_percent.value().is_some_and(|precision| *precision <= percent)
}

/// Half-width of the mean's 95 % interval, percent of the mean, from the means of equal batches.
///
/// Samples of a run are not independent (lag-1 correlations from -0.7 under a shaper to +0.4 on a busy CPU were
/// measured), and long batches nearly are. Any remaining positive correlation widens the interval by n_eff = n (1 - r)
/// / (1 + r). Negative correlation doesn't narrow it, because the r of ten batches is too uncertain.
fn precision(window: &Curve) -> Known<f64> {
    let width = window.seconds() / WINDOW_BATCHES as f64;
    if window.intervals() < WINDOW_BATCHES || window.longest_gap() > width {
        return Known::missing(format!(
            "{} samples in {:.2} s, up to {:.2} s apart, are too few for {WINDOW_BATCHES} batches",
            window.intervals(),
            window.seconds(),
            window.longest_gap()
        ));
    }
    if window.bytes() == 0 {
        return Known::missing("nothing arrived in the window");
    }
    let rates = window.batch_rates(WINDOW_BATCHES);
    let n = WINDOW_BATCHES as f64;
    let mean = rates.iter().sum::<f64>() / n;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let correlation = lag_1_correlation(&rates, mean, squares).max(0.0);
    let n_eff = n * (1.0 - correlation) / (1.0 + correlation);
    Known::Value(100.0 * STUDENT_T_QUANTILE * (squares / (n - 1.0) / n_eff).sqrt() / mean)
}

fn lag_1_correlation(rates: &[f64], mean: f64, squares: f64) -> f64 {
    if squares == 0.0 {
        return 0.0;
    }
    rates.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / squares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    fn even(rates: impl IntoIterator<Item = u64>, step: f64) -> Vec<(f64, u64)> {
        let mut bytes = 0;
        let later = rates.into_iter().enumerate().map(|(index, rate)| {
            bytes += rate;
            ((index + 1) as f64 * step, bytes)
        });
        std::iter::once((0.0, 0)).chain(later).collect()
    }

    #[test]
    fn slow_start_is_left_out_and_the_rest_is_counted() {
        let series = even((0..40).map(|i| if i < 10 { 10 } else { 1000 }), 0.1);
        let measured = measure(&series, Some(1.0), 0.5).unwrap();
        assert!((measured.goodput.0 - 80_000.0).abs() < 1e-6, "{measured:?}");
        assert_eq!(measured.from_s, 1.0);
        assert!(is_precise_enough(&measured, 0.001));
    }

    #[test]
    fn at_most_the_allowed_share_is_left_out() {
        let series = even((0..40).map(|i| i * i), 0.1);
        for slow_start in [None, Some(0.7), Some(3.9), Some(99.0)] {
            let measured = measure(&series, slow_start, 0.5).unwrap();
            assert!(measured.from_s <= 2.1, "{slow_start:?} {measured:?}");
        }
    }

    /// Sampled every 100 ms for 5 s, the path stood still after 1.3 s.
    #[test]
    fn a_path_that_dies_is_no_slow_start() {
        let series = even((0..50).map(|i| if i < 13 { 1000 } else { 0 }), 0.1);
        for slow_start in [None, Some(0.1), Some(1.3), Some(2.4)] {
            let measured = measure(&series, slow_start, 0.5).unwrap();
            assert_eq!((measured.from_s, measured.to_s), (0.0, series[50].0), "{slow_start:?}");
            assert!((measured.goodput.0 - 20_800.0).abs() < 1e-6, "{measured:?}");
        }
    }

    #[test]
    fn a_stall_after_a_good_beginning_is_no_slow_start() {
        let series = even((0..100).map(|i| if (10..20).contains(&i) { 0 } else { 1000 }), 0.1);
        assert_eq!(measure(&series, None, 0.5).unwrap().from_s, 0.0);
    }

    /// The samples of `-t 0.1`: one when it is due, and one at the end.
    #[test]
    fn a_run_of_a_few_samples_is_measured_whole() {
        let series = [(0.0, 0), (0.1, 98_866_176), (0.100_28, 100_401_152)];
        for slow_start in [None, Some(0.05), Some(0.1), Some(7.0)] {
            let measured = measure(&series, slow_start, 0.5).unwrap();
            assert_eq!((measured.from_s, measured.to_s), (0.0, 0.100_28));
            let bytes = measured.goodput.0 / 8.0 * 0.100_28;
            assert!((bytes - 100_401_152.0).abs() < 1.0, "{measured:?}");
        }
    }

    /// The second sample comes late: half of the run is not at a sample.
    #[test]
    fn no_more_is_left_out_than_measured_where_samples_are_far_apart() {
        let mut series = even(std::iter::repeat_n(1000, 9), 0.1);
        series.insert(0, (-2.0, 0));
        series.insert(0, (-2.1, 0));
        let measured = measure(&series, Some(-0.1), 0.5).unwrap();
        assert_eq!(measured.from_s, -2.0, "{measured:?}");
    }

    #[test]
    fn a_stall_counts() {
        let series = even((0..40).map(|i| if (20..30).contains(&i) { 0 } else { 1000 }), 0.1);
        let measured = measure(&series, None, 0.5).unwrap();
        assert!((measured.goodput.0 - 60_000.0).abs() < 1e-6, "{measured:?}");
        assert!(!is_precise_enough(&measured, 10.0));
    }

    #[test]
    fn too_few_samples_and_silence_have_no_precision() {
        let few = measure(&even([100; 5], 1.0), None, 0.5).unwrap();
        assert_eq!(
            few.precision_percent,
            Known::missing("5 samples in 5.00 s, up to 1.00 s apart, are too few for 10 batches")
        );
        assert!(!is_precise_enough(&few, 50.0));
        let silent = measure(&even([0; 50], 0.1), None, 0.5).unwrap();
        assert_eq!(silent.goodput, BitRate(0.0));
        assert_eq!(silent.precision_percent, Known::missing("nothing arrived in the window"));
    }

    #[test]
    fn nothing_to_measure_is_none() {
        assert!(measure(&[], None, 0.5).is_none());
        assert!(measure(&[(0.0, 0)], None, 0.5).is_none());
        assert!(measure(&[(0.0, 9), (1.0, 3)], None, 0.5).is_none());
    }

    /// Correlation and spread as measured on a CPU-bound veth (0.36, 20 %) and behind a shaper
    /// (-0.7, 31 %), at one sample a 10th of a second. At least 90 % of the intervals must hold the
    /// true mean: ten batches can't promise the full 95 % if samples are correlated.
    #[test]
    fn the_interval_holds_the_true_mean() {
        for (correlation, spread) in [(0.0, 0.1), (0.36, 0.2), (-0.7, 0.31)] {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
            let held = (0..1000).filter(|_| holds(&mut rng, correlation, spread)).count();
            assert!(held >= 900, "{held} of 1000 at correlation {correlation}");
        }
    }

    fn holds(rng: &mut Xoshiro256PlusPlus, correlation: f64, spread: f64) -> bool {
        let mean = 1e6;
        // Sum of 12 uniforms: close enough to a standard normal here, and no more code.
        let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let mut noise = normal();
        let rates: Vec<u64> = (0..100)
            .map(|_| {
                noise =
                    correlation * noise + (1.0f64 - correlation * correlation).sqrt() * normal();
                (mean * (1.0 + spread * noise).max(0.0)) as u64
            })
            .collect();
        let measured = measure(&even(rates, 0.1), None, 0.0).unwrap();
        let Known::Value(percent) = measured.precision_percent else { return false };
        (measured.goodput.0 / 80e6 - 1.0).abs() * 100.0 <= percent
    }

    proptest! {
        #[test]
        fn any_series_is_a_window_inside_it_or_none(
            steps in proptest::collection::vec((0.001f64..0.4, 0u64..1_000_000), 0..80),
            slow_start in proptest::option::of(-1.0f64..20.0),
            share in 0.0f64..=1.0,
        ) {
            let mut now = (0.0, 0);
            let series: Vec<_> = steps.iter().map(|(dt, bytes)| {
                now = (now.0 + dt, now.1 + bytes);
                now
            }).collect();
            if let Some(measured) = measure(&series, slow_start, share) {
                prop_assert!(measured.from_s >= series[0].0 && measured.from_s < measured.to_s);
                prop_assert_eq!(measured.to_s, series[series.len() - 1].0);
                let last = series[series.len() - 1];
                let whole_s = last.0 - series[0].0;
                prop_assert!(measured.from_s - series[0].0 <= whole_s * share + 1e-9);
                let left = series.iter().filter(|point| point.0 >= measured.from_s).count() - 1;
                prop_assert!(left >= MIN_INTERVALS_LEFT || measured.from_s == series[0].0);
                let rate = |from: (f64, u64), to: (f64, u64)| {
                    (to.1 - from.1) as f64 * 8.0 / (to.0 - from.0)
                };
                let rates = series.windows(2).map(|pair| rate(pair[0], pair[1]));
                let (least, most) =
                    rates.fold((f64::MAX, 0.0f64), |(a, b), rate| (a.min(rate), b.max(rate)));
                let grace = most * 1e-9;
                prop_assert!((least - grace..=most + grace).contains(&measured.goodput.0));
                prop_assert!(measured.goodput.0 >= rate(series[0], last) - grace, "slow start is slow");
                if let Known::Value(percent) = measured.precision_percent {
                    prop_assert!(percent >= 0.0);
                }
            }
        }
    }
}
