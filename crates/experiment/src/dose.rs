//! How goodput depends on a value: the curve through arms that are numbers of one setting.
//!
//! goodput(x) = asymptote * share(x, knee), as [`DoseCurve::share`] has it. The fit is by least squares of logarithms of
//! the arms' medians. Whether a knee may be named is another question, which the runs answer: for each value, the exact
//! signed-rank test gives an interval of its goodput over that of the first value, within blocks. The ratio that a knee
//! predicts depends on nothing else, so a knee is excluded if one of its ratios is outside of its interval by more than
//! the smallest effect that counts. The knees that remain are a confidence interval. If none remains, goodput does not
//! follow such a curve; if an end of the range remains, the runs don't show that there is a knee.

use goodput_model::{BitRate, DoseCurve, Known, Response, SettingRef};

use crate::conditions::adjusted;
use crate::mechanism::clearly_falls;
use crate::pairs::{Runs, goodput};
use crate::responses::for_ratio;
use crate::signed_rank::Ranked;

/// Fewest values that show a bend.
const MIN_VALUES: usize = 3;

/// Candidate knees, evenly spaced in the logarithm, ends included.
const CANDIDATE_KNEES: u32 = 400;

/// Error of all intervals together: how often the true knee is excluded.
pub(crate) const EXCLUDED_LEVEL: f64 = 0.05;

/// Why there is no knee if every curve is excluded, and if none is.
pub(crate) const ANOTHER_FORM: &str =
    "goodput does not rise in proportion to the value and then stay";
const TOO_FEW_RUNS: &str = "the runs are too few, or differ too much, to show one";

/// The arms of a single setting whose values are numbers above zero: `0` and `default` often mean something else than
/// a small amount.
pub(crate) fn doses(settings: &[SettingRef], values: &[Vec<String>]) -> Vec<(usize, f64)> {
    let of_arm = |(arm, values): (usize, &Vec<String>)| match &values[..] {
        [value] => Some((arm, DoseCurve::number(value)?)),
        _ => None,
    };
    let numbers = values.iter().enumerate().filter_map(of_arm);
    if settings.len() == 1 { numbers.collect() } else { Vec::new() }
}

/// The curve through the medians of the arms of `doses`, each with its value. Effects below `threshold_percent` don't
/// count. `None` if there are fewer than three different values, or if one of these arms has no goodput.
pub(crate) fn curve(
    runs: &Runs,
    doses: &[(usize, f64)],
    threshold_percent: f64,
) -> Option<DoseCurve> {
    let points = points(runs, doses)?;
    let (lowest, highest) = (points.first()?.0, points.last()?.0);
    (points.len() >= MIN_VALUES).then(|| {
        let ratios = ratios(runs, doses, threshold_percent);
        let step = (highest / lowest).ln() / f64::from(CANDIDATE_KNEES);
        let knees = (0..=CANDIDATE_KNEES).map(|n| lowest * (f64::from(n) * step).exp());
        let fits: Vec<Fit> = knees.map(|knee| Fit::with(knee, &points, &ratios)).collect();
        described(&fits, |knee| rises(runs, doses, knee))
    })
}

/// Each value and the median of its runs, the smallest value first. `None` if a median is missing or zero.
fn points(runs: &Runs, doses: &[(usize, f64)]) -> Option<Vec<(f64, f64)>> {
    let median = |arm: usize| goodput_model::median(runs.compared(arm).map(goodput));
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (arm, dose) in doses {
        points.push((*dose, median(*arm).filter(|rate| *rate > 0.0)?));
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup_by(|a, b| a.0 == b.0);
    Some(points)
}

/// What the runs show of the goodput of two values.
struct Ratio {
    dose: f64,
    /// The value beside which it ran.
    beside: f64,
    /// Bounds of ln(goodput with `dose` / goodput with `beside`), wider by the smallest effect that counts.
    low: f64,
    high: f64,
}

/// Each value beside the first one. A ratio is left out if its runs are too few for its level: it excludes nothing.
fn ratios(runs: &Runs, doses: &[(usize, f64)], threshold_percent: f64) -> Vec<Ratio> {
    let Some(((reference, beside), others)) = doses.split_first() else { return Vec::new() };
    let level = EXCLUDED_LEVEL / others.len() as f64;
    let margin = (threshold_percent / 100.0).ln_1p();
    let copies = runs.copies(for_ratio(Response::Throughput));
    let ratio = |(arm, dose): &(usize, f64)| {
        let cells = [(*arm, 1.0), (*reference, -1.0)];
        let pairs = runs.contrast(&cells, for_ratio(Response::Throughput));
        let (residuals, _) = adjusted(&pairs, copies);
        let shown = Ranked::new(&residuals)?.locate(level);
        let (low, high) = (shown.low - margin, shown.high + margin);
        shown.reaches_level.then_some(Ratio { dose: *dose, beside: *beside, low, high })
    };
    others.iter().filter_map(ratio).collect()
}

/// The best curve with a given knee.
struct Fit {
    knee: f64,
    asymptote: f64,
    /// Root mean square of the residuals, in logarithms.
    misfit: f64,
    /// Whether no ratio excludes it.
    remains: bool,
}

impl Fit {
    fn with(knee: f64, points: &[(f64, f64)], ratios: &[Ratio]) -> Self {
        let share = |dose: f64| DoseCurve::share(dose, knee).ln();
        let above: Vec<f64> = points.iter().map(|(dose, rate)| rate.ln() - share(*dose)).collect();
        let n = above.len() as f64;
        let mean = above.iter().sum::<f64>() / n;
        let square = above.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / n;
        let remains = ratios.iter().all(|Ratio { dose, beside, low, high }| {
            (*low..=*high).contains(&(share(*dose) - share(*beside)))
        });
        Self { knee, asymptote: mean.exp(), misfit: square.sqrt(), remains }
    }
}

/// The closest of the curves that remain, with its knee if the runs exclude both ends of the range. If none remains,
/// only how far off the closest curve is.
fn described(fits: &[Fit], rises: impl Fn(f64) -> Known<bool>) -> DoseCurve {
    let closest = |among: &[usize]| {
        among.iter().copied().min_by(|a, b| fits[*a].misfit.total_cmp(&fits[*b].misfit))
    };
    let all: Vec<usize> = (0..fits.len()).collect();
    let remaining: Vec<usize> = all.iter().copied().filter(|n| fits[*n].remains).collect();
    let best = closest(&remaining).or_else(|| closest(&all)).unwrap_or(0);
    let fit = &fits[best];
    let ends = remaining.first().copied().zip(remaining.last().copied());
    let (knee, asymptote_bits_per_s) = knee(fits, best, ends);
    DoseCurve {
        knee_between: ends
            .filter(|_| knee.value().is_some())
            .map(|(first, last)| [fits[first].knee, fits[last].knee]),
        knee,
        asymptote_bits_per_s,
        misfit_percent: 100.0 * fit.misfit.exp_m1(),
        rises: rises(fit.knee),
    }
}

/// The knee of the fit `best` and the goodput beyond it, or why there is none. `ends` are the first and the last of the
/// fits that remain.
fn knee(fits: &[Fit], best: usize, ends: Option<(usize, usize)>) -> (Known<f64>, Known<BitRate>) {
    let (fit, largest) = (&fits[best], fits.len() - 1);
    let asymptote = Known::Value(BitRate(fit.asymptote));
    let none = |why: &'static str| (Known::missing(why), Known::missing(why));
    match ends {
        None => none(ANOTHER_FORM),
        Some((0, last)) if last == largest => none(TOO_FEW_RUNS),
        Some(_) if best == 0 => (Known::missing("the smallest value is enough"), asymptote),
        Some(_) if best == largest => none("the largest value is not enough"),
        Some((0, _)) => none("the runs don't exclude that the smallest value is enough"),
        Some((_, last)) if last == largest => {
            none("the runs don't exclude that even the largest value is not enough")
        }
        Some(_) => (Known::Value(fit.knee), asymptote),
    }
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
            clearly_falls(&runs.of_both(*high, *low))
        }
        _ => Known::missing("no two values are below the knee"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::tests::trial;
    use goodput_model::Trial;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    /// As many as the first look at seven arms needs.
    const BLOCKS: u32 = 9;
    const THRESHOLD_PERCENT: f64 = 3.0;

    fn trials(doses: &[f64], goodput: impl Fn(f64) -> f64) -> Vec<Trial> {
        let of_block = |block| {
            let run =
                |(arm, dose): (usize, &f64)| trial(block, arm, goodput(*dose) + f64::from(block));
            doses.iter().enumerate().map(run).collect::<Vec<_>>()
        };
        (1..=BLOCKS).flat_map(of_block).collect()
    }

    const DOSES: [f64; 6] = [4096.0, 8192.0, 16_384.0, 32_768.0, 65_536.0, 131_072.0];

    /// All arms, with these values.
    fn numbered(doses: &[f64]) -> Vec<(usize, f64)> {
        doses.iter().copied().enumerate().collect()
    }

    fn fitted(trials: &[Trial], doses: &[f64]) -> DoseCurve {
        curve(&Runs::of(trials, doses.len()), &numbered(doses), THRESHOLD_PERCENT).unwrap()
    }

    #[test]
    fn a_window_that_limits_up_to_the_line_has_its_knee_there() {
        let curve = fitted(&trials(&DOSES, |window| (window * 1e4).min(2.5e8)), &DOSES);
        let knee = *curve.knee.value().unwrap();
        assert!((24_000.0..26_000.0).contains(&knee), "{knee}");
        let [low, high] = curve.knee_between.unwrap();
        assert!(low > 24_000.0 && low < knee && knee < high && high < 26_000.0, "{low} {high}");
        assert!((curve.asymptote_bits_per_s.value().unwrap().0 / 2.5e8 - 1.0).abs() < 0.02);
        assert_eq!(curve.rises, Known::Value(true));
        assert!(curve.misfit_percent < 2.0);
    }

    #[test]
    fn arms_without_a_dose_are_left_out() {
        let doses = [&[1.0], &DOSES[..]].concat();
        let trials = trials(&doses, |window| if window == 1.0 { 3e8 } else { 1e8 });
        let numbers = &numbered(&doses)[1..];
        let curve = curve(&Runs::of(&trials, 7), numbers, THRESHOLD_PERCENT).unwrap();
        assert_eq!(curve.knee, Known::missing("the smallest value is enough"));
        assert!(curve.misfit_percent < 0.1, "{}", curve.misfit_percent);
    }

    #[test]
    fn a_curve_without_a_knee_says_on_which_side_it_is() {
        let of = |goodput: fn(f64) -> f64| fitted(&trials(&DOSES, goodput), &DOSES);
        let flat = of(|_| 1e8);
        assert_eq!(flat.knee, Known::missing("the smallest value is enough"));
        assert!(flat.asymptote_bits_per_s.value().is_some());
        let rising = of(|dose| dose * 1e4);
        assert_eq!(rising.knee, Known::missing("the largest value is not enough"));
        assert_eq!(rising.asymptote_bits_per_s.value(), None);
        let two = trials(&DOSES[..2], |x| x);
        assert!(curve(&Runs::of(&two, 2), &numbered(&DOSES[..2]), THRESHOLD_PERCENT).is_none());
    }

    /// Falling, or with a peak: a knee would be false.
    #[test]
    fn goodput_of_another_form_has_no_knee() {
        let of = |goodput: fn(f64) -> f64| fitted(&trials(&DOSES, goodput), &DOSES);
        for other in [of(|dose| 1e12 / dose), of(|dose| if dose == 16_384.0 { 4e8 } else { 1e8 })] {
            assert_eq!(other.knee, Known::missing(ANOTHER_FORM));
            assert_eq!(other.knee_between, None);
            assert_eq!(other.asymptote_bits_per_s.value(), None);
            assert!(other.misfit_percent > 50.0, "{}", other.misfit_percent);
        }
    }

    #[test]
    fn runs_that_differ_as_much_as_the_values_show_no_knee() {
        let limited = || trials(&DOSES, |window| (window * 1e4).min(2.5e8));
        let mut noisy = limited();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for trial in &mut noisy {
            // By up to a factor of 20 in either direction.
            let factor = 20f64.powf(2.0 * random.random::<f64>() - 1.0);
            trial.goodput_bits_per_s = Known::Value(BitRate(goodput(trial) * factor));
        }
        let few: Vec<Trial> = limited().into_iter().filter(|trial| trial.block <= 3).collect();
        for trials in [noisy, few] {
            let curve = fitted(&trials, &DOSES);
            assert_eq!(curve.knee, Known::missing(TOO_FEW_RUNS), "{curve:?}");
            assert_eq!(curve.knee_between, None);
        }
    }

    #[test]
    fn the_true_knee_is_seldom_excluded() {
        const COMPARISONS: u32 = 300;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut misses = || {
            let mut noisy = trials(&DOSES, |window| (window * 1e4).min(2.5e8));
            for trial in &mut noisy {
                let factor = (0.3 * (random.random::<f64>() - 0.5)).exp();
                trial.goodput_bits_per_s = Known::Value(BitRate(goodput(trial) * factor));
            }
            let curve = curve(&Runs::of(&noisy, DOSES.len()), &numbered(&DOSES), 0.0).unwrap();
            match curve.knee_between {
                Some([low, high]) => !(low..=high).contains(&25_000.0),
                None => curve.knee == Known::missing(ANOTHER_FORM),
            }
        };
        let missed = (0..COMPARISONS).filter(|_| misses()).count();
        // 5 %, and three standard deviations of a binomial count.
        assert!(missed as f64 <= 15.0 + 3.0 * 3.8, "{missed} of {COMPARISONS}");
    }
}
