//! The two-way model of a mesh: log goodput = typical + sender + receiver + path.
//!
//! Fitted by median polish (Tukey 1977, "Exploratory Data Analysis", chapter 11): the medians of rows and columns are taken
//! out until none is left. Up to half of a site's paths may be slow for reasons of their own before its effect moves.

use std::f64::consts::PI;

use super::scale::{middle, scale};
use super::side::Side;
use super::student::two_sided_quantile;

/// Share of meshes without any fault in which something is named, for all effects and paths together (Bonferroni).
const FALSE_ALARMS: f64 = 0.05;
/// Passes of the polish, at most: each halves what is left, about.
const PASSES: usize = 100;
/// A median of less is none: a millionth of the goodput.
const SMALL: f64 = 1e-6;

/// A measured cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Value {
    /// Index of the site that sent.
    pub sender: usize,
    /// Index of the site that received.
    pub receiver: usize,
    /// Natural logarithm of the goodput.
    pub log: f64,
}

/// How far something is from typical, as a logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Effect {
    /// The estimate.
    pub estimate: f64,
    /// The range around it, to either side: joint with all other effects, at 95 %.
    pub margin: f64,
}

impl Effect {
    /// Whether it is surely below typical.
    pub(super) fn is_below(self) -> bool {
        self.estimate + self.margin < 0.0
    }
}

/// The fitted model.
pub(super) struct Fit {
    /// The typical log goodput.
    pub typical: f64,
    senders: Side,
    receivers: Side,
    /// What is left of each value.
    left: Vec<f64>,
    noise: Noise,
}

impl Fit {
    /// Standard deviation of a path's noise, robustly.
    pub fn scale(&self) -> f64 {
        self.noise.scale
    }

    /// Effect of a site as a sender; absent if too few cells tell.
    pub fn sender(&self, site: usize) -> Option<Effect> {
        self.effect(&self.senders, site)
    }

    /// Effect of a site as a receiver.
    pub fn receiver(&self, site: usize) -> Option<Effect> {
        self.effect(&self.receivers, site)
    }

    fn effect(&self, side: &Side, site: usize) -> Option<Effect> {
        let of_typical = PI / 2.0 / self.left.len() as f64;
        let margin = self.noise.margin(side.variance(site) + of_typical, 0.0);
        side.is_judged(site).then(|| Effect { estimate: side.effects[site], margin })
    }

    /// How many values a site has as a sender.
    pub fn sent(&self, site: usize) -> usize {
        self.senders.count(site)
    }

    /// How many values a site has as a receiver.
    pub fn received(&self, site: usize) -> usize {
        self.receivers.count(site)
    }

    /// What is left of a value, which is between these sites; `variance` of its logarithm is what the noise of its own
    /// tests leaves.
    pub fn path(&self, value: usize, [sender, receiver]: [usize; 2], variance: f64) -> Effect {
        let sides = self.senders.variance(sender) + self.receivers.variance(receiver);
        // The noise of usual tests is in the scale already. Adding that of the path's own ones keeps a path with few
        // tests from being blamed.
        let margin = self.noise.margin(1.0 + sides, variance);
        Effect { estimate: self.left[value], margin }
    }
}

/// Fits the cells of `sites` sites, which come row by row. `None`: there are not more cells than effects. The cells of a
/// thousand sites are a million, so only what is left of them is kept.
pub(super) fn fit(sites: usize, values: impl Iterator<Item = Value> + Clone) -> Option<Fit> {
    let mut polish = Polish::new(sites, values);
    for _ in 0..PASSES {
        if polish.pass() < SMALL {
            break;
        }
    }
    let Polish { left, typical, senders, receivers } = polish;
    let effects = senders.known() + receivers.known();
    let parameters = effects.saturating_sub(1).max(1);
    let dof = left.len().checked_sub(parameters).filter(|dof| *dof > 0)?;
    let scale = scale(left.iter().copied(), parameters)?;
    let alarms = FALSE_ALARMS / (effects + left.len()) as f64;
    let noise = Noise { scale, quantile: two_sided_quantile(alarms, dof) };
    Some(Fit { typical, senders, receivers, left, noise })
}

/// What a range is made of.
#[derive(Clone, Copy)]
struct Noise {
    /// Standard deviation of a path.
    scale: f64,
    /// As many standard errors are within the range, to either side.
    quantile: f64,
}

impl Noise {
    /// Half of the range of something whose variance is so many squares of the scale, and `own` beside it.
    fn margin(self, variance: f64, own: f64) -> f64 {
        self.quantile * (self.scale.powi(2) * variance + own).sqrt()
    }
}

/// The polish while it goes on.
struct Polish {
    left: Vec<f64>,
    typical: f64,
    senders: Side,
    receivers: Side,
}

impl Polish {
    fn new(sites: usize, values: impl Iterator<Item = Value> + Clone) -> Self {
        let mut left: Vec<f64> = values.clone().map(|value| value.log).collect();
        let typical = middle(left.clone(), 0).unwrap_or_default();
        left.iter_mut().for_each(|log| *log -= typical);
        Self {
            left,
            typical,
            senders: Side::in_order(sites, values.clone().map(|value| value.sender)),
            receivers: Side::new(sites, values.map(|value| value.receiver)),
        }
    }

    /// Takes the medians out of rows and columns once. Returns the largest.
    fn pass(&mut self) -> f64 {
        let rows = self.senders.polish(&mut self.left, &mut self.typical);
        let columns = self.receivers.polish(&mut self.left, &mut self.typical);
        rows.max(columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A full mesh of `sites` sites with a little fixed noise.
    fn mesh(sites: usize, log: impl Fn(usize, usize) -> f64) -> Vec<Value> {
        let pairs = (0..sites).flat_map(|one| (0..sites).map(move |two| (one, two)));
        let value = |(sender, receiver): (usize, usize)| {
            let noise = ((sender + 3) * (receiver + 5) * 7 % 11) as f64 / 11.0 - 0.5;
            Value { sender, receiver, log: log(sender, receiver) + 0.02 * noise }
        };
        pairs.filter(|(one, two)| one != two).map(value).collect()
    }

    fn fitted(sites: usize, values: &[Value]) -> Option<Fit> {
        fit(sites, values.iter().copied())
    }

    /// What is left of each value, without noise of its own.
    fn paths(values: &[Value], fit: &Fit) -> Vec<Effect> {
        let path = |(number, value): (usize, &Value)| {
            fit.path(number, [value.sender, value.receiver], 0.0)
        };
        values.iter().enumerate().map(path).collect()
    }

    #[test]
    fn a_sender_a_receiver_and_a_path_are_told_apart() {
        let values = mesh(12, |sender, receiver| match (sender, receiver) {
            (2, _) => 19.0,
            (_, 5) => 19.5,
            (0, 7) => 18.0,
            _ => 20.0,
        });
        let fit = fitted(12, &values).unwrap();
        let near = |effect: Option<Effect>, expected: f64| {
            let Effect { estimate, margin } = effect.unwrap();
            assert!((estimate - expected).abs() < margin.max(0.02), "{estimate} ± {margin}");
        };
        near(fit.sender(2), -1.0);
        near(fit.receiver(5), -0.5);
        near(fit.sender(0), 0.0);
        let below: Vec<_> = values
            .iter()
            .zip(paths(&values, &fit))
            .filter(|(_, path)| path.estimate < -0.1 && path.is_below())
            .map(|(value, _)| (value.sender, value.receiver))
            .collect();
        assert_eq!(below, [(0, 7)]);
        assert!((fit.typical - 20.0).abs() < 0.02);
    }

    #[test]
    fn as_many_effects_as_cells_tell_nothing() {
        let two = fitted(2, &mesh(2, |_, _| 20.0)).unwrap();
        assert_eq!([0, 1].map(|site| two.sender(site)), [None; 2]);
        assert!(fitted(1, &[]).is_none());
        assert!(fitted(2, &[Value { sender: 0, receiver: 1, log: 20.0 }]).is_none());
    }

    #[test]
    fn a_small_mesh_is_not_sure_of_itself() {
        let values = mesh(4, |sender, _| if sender == 1 { 19.9 } else { 20.0 });
        let fit = fitted(4, &values).unwrap();
        assert!(fit.scale() > 0.0 && (0..4).all(|site| fit.sender(site).is_some()));
        assert!(paths(&values, &fit).iter().all(|path| !path.is_below()));
    }

    proptest! {
        /// Whatever the values, the parts add up to them.
        #[test]
        fn the_parts_add_up(
            sites in 2usize..8,
            logs in prop::collection::vec((0usize..8, 0usize..8, 0.0f64..30.0), 0..60),
        ) {
            let within = |(sender, receiver, log)| Value { sender, receiver, log };
            let fits = |value: &Value| value.sender < sites && value.receiver < sites;
            let mut values: Vec<_> = logs.into_iter().map(within).filter(fits).collect();
            values.sort_by_key(|value| value.sender);
            if let Some(fit) = fitted(sites, &values) {
                for (value, path) in values.iter().zip(paths(&values, &fit)) {
                    let part = |effect: Option<Effect>| effect.map_or(0.0, |effect| effect.estimate);
                    let sum = fit.typical
                        + part(fit.sender(value.sender))
                        + part(fit.receiver(value.receiver))
                        + path.estimate;
                    prop_assert!((sum - value.log).abs() < 1e-6);
                    prop_assert!(path.margin >= 0.0);
                }
            }
        }
    }
}
