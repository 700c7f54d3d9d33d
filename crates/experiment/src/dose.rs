//! How goodput depends on a value: the curve through arms that are numbers of one setting.
//!
//! goodput(x) = asymptote * share(x, knee), as [`DoseCurve::share`] has it. The fit is by least squares of logarithms.

use goodput_model::{BitRate, DoseCurve, Known};

use crate::mechanism::known_by_signs;
use crate::pairs::{Runs, goodput};

/// Fewest values that show a bend.
const MIN_VALUES: usize = 3;

/// Candidate knees, evenly spaced in the logarithm, ends included.
const CANDIDATE_KNEES: u32 = 400;

/// The curve through the medians of the arms of `doses`, each with its value. `None` if there are fewer than three
/// different values, or if one of these arms has no goodput.
pub(crate) fn curve(runs: &Runs, doses: &[(usize, f64)]) -> Option<DoseCurve> {
    let median = |arm: usize| goodput_model::median(runs.compared(arm).map(goodput));
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (arm, dose) in doses {
        points.push((*dose, median(*arm).filter(|rate| *rate > 0.0)?));
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup_by(|a, b| a.0 == b.0);
    let (lowest, highest) = (points.first()?.0, points.last()?.0);
    (points.len() >= MIN_VALUES).then(|| {
        let step = (highest / lowest).ln() / f64::from(CANDIDATE_KNEES);
        let knees = (0..=CANDIDATE_KNEES).map(|n| (n, lowest * (f64::from(n) * step).exp()));
        let fits = knees.map(|(n, knee)| (n, knee, fit(&points, knee)));
        let (n, knee, (asymptote, misfit)) = fits
            .min_by(|a, b| a.2.1.total_cmp(&b.2.1))
            .unwrap_or((0, lowest, fit(&points, lowest)));
        let rises = rises(runs, doses, knee);
        described(n, knee, BitRate(asymptote), misfit, rises)
    })
}

fn described(n: u32, knee: f64, asymptote: BitRate, misfit: f64, rises: Known<bool>) -> DoseCurve {
    let (knee, asymptote_bits_per_s) = match n {
        0 => (Known::missing("the smallest value is enough"), Known::Value(asymptote)),
        CANDIDATE_KNEES => {
            let why = "the largest value is not enough";
            (Known::missing(why), Known::missing(why))
        }
        _ => (Known::Value(knee), Known::Value(asymptote)),
    };
    DoseCurve { knee, asymptote_bits_per_s, misfit_percent: 100.0 * misfit.exp_m1(), rises }
}

/// The asymptote that fits best for this knee, and the root mean square of the residuals, in logarithms.
fn fit(points: &[(f64, f64)], knee: f64) -> (f64, f64) {
    let above: Vec<f64> =
        points.iter().map(|(dose, rate)| rate.ln() - DoseCurve::share(*dose, knee).ln()).collect();
    let n = above.len() as f64;
    let mean = above.iter().sum::<f64>() / n;
    let square = above.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / n;
    (mean.exp(), square.sqrt())
}

/// Compares the lowest value with the highest below the knee (or the first above it), block by block: a sign test.
fn rises(runs: &Runs, doses: &[(usize, f64)], knee: f64) -> Known<bool> {
    let by_dose = |a: &&(usize, f64), b: &&(usize, f64)| a.1.total_cmp(&b.1);
    let low = doses.iter().min_by(by_dose);
    let below = doses.iter().filter(|(_, dose)| *dose <= knee);
    let next = doses.iter().filter(|(_, dose)| *dose > knee).min_by(by_dose);
    let high = below.max_by(by_dose).filter(|high| Some(*high) != low);
    match (low, high.or(next)) {
        (Some((low, _)), Some((high, _))) if low != high => {
            known_by_signs(&runs.of_both(*high, *low))
        }
        _ => Known::missing("no two values are below the knee"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::tests::trial;
    use goodput_model::Trial;

    fn trials(doses: &[f64], goodput: impl Fn(f64) -> f64) -> Vec<Trial> {
        let of_block = |block| {
            let run =
                |(arm, dose): (usize, &f64)| trial(block, arm, goodput(*dose) + f64::from(block));
            doses.iter().enumerate().map(run).collect::<Vec<_>>()
        };
        (1..=6).flat_map(of_block).collect()
    }

    const DOSES: [f64; 6] = [4096.0, 8192.0, 16_384.0, 32_768.0, 65_536.0, 131_072.0];

    /// All arms, with these values.
    fn numbered(doses: &[f64]) -> Vec<(usize, f64)> {
        doses.iter().copied().enumerate().collect()
    }

    #[test]
    fn a_window_that_limits_up_to_the_line_has_its_knee_there() {
        let trials = trials(&DOSES, |window| (window * 1e4).min(2.5e8));
        let curve = curve(&Runs::of(&trials, 6), &numbered(&DOSES)).unwrap();
        let knee = *curve.knee.value().unwrap();
        assert!((24_000.0..26_000.0).contains(&knee), "{knee}");
        assert!((curve.asymptote_bits_per_s.value().unwrap().0 / 2.5e8 - 1.0).abs() < 0.02);
        assert_eq!(curve.rises, Known::Value(true));
        assert!(curve.misfit_percent < 2.0);
    }

    #[test]
    fn arms_without_a_dose_are_left_out() {
        let doses = [&[1.0], &DOSES[..]].concat();
        let trials = trials(&doses, |window| if window == 1.0 { 3e8 } else { 1e8 });
        let curve = curve(&Runs::of(&trials, 7), &numbered(&doses)[1..]).unwrap();
        assert_eq!(curve.knee, Known::missing("the smallest value is enough"));
        assert!(curve.misfit_percent < 0.1, "{}", curve.misfit_percent);
    }

    #[test]
    fn a_curve_without_a_knee_says_on_which_side_it_is() {
        let of = |goodput: fn(f64) -> f64| {
            curve(&Runs::of(&trials(&DOSES, goodput), 6), &numbered(&DOSES)).unwrap()
        };
        let flat = of(|_| 1e8);
        assert_eq!(flat.knee, Known::missing("the smallest value is enough"));
        assert!(flat.asymptote_bits_per_s.value().is_some());
        let rising = of(|dose| dose * 1e4);
        assert_eq!(rising.asymptote_bits_per_s.value(), None);
        assert!(curve(&Runs::of(&trials(&DOSES[..2], |x| x), 2), &numbered(&DOSES[..2])).is_none());
    }
}
