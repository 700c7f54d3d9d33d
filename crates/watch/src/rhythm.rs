//! The daily rhythm of a path: how its goodput usually differs by the time of day.
//!
//! A harmonic regression (Fourier terms of the day), fitted robustly: Huber's weights keep single bad tests, and a change
//! that is not known yet, from bending it (Huber, "Robust Estimation of a Location Parameter", 1964).

use std::f64::consts::TAU;

use goodput_model::median;

/// Most harmonics of a day: with four, a dip of two hours in the evening has its shape.
const MAX_HARMONICS: usize = 4;
/// Rounds of reweighting, after which the weights hardly change.
const ROUNDS: usize = 8;
/// From this number of standard deviations, a residual pulls no harder (Huber 1964: 95 % efficiency for normal noise).
const HUBER: f64 = 1.345;
/// Standard deviations of normal noise in one median absolute deviation.
const PER_MAD: f64 = 1.4826;
/// Weight of "no rhythm" beside the tests, in tests: where no test was made, the regression claims nothing.
const RIDGE: f64 = 1.0;
/// The same for a level: nearly nothing, so that a segment without tests has one.
const LEVEL_RIDGE: f64 = 1e-6;

/// One test as the fit sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Local time of day, 0 to 1.
    pub(crate) day_share: f64,
    /// Logarithm of the goodput.
    pub(crate) value: f64,
    /// Number of changes before it.
    pub(crate) segment: usize,
}

/// The usual deviation by time of day, as logarithm.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Rhythm {
    /// Cosine and sine of each harmonic.
    coefficients: Vec<[f64; 2]>,
}

impl Rhythm {
    /// The rhythm of `tests`, of which `per_day` are made in a day. The level of each segment is its own.
    pub(crate) fn fit(tests: &[Seen], per_day: f64) -> Self {
        // n harmonics take 2n + 1 tests a day.
        let harmonics = (((per_day - 1.0) / 2.0).max(0.0) as usize).min(MAX_HARMONICS);
        let mut rhythm = Self { coefficients: vec![[0.0; 2]; harmonics] };
        if harmonics == 0 {
            return rhythm;
        }
        let mut levels = rhythm.levels(tests);
        for _ in 0..ROUNDS {
            (rhythm, levels) = rhythm.refined(tests, &levels);
        }
        rhythm
    }

    /// The usual deviation at this time of day.
    pub(crate) fn at(&self, day_share: f64) -> f64 {
        let terms = self.coefficients.iter().zip(1..);
        terms
            .map(|([cosine, sine], harmonic)| {
                let angle = TAU * f64::from(harmonic) * day_share;
                cosine * angle.cos() + sine * angle.sin()
            })
            .sum()
    }

    /// The median of each segment without the rhythm.
    pub(crate) fn levels(&self, tests: &[Seen]) -> Vec<f64> {
        let segments = tests.iter().map(|test| test.segment).max().map_or(0, |last| last + 1);
        let mut values = vec![Vec::new(); segments];
        for test in tests {
            values[test.segment].push(test.value - self.at(test.day_share));
        }
        values.into_iter().map(|values| median(values).unwrap_or_default()).collect()
    }

    /// One step of iteratively reweighted least squares, for the rhythm and the levels together: a segment may have
    /// tests of some hours only.
    fn refined(&self, tests: &[Seen], levels: &[f64]) -> (Self, Vec<f64>) {
        let residual = |test: &Seen| test.value - levels[test.segment] - self.at(test.day_share);
        let spread = median(tests.iter().map(|test| residual(test).abs())).unwrap_or_default();
        let most = HUBER * PER_MAD * spread;
        let harmonics = 2 * self.coefficients.len();
        let size = harmonics + levels.len();
        let mut matrix = vec![vec![0.0; size + 1]; size];
        for (row, line) in matrix.iter_mut().enumerate() {
            line[row] = if row < harmonics { RIDGE } else { LEVEL_RIDGE };
        }
        let mut terms = vec![0.0; harmonics];
        for test in tests {
            let off = residual(test).abs();
            let weight = if off > most { most / off } else { 1.0 };
            // Steps from the present levels, so that the ridge does not pull these to zero.
            let target = test.value - levels[test.segment];
            terms_at(test.day_share, &mut terms);
            let level = harmonics + test.segment;
            for (row, factor) in terms.iter().map(|term| weight * term).enumerate() {
                matrix[row].iter_mut().zip(&terms).for_each(|(cell, term)| *cell += factor * term);
                matrix[row][level] += factor;
                matrix[row][size] += factor * target;
                matrix[level][row] += factor;
            }
            matrix[level][level] += weight;
            matrix[level][size] += weight * target;
        }
        let solved = solve(matrix);
        let (terms, steps) = solved.split_at(harmonics);
        let coefficients = terms.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
        let levels = levels.iter().zip(steps).map(|(level, step)| level + step).collect();
        (Self { coefficients }, levels)
    }
}

/// Cosine and sine of each harmonic at this time of day.
fn terms_at(day_share: f64, terms: &mut [f64]) {
    for (pair, harmonic) in terms.chunks_exact_mut(2).zip(1..) {
        let angle = TAU * f64::from(harmonic) * day_share;
        (pair[1], pair[0]) = angle.sin_cos();
    }
}

/// Solves the equations whose right side is the last column. The matrix is positive definite by the ridge, so every
/// pivot is above zero without exchanging rows.
fn solve(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
    let size = matrix.len();
    for pivot in 0..size {
        let line = matrix[pivot].clone();
        for other in matrix.iter_mut().skip(pivot + 1) {
            let factor = other[pivot] / line[pivot];
            other.iter_mut().zip(&line).for_each(|(value, above)| *value -= factor * above);
        }
    }
    let mut solved = vec![0.0; size];
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|column| matrix[row][column] * solved[column]).sum();
        solved[row] = (matrix[row][size] - known) / matrix[row][row];
    }
    solved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests(days: usize, per_day: usize, value: impl Fn(usize, f64) -> f64) -> Vec<Seen> {
        let one = |n: usize| {
            let day_share = (n % per_day) as f64 / per_day as f64;
            Seen { day_share, value: value(n, day_share), segment: usize::from(n > 100) }
        };
        (0..days * per_day).map(one).collect()
    }

    #[test]
    fn a_rhythm_is_found_beside_a_change_and_bad_tests() {
        let wave = |share: f64| 0.1 * (TAU * share).sin() - 0.05 * (2.0 * TAU * share).cos();
        let seen = tests(4, 96, |n, share| {
            let bad = if n % 37 == 0 { -2.0 } else { 0.0 };
            20.0 + wave(share) + if n > 100 { -0.1 } else { 0.0 } + bad
        });
        let rhythm = Rhythm::fit(&seen, 96.0);
        for share in [0.0, 0.2, 0.5, 0.8] {
            assert!((rhythm.at(share) - wave(share)).abs() < 0.01, "{share}: {}", rhythm.at(share));
        }
        let levels = rhythm.levels(&seen);
        assert!((levels[0] - levels[1] - 0.1).abs() < 0.01, "{levels:?}");
    }

    #[test]
    fn one_test_a_day_has_no_rhythm() {
        let seen = tests(40, 1, |_, _| 20.0);
        assert_eq!(Rhythm::fit(&seen, 1.0), Rhythm::default());
    }

    #[test]
    fn where_no_test_was_made_nothing_is_claimed() {
        let office = tests(9, 96, |_, share| 20.0 + 0.1 * share);
        let office: Vec<_> =
            office.into_iter().filter(|test| (0.35..0.7).contains(&test.day_share)).collect();
        let rhythm = Rhythm::fit(&office, 96.0);
        for share in [0.0, 0.1, 0.9] {
            assert!(rhythm.at(share).abs() < 1.0, "{}", rhythm.at(share));
        }
    }
}
