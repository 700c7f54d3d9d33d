//! The two-way model of a mesh: log goodput = typical + sender + receiver + path.
//!
//! Fitted by median polish (Tukey 1977, "Exploratory Data Analysis", chapter 11): the medians of rows and columns are taken
//! out until none is left. Up to half of a site's paths may be slow for reasons of their own before its effect moves.

use std::f64::consts::PI;

use goodput_model::median;

use super::scale::scale;
use super::student::two_sided_quantile;

/// A site's effect needs as many cells: among three, the median survives one path that is slow alone.
pub(super) const MIN_CELLS: usize = 3;
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
    /// Variance of this logarithm that the noise of its own tests leaves.
    pub variance: f64,
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
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fit {
    /// The typical log goodput.
    pub typical: f64,
    /// Effect of each site as a sender; absent if too few cells tell.
    pub senders: Vec<Option<Effect>>,
    /// Effect of each site as a receiver.
    pub receivers: Vec<Option<Effect>>,
    /// What is left of each value.
    pub paths: Vec<Effect>,
    /// Standard deviation of a path's noise, robustly.
    pub scale: f64,
}

/// Fits the cells of `sites` sites. `None`: there are not more cells than effects.
pub(super) fn fit(sites: usize, values: &[Value]) -> Option<Fit> {
    let mut polish = Polish::new(sites, values);
    for _ in 0..PASSES {
        if polish.pass() < SMALL {
            break;
        }
    }
    let effects = polish.senders.known() + polish.receivers.known();
    let parameters = effects.saturating_sub(1).max(1);
    let dof = values.len().checked_sub(parameters).filter(|dof| *dof > 0)?;
    let scale = scale(polish.left.iter().copied(), parameters)?;
    let alarms = FALSE_ALARMS / (effects + values.len()) as f64;
    Some(polish.judged(Noise { scale, quantile: two_sided_quantile(alarms, dof) }))
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

/// The sites on one side of the model.
struct Side {
    /// The values of each site.
    cells: Vec<Vec<usize>>,
    effects: Vec<f64>,
}

impl Side {
    fn new(sites: usize, values: &[Value], site: fn(&Value) -> usize) -> Self {
        let mut cells = vec![Vec::new(); sites];
        for (number, value) in values.iter().enumerate() {
            cells[site(value)].push(number);
        }
        Self { cells, effects: vec![0.0; sites] }
    }

    /// The sites whose effect can be known.
    fn judged(&self) -> impl Iterator<Item = usize> {
        (0..self.cells.len()).filter(|site| self.cells[*site].len() >= MIN_CELLS)
    }

    fn known(&self) -> usize {
        self.judged().count()
    }

    /// Moves each site's median from what is left to its effect, and the median effect to `typical`. Returns the largest
    /// move.
    fn polish(&mut self, left: &mut [f64], typical: &mut f64) -> f64 {
        let mut most: f64 = 0.0;
        for site in self.judged().collect::<Vec<_>>() {
            let cells = &self.cells[site];
            let moved = median(cells.iter().map(|cell| left[*cell])).unwrap_or_default();
            cells.iter().for_each(|cell| left[*cell] -= moved);
            self.effects[site] += moved;
            most = most.max(moved.abs());
        }
        let common = median(self.judged().map(|site| self.effects[site])).unwrap_or_default();
        for site in self.judged().collect::<Vec<_>>() {
            self.effects[site] -= common;
        }
        // A site without an effect of its own has all of its difference left.
        for cells in self.cells.iter().filter(|cells| cells.len() < MIN_CELLS) {
            cells.iter().for_each(|cell| left[*cell] -= common);
        }
        *typical += common;
        most
    }

    /// Variance of a site's effect, in squares of the scale: that of a median, PI/2 times that of a mean.
    fn variance(&self, site: usize) -> f64 {
        match self.cells[site].len() {
            few if few < MIN_CELLS => 0.0,
            cells => PI / 2.0 / cells as f64,
        }
    }

    fn effects(&self, noise: Noise, of_typical: f64) -> Vec<Option<Effect>> {
        let effect = |site: usize| {
            let margin = noise.margin(self.variance(site) + of_typical, 0.0);
            let is_known = self.cells[site].len() >= MIN_CELLS;
            is_known.then(|| Effect { estimate: self.effects[site], margin })
        };
        (0..self.cells.len()).map(effect).collect()
    }
}

/// The polish while it goes on.
struct Polish<'a> {
    values: &'a [Value],
    left: Vec<f64>,
    typical: f64,
    senders: Side,
    receivers: Side,
}

impl<'a> Polish<'a> {
    fn new(sites: usize, values: &'a [Value]) -> Self {
        let typical = median(values.iter().map(|value| value.log)).unwrap_or_default();
        Self {
            left: values.iter().map(|value| value.log - typical).collect(),
            typical,
            senders: Side::new(sites, values, |value| value.sender),
            receivers: Side::new(sites, values, |value| value.receiver),
            values,
        }
    }

    /// Takes the medians out of rows and columns once. Returns the largest.
    fn pass(&mut self) -> f64 {
        let rows = self.senders.polish(&mut self.left, &mut self.typical);
        let columns = self.receivers.polish(&mut self.left, &mut self.typical);
        rows.max(columns)
    }

    fn judged(self, noise: Noise) -> Fit {
        let of_typical = PI / 2.0 / self.values.len() as f64;
        let path = |(value, left): (&Value, &f64)| {
            let sides =
                self.senders.variance(value.sender) + self.receivers.variance(value.receiver);
            // The noise of usual tests is in the scale already. Adding that of the path's own ones keeps a path with few
            // tests from being blamed.
            Effect { estimate: *left, margin: noise.margin(1.0 + sides, value.variance) }
        };
        Fit {
            typical: self.typical,
            senders: self.senders.effects(noise, of_typical),
            receivers: self.receivers.effects(noise, of_typical),
            paths: self.values.iter().zip(&self.left).map(path).collect(),
            scale: noise.scale,
        }
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
            Value { sender, receiver, log: log(sender, receiver) + 0.02 * noise, variance: 0.0 }
        };
        pairs.filter(|(one, two)| one != two).map(value).collect()
    }

    #[test]
    fn a_sender_a_receiver_and_a_path_are_told_apart() {
        let values = mesh(12, |sender, receiver| match (sender, receiver) {
            (2, _) => 19.0,
            (_, 5) => 19.5,
            (0, 7) => 18.0,
            _ => 20.0,
        });
        let fit = fit(12, &values).unwrap();
        let near = |effect: Option<Effect>, expected: f64| {
            let Effect { estimate, margin } = effect.unwrap();
            assert!((estimate - expected).abs() < margin.max(0.02), "{estimate} ± {margin}");
        };
        near(fit.senders[2], -1.0);
        near(fit.receivers[5], -0.5);
        near(fit.senders[0], 0.0);
        let below: Vec<_> = values
            .iter()
            .zip(&fit.paths)
            .filter(|(_, path)| path.estimate < -0.1 && path.is_below())
            .map(|(value, _)| (value.sender, value.receiver))
            .collect();
        assert_eq!(below, [(0, 7)]);
        assert!((fit.typical - 20.0).abs() < 0.02);
    }

    #[test]
    fn as_many_effects_as_cells_tell_nothing() {
        assert_eq!(fit(2, &mesh(2, |_, _| 20.0)).map(|fit| fit.senders), Some(vec![None; 2]));
        assert!(fit(1, &[]).is_none());
        let one = [Value { sender: 0, receiver: 1, log: 20.0, variance: 0.0 }];
        assert!(fit(2, &one).is_none());
    }

    #[test]
    fn a_small_mesh_is_not_sure_of_itself() {
        let values = mesh(4, |sender, _| if sender == 1 { 19.9 } else { 20.0 });
        let fit = fit(4, &values).unwrap();
        assert!(fit.scale > 0.0 && fit.senders.iter().all(Option::is_some));
        assert!(fit.paths.iter().all(|path| !path.is_below()));
    }

    proptest! {
        /// Whatever the values, the parts add up to them.
        #[test]
        fn the_parts_add_up(
            sites in 2usize..8,
            logs in prop::collection::vec((0usize..8, 0usize..8, 0.0f64..30.0), 0..60),
        ) {
            let within = |(sender, receiver, log)| Value { sender, receiver, log, variance: 0.01 };
            let fits = |value: &Value| value.sender < sites && value.receiver < sites;
            let values: Vec<_> = logs.into_iter().map(within).filter(fits).collect();
            if let Some(fit) = fit(sites, &values) {
                for (value, path) in values.iter().zip(&fit.paths) {
                    let part = |effect: Option<Effect>| effect.map_or(0.0, |effect| effect.estimate);
                    let sum = fit.typical
                        + part(fit.senders[value.sender])
                        + part(fit.receivers[value.receiver])
                        + path.estimate;
                    prop_assert!((sum - value.log).abs() < 1e-6);
                    prop_assert!(path.margin >= 0.0);
                }
            }
        }
    }
}
