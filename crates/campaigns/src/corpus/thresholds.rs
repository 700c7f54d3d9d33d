//! The thresholds of crates/diagnose/data/fit.json, fitted to what the corpus shows of their quantities.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::truth::Planted;

/// Fewer runs of either kind move no border from its prior.
const MIN_RUNS: usize = 5;

/// One number, and what stands behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    /// Name of the quantity.
    pub name: String,
    /// What is taken without any run: from the literature, or chosen.
    pub prior: f64,
    /// Where that comes from.
    pub source: String,
    /// The number.
    pub value: f64,
    /// How it is fitted.
    #[serde(flatten)]
    pub by: By,
}

/// How a number is fitted. Causes are the rules that name what was planted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum By {
    /// The quantity is at least as large in runs with some causes, and less in runs with others. It stays at the prior unless
    /// enough runs lie apart, with the prior beside them: then it is the middle between them.
    Border {
        /// Causes with which it is reached.
        above: Vec<String>,
        /// Causes with which it is not.
        below: Vec<String>,
        /// Runs of the first kind that show the quantity.
        runs_above: usize,
        /// Runs of the second kind.
        runs_below: usize,
        /// The least in runs of the first kind.
        least_above: Option<f64>,
        /// The most in runs of the second kind.
        most_below: Option<f64>,
    },
    /// The quantity's mean in runs with some causes, of which the prior counts as a few.
    Mean {
        /// Causes.
        of: Vec<String>,
        /// Runs that show the quantity.
        runs: usize,
        /// Runs that the prior counts as.
        prior_runs: usize,
    },
    /// It is the prior: no runs show on which side of it they should lie.
    Prior,
}

/// A run: what was planted, and what it shows of each quantity.
pub type Shown<'a> = (&'a Planted, &'a BTreeMap<String, f64>);

impl Threshold {
    /// The same number, fitted to these runs.
    pub fn again(&self, runs: &[Shown]) -> Self {
        let shown = |causes: &[String]| -> Vec<f64> {
            let of = runs.iter().filter(|(planted, _)| is_one_of(planted, causes));
            of.filter_map(|(_, shown)| shown.get(&self.name).copied()).collect()
        };
        let (value, by) = match &self.by {
            By::Border { above, below, .. } => {
                let (over, under) = (shown(above), shown(below));
                let least_above = over.iter().copied().reduce(f64::min).map(super::rounded);
                let most_below = under.iter().copied().reduce(f64::max).map(super::rounded);
                let enough = over.len().min(under.len()) >= MIN_RUNS;
                let apart = most_below.zip(least_above).filter(|_| enough);
                let value = border(self.prior, apart);
                let (runs_above, runs_below) = (over.len(), under.len());
                let (above, below) = (above.clone(), below.clone());
                let by =
                    By::Border { above, below, runs_above, runs_below, least_above, most_below };
                (value, by)
            }
            By::Mean { of, prior_runs, .. } => {
                let (all, prior_runs) = (shown(of), *prior_runs);
                let sum = self.prior * prior_runs as f64 + all.iter().sum::<f64>();
                let value = sum / (prior_runs + all.len()).max(1) as f64;
                (value, By::Mean { of: of.clone(), runs: all.len(), prior_runs })
            }
            By::Prior => (self.prior, By::Prior),
        };
        Self { value: super::rounded(value), by, ..self.clone() }
    }

    /// What stands behind it, for a person.
    pub fn behind(&self) -> String {
        match &self.by {
            By::Border { above, below, runs_above: 0, runs_below: 0, .. } => {
                format!("no runs with {}", named(&[&above[..], below].concat()))
            }
            By::Border { above, below, runs_above, runs_below, least_above, most_below } => {
                let least = shown_by(*runs_above, above, *least_above, "or more");
                let most = shown_by(*runs_below, below, *most_below, "at most");
                format!("{least}; {most}")
            }
            By::Mean { of, runs: 0, prior_runs } => {
                format!("no runs with {}; the prior counts as {prior_runs}", named(of))
            }
            By::Mean { of, runs, prior_runs } => {
                format!("mean of {runs} runs with {}; the prior counts as {prior_runs}", named(of))
            }
            By::Prior => "not fitted: it is a distance to both sides".into(),
        }
    }
}

/// How many runs with these causes show the quantity, and its end among them.
fn shown_by(runs: usize, causes: &[String], end: Option<f64>, side: &str) -> String {
    match end {
        Some(end) => format!("{runs} runs with {}, {end:.3} {side}", named(causes)),
        None => format!("no runs with {}", named(causes)),
    }
}

fn named(causes: &[String]) -> String {
    causes.iter().map(|cause| format!("`{cause}`")).collect::<Vec<_>>().join(" or ")
}

fn is_one_of(planted: &Planted, causes: &[String]) -> bool {
    match planted {
        Planted::One { rules, .. } => rules.first().is_some_and(|rule| causes.contains(rule)),
        Planted::Several(_) | Planted::Nothing(_) => false,
    }
}

/// The prior, if it lies between the most below and the least above, or if nothing does; else their middle.
fn border(prior: f64, ends: Option<(f64, f64)>) -> f64 {
    let Some((below, above)) = ends.filter(|(below, above)| below < above) else { return prior };
    let is_between = below < prior && prior <= above;
    if is_between { prior } else { (below + above) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(cause: &str, value: f64) -> (Planted, BTreeMap<String, f64>) {
        let planted = Planted::One { rules: vec![cause.into()], end: None };
        (planted, BTreeMap::from([("ahead".into(), value)]))
    }

    fn fitted(by: By, prior: f64, runs: &[(Planted, BTreeMap<String, f64>)]) -> Threshold {
        let (name, source) = ("ahead".into(), "chosen".into());
        let threshold = Threshold { name, prior, source, value: 0.0, by };
        threshold.again(&runs.iter().map(|(planted, shown)| (planted, shown)).collect::<Vec<_>>())
    }

    fn border_of(prior: f64, runs: &[(Planted, BTreeMap<String, f64>)]) -> Threshold {
        let (least_above, most_below) = (None, None);
        let (above, below) = (vec!["a".into()], vec!["b".into()]);
        let by = By::Border { above, below, runs_above: 0, runs_below: 0, least_above, most_below };
        fitted(by, prior, runs)
    }

    #[test]
    fn a_border_stays_at_its_prior_unless_the_runs_lie_apart_beside_it() {
        let of = |cause: &str, values: [f64; 5]| values.map(|value| run(cause, value)).to_vec();
        let (reached, not) =
            (of("a", [20.0, 16.0, 18.0, 30.0, 17.0]), of("b", [3.0, 1.0, 2.0, 0.0, 1.0]));
        let runs = [reached.clone(), not.clone(), vec![run("c", 99.0)]].concat();
        let kept = border_of(10.0, &runs);
        assert_eq!(kept.value, 10.0);
        assert!(kept.behind().contains("5 runs with `a`, 16.000 or more"), "{}", kept.behind());
        assert_eq!(border_of(2.0, &runs).value, 9.5);
        assert_eq!(border_of(17.0, &runs).value, 9.5);
        assert_eq!(border_of(2.0, &[reached.clone(), not[1..].to_vec()].concat()).value, 2.0);
        assert_eq!(border_of(2.0, &[reached, of("b", [99.0; 5])].concat()).value, 2.0);
    }

    #[test]
    fn a_distance_stays_at_its_prior_whatever_runs_show() {
        let runs: Vec<_> = [-9.0, -3.0, 5.0, 8.0].map(|ahead| run("a", ahead)).into();
        let kept = fitted(By::Prior, 4.0, &runs);
        assert_eq!((kept.value, kept.by), (4.0, By::Prior));
    }

    #[test]
    fn that_no_run_shows_a_quantity_is_said_once() {
        assert_eq!(border_of(10.0, &[]).behind(), "no runs with `a` or `b`");
        let one = border_of(10.0, &[run("b", 3.0)]).behind();
        assert_eq!(one, "no runs with `a`; 1 runs with `b`, 3.000 at most");
        let mean = By::Mean { of: vec!["a".into()], runs: 0, prior_runs: 10 };
        assert_eq!(fitted(mean, 0.9, &[]).behind(), "no runs with `a`; the prior counts as 10");
    }

    #[test]
    fn a_mean_of_few_runs_stays_near_its_prior() {
        let by = || By::Mean { of: vec!["a".into()], runs: 0, prior_runs: 10 };
        assert_eq!(fitted(by(), 0.02, &[]).value, 0.02);
        let one = fitted(by(), 0.02, &[run("a", 0.13), run("b", 0.9)]);
        assert_eq!(
            (one.value, one.by),
            (0.03, By::Mean { of: vec!["a".into()], runs: 1, prior_runs: 10 })
        );
    }

    #[test]
    fn a_threshold_is_read_as_it_is_written() {
        let threshold = border_of(10.0, &[run("a", 20.0)]);
        let text = serde_json::to_string(&threshold).unwrap();
        assert_eq!(serde_json::from_str::<Threshold>(&text).unwrap(), threshold);
    }
}
