//! MSER-5: how much of the beginning to leave out so that the mean of the rest is most precise.
//!
//! White, "An effective truncation heuristic for bias reduction in simulation output" (Simulation, 1997), and the
//! batches of five of White, Cobb and Spratt (Winter Simulation Conference, 2000): choose the cut that minimises
//! sum((x - mean)^2) / n^2 over the n batches after it.

use crate::curve::Curve;

/// Intervals of one batch; the five in the name.
pub(crate) const INTERVALS_PER_BATCH: usize = 5;

/// Where the steady part of `curve` starts, seconds, at most `latest_s`: near the end of any series a few equal values
/// would look steady by chance. Every batch before the start is slower than the mean of the rest: a fast beginning is
/// part of the measurement, and so is everything after it.
pub(crate) fn steady_from(curve: &Curve, latest_s: f64) -> f64 {
    let batches = curve.intervals() / INTERVALS_PER_BATCH;
    if batches < 2 {
        return curve.start();
    }
    let rates = curve.batch_rates(batches);
    let width = curve.seconds() / batches as f64;
    let cut_at = |cut: usize| curve.start() + width * cut as f64;
    let best = (0..batches - 1)
        .take_while(|cut| *cut == 0 || cut_at(*cut) <= latest_s)
        .filter(|cut| is_slow(&rates[..*cut], mean(&rates[*cut..])))
        .min_by(|a, b| error_of_mean(&rates[*a..]).total_cmp(&error_of_mean(&rates[*b..])));
    best.map_or(curve.start(), cut_at)
}

/// Where `curve` is settled, seconds, at most `latest_s`: the same without any condition on the beginning, and for each
/// interval alone. Behind a token bucket a beginning may be faster than the rest, and a reader gets at once what TCP held
/// back while a hole was open.
pub(crate) fn settled_from(curve: &Curve, latest_s: f64) -> f64 {
    let (starts, rates): (Vec<f64>, Vec<f64>) = curve.rates().unzip();
    let within = starts.partition_point(|start| *start <= latest_s).max(1);
    let error = |cut: &usize| error_of_mean(&rates[*cut..]);
    let best = (0..within).min_by(|a, b| error(a).total_cmp(&error(b)));
    best.map_or(curve.start(), |cut| starts[cut])
}

fn is_slow(beginning: &[f64], mean_of_rest: f64) -> bool {
    beginning.iter().all(|rate| *rate < mean_of_rest)
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len() as f64
}

fn error_of_mean(rates: &[f64]) -> f64 {
    let n = rates.len() as f64;
    let mean = mean(rates);
    rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A series with one point every 10th of a second at `rate(index)`.
    fn series(points: usize, rate: impl Fn(usize) -> u64) -> Curve {
        let mut bytes = 0;
        let series: Vec<_> = (0..=points)
            .map(|index| {
                bytes += if index == 0 { 0 } else { rate(index - 1) };
                (index as f64 / 10.0, bytes)
            })
            .collect();
        Curve::new(&series).unwrap()
    }

    #[test]
    fn a_slow_beginning_is_cut_and_a_steady_one_is_not() {
        let ramp = series(100, |index| if index < 10 { 100 * index as u64 } else { 1000 });
        assert!((steady_from(&ramp, 5.0) - 1.0).abs() < 1e-9);
        assert_eq!(steady_from(&series(100, |_| 1000), 5.0), 0.0);
    }

    #[test]
    fn a_fast_beginning_is_never_cut() {
        let dies = series(50, |index| if index < 13 { 1000 } else { 0 });
        assert_eq!(steady_from(&dies, 2.5), 0.0);
        let stalls = series(100, |index| if (10..20).contains(&index) { 0 } else { 1000 });
        assert_eq!(steady_from(&stalls, 5.0), 0.0);
    }

    #[test]
    fn what_is_not_settled_is_cut_whether_it_is_slow_or_fast() {
        // A bucket's burst, then a hole: what came behind it is read at once.
        let hole = |index| match index {
            0..5 => 1500,
            5..10 => 0,
            10 => 6500,
            _ => 1000,
        };
        assert!((settled_from(&series(40, hole), 2.0) - 1.1).abs() < 1e-9);
        assert_eq!(settled_from(&series(40, |_| 1000), 2.0), 0.0);
        assert!(settled_from(&series(40, |index| if index < 30 { 10 } else { 1000 }), 2.0) <= 2.0);
    }

    #[test]
    fn never_more_than_allowed_is_cut() {
        let late = series(100, |index| if index < 80 { 100 } else { 1000 });
        assert!(steady_from(&late, 5.0) <= 5.0);
    }
}
