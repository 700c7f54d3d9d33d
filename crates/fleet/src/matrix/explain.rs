//! What explains the slow cells: a site as it sends, a site as it receives, or a path of its own.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::f64::consts::PI;
use std::sync::Arc;

use goodput_model::{BitRate, Known, Missing, median};
use serde::Serialize;

use super::cells::{MIN_TESTS, deviation, goodput};
use super::fit::{Effect, Fit, Value, fit};
use super::packed::{Measured, Packed, weeks};
use super::pairs::Pairs;
use super::part::Part;
use super::scale::middle;
use super::side::MIN_CELLS;

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
    pub slow: Pairs,
    /// What explains some of them, that which explains most first.
    pub causes: Vec<Cause>,
    /// Slow cells that no cause explains.
    pub unexplained: Pairs,
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
    pub explains: Pairs,
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
pub(super) fn explain(
    sites: &Arc<[String]>,
    measured: &Measured<'_>,
    slow_percent: f64,
) -> Known<Explanation> {
    explained(sites, measured, slow_percent).into()
}

fn explained(
    sites: &Arc<[String]>,
    measured: &Measured<'_>,
    slow_percent: f64,
) -> Result<Explanation, Missing> {
    let tested = tested(sites.len(), measured);
    if tested < MIN_SITES {
        let which =
            if measured.all.tested().capped > 0 { " that no agent's limit capped" } else { "" };
        return Err(Missing::because(format!(
            "{tested} sites have tests{which}: with fewer than {MIN_SITES}, a slow site and a slow path look the same"
        )));
    }
    let too_few = || {
        let pairs = measured.count();
        Missing::because(format!(
            "{pairs} pairs have tests, which is too few to tell sites from paths"
        ))
    };
    let usual = usual(measured);
    let values = (0..measured.count()).map(|cell| value(measured, cell, usual));
    let fit = fit(sites.len(), values).ok_or_else(too_few)?;
    let (noise, slow) = (noise_of_tests(measured), (1.0 - slow_percent / 100.0).ln());
    Ok(Model { sites, measured, usual, noise, fit, slow }.explanation())
}

/// How many of so many sites have tests.
fn tested(sites: usize, measured: &Measured<'_>) -> usize {
    let mut has_tests = vec![false; sites];
    for site in (0..measured.count()).flat_map(|cell| measured.pair(cell)) {
        has_tests[site as usize] = true;
    }
    has_tests.into_iter().filter(|has| *has).count()
}

/// Standard deviation of the logarithm of a test, within cells that have enough; 0 if none has: then no path is judged.
fn noise_of_tests(measured: &Measured<'_>) -> f64 {
    let cells = (0..measured.count()).map(|cell| week(measured, cell));
    middle(cells.filter_map(deviation).collect(), 0).unwrap_or_default()
}

/// The tests of a cell in the week up to its newest one.
fn week<'a>(measured: &Measured<'a>, cell: usize) -> &'a [Packed] {
    let [week, _] = weeks(measured.tests(cell));
    week
}

/// What the pairs give that no agent's limit held: their median, bits per second. 0: no pair needs it, or there is none.
fn usual(measured: &Measured<'_>) -> f64 {
    let cells = || (0..measured.count()).map(|cell| week(measured, cell));
    let is_held = |tests: &[Packed]| tests.iter().any(|test| test.percent_of_limit > 0);
    if !cells().any(is_held) {
        return 0.0;
    }
    median(cells().filter(|tests| !is_held(tests)).filter_map(goodput)).unwrap_or_default()
}

/// A cell as it counts beside those that no limit held, which have a median of `usual`.
fn value(measured: &Measured<'_>, cell: usize, usual: f64) -> Value {
    let [sender, receiver] = measured.pair(cell).map(|site| site as usize);
    // A cell that is measured has a test, whose goodput is above 0.
    let tests = week(measured, cell).iter();
    let goodput = median(tests.map(|test| test.goodput_beside(usual)));
    Value { sender, receiver, log: goodput.map_or(0.0, f64::ln) }
}

/// The cells with their fit.
struct Model<'a> {
    sites: &'a Arc<[String]>,
    measured: &'a Measured<'a>,
    /// What the pairs give that no limit held.
    usual: f64,
    /// Standard deviation of the logarithm of a test.
    noise: f64,
    fit: Fit,
    /// The logarithm below which something is slow.
    slow: f64,
}

/// A part of the model that can be slow: the index of its site, or of its cell.
type Suspect = (Part, usize);

impl Model<'_> {
    fn explanation(&self) -> Explanation {
        // A mesh of a thousand sites has a million cells.
        let slow = (0..self.measured.count()).filter(|cell| self.is_slow(*cell));
        let slow: Vec<u32> = slow.map(|cell| cell as u32).collect();
        let mut by_cause: BTreeMap<Suspect, Vec<u32>> = BTreeMap::new();
        let mut unexplained = Vec::new();
        for cell in &slow {
            match self.suspect(*cell as usize) {
                Some(suspect) => by_cause.entry(suspect).or_default().push(*cell),
                None => unexplained.push(*cell),
            }
        }
        let mut causes: Vec<Cause> = by_cause
            .into_iter()
            .filter_map(|(suspect, cells)| self.cause(suspect, &cells))
            .collect();
        causes.sort_by_key(|cause| Reverse(cause.explains.len()));
        Explanation {
            typical_bits_per_s: BitRate(self.fit.typical.exp()),
            spread_percent: (self.fit.scale().exp() - 1.0) * 100.0,
            slow: self.pairs(&slow),
            causes,
            unexplained: self.pairs(&unexplained),
            undecided: self.undecided(),
        }
    }

    fn pairs(&self, cells: &[u32]) -> Pairs {
        Pairs::new(self.sites, cells.iter().map(|cell| self.measured.pair(*cell as usize)))
    }

    fn is_slow(&self, cell: usize) -> bool {
        value(self.measured, cell, self.usual).log - self.fit.typical <= self.slow
    }

    /// The part that makes a cell slow: of those that are surely slow, the one that adds most.
    fn suspect(&self, cell: usize) -> Option<Suspect> {
        let [sender, receiver] = self.sides(cell);
        let all = [(Part::Sender, sender), (Part::Receiver, receiver), (Part::Path, cell)];
        let guilty = all.into_iter().filter_map(|suspect| {
            let effect = self.effect(suspect)?;
            let is_slow = effect.is_below() && effect.estimate <= self.slow;
            is_slow.then_some((suspect, effect.estimate))
        });
        guilty.min_by(|one, two| one.1.total_cmp(&two.1)).map(|(suspect, _)| suspect)
    }

    fn sides(&self, cell: usize) -> [usize; 2] {
        self.measured.pair(cell).map(|site| site as usize)
    }

    fn effect(&self, (part, index): Suspect) -> Option<Effect> {
        match part {
            Part::Sender => self.fit.sender(index),
            Part::Receiver => self.fit.receiver(index),
            Part::Path => self.path(index),
        }
    }

    /// What is left of a cell is its path if both of its sides are known, and if it is more than a bad test.
    fn path(&self, cell: usize) -> Option<Effect> {
        let sides @ [sender, receiver] = self.sides(cell);
        let tests = week(self.measured, cell).len();
        let sides_are_known =
            self.fit.sender(sender).is_some() && self.fit.receiver(receiver).is_some();
        // The variance of a median is PI/2 times that of a mean.
        let variance = self.noise.powi(2) * PI / 2.0 / tests as f64;
        let is_decided = sides_are_known && tests >= MIN_TESTS;
        is_decided.then(|| self.fit.path(cell, sides, variance))
    }

    fn cause(&self, (part, index): Suspect, cells: &[u32]) -> Option<Cause> {
        let Effect { estimate, margin } = self.effect((part, index))?;
        let percent = |log: f64| (log.exp() - 1.0) * 100.0;
        let site = |wanted: Part, site: usize| {
            (part == wanted || part == Part::Path).then(|| self.sites[site].clone())
        };
        let [sender, receiver] = match part {
            Part::Path => self.sides(index),
            _ => [index, index],
        };
        let newest = cells.iter().filter_map(|cell| self.measured.tests(*cell as usize).last());
        let limit = |test: &Packed| (self.measured.all.limit(test).to_owned(), test.limit_at);
        Some(Cause {
            part,
            sender: site(Part::Sender, sender),
            receiver: site(Part::Receiver, receiver),
            effect_percent: percent(estimate),
            between_percent: [percent(estimate - margin), percent(estimate + margin)],
            explains: self.pairs(cells),
            cells: self.cells_of((part, index)),
            limits: counted(newest.clone().map(limit)),
            records: newest.map(|test| test.record).collect(),
        })
    }

    /// Measured cells that a suspect is a part of.
    fn cells_of(&self, (part, index): Suspect) -> usize {
        match part {
            Part::Sender => self.fit.sent(index),
            Part::Receiver => self.fit.received(index),
            Part::Path => 1,
        }
    }

    /// Sides with too few cells.
    fn undecided(&self) -> Vec<(String, Part)> {
        let few = move |part: Part| {
            let sites = self.sites.iter().enumerate();
            let few = sites.filter(move |(site, _)| self.cells_of((part, *site)) < MIN_CELLS);
            few.map(move |(_, name)| (name.clone(), part))
        };
        few(Part::Sender).chain(few(Part::Receiver)).collect()
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
