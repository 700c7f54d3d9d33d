//! Sizes at which a window was cut. Chance cuts it at any size, a limit at the same size each time.
//!
//! This shows also where a window meets a limit several times between two samples, so that no sample shows its growth. If
//! a window grows by as much in each round trip, its square grows by as much with each segment sent, and chance cuts it
//! after an exponentially distributed number of segments. So the squares x at cuts that keep the share k of the window
//! follow x' = k² x + e with exponential e (Ott, Kemperman, Mathis 1996, "The Stationary Behavior
//! of Ideal TCP Congestion Avoidance"). Whatever the path and the chance, their variance over the squared mean is
//! (1 - k²) / (1 + k²), and so is the number of independent cuts over the number of cuts.

use super::series::Flow;

/// Fewer cuts show no spread: CUBIC's window is nearly flat before it reaches the size of the last cut (RFC 9438, section
/// 4.4), so that a few cuts in a row are alike whatever the reason.
const MIN_CUTS: usize = 6;
/// Spreads that are tried over the one by chance: below it for a limit, above it for chance on a path that is not in
/// balance yet.
const LESS: [f64; 6] = [1.0, 0.71, 0.5, 0.35, 0.25, 0.18];
const MORE: [f64; 4] = [1.0, 1.41, 2.0, 4.0];
/// Least slow-start threshold, segments: any smaller window is cut to it as well (net/ipv4/tcp_cong.c,
/// `tcp_reno_ssthresh`), so it says nothing of the size.
const LEAST_THRESHOLD: f64 = 2.0;

/// How much better the sizes at cuts are explained by a limit than by chance, in the information criterion; negative if
/// chance explains them better, and 0 if they say nothing. Of one flow only: what limits several together cuts each of
/// them at any size.
pub fn limit_ahead(flows: &[Flow]) -> f64 {
    let [flow] = flows else { return 0.0 };
    let Some(kept) = flow.kept else { return 0.0 };
    let cuts = flow.after_first_loss().iter().filter_map(|step| step.cut);
    let thresholds = cuts.map(|window| (window * kept).round());
    let cuts: Vec<f64> = thresholds.filter(|segments| *segments > LEAST_THRESHOLD).collect();
    if cuts.len() < MIN_CUTS {
        return 0.0;
    }
    let independent = (1.0 - kept.powi(2)) / (1.0 + kept.powi(2));
    let cuts = Cuts { thresholds: &cuts, kept };
    // The logarithm of a square varies twice as much as that of the window.
    let by_chance = 0.5 * independent.ln_1p().sqrt();
    let best = |ratios: &[f64]| {
        let each = ratios.iter().map(|ratio| cuts.nats(ratio * by_chance));
        each.fold(f64::NEG_INFINITY, f64::max)
    };
    2.0 * independent * (best(&LESS) - best(&MORE))
}

/// Slow-start thresholds that cuts left, segments.
struct Cuts<'a> {
    thresholds: &'a [f64],
    kept: f64,
}

impl Cuts<'_> {
    /// Log-likelihood if the logarithm of the window has a normal distribution with this deviation.
    fn nats(&self, deviation: f64) -> f64 {
        let middle = |threshold: &f64| ((threshold + 0.5) / self.kept).ln();
        let mean = self.thresholds.iter().map(middle).sum::<f64>() / self.thresholds.len() as f64;
        let below = |threshold: f64| normal(((threshold / self.kept).ln() - mean) / deviation);
        // The threshold is rounded down.
        let one = |threshold: &f64| {
            (below(threshold + 1.0) - below(*threshold)).max(f64::MIN_POSITIVE).ln()
        };
        self.thresholds.iter().map(one).sum()
    }
}

/// Share of a standard normal distribution below this.
fn normal(deviations: f64) -> f64 {
    0.5 * libm::erfc(-deviations / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    use super::super::series::LossStep;
    use super::*;

    const CUBIC_KEPT: f64 = 0.7;

    /// A flow that was cut to these thresholds after slow start.
    fn flow(thresholds: &[f64]) -> Vec<Flow> {
        let step = |cut: Option<f64>| LossStep {
            from_s: 0.0,
            seconds: 0.1,
            sent: 80.0,
            lost: f64::from(u8::from(cut.is_some())),
            is_all_lost: false,
            passed: 79.0,
            flight: 10.0,
            all_flight: 10.0,
            queue_s: 0.0,
            jitter_s: 0.001,
            cut: cut.map(|threshold| threshold / CUBIC_KEPT),
        };
        let start = [Some(20.0), None, None].map(step);
        let steps = start.into_iter().chain(thresholds.iter().map(|one| step(Some(*one))));
        vec![Flow { steps: steps.collect(), kept: Some(CUBIC_KEPT), ..Flow::default() }]
    }

    #[test]
    fn cuts_of_one_size_are_a_limit_s() {
        // A policer, as measured.
        let alike =
            [5.0, 6.0, 5.0, 4.0, 5.0, 5.0, 6.0, 5.0, 5.0, 4.0, 5.0, 6.0, 5.0, 4.0, 5.0, 5.0];
        assert!(limit_ahead(&flow(&alike)) > 2.0, "{}", limit_ahead(&flow(&alike)));
        assert!(limit_ahead(&flow(&[40.0; 12])) > 10.0);
        // Bursts of losses, as measured.
        let spread = [30.0, 16.0, 14.0, 19.0, 21.0, 35.0, 25.0, 15.0, 28.0, 11.0, 8.0, 24.0];
        assert!(limit_ahead(&flow(&spread)) < 0.0, "{}", limit_ahead(&flow(&spread)));
    }

    #[test]
    fn few_cuts_several_flows_and_the_least_window_say_nothing() {
        assert_eq!(limit_ahead(&flow(&[40.0; 5])), 0.0);
        let two: Vec<_> = [flow(&[40.0; 12]), flow(&[40.0; 12])].concat();
        assert_eq!(limit_ahead(&two), 0.0);
        assert_eq!(limit_ahead(&flow(&[2.0; 12])), 0.0);
    }

    /// The window of a flow that grows by a segment each round trip.
    #[test]
    fn chance_is_seldom_taken_for_a_limit() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(15);
        let mistaken = (0..100).filter(|_| {
            let (mut window, mut thresholds) = (30.0_f64, Vec::new());
            while thresholds.len() < 12 {
                let is_lost = (0..window as u64).any(|_| rng.random_bool(0.002));
                if is_lost {
                    window = (CUBIC_KEPT * window).floor().max(2.0);
                    thresholds.push(window);
                } else {
                    window += 1.0;
                }
            }
            limit_ahead(&flow(&thresholds)) > 4.0
        });
        assert!(mistaken.count() <= 5);
    }
}
