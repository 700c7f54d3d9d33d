//! Rounds: which tests run at the same time, so that no place is in two of them.
//!
//! A place is a shared uplink, or a host without one. A test occupies the places of its two sites, or the one that both
//! share. So a round is a set of disjoint edges of a multigraph, and the fewest rounds are its chromatic index.
//!
//! 1. Tests are put in the order of a round-robin tournament (the circle method: Kirkman 1847; de Werra 1981, "Scheduling
//!    in sports"), those of the busiest places first. Each takes the first round in which its places are free. For a full
//!    mesh this alone gives N - 1 rounds for even N and N for odd N, the fewest possible.
//! 2. A test that finds no common gap moves others: if one place is free in round x and the other in round y, the tests
//!    that alternate between x and y from there on change places (Kempe 1879, as in Vizing's proof).
//! 3. If that fails as well, there is one more round.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::gaps::Taken;

/// Gaps of each place that are tried before there is one more round. The number only weighs time against rounds.
const TRIED_GAPS: usize = 8;

/// The fewest rounds in which these tests could run, from below: the busiest place has each of its tests in a round of its
/// own, and a round has no more tests than the places allow. A test is the two places that it occupies, or twice the
/// same.
pub fn fewest_rounds(places: usize, tests: &[[usize; 2]]) -> usize {
    let loads = loads(places, tests);
    let within = tests.iter().filter(|[one, two]| one == two).count();
    let between = tests.len() - within;
    let used = loads.iter().filter(|load| **load > 0).count();
    let busiest = loads.iter().copied().max().unwrap_or(0);
    let by_room = (2 * between + within).div_ceil(used.max(1));
    // An odd place is left over in each round.
    let by_pairs = between.div_ceil((used / 2).max(1));
    busiest.max(by_room).max(by_pairs)
}

/// The round of each test, from 0, without gaps between rounds. A test is the two places that it occupies, each below
/// `places`, or twice the same.
pub fn rounds(places: usize, tests: &[[usize; 2]]) -> Vec<usize> {
    let (places, tests) = numbered(places, tests);
    // To sort takes room, and so does the table: not at once.
    let order = order(places, &tests);
    let mut table = Timetable::new(places, &tests);
    for test in order {
        table.place(test);
    }
    let mut round = table.round;
    close_up(&mut round);
    round
}

/// The number of places with tests, and the tests with these places numbered from 0: a tournament has no round for others.
fn numbered(places: usize, tests: &[[usize; 2]]) -> (usize, Vec<[usize; 2]>) {
    let mut used = 0;
    let number = |load: usize| {
        let own = used;
        used += usize::from(load > 0);
        own
    };
    let numbers: Vec<usize> = loads(places, tests).into_iter().map(number).collect();
    (used, tests.iter().map(|test| test.map(|place| numbers[place])).collect())
}

/// How many tests each place has.
fn loads(places: usize, tests: &[[usize; 2]]) -> Vec<usize> {
    let mut loads = vec![0; places];
    for [one, two] in tests {
        loads[*one] += 1;
        if one != two {
            loads[*two] += 1;
        }
    }
    loads
}

/// The tests, those of the busiest places first, in the order of a tournament.
fn order(places: usize, tests: &[[usize; 2]]) -> Vec<usize> {
    let loads = loads(places, tests);
    let mut order: Vec<usize> = (0..tests.len()).collect();
    order.sort_by_cached_key(|test| {
        let [one, two] = tests[*test];
        (Reverse(loads[one].max(loads[two])), tournament_round(places, one, two))
    });
    order
}

/// The round in which two of `places` places meet: all but the last stand in a circle, and turn by one in each round.
fn tournament_round(places: usize, one: usize, two: usize) -> usize {
    let last = places.next_multiple_of(2).max(2) - 1;
    match (one.min(two), one.max(two)) {
        (low, high) if low == high => last,
        (low, high) if high == last => 2 * low % last,
        (low, high) => (low + high) % last,
    }
}

/// Removes empty rounds.
fn close_up(rounds: &mut [usize]) {
    let mut used = rounds.to_vec();
    used.sort_unstable();
    used.dedup();
    for round in rounds {
        *round = used.partition_point(|other| other < round);
    }
}

/// A place in a round. A mesh of thousands of sites has millions of these: the numbers of places, rounds and tests are far
/// below 2^32.
fn slot(place: usize, round: usize) -> [u32; 2] {
    [place as u32, round as u32]
}

/// The tests that have a round so far.
struct Timetable<'a> {
    tests: &'a [[usize; 2]],
    round: Vec<usize>,
    taken: Vec<Taken>,
    /// The test that takes a place in a round, by [`slot`].
    at: HashMap<[u32; 2], u32>,
    rounds: usize,
}

impl<'a> Timetable<'a> {
    fn new(places: usize, tests: &'a [[usize; 2]]) -> Self {
        Self {
            tests,
            round: vec![0; tests.len()],
            taken: vec![Taken::default(); places],
            at: HashMap::with_capacity(2 * tests.len()),
            rounds: fewest_rounds(places, tests),
        }
    }

    /// Gives a test a round.
    fn place(&mut self, test: usize) {
        let [one, two] = self.tests[test];
        let gap = self.taken[one].common_gap(&self.taken[two], self.rounds);
        let round = gap.or_else(|| self.make_room(one, two)).unwrap_or(self.rounds);
        self.rounds = self.rounds.max(round + 1);
        self.put(test, round);
    }

    /// Moves tests so that both places are free in a round.
    fn make_room(&mut self, one: usize, two: usize) -> Option<usize> {
        let (rounds, chain) = self.movable(one, two)?;
        self.swap(&chain, rounds);
        Some(rounds[0])
    }

    /// Two rounds, and the tests that leave the first one free at both places if they change between these rounds.
    fn movable(&self, one: usize, two: usize) -> Option<([usize; 2], Vec<usize>)> {
        let gaps = |place: usize| self.taken[place].gaps(self.rounds).take(TRIED_GAPS);
        let mut tried = gaps(one).flat_map(|wanted| gaps(two).map(move |other| [wanted, other]));
        tried.find_map(|rounds| Some((rounds, self.chain(two, one, rounds)?)))
    }

    /// The tests that alternate between two rounds, beginning at a place that is free in the second; `None` if they lead
    /// to `forbidden`, which is free in the first.
    fn chain(&self, from: usize, forbidden: usize, rounds: [usize; 2]) -> Option<Vec<usize>> {
        let (mut place, mut chain) = (from, Vec::new());
        for round in rounds.iter().cycle() {
            let Some(test) = self.at.get(&slot(place, *round)) else { break };
            let test = *test as usize;
            chain.push(test);
            let [one, two] = self.tests[test];
            if one == two {
                break;
            }
            place = if place == one { two } else { one };
        }
        (place != forbidden).then_some(chain)
    }

    /// Lets the tests of a chain change between its rounds.
    fn swap(&mut self, chain: &[usize], [one, two]: [usize; 2]) {
        let changed: Vec<_> = chain.iter().map(|test| (*test, self.round[*test])).collect();
        for (test, _) in &changed {
            self.take_out(*test);
        }
        for (test, before) in changed {
            self.put(test, if before == one { two } else { one });
        }
    }

    fn put(&mut self, test: usize, round: usize) {
        self.round[test] = round;
        for place in self.tests[test] {
            self.taken[place].take(round);
            self.at.insert(slot(place, round), test as u32);
        }
    }

    fn take_out(&mut self, test: usize) {
        let round = self.round[test];
        for place in self.tests[test] {
            self.taken[place].leave(round);
            self.at.remove(&slot(place, round));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn full_mesh(sites: usize) -> Vec<[usize; 2]> {
        (0..sites).flat_map(|one| (one + 1..sites).map(move |two| [one, two])).collect()
    }

    /// The number of rounds, if no place is in two tests of a round and no round is empty.
    fn checked(places: usize, tests: &[[usize; 2]]) -> usize {
        let rounds = rounds(places, tests);
        let count = rounds.iter().max().map_or(0, |last| last + 1);
        let mut taken = std::collections::HashSet::new();
        for ([one, two], round) in tests.iter().zip(&rounds) {
            assert!(taken.insert((*one, *round)), "place {one} is twice in round {round}");
            assert!(one == two || taken.insert((*two, *round)), "{two} is twice in {round}");
        }
        let used: std::collections::HashSet<_> = rounds.iter().collect();
        assert_eq!(used.len(), count, "a round is empty");
        count
    }

    #[test]
    fn a_full_mesh_has_the_rounds_of_a_tournament() {
        for sites in 2..60 {
            let fewest = if sites % 2 == 0 { sites - 1 } else { sites };
            let tests = full_mesh(sites);
            assert_eq!(fewest_rounds(sites, &tests), fewest);
            assert_eq!(checked(sites, &tests), fewest, "{sites} sites");
        }
    }

    #[test]
    fn nothing_and_one_test_are_fine() {
        assert_eq!(checked(0, &[]), 0);
        assert_eq!(checked(1, &[[0, 0]]), 1);
        assert_eq!(checked(2, &[[0, 1], [0, 1], [1, 1]]), 3);
    }

    #[test]
    fn a_test_without_a_common_gap_makes_room() {
        // A path of three tests: first-fit in a bad order would take three rounds.
        let mut table = Timetable::new(4, &[[0, 1], [2, 3], [1, 2]]);
        table.put(0, 0);
        table.put(1, 1);
        assert_eq!(table.rounds, 2);
        table.place(2);
        assert_eq!(table.rounds, 2, "one of the others moved");
    }

    proptest! {
        /// Any tests between any places. The last bound holds for each test that takes the first free round.
        #[test]
        fn no_place_is_twice_in_a_round(
            (places, tests) in (1usize..30).prop_flat_map(|places| {
                (Just(places), prop::collection::vec([0..places, 0..places], 0..200))
            })
        ) {
            let count = checked(places, &tests);
            let fewest = fewest_rounds(places, &tests);
            let busiest = loads(places, &tests).into_iter().max().unwrap_or(0);
            prop_assert!(count >= fewest);
            prop_assert!(count <= fewest.max((2 * busiest).saturating_sub(1)));
        }
    }
}
