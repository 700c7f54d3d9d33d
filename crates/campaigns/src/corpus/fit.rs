//! crates/diagnose/data/fit.json: the weights from which a finding's probability is made, and thresholds, fitted to the
//! corpus.
//!
//! Each weight has a normal prior. The fit is the maximum of the posterior density, found by Newton's method; a standard
//! error is the posterior's own, by its curvature there (Bishop, "Pattern Recognition and Machine Learning", 2006,
//! sections 4.3.3 and 4.5.1).

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::rounded;
use super::said::Said;
use super::thresholds::{Shown, Threshold};
use goodput_tools::shell::root;

/// Newton steps after which the weights don't change any more, by far.
const NEWTON_STEPS: usize = 100;
/// Times that a step that leads too far is halved.
const HALVINGS: i32 = 50;

/// The file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// SHA-256 of all lines of the corpus, in hexadecimal.
    pub corpus_sha256: String,
    /// Runs fitted to.
    pub runs: usize,
    /// Their findings.
    pub findings: usize,
    /// Standard deviation of every weight's prior.
    pub prior_deviation: f64,
    /// The weights, in logits.
    pub weights: Vec<Weight>,
    /// The thresholds of quantities that the runs show.
    pub thresholds: Vec<Threshold>,
}

/// One weight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Weight {
    /// The feature's name.
    pub feature: String,
    /// Mean of the prior.
    pub prior: f64,
    /// The fitted weight.
    pub weight: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Findings whose feature is not 0: so much is behind the weight.
    pub findings: usize,
}

impl Fit {
    /// The file as it is.
    pub fn read() -> Result<Self> {
        let text = fs::read_to_string(path()).context("read crates/diagnose/data/fit.json")?;
        serde_json::from_str(&text).context("crates/diagnose/data/fit.json")
    }

    /// Writes the file.
    pub fn write(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path(), text).context("write crates/diagnose/data/fit.json")
    }

    /// The same priors, fitted to these findings of these runs of a corpus with these lines.
    pub fn again(&self, said: &[Said], runs: &[Shown], lines: &str) -> Self {
        let value = |said: &Said, weight: &Weight| {
            said.features.get(&weight.feature).copied().unwrap_or_default()
        };
        let row = |said: &Said| self.weights.iter().map(|weight| value(said, weight)).collect();
        let problem = Problem {
            rows: said.iter().map(row).collect(),
            right: said.iter().map(|said| said.is_right).collect(),
            priors: self.weights.iter().map(|weight| weight.prior).collect(),
            precision: self.prior_deviation.powi(-2),
        };
        let weights = self.weights.iter().zip(problem.fitted());
        let weight = |(old, (weight, standard_error)): (&Weight, (f64, f64))| Weight {
            weight: rounded(weight),
            standard_error: rounded(standard_error),
            findings: said.iter().filter(|said| value(said, old) != 0.0).count(),
            ..old.clone()
        };
        let weights = weights.map(weight).collect();
        let digest = Sha256::digest(lines);
        let corpus_sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let findings = said.len();
        let thresholds = self.thresholds.iter().map(|threshold| threshold.again(runs)).collect();
        let (runs, prior_deviation) = (runs.len(), self.prior_deviation);
        Self { corpus_sha256, runs, findings, prior_deviation, weights, thresholds }
    }
}

fn path() -> PathBuf {
    root().join("crates/diagnose/data/fit.json")
}

/// What is fitted: the features of each finding, whether the finding was right, and the prior of each weight.
struct Problem {
    rows: Vec<Vec<f64>>,
    right: Vec<bool>,
    priors: Vec<f64>,
    precision: f64,
}

impl Problem {
    /// Weights and their standard errors.
    fn fitted(&self) -> Vec<(f64, f64)> {
        let mut weights = self.priors.clone();
        let better = |weights: &[f64]| {
            let (slope, curvature) = self.derivatives(weights);
            let step: Vec<f64> = inverse(curvature).iter().map(|row| dot(row, &slope)).collect();
            let moved = |by: f64| weights.iter().zip(&step).map(|(w, s)| w - by * s).collect();
            let mut shorter = (0..HALVINGS).map(|halvings| moved(0.5_f64.powi(halvings)));
            shorter.find(|new: &Vec<f64>| self.cost(new) < self.cost(weights))
        };
        for _ in 0..NEWTON_STEPS {
            let Some(new) = better(&weights) else { break };
            weights = new;
        }
        let covariance = inverse(self.derivatives(&weights).1);
        let errors = covariance.iter().enumerate().map(|(place, row)| row[place].sqrt());
        weights.into_iter().zip(errors).collect()
    }

    /// What is minimised: the negative logarithm of the posterior density, but for a constant.
    fn cost(&self, weights: &[f64]) -> f64 {
        let misfit = self.rows.iter().zip(&self.right).map(|(row, right)| {
            let log_odds = dot(row, weights);
            (if *right { -log_odds } else { log_odds }).exp().ln_1p()
        });
        let strayed = weights.iter().zip(&self.priors).map(|(w, prior)| (w - prior).powi(2));
        misfit.sum::<f64>() + self.precision / 2.0 * strayed.sum::<f64>()
    }

    /// First and second derivatives of the cost.
    fn derivatives(&self, weights: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let pull = weights.iter().zip(&self.priors).map(|(w, prior)| self.precision * (w - prior));
        let mut slope: Vec<f64> = pull.collect();
        let mut curvature = diagonal(weights.len(), self.precision);
        for (row, right) in self.rows.iter().zip(&self.right) {
            let p = 1.0 / (1.0 + (-dot(row, weights)).exp());
            for (i, x) in row.iter().enumerate() {
                slope[i] += (p - f64::from(u8::from(*right))) * x;
                row.iter().zip(&mut curvature[i]).for_each(|(y, c)| *c += p * (1.0 - p) * x * y);
            }
        }
        (slope, curvature)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn diagonal(size: usize, value: f64) -> Vec<Vec<f64>> {
    let row = |i: usize| (0..size).map(|j| if i == j { value } else { 0.0 }).collect();
    (0..size).map(row).collect()
}

/// The inverse of a positive definite matrix by Gauss and Jordan, who need to exchange no rows of such a matrix.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let mut inverse = diagonal(matrix.len(), 1.0);
    for pivot in 0..matrix.len() {
        let by = matrix[pivot][pivot];
        for row in [&mut matrix[pivot], &mut inverse[pivot]] {
            row.iter_mut().for_each(|x| *x /= by);
        }
        for other in (0..matrix.len()).filter(|other| *other != pivot) {
            let by = matrix[other][pivot];
            for rows in [&mut matrix, &mut inverse] {
                let pivot_row = rows[pivot].clone();
                rows[other].iter_mut().zip(pivot_row).for_each(|(x, p)| *x -= by * p);
            }
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    const TRUE: [f64; 3] = [2.0, -1.0, 1.5];

    fn fitted(
        rows: &[Vec<f64>],
        right: &[bool],
        priors: &[f64],
        deviation: f64,
    ) -> Vec<(f64, f64)> {
        let (rows, right, priors) = (rows.to_vec(), right.to_vec(), priors.to_vec());
        Problem { rows, right, priors, precision: deviation.powi(-2) }.fitted()
    }

    /// Findings with two kinds of evidence and a share of time, right as often as the true weights say.
    fn simulated(count: usize) -> (Vec<Vec<f64>>, Vec<bool>) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let one = |_| {
            let strong = f64::from(u8::from(rng.random_bool(0.5)));
            let row = vec![strong, 1.0 - strong, rng.random_range(-0.5..0.5)];
            let p = 1.0 / (1.0 + (-dot(&row, &TRUE)).exp());
            (row, rng.random_bool(p))
        };
        (0..count).map(one).unzip()
    }

    #[test]
    fn the_true_weights_are_found_within_their_errors() {
        let (rows, right) = simulated(4000);
        for ((weight, error), truth) in fitted(&rows, &right, &[0.0; 3], 1.0).iter().zip(TRUE) {
            assert!(*error < 0.2 && (weight - truth).abs() < 3.0 * error, "{weight} ± {error}");
        }
    }

    #[test]
    fn without_findings_the_weights_are_the_priors() {
        assert_eq!(fitted(&[], &[], &[4.6, 0.0], 0.5), [(4.6, 0.5), (0.0, 0.5)]);
    }

    #[test]
    fn few_findings_move_a_weight_little() {
        let rows = vec![vec![1.0]; 3];
        let (weight, error) = fitted(&rows, &[true; 3], &[2.2], 1.0)[0];
        assert!(weight > 2.2 && weight < 2.6 && error < 1.0, "{weight} ± {error}");
        // The slope is zero there: the sum of what is missing to right, against the pull of the prior.
        let p = 1.0 / (1.0 + (-weight).exp());
        assert!((3.0 * (1.0 - p) - (weight - 2.2)).abs() < 1e-6);
    }

    #[test]
    fn what_a_fit_says_is_right_so_often_on_findings_that_it_has_not_seen() {
        let (rows, right) = simulated(8000);
        let weights: Vec<f64> =
            fitted(&rows[..4000], &right[..4000], &[0.0; 3], 1.0).iter().map(|w| w.0).collect();
        let mut bins = [(0.0, 0.0, 0.0); 5];
        for (row, right) in rows.iter().zip(&right).skip(4000) {
            let p = 1.0 / (1.0 + (-dot(row, &weights)).exp());
            let bin = &mut bins[((p * 5.0) as usize).min(4)];
            *bin = (bin.0 + 1.0, bin.1 + p, bin.2 + f64::from(u8::from(*right)));
        }
        for (count, said, right) in bins.into_iter().filter(|bin| bin.0 > 100.0) {
            let (said, right) = (said / count, right / count);
            let deviation = (said * (1.0 - said) / count).sqrt();
            assert!((said - right).abs() < 4.0 * deviation, "{said} said, {right} right");
        }
    }

    #[test]
    fn an_inverse_inverts() {
        let matrix = vec![vec![4.0, 1.0, 0.5], vec![1.0, 3.0, -0.2], vec![0.5, -0.2, 2.0]];
        let inverse = inverse(matrix.clone());
        for (i, row) in matrix.iter().enumerate() {
            for j in 0..3 {
                let column: Vec<f64> = inverse.iter().map(|row| row[j]).collect();
                let expected = f64::from(u8::from(i == j));
                assert!((dot(row, &column) - expected).abs() < 1e-12);
            }
        }
    }
}
