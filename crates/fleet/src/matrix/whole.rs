//! The whole matrix: its sites, its cells, and what explains the slow ones.

use std::ops::Range;
use std::sync::Arc;

use goodput_model::Known;
use serde::{Serialize, Serializer};

use super::cells::Cell;
use super::expected::Expected;
use super::explain::{Explanation, explain};
use super::packed::{Tested, Tests};

/// How much slower than typical a slow cell is, percent, unless a person says.
pub const SLOW_PERCENT: f64 = 10.0;

/// What is asked of the tests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// The present, seconds since 1970.
    pub now_s: f64,
    /// A cell is slow if it is this much slower than typical, percent, above 0 and below 100.
    pub slow_percent: f64,
}

/// What is known of all pairs. Its cells are computed when they are asked for: all at once would take a gigabyte for a
/// thousand sites.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// The sites, in the order of rows and columns.
    pub sites: Arc<[String]>,
    tests: Tests,
    now_s: f64,
    /// Pairs that count, in their order; none: all.
    wanted: Option<Vec<[u32; 2]>>,
    expected: Expected,
    /// Cells that have tests.
    pub tested: usize,
    /// Those whose tests an agent's limit capped. They say nothing of what is slow.
    pub capped: usize,
    /// Cells of which all tests ended early: they are none of those that have tests.
    pub partial: usize,
    /// How much slower than typical a slow cell is, percent, at least.
    pub slow_percent: f64,
    /// What explains the slow cells, or why nothing can be said.
    pub explanation: Known<Explanation>,
}

impl Matrix {
    /// `wanted`: the pairs that count, in their order; none: all. `expected`: what the mesh file expects of them.
    pub(super) fn new(
        sites: Arc<[String]>,
        (wanted, expected): (Option<Vec<[u32; 2]>>, Expected),
        tests: Tests,
        question: Question,
    ) -> Self {
        let Question { now_s, slow_percent } = question;
        let Tested { whole: tested, capped, partial } = tests.tested();
        let explanation = explain(&sites, &tests.measured(), slow_percent);
        Self {
            sites,
            tests,
            now_s,
            wanted,
            expected,
            tested,
            capped,
            partial,
            slow_percent,
            explanation,
        }
    }

    /// A cell for each pair, row by row: a pair is a sender and a receiver.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        self.rows().flat_map(|(_, cells)| cells.flatten())
    }

    /// How many pairs there are: each direction between two sites is one.
    pub fn pairs(&self) -> usize {
        let all = self.sites.len() * self.sites.len().saturating_sub(1);
        self.wanted.as_ref().map_or(all, Vec::len)
    }

    fn is_pair(&self, pair: [u32; 2]) -> bool {
        let [sender, receiver] = pair;
        let is_wanted = |wanted: &Vec<_>| wanted.binary_search(&pair).is_ok();
        sender != receiver && self.wanted.as_ref().is_none_or(is_wanted)
    }

    /// The cell of a sender and a receiver, by their places in `sites`.
    pub fn cell(&self, sender: usize, receiver: usize) -> Cell<'_> {
        let names = [sender, receiver].map(|site| self.sites[site].as_str());
        let pair = [sender, receiver].map(|site| site as u32);
        let cell = Cell::of(&self.tests, pair, names, self.now_s);
        let goodput = cell.goodput_bits_per_s.value();
        let is_above_expected = goodput.is_some_and(|rate| self.expected.is_exceeded(pair, *rate));
        Cell { is_above_expected, ..cell }
    }

    /// Whether a pair is faster than the mesh file expects.
    pub fn has_above_expected(&self) -> bool {
        self.expected.is_known() && self.cells().any(|cell| cell.is_above_expected)
    }

    /// Each site that sends, with the cell of each site that receives: none of what is no pair.
    pub fn rows(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = Option<Cell<'_>>>)> {
        let all = 0..self.sites.len();
        let row = move |sender: usize| (self.sites[sender].as_str(), self.row(sender, all.clone()));
        (0..self.sites.len()).map(row)
    }

    /// The cells of a sender and of these receivers, by their places in `sites`: none of what is no pair.
    pub fn row(
        &self,
        sender: usize,
        receivers: Range<usize>,
    ) -> impl Iterator<Item = Option<Cell<'_>>> {
        let cell = move |receiver| {
            let is_pair = self.is_pair([sender as u32, receiver as u32]);
            is_pair.then(|| self.cell(sender, receiver))
        };
        receivers.map(cell)
    }

    /// Whether a cell is slower than typical by `slow_percent`.
    pub fn is_slow(&self, cell: &Cell<'_>) -> bool {
        self.explanation.value().is_some_and(|explanation| explanation.slow.has(cell.pair))
    }

    /// The slow cells, row by row.
    pub fn slow_cells(&self) -> impl Iterator<Item = Cell<'_>> {
        let slow = match &self.explanation {
            Known::Value(explanation) => Some(explanation.slow.numbers()),
            Known::Missing(_) => None,
        };
        let cell =
            move |[sender, receiver]: [u32; 2]| self.cell(sender as usize, receiver as usize);
        slow.into_iter().flatten().map(cell)
    }
}

impl Serialize for Matrix {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown<'a> {
            sites: &'a [String],
            cells: Cells<'a>,
            tested: usize,
            capped: usize,
            partial: usize,
            slow_percent: f64,
            explanation: &'a Known<Explanation>,
        }
        let Self { sites, explanation, .. } = self;
        let Self { tested, capped, partial, slow_percent, .. } = *self;
        let cells = Cells(self);
        Shown { sites, cells, tested, capped, partial, slow_percent, explanation }.serialize(to)
    }
}

/// The cells of a matrix, one after the other.
struct Cells<'a>(&'a Matrix);

impl Serialize for Cells<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.cells())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::part::Part;
    use crate::matrix::seen::Observation;
    use crate::matrix::tally::matrix;
    use goodput_model::BitRate;

    fn sites(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("s{n}")).collect()
    }

    /// Three tests of each pair, with a little fixed noise.
    fn tests(count: usize, rate: impl Fn(usize, usize) -> Option<f64>) -> Vec<Observation> {
        let pairs = (0..count).flat_map(|one| (0..count).map(move |two| (one, two)));
        let each = pairs.flat_map(|(one, two)| (0..3).map(move |n| (one, two, n)));
        let test = |(one, two, n): (usize, usize, usize)| {
            let noise = 1.0 + ((one * 7 + two * 13 + n * 5) % 11) as f64 / 1000.0;
            Some(Observation {
                record: (one * count + two) as i64,
                sender: format!("s{one}"),
                receiver: format!("s{two}"),
                at_s: 0.0,
                goodput: BitRate(rate(one, two)? * noise),
                rtt_us: Known::Value(1000.0),
                limit: if one == 2 { "sender-cpu".into() } else { "none".into() },
                limit_at: if one == 2 { Part::Sender } else { Part::Path },
                share_of_limit: None,
                is_partial: false,
            })
        };
        each.filter(|(one, two, _)| one != two).filter_map(test).collect()
    }

    fn of(count: usize, rate: impl Fn(usize, usize) -> Option<f64>) -> Matrix {
        let question = Question { now_s: 60.0, slow_percent: 10.0 };
        matrix(sites(count), &tests(count, rate), question)
    }

    #[test]
    fn a_slow_sender_explains_its_row_with_what_its_records_say() {
        let matrix = of(6, |sender, receiver| match (sender, receiver) {
            (2, _) => Some(4e8),
            (0, 5) => Some(2e8),
            _ => Some(9e8),
        });
        let explanation = matrix.explanation.get().unwrap();
        assert_eq!((explanation.slow.len(), explanation.unexplained.len()), (6, 0));
        let [side, path] = &explanation.causes[..] else { panic!("{explanation:?}") };
        assert_eq!((side.part, side.sender.as_deref()), (Part::Sender, Some("s2")));
        assert_eq!((side.explains.len(), side.cells, &side.receiver), (5, 5, &None));
        assert_eq!((side.limits[0].rule.as_str(), side.limits[0].cells), ("sender-cpu", 5));
        assert!((side.effect_percent + 55.6).abs() < 2.0, "{side:?}");
        let [low, high] = side.between_percent;
        assert!(low < side.effect_percent && side.effect_percent < high && high < 0.0);
        let named = (path.part, path.sender.as_deref(), path.receiver.as_deref());
        assert_eq!(named, (Part::Path, Some("s0"), Some("s5")));
        assert_eq!(path.records, [5]);
        let slow: Vec<_> = matrix.slow_cells().map(|cell| (cell.sender, cell.receiver)).collect();
        assert_eq!((slow.len(), slow[0]), (6, ("s0", "s5")));
        assert_eq!(matrix.cells().filter(|cell| matrix.is_slow(cell)).count(), 6);
    }

    #[test]
    fn json_has_all_cells_and_the_names_of_pairs() {
        let matrix = of(3, |sender, _| Some(if sender == 1 { 4e8 } else { 9e8 }));
        let json = serde_json::to_value(&matrix).unwrap();
        assert_eq!(json["sites"], serde_json::json!(["s0", "s1", "s2"]));
        assert_eq!(json["cells"].as_array().map(Vec::len), Some(6));
        assert_eq!(json["cells"][2]["sender"], "s1");
        assert_eq!(json["cells"][2]["limit"], "none");
        assert_eq!(json["slow_percent"], 10.0);
        let slow = serde_json::json!([["s1", "s0"], ["s1", "s2"]]);
        assert_eq!(json["explanation"]["slow"], slow);
        assert!(json["cells"][0].get("pair").is_none(), "numbers of sites are our own");
    }

    #[test]
    fn two_sites_or_too_few_cells_explain_nothing() {
        let why = of(2, |_, _| Some(9e8)).explanation.get().unwrap_err();
        assert!(why.missing.contains("2 sites"), "{why}");
        let none = of(5, |_, _| None);
        assert!(none.explanation.get().is_err());
        assert_eq!((none.cells().count(), none.pairs(), none.slow_cells().count()), (20, 20, 0));
    }

    /// One slow cell of a site with two: its side and its paths look alike.
    #[test]
    fn a_site_with_few_cells_is_undecided_and_its_path_is_not_blamed() {
        let matrix = of(7, |sender, receiver| match (sender, receiver) {
            (6, 0) => Some(1e8),
            (6, 1) => Some(9e8),
            (6, _) => None,
            _ => Some(9e8),
        });
        let explanation = matrix.explanation.get().unwrap();
        assert_eq!(explanation.undecided, [("s6".to_string(), Part::Sender)]);
        assert!(explanation.causes.is_empty(), "{explanation:?}");
        assert_eq!(explanation.unexplained.iter().collect::<Vec<_>>(), [["s6", "s0"]]);
    }

    #[test]
    fn a_path_with_a_single_test_is_not_blamed() {
        let mut seen = tests(6, |_, _| Some(9e8));
        seen.retain(|test| test.record != 3);
        let bad = Observation {
            record: 3,
            receiver: "s3".into(),
            goodput: BitRate(4e8),
            ..seen[0].clone()
        };
        seen.push(bad);
        let question = Question { now_s: 60.0, slow_percent: 10.0 };
        let matrix = matrix(sites(6), &seen, question);
        let explanation = matrix.explanation.get().unwrap();
        assert!(explanation.causes.is_empty(), "{explanation:?}");
        assert_eq!(explanation.unexplained.iter().collect::<Vec<_>>(), [["s0", "s3"]]);
    }

    /// Of a site whose agent allows less than all others give.
    #[test]
    fn a_capped_pair_is_shown_and_makes_nobody_slow() {
        let mut seen = tests(6, |_, _| Some(9e8));
        for test in seen.iter_mut().filter(|test| test.sender == "s4") {
            (test.goodput, test.share_of_limit) = (BitRate(1e8), Some(0.97));
        }
        let matrix = matrix(sites(6), &seen, Question { now_s: 60.0, slow_percent: 10.0 });
        let explanation = matrix.explanation.get().unwrap();
        assert!(explanation.slow.is_empty(), "{explanation:?}");
        assert_eq!(explanation.undecided, [("s4".to_string(), Part::Sender)]);
        assert_eq!((matrix.tested, matrix.capped), (30, 5));
        let cell = matrix.cell(4, 0);
        assert_eq!((cell.goodput_bits_per_s, cell.is_capped), (Known::Value(BitRate(1e8)), true));
        assert!(
            matrix.in_words().contains("5 of them capped by --max-rate"),
            "{}",
            matrix.in_words()
        );
    }

    /// Just below what the agent of a site allows, which is far less than all others give.
    #[test]
    fn a_pair_below_a_limit_is_as_slow_as_what_is_missing_of_the_limit() {
        let slow = |share: f64, goodput: f64| {
            let mut seen = tests(6, |_, _| Some(9e8));
            for test in seen.iter_mut().filter(|test| test.sender == "s4") {
                (test.goodput, test.share_of_limit) = (BitRate(goodput), Some(share));
            }
            let matrix = matrix(sites(6), &seen, Question { now_s: 60.0, slow_percent: 20.0 });
            let explanation = matrix.explanation.get().unwrap();
            let effect = explanation.causes.first().map(|cause| cause.effect_percent);
            (explanation.slow.len(), effect)
        };
        assert_eq!(slow(0.85, 0.85e8), (0, None), "15 % are missing, which is no 20 %");
        let (pairs, effect) = slow(0.5, 0.5e8);
        assert_eq!(pairs, 5);
        assert!(effect.is_some_and(|effect| (-53.0..-47.0).contains(&effect)), "{effect:?}");
        let (_, above) = slow(0.3, 3e8);
        assert!(
            above.is_some_and(|effect| (-70.0..-63.0).contains(&effect)),
            "a limit above: {above:?}"
        );
    }

    #[test]
    fn a_healthy_mesh_has_no_slow_cell() {
        let matrix = of(5, |_, _| Some(9e8));
        let explanation = matrix.explanation.get().unwrap();
        assert!(explanation.slow.is_empty() && explanation.causes.is_empty());
        assert!((explanation.typical_bits_per_s.0 / 9e8 - 1.0).abs() < 0.02);
    }
}
