//! The tests of a matrix, packed: a mesh of a thousand sites has a million of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::expected::Expected;
use super::packed::{Packed, Tests};
use super::seen::{Observation, Unusable};
use super::whole::{Matrix, Question};
use crate::mesh::Mesh;

/// How far the clock of a host may be ahead, seconds: clocks of hosts that measure with each other may differ by hours.
const AHEAD_S: f64 = 86_400.0;

/// Tests as they come, 48 bytes each: their names are numbers.
#[derive(Debug, Default)]
pub struct Tally {
    sites: Names,
    /// Whether a site that was not named before is one, too.
    is_open: bool,
    limits: Names,
    tests: Vec<Packed>,
    /// The pairs that count, in their order; none: all.
    pairs: Option<Vec<[u32; 2]>>,
    /// What the mesh file expects of them.
    expected: Expected,
}

impl Tally {
    /// Between these sites; tests between others are left out.
    pub fn of(sites: impl IntoIterator<Item = String>) -> Self {
        let mut tally = Self::default();
        for site in sites {
            tally.sites.number(&site);
        }
        tally
    }

    /// Between the sites of a mesh; only its pairs count.
    pub fn of_mesh(mesh: &Mesh) -> Self {
        let sites = mesh.sites.iter().map(|site| site.name.clone());
        let expected = Expected::of(mesh);
        Self { pairs: mesh.directed_pairs(), expected, ..Self::of(sites) }
    }

    /// Between all sites that are seen.
    pub fn of_all() -> Self {
        Self { is_open: true, ..Self::default() }
    }

    /// Makes room for so many tests at once: a list that grows is there twice while it does.
    pub fn expect(&mut self, tests: usize) {
        self.tests.reserve_exact(tests);
    }

    /// Adds a test.
    pub fn add(&mut self, seen: &Observation) {
        let [sender, receiver] = [&seen.sender, &seen.receiver].map(|site| self.site(site));
        let (Some(sender), Some(receiver)) = (sender, receiver) else { return };
        let is_asked_for = |pairs: &Vec<_>| pairs.binary_search(&[sender, receiver]).is_ok();
        if sender == receiver || !self.pairs.as_ref().is_none_or(is_asked_for) {
            return;
        }
        let limit = self.limits.number(&seen.limit);
        let Observation { record, at_s, goodput, limit_at, is_partial, .. } = *seen;
        // Above 0, because 0 means that no limit held it; a float is cut to what fits.
        let percent_of_limit =
            seen.share_of_limit.map_or(0, |share| ((share * 100.0) as u8).max(1));
        let rtt_us = seen.rtt_us.value().copied().unwrap_or(f64::NAN);
        self.tests.push(Packed {
            sender,
            receiver,
            at_s,
            goodput,
            rtt_us,
            record,
            limit,
            limit_at,
            percent_of_limit,
            is_partial,
        });
    }

    fn site(&mut self, name: &str) -> Option<u32> {
        if self.is_open { Some(self.sites.number(name)) } else { self.sites.known(name) }
    }

    /// Whether there is no test.
    pub fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    /// Leaves out the tests that say less than others of their pair, and returns how many: those that ended early, and those of a
    /// clock that was ahead, which would be its newest ones for as long as the clock was ahead, maybe for years. A pair without
    /// others keeps them.
    pub(super) fn leave_out(&mut self, now_s: f64) -> [(Unusable, usize); 2] {
        let parts = self.leave_out_if(|test| test.is_partial);
        let ahead = self.leave_out_if(|test| test.at_s > now_s + AHEAD_S);
        [(Unusable::Incomplete, parts), (Unusable::Ahead, ahead)]
    }

    fn leave_out_if(&mut self, says_less: impl Fn(&Packed) -> bool) -> usize {
        if !self.tests.iter().any(&says_less) {
            return 0;
        }
        let pair = |test: &Packed| (test.sender, test.receiver);
        let others = self.tests.iter().filter(|test| !says_less(test));
        let others: HashSet<_> = others.map(pair).collect();
        let all = self.tests.len();
        self.tests.retain(|test| !says_less(test) || !others.contains(&pair(test)));
        all - self.tests.len()
    }

    /// What the tests say together.
    pub fn matrix(mut self, question: Question) -> Matrix {
        self.leave_out(question.now_s);
        if self.is_open {
            self.order_sites();
        }
        let sites: Arc<[String]> = self.sites.names.into();
        let tests = Tests::new(sites.len(), self.limits.names, self.tests);
        Matrix::new(sites, (self.pairs, self.expected), tests, question)
    }

    /// Numbers the sites by their names, whichever was seen first.
    fn order_sites(&mut self) {
        let names = std::mem::take(&mut self.sites.names);
        let ordered: BTreeMap<String, usize> =
            names.into_iter().enumerate().map(|(number, name)| (name, number)).collect();
        let mut numbers = vec![0; ordered.len()];
        for (new, old) in ordered.values().enumerate() {
            numbers[*old] = new as u32;
        }
        for test in &mut self.tests {
            test.sender = numbers[test.sender as usize];
            test.receiver = numbers[test.receiver as usize];
        }
        self.sites.names = ordered.into_keys().collect();
    }
}

/// The matrix of these tests. `sites` are its rows and columns; tests between others are left out.
pub fn matrix(sites: Vec<String>, seen: &[Observation], question: Question) -> Matrix {
    let mut tally = Tally::of(sites);
    seen.iter().for_each(|seen| tally.add(seen));
    tally.matrix(question)
}

/// Names and their numbers, in the order in which they came.
#[derive(Debug, Default)]
struct Names {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Names {
    fn known(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// The number of a name, which is a new one if it was not there.
    fn number(&mut self, name: &str) -> u32 {
        self.known(name).unwrap_or_else(|| {
            // Names come from a mesh and its records: far fewer than 2^32.
            let number = self.names.len() as u32;
            self.names.push(name.to_owned());
            self.numbers.insert(name.to_owned(), number);
            number
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::part::Part;
    use goodput_model::{BitRate, Known};

    fn test(sender: &str, receiver: &str, record: i64) -> Observation {
        Observation {
            record,
            sender: sender.into(),
            receiver: receiver.into(),
            at_s: 0.0,
            goodput: BitRate(1e9),
            rtt_us: Known::missing("x"),
            limit: format!("rule-{record}"),
            limit_at: Part::Path,
            share_of_limit: None,
            is_partial: false,
        }
    }

    const QUESTION: Question = Question { now_s: 0.0, slow_percent: 10.0 };

    #[test]
    fn a_test_has_the_room_that_it_is_said_to_have() {
        assert_eq!(size_of::<Packed>(), 48);
    }

    #[test]
    fn sites_that_are_seen_stand_in_the_order_of_their_names() {
        let mut tally = Tally::of_all();
        [test("c", "a", 1), test("a", "b", 2)].iter().for_each(|test| tally.add(test));
        let matrix = tally.matrix(QUESTION);
        assert_eq!(*matrix.sites, ["a", "b", "c"]);
        let known = matrix.cells().filter(|cell| cell.tests > 0);
        let known: Vec<_> =
            known.map(|cell| (cell.sender, cell.receiver, cell.limit.value().copied())).collect();
        assert_eq!(known, [("a", "b", Some("rule-2")), ("c", "a", Some("rule-1"))]);
    }

    #[test]
    fn a_clock_that_was_ahead_hides_no_newer_test_and_is_better_than_none() {
        let at =
            |hours: f64, record| Observation { at_s: hours * 3600.0, ..test("a", "b", record) };
        let newest = |seen: &[Observation]| {
            let mut tally = Tally::of(["a", "b"].map(String::from));
            seen.iter().for_each(|seen| tally.add(seen));
            let [_, (_, left_out)] = tally.leave_out(0.0);
            (left_out, tally.matrix(QUESTION).cell(0, 1).record.clone())
        };
        let years = 24.0 * 365.0;
        let seen = [at(-2.0, 1), at(years, 2), at(-1.0, 3), at(years + 1.0, 4)];
        assert_eq!(newest(&seen), (2, Known::Value(3)));
        assert_eq!(newest(&[at(-2.0, 1), at(5.0, 2)]), (0, Known::Value(2)), "hours may be right");
        assert_eq!(newest(&[at(years, 2)]), (0, Known::Value(2)));
    }

    #[test]
    fn only_pairs_of_the_mesh_are_cells() {
        let text = "[test]\npairs = \"named\"\ndirections = \"one\"\n[site.a]\n[site.b]\ntarget = \"b\"\n\
                    [site.c]\n[[pair]]\nsites = [\"a\", \"b\"]\n[[pair]]\nsites = [\"c\", \"b\"]\n";
        let mut tally = Tally::of_mesh(&Mesh::parse("x", text).unwrap());
        [test("a", "b", 1), test("b", "c", 2)].iter().for_each(|test| tally.add(test));
        let matrix = tally.matrix(QUESTION);
        assert_eq!((matrix.pairs(), matrix.tested, matrix.cells().count()), (2, 1, 2));
        let [first, second] = &matrix.cells().collect::<Vec<_>>()[..] else { panic!("two pairs") };
        assert_eq!((first.sender, first.receiver, first.tests), ("a", "b", 1));
        assert_eq!((second.sender, second.receiver, second.tests), ("c", "b", 0));
    }

    #[test]
    fn a_pair_that_is_faster_than_its_file_expects_is_marked() {
        let text = |rate| format!("[test]\n{rate}\n[site.a]\n[site.b]\ntarget = \"b\"\n");
        for (rate, is_above) in
            [("rate = \"900mbit\"", true), ("rate = \"2gbit\"", false), ("", false)]
        {
            let mut tally = Tally::of_mesh(&Mesh::parse("x", &text(rate)).unwrap());
            tally.add(&test("a", "b", 1));
            let matrix = tally.matrix(QUESTION);
            let [there, back] = [matrix.cell(0, 1), matrix.cell(1, 0)];
            assert_eq!(
                (there.is_above_expected, matrix.has_above_expected()),
                (is_above, is_above)
            );
            assert!(!back.is_above_expected, "it has no test");
        }
    }

    #[test]
    fn a_cell_has_the_tests_that_are_like_its_newest_one() {
        let capped = |hours: f64, record, is_capped: bool| {
            let (at_s, share_of_limit) = (hours * 3600.0, is_capped.then_some(0.99));
            Observation { at_s, share_of_limit, ..test("a", "b", record) }
        };
        let of = |seen: &[Observation]| {
            let matrix = matrix(["a", "b"].map(String::from).to_vec(), seen, QUESTION);
            let cell = matrix.cell(0, 1);
            (cell.tests, cell.is_capped, matrix.tested, matrix.capped)
        };
        let free = [capped(1.0, 1, false), capped(2.0, 2, false)];
        assert_eq!(of(&free), (2, false, 1, 0));
        assert_eq!(of(&[&free[..], &[capped(3.0, 3, true)]].concat()), (1, true, 1, 1));
        assert_eq!(of(&[&[capped(0.0, 3, true)], &free[..]].concat()), (2, false, 1, 0));
    }

    #[test]
    fn a_pair_of_which_all_tests_ended_early_is_no_tested_one_and_shows_what_there_is() {
        let part = |record, is_partial| Observation { is_partial, ..test("a", "b", record) };
        let of = |seen: &[Observation]| {
            let mut tally = Tally::of(["a", "b"].map(String::from));
            seen.iter().for_each(|seen| tally.add(seen));
            let [(_, left_out), _] = tally.leave_out(0.0);
            let matrix = tally.matrix(QUESTION);
            let cell = matrix.cell(0, 1);
            (left_out, cell.tests, cell.is_partial, matrix.tested, matrix.partial)
        };
        assert_eq!(of(&[part(1, true), part(2, true)]), (0, 2, true, 0, 1));
        assert_eq!(
            of(&[part(1, false), part(2, true)]),
            (1, 1, false, 1, 0),
            "a whole one says more"
        );
    }

    #[test]
    fn a_share_of_a_limit_is_cut_to_whole_percent_and_never_to_none() {
        let percent = |share_of_limit| {
            let mut tally = Tally::of(["a", "b"].map(String::from));
            tally.add(&Observation { share_of_limit, ..test("a", "b", 1) });
            (tally.tests[0].percent_of_limit, tally.tests[0].is_capped())
        };
        let shares = [None, Some(1e-9), Some(0.8999), Some(0.9), Some(1.0), Some(1e9)];
        let cut = [(0, false), (1, false), (89, false), (90, true), (100, true), (255, true)];
        assert_eq!(shares.map(percent), cut);
    }

    #[test]
    fn tests_between_others_are_left_out() {
        let mut tally = Tally::of(["b", "a"].map(String::from));
        tally.add(&test("a", "x", 1));
        tally.add(&test("a", "a", 1));
        assert!(tally.is_empty());
        tally.add(&test("a", "b", 2));
        let matrix = tally.matrix(QUESTION);
        assert_eq!(*matrix.sites, ["b", "a"], "in the order of the mesh");
        assert_eq!(matrix.cells().map(|cell| cell.tests).collect::<Vec<_>>(), [0, 1]);
    }
}
