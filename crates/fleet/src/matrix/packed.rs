//! The tests of each cell.

use goodput_model::{BitRate, Plan};

use super::part::Part;

/// Length of the weeks that are compared, seconds.
const WEEK_S: f64 = 7.0 * 86_400.0;

/// One test. Its names are numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Packed {
    /// Number of the site that sent.
    pub sender: u32,
    /// Number of the site that received.
    pub receiver: u32,
    /// When it began, seconds since 1970.
    pub at_s: f64,
    /// Goodput.
    pub goodput: BitRate,
    /// Smallest round-trip time, microseconds; NaN: unknown.
    pub rtt_us: f64,
    /// Number of its record.
    pub record: i64,
    /// Number of its limit.
    pub limit: u32,
    /// Where that limit was.
    pub limit_at: Part,
    /// Goodput as a share of what an agent allowed, whole percent, at most 255; 0: none held it.
    pub percent_of_limit: u8,
    /// Whether it ended early.
    pub is_partial: bool,
}

impl Packed {
    /// The smallest round-trip time, microseconds, if it is known.
    pub fn known_rtt_us(&self) -> Option<f64> {
        Some(self.rtt_us).filter(|us| !us.is_nan())
    }

    /// Whether it stood at the limit of an agent, so that the path may be faster.
    pub fn is_capped(&self) -> bool {
        f64::from(self.percent_of_limit) >= Plan::MIN_SHARE_OF_KEPT_RATE * 100.0
    }

    /// What it says of its path beside others that usually give `usual`, bits per second. Below a limit, nobody knows what the
    /// path would give without one: what made the test slow may have cost seconds, and then as large a share of any rate, or
    /// it may be a rate that the path can't exceed. The least of both is that the path is slower than usual by the share of the
    /// limit that is missing.
    pub fn goodput_beside(&self, usual: f64) -> f64 {
        let share = f64::from(self.percent_of_limit) / 100.0;
        self.goodput.0.max(usual * share)
    }

    fn is_of_same_cell(&self, other: &Self) -> bool {
        (self.sender, self.receiver) == (other.sender, other.receiver)
    }
}

/// All tests, cell by cell and row by row; those of a cell in the order of time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tests {
    limits: Vec<String>,
    tests: Vec<Packed>,
    /// Where the tests of each sender begin, and where the last ones end.
    rows: Vec<usize>,
}

impl Tests {
    /// Between so many sites.
    pub fn new(sites: usize, limits: Vec<String>, mut tests: Vec<Packed>) -> Self {
        // In place: to keep the order of equal ones would need half of the room once more.
        tests.sort_unstable_by(|one, two| {
            let [cell, other] = [one, two].map(|test| (test.sender, test.receiver));
            let later = || one.at_s.total_cmp(&two.at_s).then(one.record.cmp(&two.record));
            cell.cmp(&other).then_with(later).then(one.goodput.0.total_cmp(&two.goodput.0))
        });
        keep_like_the_newest(&mut tests);
        let begin = |sender: usize| tests.partition_point(|test| (test.sender as usize) < sender);
        let rows = (0..=sites).map(begin).collect();
        Self { limits, tests, rows }
    }

    /// The tests of one cell.
    pub fn of_cell(&self, [sender, receiver]: [u32; 2]) -> &[Packed] {
        let row = &self.tests[self.rows[sender as usize]..self.rows[sender as usize + 1]];
        let begin = row.partition_point(|test| test.receiver < receiver);
        let end = row.partition_point(|test| test.receiver <= receiver);
        &row[begin..end]
    }

    /// Id of the rule that limited a test, or `none`.
    pub fn limit(&self, test: &Packed) -> &str {
        &self.limits[test.limit as usize]
    }

    /// The cells whose tests were as fast as they could be.
    pub fn measured(&self) -> Measured<'_> {
        let is_free = |cell: &[Packed]| !cell[0].is_capped() && !cell[0].is_partial;
        let mut begins = Vec::with_capacity(self.cells().filter(|cell| is_free(cell)).count());
        let mut end = 0;
        for cell in self.cells() {
            begins.extend(is_free(cell).then_some(end));
            end += cell.len() as u32;
        }
        Measured { all: self, begins }
    }

    /// How many cells have tests.
    pub fn tested(&self) -> Tested {
        let count = |is: fn(&Packed) -> bool| self.cells().filter(|cell| is(&cell[0])).count();
        Tested {
            whole: count(|test| !test.is_partial),
            capped: count(|test| test.is_capped() && !test.is_partial),
            partial: count(|test| test.is_partial),
        }
    }

    /// The tests of each cell that has some.
    fn cells(&self) -> impl Iterator<Item = &[Packed]> {
        self.tests.chunk_by(Packed::is_of_same_cell)
    }
}

/// Numbers of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tested {
    /// Those with a whole test.
    pub whole: usize,
    /// Of these, those whose tests an agent's limit capped.
    pub capped: usize,
    /// Those of which all tests ended early.
    pub partial: usize,
}

/// Keeps, of each cell, the tests that are capped if the newest one is, and otherwise those that are not: a limit came or
/// went, and a median of both would be that of neither.
fn keep_like_the_newest(tests: &mut Vec<Packed>) {
    if !tests.iter().any(Packed::is_capped) {
        return;
    }
    let mut newest: Option<Packed> = None;
    tests.reverse();
    tests.retain(|test| match &newest {
        Some(newest) if newest.is_of_same_cell(test) => newest.is_capped() == test.is_capped(),
        _ => {
            newest = Some(*test);
            true
        }
    });
    tests.reverse();
}

/// The cells whose tests say how fast their paths are, row by row.
pub(super) struct Measured<'a> {
    /// All tests.
    pub all: &'a Tests,
    /// Where the tests of each cell begin: far below 2^32.
    begins: Vec<u32>,
}

impl<'a> Measured<'a> {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.begins.len()
    }

    /// The tests of one of them, at least one.
    pub fn tests(&self, cell: usize) -> &'a [Packed] {
        let from = &self.all.tests[self.begins[cell] as usize..];
        let others = from.iter().position(|test| !test.is_of_same_cell(&from[0]));
        &from[..others.unwrap_or(from.len())]
    }

    /// The sites of one of them: the sender and the receiver.
    pub fn pair(&self, cell: usize) -> [u32; 2] {
        let Packed { sender, receiver, .. } = self.all.tests[self.begins[cell] as usize];
        [sender, receiver]
    }
}

/// Of the tests of a cell, those of the week up to the newest one, and those of the week before.
pub(super) fn weeks(tests: &[Packed]) -> [&[Packed]; 2] {
    let Some(newest) = tests.last() else { return [&[], &[]] };
    let weeks_ago = |test: &Packed| ((newest.at_s - test.at_s) / WEEK_S) as u64;
    let [this, before] = [0, 1].map(|week| tests.partition_point(|test| weeks_ago(test) > week));
    [&tests[this..], &tests[before..this]]
}
