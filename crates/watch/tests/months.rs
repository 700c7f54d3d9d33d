//! Simulated months: a lasting drop of 10 % is found within eight tests, and so is its end. So are a lasting rise of the round
//! trip by a half, and of the loss. False alarms are rare, of all charts together.
//!
//! Each month has a test every quarter of an hour, an evening dip of up to 12 %, noise of up to 4 % (normal, with heavy
//! tails, or of which each test passes on a third), one bad test in a hundred, up to three whole days without tests, and
//! one test in fifty missing.

use std::f64::consts::TAU;
use std::ops::{Range, RangeInclusive};

use goodput_watch::{Change, Chart, Point, Quantity};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

const MONTHS: u64 = 200;
const DAYS: usize = 30;
const PER_DAY: usize = 96;
const QUARTER_HOUR_S: f64 = 900.0;

/// A path and its noise.
struct Path {
    random: Xoshiro256PlusPlus,
    kind: u64,
    /// Depth of the evening's dip.
    dip: f64,
    /// Standard deviation of a test.
    noise: f64,
    inherited: f64,
    /// Share of its noise that a test passes on to the next, if its kind does.
    share: f64,
    /// What a drop leaves.
    left: f64,
    missing_days: Vec<usize>,
}

impl Path {
    fn new(seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (dip, noise) = (0.12 * random.random::<f64>(), 0.01 + 0.03 * random.random::<f64>());
        let missing = random.random_range(0..=3);
        let missing_days = (0..missing).map(|_| random.random_range(0..DAYS)).collect();
        let (kind, inherited, share, left) = (seed % 3, 0.0, 0.33, 0.9);
        Self { kind, dip, noise, inherited, share, left, missing_days, random }
    }

    /// A path whose tests depend strongly on each other: each passes on this share of its noise. A drop takes 40 %.
    fn sticky(seed: u64, share: f64) -> Self {
        Self { kind: 2, share, left: 0.6, ..Self::new(seed) }
    }

    /// A normal variable, by the central limit theorem.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.random.random::<f64>()).sum::<f64>() - 6.0
    }

    fn next_noise(&mut self) -> f64 {
        match self.kind {
            0 => self.noise * self.normal(),
            // Student's t with three degrees of freedom, whose variance is 3.
            1 => {
                let square: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
                self.noise * self.normal() / (square / 3.0).sqrt() / 3.0_f64.sqrt()
            }
            _ => {
                let share = self.share;
                let own = self.noise * (1.0 - share * share).sqrt() * self.normal();
                self.inherited = share * self.inherited + own;
                self.inherited
            }
        }
    }

    /// The n-th test, if it is made.
    fn test(&mut self, n: usize, drop: bool) -> Option<Point> {
        let noise = self.next_noise();
        let bad = if self.random.random_bool(0.01) { -0.7 } else { 0.0 };
        let gone = self.missing_days.contains(&(n / PER_DAY)) || self.random.random_bool(0.02);
        let jitter = self.random.random::<f64>();
        let day_share = ((n % PER_DAY) as f64 + jitter) / PER_DAY as f64;
        let from_evening = (day_share * 24.0 - 20.5 + 12.0).rem_euclid(24.0) - 12.0;
        let evening = -self.dip * (-from_evening * from_evening / 8.0).exp();
        let day = 0.2 * self.dip * (TAU * day_share).cos();
        let change = if drop { self.left.ln() } else { 0.0 };
        let at_s = (n as f64 + jitter) * QUARTER_HOUR_S;
        let goodput = (20.0 + evening + day + noise + bad + change).exp();
        (!gone).then_some(Point { id: n as i64, at_s, day_share, value: goodput })
    }
}

/// What a chart says of a month in which the path is slower for some of the tests, and the numbers of the tests that were
/// made.
fn month(seed: u64, slower: &Range<usize>) -> (Vec<Change>, Vec<usize>) {
    month_of(Path::new(seed), slower)
}

/// The same of this path.
fn month_of(mut path: Path, slower: &Range<usize>) -> (Vec<Change>, Vec<usize>) {
    let mut chart = Chart::default();
    let (mut changes, mut made) = (Vec::new(), Vec::new());
    for n in 0..DAYS * PER_DAY {
        let Some(point) = path.test(n, slower.contains(&n)) else { continue };
        made.push(n);
        changes.extend(chart.push(point));
    }
    (changes, made)
}

/// The number of the first test from `at` on, and of the eighth.
fn eight(made: &[usize], at: usize) -> RangeInclusive<i64> {
    let from = made.partition_point(|n| *n < at);
    made[from] as i64..=made[from + 7] as i64
}

/// The alarms: what takes one back is none.
fn alarms(changes: &[Change]) -> impl Iterator<Item = &Change> {
    changes.iter().filter(|change| change.takes_back.is_none())
}

#[test]
fn a_lasting_drop_of_a_tenth_is_found_within_eight_tests() {
    let (mut found, mut exact, mut others, mut returns) = (0, 0, 0, 0);
    for seed in 0..MONTHS {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed + 1000);
        let drop_at = random.random_range(5 * PER_DAY..28 * PER_DAY);
        let (changes, made) = month(seed, &(drop_at..usize::MAX));
        let eight = eight(&made, drop_at);
        let in_time = changes.iter().find(|change| eight.contains(&change.newest.id));
        let since = changes.iter().filter(|change| change.newest.id >= *eight.start());
        others += changes.len() - since.clone().count().min(1);
        returns += since.filter(|change| change.takes_back.is_some()).count();
        found += usize::from(in_time.is_some());
        let near = |change: &Change| (change.first_since.id - eight.start()).abs() <= 2;
        exact += usize::from(in_time.is_some_and(near));
    }
    println!(
        "found {found} of {MONTHS}, {exact} within two tests; {others} other changes, {returns} of which take the drop back"
    );
    assert!(found >= 190, "{found} of {MONTHS}");
    assert!(exact >= 180, "{exact} of {MONTHS}");
    assert!(returns <= 4, "{returns} of {MONTHS}");
}

/// A busy hour of such a path lasts for hours: the newest tests say little that those before them did not.
#[test]
fn a_large_drop_of_a_path_whose_tests_depend_on_each_other_is_found_within_a_day_and_little_else_is()
 {
    for share in [0.7, 0.9] {
        let (mut found, mut false_alarms, mut several) = (0, 0, 0);
        for seed in 0..MONTHS {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed + 4000);
            let drop_at = random.random_range(5 * PER_DAY..28 * PER_DAY);
            let (changes, made) = month_of(Path::sticky(seed, share), &(drop_at..usize::MAX));
            let from = made.partition_point(|n| *n < drop_at);
            let day = made[from] as i64..=made[from] as i64 + PER_DAY as i64;
            let in_time =
                |change: &&Change| day.contains(&change.newest.id) && change.ratio.value < 0.8;
            found += usize::from(changes.iter().any(|change| in_time(&change)));
            let (changes, _) = month_of(Path::sticky(seed + 6000, share), &(0..0));
            let number = alarms(&changes).count();
            false_alarms += number;
            several += usize::from(number > 1);
        }
        println!(
            "{share}: found {found} of {MONTHS}; {false_alarms} false alarms; {several} months have several"
        );
        assert!(found >= 190, "{share}: {found} of {MONTHS}");
        assert!(false_alarms <= 40 && several <= 10, "{share}: {false_alarms} and {several}");
    }
}

/// The drop lasts for an hour and a half to a day and a half.
#[test]
fn the_end_of_a_drop_is_said_within_eight_tests_and_is_the_last_word() {
    let (mut dropped, mut in_time, mut last, mut wrong) = (0, 0, 0, 0);
    for seed in 0..MONTHS {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed + 2000);
        let drop_at = random.random_range(5 * PER_DAY..25 * PER_DAY);
        let end = drop_at + random.random_range(6..3 * PER_DAY / 2);
        let (changes, made) = month(seed, &(drop_at..end));
        let (begin, eight) = (eight(&made, drop_at), eight(&made, end));
        let since: Vec<&Change> =
            changes.iter().filter(|change| change.newest.id >= *begin.start()).collect();
        if !since.iter().any(|change| change.ratio.value < 1.0) {
            continue;
        }
        dropped += 1;
        let back = |change: &&&Change| change.takes_back.is_some();
        in_time +=
            usize::from(since.iter().filter(back).any(|change| eight.contains(&change.newest.id)));
        last += usize::from(since.last().is_some_and(|change| back(&change)));
        wrong += since.iter().filter(|change| change.ratio.value > 1.0 && !back(change)).count();
    }
    println!(
        "of {dropped} drops, the end of {in_time} is said within eight tests, and is the last word of {last}; {wrong} rises"
    );
    assert!(dropped >= 170, "{dropped} of {MONTHS}");
    assert!(in_time * 100 >= dropped * 95, "{in_time} of {dropped}");
    assert!(last * 100 >= dropped * 95, "{last} of {dropped}");
    assert!(wrong <= 4, "{wrong} of {dropped}");
}

/// The other charts of a path: its round trip is longer in the evening by up to a third, with noise of 2 to 15 % of the same
/// kinds, of which one test in fifty is several times as long. Its loss is nothing in most tests, and in the others up to a
/// few in a thousand, more often in the evening.
struct Others {
    path: Path,
    lossy: f64,
}

impl Others {
    fn new(seed: u64) -> Self {
        let mut path = Path::new(seed);
        let random = &mut path.random;
        (path.dip, path.noise) =
            (0.3 * random.random::<f64>(), 0.02 + 0.13 * random.random::<f64>());
        let lossy = 0.6 * path.random.random::<f64>();
        Self { path, lossy }
    }

    /// Round trip, in seconds, and loss of the n-th test, if it is made. Since a change, the round trip is `longer` times as
    /// long, and another 1 % is lost if `loses`.
    fn test(&mut self, n: usize, longer: f64, loses: bool) -> Option<[Point; 2]> {
        let made = self.path.test(n, false);
        let random = &mut self.path.random;
        let late = if random.random_bool(0.02) { 1.0 + random.random::<f64>() } else { 0.0 };
        let has_lost = random.random::<f64>() < self.lossy;
        let lost = if has_lost { 0.003 * random.random::<f64>().powi(3) } else { 0.0 };
        let lost = if loses { 0.01 * (0.5 + random.random::<f64>()) } else { lost };
        let point = made?;
        // The evening lowers the goodput, and lengthens the round trip.
        let round_trip = longer * 0.02 * (20.0 - point.value.ln() + late).exp();
        let charted = |quantity: Quantity, value| Point { value: quantity.charted(value), ..point };
        Some([charted(Quantity::RoundTrip, round_trip), charted(Quantity::Loss, lost)])
    }
}

/// What both charts say of a month in which round trip and loss change with the test `at`.
fn others(seed: u64, at: usize, longer: f64, loses: bool) -> ([Vec<Change>; 2], Vec<usize>) {
    let (mut path, mut charts) = (Others::new(seed), [Chart::default(), Chart::default()]);
    let (mut changes, mut made) = ([Vec::new(), Vec::new()], Vec::new());
    for n in 0..DAYS * PER_DAY {
        let since = n >= at;
        let longer = if since { longer } else { 1.0 };
        let Some(points) = path.test(n, longer, since && loses) else { continue };
        made.push(n);
        for ((chart, changes), point) in charts.iter_mut().zip(&mut changes).zip(points) {
            changes.extend(chart.push(point));
        }
    }
    (changes, made)
}

#[test]
fn a_lasting_rise_of_round_trip_and_loss_is_found_within_eight_tests() {
    let mut found = [0, 0];
    for seed in 0..MONTHS {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed + 3000);
        let at = random.random_range(5 * PER_DAY..28 * PER_DAY);
        let (changes, made) = others(seed + 9000, at, 1.5, true);
        let eight = eight(&made, at);
        for (found, changes) in found.iter_mut().zip(&changes) {
            let in_time = changes.iter().any(|change| eight.contains(&change.newest.id));
            *found += usize::from(in_time);
        }
    }
    println!("round trip: found {} of {MONTHS}; loss: {}", found[0], found[1]);
    assert!(found.iter().all(|found| *found >= 190), "{found:?} of {MONTHS}");
}

/// A path has a chart of each: of the goodput, the round trip and the loss. A month counts the alarms of all three.
#[test]
fn false_alarms_are_far_rarer_than_one_a_month() {
    let (mut all, mut several) = ([0; 3], 0);
    for seed in 0..MONTHS {
        let (goodput, _) = month(seed + 5000, &(0..0));
        let ([round_trip, loss], _) = others(seed + 7000, usize::MAX, 1.0, false);
        let of_month = [goodput, round_trip, loss].map(|changes| alarms(&changes).count());
        all.iter_mut().zip(of_month).for_each(|(all, one)| *all += one);
        several += usize::from(of_month.iter().sum::<usize>() > 1);
    }
    let [goodput, round_trip, loss] = all;
    println!(
        "false alarms in {MONTHS} months: goodput {goodput}, round trip {round_trip}, loss {loss}; {several} months have \
         several"
    );
    assert!(goodput <= 20 && round_trip + loss <= 20, "{all:?} in {MONTHS} months");
    assert!(several <= 1, "{several} of {MONTHS}");
}

/// The clock of the near host goes back by an hour in the middle of the month, or forward. The path's users live by it, or by
/// another clock: then their evening comes an hour earlier by this one, or later.
#[test]
fn a_clock_that_moves_by_an_hour_is_no_change() {
    let alarms = |others_clock: bool, hours: f64, seed: u64| {
        let (mut path, mut chart) = (Path::new(seed + 5000), Chart::default());
        let mut found = 0;
        for n in 0..DAYS * PER_DAY {
            let Some(point) = path.test(n, false) else { continue };
            let since = n > DAYS * PER_DAY / 2;
            // The rhythm follows `day_share` of the simulated path.
            let point = match (since, others_clock) {
                (true, true) => {
                    let day_share = (point.day_share + hours / 24.0).rem_euclid(1.0);
                    Point { day_share, ..point }
                }
                (true, false) => Point { at_s: point.at_s - hours * 3600.0, ..point },
                (false, _) => point,
            };
            found += usize::from(chart.push(point).is_some());
        }
        found
    };
    for hours in [-1.0, 1.0] {
        let all =
            |others_clock| (0..50).map(|seed| alarms(others_clock, hours, seed)).sum::<usize>();
        let (by_others, by_own) = (all(true), all(false));
        println!("{hours:+} h: {by_others} and {by_own} false alarms in 50 months each");
        assert!(by_others + by_own <= 10, "{hours:+} h: {by_others} and {by_own}");
    }
}
