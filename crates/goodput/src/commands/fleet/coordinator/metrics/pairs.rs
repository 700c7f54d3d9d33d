//! What the newest test of each pair gave, and which pairs have metrics of their own: a mesh of a thousand sites has a million
//! pairs, and a database of metrics has no room for all of them.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::num::{NonZeroU8, NonZeroU32};
use std::sync::Arc;

use goodput_fleet::Part;
use goodput_model::{Record, median};
use goodput_store::Figures;
use goodput_watch::Limit;
use jiff::Timestamp;

/// Most pairs that have metrics of their own: a full mesh of 32 sites has fewer. Each has up to nine series.
pub(super) const MOST_PAIRS: usize = 1000;

/// Most limits that are told apart: whoever measures can write any text.
const MOST_LIMITS: usize = 200;

/// The limit of whatever is beyond them.
const OTHER: &str = "other";

/// A limit, and which part of the path it is: the sender, the receiver, or what is between, whoever of both called.
pub(super) type Named = (String, String);

/// A number that may be absent, without the memory of an `Option`: a mesh of a thousand sites has three million.
#[derive(Clone, Copy)]
pub(super) struct Number(f64);

impl Number {
    const ABSENT: Self = Self(f64::NAN);

    /// The number, if it is known.
    pub fn known(self) -> Option<f64> {
        (!self.0.is_nan()).then_some(self.0)
    }
}

impl Default for Number {
    fn default() -> Self {
        Self::ABSENT
    }
}

impl From<Option<f64>> for Number {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::ABSENT, Self)
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.known().fmt(f)
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.known() == other.known()
    }
}

/// What came of the tests of a pair.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Newest {
    /// Goodput of the newest record, bytes per second; absent if the newest test has none, or ended early: that of its beginning
    /// says nothing of the path.
    pub goodput: Number,
    /// Its smallest round-trip time, seconds.
    pub smallest_round_trip_s: Number,
    /// Its share that was sent again or lost.
    pub lost_share: Number,
    /// When the last record began, seconds since 1970.
    pub began_s: Option<NonZeroU32>,
    /// Whole tests.
    pub records: u32,
    /// Tests without a record.
    pub failures: u32,
    /// Tests that ended early; counted up to 65 535, so that all fits into its place.
    pub parts: u16,
    /// Whether the newest test has a record.
    pub is_up: bool,
    /// Number of the limit that the newest test names, from 1.
    limit: Option<NonZeroU8>,
}

/// Of a sender, its receivers in the order of their numbers.
type Row = Vec<(u32, Newest)>;

// A million pairs fit into half of what a coordinator may take (100 MB).
const _: () = assert!(size_of::<(u32, Newest)>() <= 48);

/// A pair that was tested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pair<'a> {
    pub sender: &'a str,
    pub receiver: &'a str,
    pub newest: &'a Newest,
    ends: [usize; 2],
}

/// What a site does in its tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Sender,
    Receiver,
}

impl Side {
    /// Both, each with its name.
    pub const ALL: [(Self, &'static str); 2] =
        [(Self::Sender, "sender"), (Self::Receiver, "receiver")];
}

/// All pairs of a site in which it has one side.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct OfSite {
    /// Pairs that were tested.
    pub pairs: usize,
    /// Those whose newest test has no record.
    pub without_record: usize,
    /// Median goodput of the others, bytes per second.
    pub goodput: Option<f64>,
}

/// The pairs of a mesh that were tested, at most all of the mesh. A clone shares what does not change later.
#[derive(Debug, Clone, Default)]
pub(super) struct Pairs {
    sites: Arc<Vec<String>>,
    numbers: Arc<HashMap<String, usize>>,
    /// One for each sender.
    rows: Vec<Arc<Row>>,
    limits: Vec<Named>,
}

impl Pairs {
    /// None was tested.
    pub fn of(sites: Vec<String>) -> Self {
        let numbers = sites.iter().enumerate().map(|(number, site)| (site.clone(), number));
        let (numbers, rows) = (Arc::new(numbers.collect()), vec![Arc::default(); sites.len()]);
        Self { sites: Arc::new(sites), numbers, rows, limits: Vec::new() }
    }

    /// The same sites, of which none was tested.
    pub fn none_tested(&self) -> Self {
        let (sites, numbers) = (Arc::clone(&self.sites), Arc::clone(&self.numbers));
        let rows = vec![Arc::default(); self.sites.len()];
        Self { sites, numbers, rows, limits: Vec::new() }
    }

    /// Takes the outcome of a test, which came at `now`; without a record, there is none. By the clock of its host, the test
    /// may have begun later than now: that would be the newest result for as long as this clock was ahead.
    pub fn see(&mut self, [sender, receiver]: [&str; 2], record: Option<&Record>, now: Timestamp) {
        let read = record.map(|record| {
            let figures = Figures::of(record);
            let began = record.started.parse::<Timestamp>().ok();
            let began_s = began.and_then(|began| seconds(began.min(now)));
            if record.incomplete.is_some() {
                return Newest { began_s, is_up: true, parts: 1, ..Newest::default() };
            }
            Newest {
                // The base unit of data is the byte (Prometheus, "Metric and label naming").
                goodput: Some(record.result.goodput_bits_per_s.0 / 8.0).into(),
                smallest_round_trip_s: figures.smallest_round_trip_s.into(),
                lost_share: figures.lost_share.into(),
                began_s,
                is_up: true,
                records: 1,
                limit: NonZeroU8::new(self.limit_of(record) + 1),
                ..Newest::default()
            }
        });
        self.note(sender, receiver, read);
    }

    /// Takes what a record says, with a count of one.
    fn note(&mut self, sender: &str, receiver: &str, read: Option<Newest>) {
        let number = |site: &str| self.numbers.get(site).copied();
        let Some((sender, receiver)) = number(sender).zip(number(receiver)) else { return };
        let (row, receiver) = (Arc::make_mut(&mut self.rows[sender]), receiver as u32);
        let place = row.binary_search_by_key(&receiver, |(other, _)| *other);
        let place = place.unwrap_or_else(|free| {
            row.insert(free, (receiver, Newest::default()));
            free
        });
        let known = &mut row[place].1;
        let Newest { began_s, .. } = *known;
        let read = read.unwrap_or_else(|| Newest { began_s, failures: 1, ..Newest::default() });
        *known = Newest {
            records: known.records.saturating_add(read.records),
            failures: known.failures.saturating_add(read.failures),
            parts: known.parts.saturating_add(read.parts),
            ..read
        };
    }

    /// The number of what limited a test.
    fn limit_of(&mut self, record: &Record) -> u8 {
        let limit = Limit::of(record);
        let name = limit.limiter.map_or(limit.rule, |limiter| limiter.id());
        let end = Part::of(limit.end, record.verdict.sender);
        self.number_of((name, end.to_string()))
    }

    fn number_of(&mut self, named: Named) -> u8 {
        let named = if self.limits.len() < MOST_LIMITS || self.limits.contains(&named) {
            named
        } else {
            (OTHER.into(), named.1)
        };
        let known = self.limits.iter().position(|other| *other == named);
        let number = known.unwrap_or_else(|| {
            self.limits.push(named);
            self.limits.len() - 1
        });
        // There are few places, so that "other" at each of them fits, too.
        number as u8
    }

    /// What limited the newest test of a pair.
    pub fn limit(&self, newest: &Newest) -> Option<&Named> {
        self.limits.get(usize::from(newest.limit?.get()) - 1)
    }

    /// All pairs that were tested, by the numbers of their sites.
    pub fn all(&self) -> impl Iterator<Item = Pair<'_>> {
        self.rows.iter().enumerate().flat_map(move |(sender, row)| {
            row.iter().map(move |(receiver, newest)| {
                let receiver = *receiver as usize;
                let [from, to] = [sender, receiver].map(|site| self.sites[site].as_str());
                Pair { sender: from, receiver: to, newest, ends: [sender, receiver] }
            })
        })
    }

    /// How many pairs have each limit.
    pub fn limited(&self) -> Vec<(&Named, usize)> {
        let mut counts = vec![0; self.limits.len()];
        let numbers = self.all().filter_map(|pair| pair.newest.limit);
        numbers.for_each(|number| counts[usize::from(number.get()) - 1] += 1);
        self.limits.iter().zip(counts).filter(|(_, count)| *count > 0).collect()
    }

    /// What is known of the sites, by the numbers of both.
    pub fn sides(&self) -> [Vec<OfSite>; 2] {
        Side::ALL.map(|(side, _)| self.side(side))
    }

    /// The name of a site.
    pub fn site(&self, number: usize) -> &str {
        &self.sites[number]
    }

    fn side(&self, side: Side) -> Vec<OfSite> {
        let mut rates = vec![Vec::new(); self.sites.len()];
        let mut of_sites = vec![OfSite::default(); self.sites.len()];
        for pair in self.all() {
            let site = pair.ends[usize::from(side == Side::Receiver)];
            of_sites[site].pairs += 1;
            rates[site].extend(pair.newest.goodput.known());
            of_sites[site].without_record += usize::from(!pair.newest.is_up);
        }
        for (of_site, rates) in of_sites.iter_mut().zip(rates) {
            of_site.goodput = median(rates);
        }
        of_sites
    }

    /// The pairs that have metrics of their own, in the order of [`Pairs::all`]: all, or [`MOST_PAIRS`] of them. Half of these
    /// are pairs without a record, if there are so many, and the others the slowest, compared with what both of their sites
    /// usually give: a slow line of one site would otherwise hide all other slow pairs.
    pub fn shown(&self, [senders, receivers]: &[Vec<OfSite>; 2]) -> Vec<Pair<'_>> {
        if self.rows.iter().map(|row| row.len()).sum::<usize>() <= MOST_PAIRS {
            return self.all().collect();
        }
        let share = |pair: &Pair| {
            let [sender, receiver] = pair.ends;
            let usual = [senders[sender].goodput, receivers[receiver].goodput];
            let usual = usual.into_iter().flatten().fold(f64::INFINITY, f64::min);
            if !pair.newest.is_up {
                return None;
            }
            // One that ended early is as good as any.
            // A pair that gives nothing is the slowest one, also where its sites usually give nothing. Of one without a goodput,
            // nobody knows that it is slow.
            let share = |goodput: f64| if goodput > 0.0 { goodput / usual } else { 0.0 };
            Some((pair.newest.goodput.known().map_or(1.0, share), pair.ends))
        };
        let mut up: Vec<_> = self.all().filter_map(|pair| share(&pair)).collect();
        let all_down = self.all().filter(|pair| !pair.newest.is_up).map(|pair| pair.ends);
        let mut chosen: HashSet<_> =
            all_down.take((MOST_PAIRS / 2).max(MOST_PAIRS.saturating_sub(up.len()))).collect();
        let of_up = MOST_PAIRS - chosen.len();
        if of_up < up.len() {
            // By the numbers of the sites, too, so that the choice is always the same.
            up.select_nth_unstable_by(of_up, |(one, a), (other, b)| {
                one.total_cmp(other).then(a.cmp(b))
            });
            up.truncate(of_up);
        }
        chosen.extend(up.into_iter().map(|(_, ends)| ends));
        self.all().filter(|pair| chosen.contains(&pair.ends)).collect()
    }
}

/// Seconds since 1970; none before, and none after 2106.
fn seconds(at: Timestamp) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(at.as_second()).ok()?)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A tested full mesh: a site of ten sends slowly, and each of them has a slow path and one without a record.
    pub fn full_mesh(sites: usize) -> Pairs {
        let mut pairs = Pairs::of((0..sites).map(|site| format!("site{site:04}")).collect());
        let names = pairs.sites.clone();
        let limit = NonZeroU8::new(pairs.number_of(("path-rate".into(), "path".into())) + 1);
        for (from, sender) in names.iter().enumerate() {
            for (to, receiver) in names.iter().enumerate().filter(|(to, _)| *to != from) {
                let typical = if from % 10 == 0 { 1e7 } else { 1e8 };
                let goodput = if to == (from + 1) % sites { typical / 3.0 } else { typical };
                let some = Some(0.001).into();
                let read = Newest {
                    goodput: Some(goodput).into(),
                    smallest_round_trip_s: some,
                    lost_share: some,
                    began_s: NonZeroU32::new(1),
                    is_up: true,
                    records: 1,
                    limit,
                    ..Newest::default()
                };
                pairs.note(sender, receiver, (to != (from + 2) % sites).then_some(read));
            }
        }
        pairs
    }

    #[test]
    fn a_small_mesh_has_all_pairs_and_a_large_one_those_that_are_slow_for_their_sites_or_have_no_record()
     {
        let small = full_mesh(32);
        assert_eq!(small.shown(&small.sides()), small.all().collect::<Vec<_>>());
        let large = full_mesh(200);
        let shown = large.shown(&large.sides());
        assert_eq!((large.all().count(), shown.len()), (39_800, MOST_PAIRS));
        let is_down = |pair: &&Pair| !pair.newest.is_up;
        assert_eq!(shown.iter().filter(is_down).count(), 200);
        let is_slow_path = |pair: &&Pair| pair.ends[1] == (pair.ends[0] + 1) % 200;
        assert_eq!(shown.iter().filter(is_slow_path).count(), 200, "each of them");
        assert_eq!(shown, large.shown(&large.sides()), "always the same ones");
    }

    #[test]
    fn a_pair_that_gives_nothing_is_shown_also_where_its_sites_usually_give_nothing() {
        let mut pairs = full_mesh(40);
        let names = pairs.sites.clone();
        let nothing = Newest { goodput: Some(0.0).into(), is_up: true, ..Newest::default() };
        for receiver in &names[1..] {
            pairs.note(&names[0], receiver, Some(nothing));
        }
        let shown = pairs.shown(&pairs.sides());
        let gives_nothing = |pair: &&Pair| pair.newest.goodput.known() == Some(0.0);
        assert_eq!(shown.iter().filter(gives_nothing).count(), 39);
    }

    #[test]
    fn a_clone_shares_all_pairs_and_keeps_them_as_they_were() {
        let mut pairs = full_mesh(40);
        let (before, [from, to]) =
            (pairs.clone(), [pairs.sites[3].clone(), pairs.sites[7].clone()]);
        pairs.note(&from, &to, None);
        let shared = |row: usize| Arc::ptr_eq(&pairs.rows[row], &before.rows[row]);
        assert!(shared(2) && !shared(3) && shared(4));
        let down = |pairs: &Pairs| pairs.all().filter(|pair| !pair.newest.is_up).count();
        assert_eq!((down(&before), down(&pairs)), (40, 41));
    }

    #[test]
    fn pairs_without_a_record_leave_room_for_slow_ones_and_take_what_those_leave() {
        let mut pairs = full_mesh(40);
        let names = pairs.sites.clone();
        for sender in &names[..30] {
            names
                .iter()
                .filter(|receiver| *receiver != sender)
                .for_each(|to| pairs.note(sender, to, None));
        }
        let shown = pairs.shown(&pairs.sides());
        let down = shown.iter().filter(|pair| !pair.newest.is_up).count();
        assert_eq!((shown.len(), down), (MOST_PAIRS, MOST_PAIRS - 10 * 38));
    }

    #[test]
    fn a_site_has_its_median_by_its_side_and_counts_what_has_no_record() {
        let pairs = full_mesh(40);
        let [senders, receivers] = pairs.sides();
        let expected = OfSite { pairs: 39, without_record: 1, goodput: Some(1e7) };
        assert_eq!((pairs.site(10), senders[10]), ("site0010", expected));
        assert_eq!(receivers[10], OfSite { goodput: Some(1e8), ..expected });
        assert_eq!(pairs.limited()[0].1, 39 * 40 - 40);
    }

    #[test]
    fn no_more_limits_are_told_apart_than_a_fleet_can_have() {
        let mut pairs = Pairs::of(Vec::new());
        for number in 0..1000 {
            pairs.number_of((format!("limit-{number}"), "path".into()));
        }
        assert_eq!(pairs.limits.len(), MOST_LIMITS + 1);
        assert_eq!(pairs.number_of(("limit-7".into(), "path".into())), 7);
        let other = pairs.number_of(("limit-999".into(), "path".into()));
        assert_eq!(pairs.limits[usize::from(other)], (OTHER.into(), "path".into()));
    }

    #[test]
    fn no_result_began_later_than_it_came() {
        let json = include_str!("../../../../report/example/record.json");
        let record = goodput_store::read_record(json).unwrap();
        let began: Timestamp = record.started.parse().unwrap();
        let mut pairs = Pairs::of(vec!["a".into(), "b".into()]);
        let mut seen_at = |now: Timestamp| {
            pairs.see(["a", "b"], Some(&record), now);
            pairs.all().next().and_then(|pair| pair.newest.began_s)
        };
        let hour = jiff::SignedDuration::from_hours(1);
        assert_eq!(seen_at(began + hour), seconds(began));
        assert_eq!(seen_at(began - hour), seconds(began - hour), "its clock is ahead");
    }
}
