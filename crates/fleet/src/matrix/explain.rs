//! What explains the slow cells: a site as it sends, a site as it receives, or a path of its own.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::f64::consts::PI;

use goodput_model::{BitRate, Known, Missing, median};
use serde::Serialize;

use super::cells::{Cell, MIN_TESTS};
use super::fit::{Effect, Fit, MIN_CELLS, Value, fit};
use super::part::Part;

/// With fewer sites, a slow site and a slow path are the same.
const MIN_SITES: usize = 3;

/// What explains the slow cells of a matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// Goodput of a typical cell, bits per second.
    pub typical_bits_per_s: BitRate,
    /// How much paths vary beside what their sites explain: one standard deviation, percent.
    pub spread_percent: f64,
    /// Slow cells, as sender and receiver.
    pub slow: Vec<[String; 2]>,
    /// What explains some of them, that which explains most first.
    pub causes: Vec<Cause>,
    /// Slow cells that no cause explains.
    pub unexplained: Vec<[String; 2]>,
    /// Sides of sites that could not be told from their paths, because fewer than three of their cells have tests.
    pub undecided: Vec<(String, Part)>,
}

/// Something that makes cells slow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// Which part of a path it is.
    pub part: Part,
    /// The site that sends; absent if all senders are meant.
    pub sender: Option<String>,
    /// The site that receives; absent if all receivers are meant.
    pub receiver: Option<String>,
    /// What it adds to the typical goodput, percent.
    pub effect_percent: f64,
    /// Range of this effect, percent; with 95 % confidence for all sites and paths together.
    pub between_percent: [f64; 2],
    /// The slow cells that it explains.
    pub explains: Vec<[String; 2]>,
    /// Measured cells that it is a part of.
    pub cells: usize,
    /// What the newest records of the explained cells name as their limit, the most frequent first.
    pub limits: Vec<LimitSeen>,
    /// Numbers of these records.
    pub records: Vec<i64>,
}

/// A limit that records name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LimitSeen {
    /// Id of the rule, or `none`.
    pub rule: String,
    /// Where the limit was.
    pub at: Part,
    /// In how many of the explained cells.
    pub cells: usize,
}

/// Explains the cells that are slower than typical by at least `slow_percent`.
pub(super) fn explain(sites: &[String], cells: &[Cell], slow_percent: f64) -> Known<Explanation> {
    explained(sites, cells, slow_percent).into()
}

fn explained(sites: &[String], cells: &[Cell], slow_percent: f64) -> Result<Explanation, Missing> {
    let noise = noise_of_tests(cells);
    let measured: Vec<(&Cell, Value)> =
        cells.iter().filter_map(|cell| Some((cell, value(sites, cell, noise)?))).collect();
    let with_tests = |site: &usize| {
        measured.iter().any(|(_, value)| value.sender == *site || value.receiver == *site)
    };
    let tested = (0..sites.len()).filter(with_tests).count();
    if tested < MIN_SITES {
        return Err(Missing::because(format!(
            "{tested} sites have tests: with fewer than {MIN_SITES}, a slow site and a slow path look the same"
        )));
    }
    let values: Vec<Value> = measured.iter().map(|(_, value)| *value).collect();
    let too_few = || {
        let (cells, all) = (values.len(), sites.len() * (sites.len() - 1));
        Missing::because(format!(
            "{cells} of {all} cells have tests, which is too few to tell sites from paths"
        ))
    };
    let fit = fit(sites.len(), &values).ok_or_else(too_few)?;
    let model = Model { sites, measured, fit, slow: (1.0 - slow_percent / 100.0).ln() };
    Ok(model.explanation())
}

/// Standard deviation of the logarithm of a test, within cells that have enough; 0 if none has: then no path is judged.
fn noise_of_tests(cells: &[Cell]) -> f64 {
    let spreads = cells.iter().filter_map(|cell| cell.spread_percent.value());
    median(spreads.map(|percent| (percent / 100.0).ln_1p())).unwrap_or_default()
}

fn value(sites: &[String], cell: &Cell, noise: f64) -> Option<Value> {
    let log = cell.goodput_bits_per_s.value()?.0.ln();
    let index = |name: &String| sites.iter().position(|site| site == name);
    let (sender, receiver) = (index(&cell.sender)?, index(&cell.receiver)?);
    // The variance of a median is PI/2 times that of a mean.
    let variance = noise.powi(2) * PI / 2.0 / cell.tests as f64;
    Some(Value { sender, receiver, log, variance })
}

/// The cells with their fit.
struct Model<'a> {
    sites: &'a [String],
    measured: Vec<(&'a Cell, Value)>,
    fit: Fit,
    /// The logarithm below which something is slow.
    slow: f64,
}

/// A part of the model that can be slow: the index of its site, or of its cell.
type Suspect = (Part, usize);

impl Model<'_> {
    fn explanation(&self) -> Explanation {
        let slow: Vec<usize> =
            (0..self.measured.len()).filter(|cell| self.is_slow(*cell)).collect();
        let mut by_cause: BTreeMap<Suspect, Vec<usize>> = BTreeMap::new();
        let mut unexplained = Vec::new();
        for cell in &slow {
            match self.suspect(*cell) {
                Some(suspect) => by_cause.entry(suspect).or_default().push(*cell),
                None => unexplained.push(self.name(*cell)),
            }
        }
        let mut causes: Vec<Cause> = by_cause
            .into_iter()
            .filter_map(|(suspect, cells)| self.cause(suspect, &cells))
            .collect();
        causes.sort_by_key(|cause| Reverse(cause.explains.len()));
        Explanation {
            typical_bits_per_s: BitRate(self.fit.typical.exp()),
            spread_percent: (self.fit.scale.exp() - 1.0) * 100.0,
            slow: slow.iter().map(|cell| self.name(*cell)).collect(),
            causes,
            unexplained,
            undecided: self.undecided(),
        }
    }

    fn is_slow(&self, cell: usize) -> bool {
        self.measured[cell].1.log - self.fit.typical <= self.slow
    }

    fn name(&self, cell: usize) -> [String; 2] {
        let (cell, _) = self.measured[cell];
        [cell.sender.clone(), cell.receiver.clone()]
    }

    /// The part that makes a cell slow: of those that are surely slow, the one that adds most.
    fn suspect(&self, cell: usize) -> Option<Suspect> {
        let (_, Value { sender, receiver, .. }) = self.measured[cell];
        let all = [(Part::Sender, sender), (Part::Receiver, receiver), (Part::Path, cell)];
        let guilty = all.into_iter().filter_map(|suspect| {
            let effect = self.effect(suspect)?;
            let is_slow = effect.is_below() && effect.estimate <= self.slow;
            is_slow.then_some((suspect, effect.estimate))
        });
        guilty.min_by(|one, two| one.1.total_cmp(&two.1)).map(|(suspect, _)| suspect)
    }

    fn effect(&self, (part, index): Suspect) -> Option<Effect> {
        match part {
            Part::Sender => self.fit.senders[index],
            Part::Receiver => self.fit.receivers[index],
            Part::Path => self.is_decided(index).then(|| self.fit.paths[index]),
        }
    }

    /// Whether both sides of a cell are known, so that what is left is its path; and whether it is more than a bad test.
    fn is_decided(&self, cell: usize) -> bool {
        let (cell, Value { sender, receiver, .. }) = self.measured[cell];
        let sides_are_known =
            self.fit.senders[sender].is_some() && self.fit.receivers[receiver].is_some();
        sides_are_known && cell.tests >= MIN_TESTS
    }

    fn cause(&self, (part, index): Suspect, cells: &[usize]) -> Option<Cause> {
        let Effect { estimate, margin } = self.effect((part, index))?;
        let percent = |log: f64| (log.exp() - 1.0) * 100.0;
        let site = |wanted: Part, site: usize| {
            (part == wanted || part == Part::Path).then(|| self.sites[site].clone())
        };
        let [sender, receiver] = match part {
            Part::Path => [self.measured[index].1.sender, self.measured[index].1.receiver],
            _ => [index, index],
        };
        let limits = cells.iter().filter_map(|cell| {
            let (cell, _) = self.measured[*cell];
            Some((cell.limit.value()?.clone(), *cell.limit_at.value()?))
        });
        let records = cells.iter().filter_map(|cell| self.measured[*cell].0.record.value());
        Some(Cause {
            part,
            sender: site(Part::Sender, sender),
            receiver: site(Part::Receiver, receiver),
            effect_percent: percent(estimate),
            between_percent: [percent(estimate - margin), percent(estimate + margin)],
            explains: cells.iter().map(|cell| self.name(*cell)).collect(),
            cells: self.cells_of((part, index)),
            limits: counted(limits),
            records: records.copied().collect(),
        })
    }

    /// Measured cells that a suspect is a part of.
    fn cells_of(&self, (part, index): Suspect) -> usize {
        let values = self.measured.iter().map(|(_, value)| value);
        match part {
            Part::Sender => values.filter(|value| value.sender == index).count(),
            Part::Receiver => values.filter(|value| value.receiver == index).count(),
            Part::Path => 1,
        }
    }

    /// Sides with too few cells.
    fn undecided(&self) -> Vec<(String, Part)> {
        let few = |effects: &[Option<Effect>], part: Part| {
            let sites = effects.iter().zip(self.sites).enumerate();
            let few = sites.filter(|(index, (effect, _))| {
                effect.is_none() && self.cells_of((part, *index)) < MIN_CELLS
            });
            few.map(|(_, (_, site))| (site.clone(), part)).collect::<Vec<_>>()
        };
        [few(&self.fit.senders, Part::Sender), few(&self.fit.receivers, Part::Receiver)].concat()
    }
}

/// Each limit with its number, the most frequent first.
fn counted(limits: impl Iterator<Item = (String, Part)>) -> Vec<LimitSeen> {
    let mut counts: BTreeMap<(String, Part), usize> = BTreeMap::new();
    for limit in limits {
        *counts.entry(limit).or_default() += 1;
    }
    let mut all: Vec<_> =
        counts.into_iter().map(|((rule, at), cells)| LimitSeen { rule, at, cells }).collect();
    all.sort_by_key(|limit| Reverse(limit.cells));
    all
}
