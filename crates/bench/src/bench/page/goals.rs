//! Goals: what is compared in each round, and whether the goals were met.

use std::fmt::Write;

use anyhow::Result;

use super::shown;
use crate::bench::contest::{Against, Bound, Contest, Entry, Goal};
use crate::bench::kept::{Kept, RunRecord};
use crate::bench::measure::Measure;
use crate::bench::peers::Contestant;
use crate::bench::place::Place;
use crate::bench::stats::{Estimate, estimate};

/// Digits after the decimal point of a ratio or a difference.
const DECIMAL_PLACES: usize = 3;

/// The goals of a contest.
pub fn table(page: &mut String, kept: &Kept, contest: &Contest, place: Place) -> Result<()> {
    writeln!(page, "| of the same round | median | goal | met |\n|---|---|---|---|")?;
    for goal in contest.goals {
        writeln!(page, "| {} | {} |", named(goal), judged(kept, contest, place, goal))?;
    }
    Ok(())
}

/// The goals that have a bound, as rows of the summary table.
pub fn summary(page: &mut String, kept: &Kept, contest: &Contest, place: Place) -> Result<()> {
    for goal in contest.goals.iter().filter(|goal| goal.bound_at(place) != Bound::None) {
        let judged = judged(kept, contest, place, goal);
        writeln!(page, "| {} | {} | {} | {judged} |", contest.title, place.words(), named(goal))?;
    }
    Ok(())
}

fn named(goal: &Goal) -> String {
    format!("{}: {}", goal.of, goal.what)
}

/// `median | goal | met`.
fn judged(kept: &Kept, contest: &Contest, place: Place, goal: &Goal) -> String {
    let runs: Vec<&RunRecord> = kept.of(contest, place).collect();
    let (bound, failed) = (goal.bound_at(place), failures(&runs, goal));
    let Some(value) = compared(kept, contest, place, goal) else {
        return format!("– | {} | not measured", bound.words());
    };
    let met = match (bound, failed) {
        (Bound::None, _) => "–".into(),
        (bound, 0) => bound.met(value),
        (_, failed) => {
            format!("no: it failed in {failed} of {} rounds", kept.rounds_of(contest, place))
        }
    };
    format!("{} | {} | {met}", shown(value, DECIMAL_PLACES), bound.words())
}

fn failures(runs: &[&RunRecord], goal: &Goal) -> usize {
    runs.iter().filter(|ran| ran.entry == goal.of && ran.value(goal.measure).is_none()).count()
}

/// The compared value of a goal over all rounds; `None` if no round has it.
fn compared(kept: &Kept, contest: &Contest, place: Place, goal: &Goal) -> Option<Estimate> {
    let everyone = contest.contestants(&kept.machine.peers);
    let all: Vec<&RunRecord> = kept.of(contest, place).collect();
    let rival = rival(&everyone, goal, &all);
    let values = (1..=kept.rounds_of(contest, place)).filter_map(|round| {
        let runs: Vec<&RunRecord> = all.iter().copied().filter(|ran| ran.round == round).collect();
        value(&everyone, goal, rival, &runs)
    });
    estimate(values)
}

/// Goodput's other entry that is best over all rounds, for a goal that is compared with it.
fn rival(everyone: &[Contestant], goal: &Goal, runs: &[&RunRecord]) -> Option<&'static str> {
    let Against::BestChoice(by) = goal.against else { return None };
    let others = everyone.iter().map(|who| who.entry);
    let others = others.filter(|entry| entry.is_ours() && entry.name != goal.of);
    let medians = others.filter_map(|entry| {
        let own = runs.iter().filter(|ran| ran.entry == entry.name);
        Some((entry.name, estimate(own.filter_map(|ran| ran.value(by)))?.median))
    });
    let better =
        |best: (_, f64), next: (_, f64)| if by.prefers(next.1, best.1) { next } else { best };
    medians.reduce(better).map(|(name, _)| name)
}

/// Whether further rounds could decide a goal: its interval lies on both sides of the bound.
pub fn is_open(kept: &Kept, contest: &Contest, place: Place) -> bool {
    let runs: Vec<&RunRecord> = kept.of(contest, place).collect();
    let is_open = |goal: &Goal, value: Estimate| {
        value.interval.is_some() && goal.bound_at(place).decided(value).is_none()
    };
    contest.goals.iter().any(|goal| {
        let value = compared(kept, contest, place, goal);
        failures(&runs, goal) == 0 && value.is_some_and(|value| is_open(goal, value))
    })
}

/// The compared value of a goal, in one round. `None` if one of the two operands is missing.
fn value(
    everyone: &[Contestant],
    goal: &Goal,
    rival: Option<&str>,
    runs: &[&RunRecord],
) -> Option<f64> {
    let of = |name: &str| best_version(everyone, name, goal.measure, runs);
    let ours = of(goal.of)?;
    let best = |by, fits| best_peer(everyone, fits, by, runs)?.value(goal.measure);
    let peer = |by| best(by, Entry::is_peer);
    let scale = goal.measure.scale;
    Some(match goal.against {
        Against::Nothing => ours * scale,
        Against::BestPeer(by) => ours / peer(by)?,
        Against::BestUsualPeer(by) => ours / best(by, Entry::is_usual_peer)?,
        Against::BestChoice(_) => ours / of(rival?)?,
        Against::BestPeerMinus(by) => (ours - peer(by)?) * scale,
        Against::Entry(name) => ours / of(name)?,
        Against::PercentOf(name) => 100.0 * ours / of(name)?,
        Against::PercentBelow(name) => 100.0 * (1.0 - ours / of(name)?),
        Against::PercentAbove(name) => 100.0 * (ours / of(name)? - 1.0),
        Against::EntryMinus(name) => (ours - of(name)?) * scale,
    })
}

/// The value of an entry; of several versions of its program, the best one's.
fn best_version(
    everyone: &[Contestant],
    entry: &str,
    measure: &Measure,
    runs: &[&RunRecord],
) -> Option<f64> {
    let versions = everyone.iter().filter(|who| who.entry.name == entry);
    let values =
        versions.filter_map(|who| runs.iter().find(|ran| ran.entry == who.name)?.value(measure));
    values.reduce(|best, next| if measure.prefers(next, best) { next } else { best })
}

/// The best of the peers that fit.
fn best_peer<'a>(
    everyone: &[Contestant],
    fits: fn(&Entry) -> bool,
    by: &Measure,
    runs: &[&'a RunRecord],
) -> Option<&'a RunRecord> {
    let is_peer =
        |ran: &&RunRecord| everyone.iter().any(|who| who.name == ran.entry && fits(who.entry));
    let with_value =
        runs.iter().copied().filter(is_peer).filter_map(|ran| Some((ran, ran.value(by)?)));
    let better = |best: (&'a RunRecord, f64), next: (&'a RunRecord, f64)| {
        if by.prefers(next.1, best.1) { next } else { best }
    };
    with_value.reduce(better).map(|(ran, _)| ran)
}

impl Bound {
    fn meets(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::Above(bound) => value > bound,
            Self::AtMost(bound) => value <= bound,
            Self::Below(bound) => value < bound,
            // A goal's bound is that of its place.
            Self::AtLeastAt { .. } | Self::None => true,
        }
    }

    fn words(self) -> String {
        match self {
            Self::AtLeast(bound) => format!("at least {bound}"),
            Self::Above(bound) => format!("above {bound}"),
            Self::AtMost(bound) => format!("at most {bound}"),
            Self::Below(bound) => format!("below {bound}"),
            Self::AtLeastAt { .. } | Self::None => "none".into(),
        }
    }

    /// Whether the whole interval meets the bound, or the whole of it misses it; `None` if it lies on both sides, or
    /// if there are too few rounds for an interval.
    fn decided(self, value: Estimate) -> Option<bool> {
        let (low, high) = value.interval?;
        (self.meets(low) == self.meets(high)).then(|| self.meets(low))
    }

    /// Whether the bound is met: only a whole interval is a yes or a no.
    fn met(self, value: Estimate) -> String {
        match (self.decided(value), value.interval) {
            (Some(true), _) => "yes".into(),
            (Some(false), _) => format!("no: {:.DECIMAL_PLACES$}", value.median),
            (None, Some(_)) => "open: the interval lies on both sides".into(),
            (None, None) => "open: too few rounds".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contests::ALL;
    use crate::bench::kept::RunOutcome;
    use crate::bench::measure::Values;
    use crate::bench::measure::{BESIDE, CPU, RATE};
    use crate::bench::peers::GivenPeer;

    fn near(median: f64) -> Estimate {
        Estimate { median, interval: Some((median - 0.1, median + 0.1)) }
    }

    #[test]
    fn a_goal_can_be_met_missed_and_open() {
        let at_least = |value| Bound::AtLeast(1.0).met(value);
        assert_eq!(at_least(near(1.2)), "yes");
        assert_eq!(at_least(near(0.8)), "no: 0.800");
        for open in [0.95, 1.05] {
            assert_eq!(at_least(near(open)), "open: the interval lies on both sides");
        }
        let few = Estimate { median: 2.0, interval: None };
        assert_eq!(at_least(few), "open: too few rounds");
        assert_eq!(Bound::Below(2.0).met(near(1.0)), "yes");
    }

    fn ran(entry: &str, rate: f64, cpu: f64) -> RunRecord {
        let values = Values::from([(RATE.id.into(), rate), (CPU.id.into(), cpu)]);
        RunRecord {
            round: 1,
            contest: ALL[0].id.into(),
            place: "veth".into(),
            entry: entry.into(),
            steal_percent: None,
            came: RunOutcome::Values(values),
        }
    }

    #[test]
    fn the_best_peer_is_that_of_the_round_and_no_reference() {
        let contest = ALL[0];
        let everyone = contest.contestants(&[]);
        let runs = [
            ran("goodput", 30.0, 4.0),
            ran("iperf3", 10.0, 1.0),
            ran("iperf", 20.0, 2.0),
            ran("copying alone, in cache", 60.0, 0.0),
        ];
        let runs: Vec<&RunRecord> = runs.iter().collect();
        let values: Vec<_> = contest.goals[..3]
            .iter()
            .map(|goal| value(&everyone, goal, None, &runs).unwrap())
            .collect();
        assert_eq!(values, [1.5, 2.0, 50.0]);
        assert_eq!(
            value(&everyone, &contest.goals[3], None, &runs),
            None,
            "in memory was not measured"
        );
    }

    /// Every round is the best of some single choice; one of them is the best of all rounds.
    #[test]
    fn auto_is_compared_with_the_choice_that_is_best_over_all_rounds() {
        let contest = ALL.iter().find(|contest| contest.id == "best-method").unwrap();
        let goal = contest.goals.iter().find(|goal| matches!(goal.against, Against::BestChoice(_)));
        let goal = goal.unwrap();
        let splice = "goodput, splice and discard";
        let copy = "goodput, copy and discard";
        let runs = (1..=6).flat_map(|round| {
            let lucky = if round == 3 { 90.0 } else { 30.0 };
            [(goal.of, 49.0), (splice, 50.0), (copy, lucky), ("iperf3 --zerocopy", 100.0)].map(
                |(name, rate)| RunRecord {
                    round,
                    contest: contest.id.into(),
                    ..ran(name, rate, 1.0)
                },
            )
        });
        let kept = Kept { machine: Default::default(), runs: runs.collect() };
        let value = compared(&kept, contest, Place::Veth, goal).unwrap();
        assert_eq!(value, Estimate { median: 0.98, interval: Some((0.98, 0.98)) });
        assert!(judged(&kept, contest, Place::Veth, goal).ends_with("| at least 0.95 | yes"));
    }

    #[test]
    fn a_place_may_have_a_bound_of_its_own() {
        let contest = ALL.iter().find(|contest| contest.id == "best-method").unwrap();
        let goal = &contest.goals[0];
        let at = |place| goal.bound_at(place);
        assert_eq!([at(Place::Veth), at(Place::Loopback)], [1.5, 2.0].map(Bound::AtLeast));
    }

    /// The interval of six values is from the least to the greatest.
    #[test]
    fn no_goal_is_met_while_a_bound_lies_within_the_interval() {
        for (contest, goal) in ALL.iter().flat_map(|c| c.goals.iter().map(move |goal| (c, goal))) {
            for &place in contest.places {
                let (bound, meets) = match goal.bound_at(place) {
                    Bound::AtLeast(bound) | Bound::Above(bound) => (bound, 1.0),
                    Bound::AtMost(bound) | Bound::Below(bound) => (bound, -1.0),
                    Bound::AtLeastAt { .. } => panic!("{}: a bound of no place", contest.id),
                    Bound::None => continue,
                };
                let of = |median: f64, far: f64| {
                    let ends = [median, bound + far];
                    let interval = Some((ends[0].min(ends[1]), ends[0].max(ends[1])));
                    goal.bound_at(place).met(Estimate { median, interval })
                };
                assert_eq!(of(bound + meets, meets * 0.1), "yes", "{}", goal.what);
                let open = "open: the interval lies on both sides";
                assert_eq!(of(bound + meets, -meets * 0.001), open, "{}", goal.what);
                assert_eq!(of(bound - meets, meets * 0.001), open, "{}", goal.what);
            }
        }
    }

    #[test]
    fn further_rounds_are_for_intervals_on_both_sides_of_a_goal() {
        let kept = |ratios: [f64; 6]| {
            let pair = |(ratio, round): (f64, u32)| {
                let ours = RunRecord { round, ..ran("goodput", ratio, 1.0) };
                [ours, RunRecord { round, ..ran("iperf3", 1.0, 2.0) }]
            };
            let runs = ratios.into_iter().zip(1..).flat_map(pair).collect();
            Kept { machine: Default::default(), runs }
        };
        let open = |kept: &Kept| is_open(kept, ALL[0], Place::Veth);
        assert!(!open(&kept([1.1, 1.2, 1.3, 1.4, 1.5, 1.6])));
        assert!(!open(&kept([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])));
        assert!(open(&kept([0.9, 1.2, 1.3, 1.4, 1.5, 1.6])));
    }

    #[test]
    fn the_best_version_of_a_peer_stands_for_it() {
        let given =
            [GivenPeer { program: "iperf3".into(), version: "3.21".into(), file: "/x".into() }];
        let everyone = ALL[0].contestants(&given);
        let runs = [ran("iperf3", 10.0, 1.0), ran("iperf3 (3.21)", 20.0, 2.0)];
        let runs: Vec<&RunRecord> = runs.iter().collect();
        let of = |measure| best_version(&everyone, "iperf3", measure, &runs);
        assert_eq!((of(&RATE), of(&CPU)), (Some(20.0), Some(1.0)));
        assert_eq!(
            best_peer(&everyone, Entry::is_peer, &RATE, &runs).unwrap().entry,
            "iperf3 (3.21)"
        );
    }

    #[test]
    fn a_round_without_us_has_no_value() {
        let kept = Kept { machine: Default::default(), runs: vec![ran("iperf3", 1.0, 1.0)] };
        let judged = judged(&kept, ALL[0], Place::Veth, &ALL[0].goals[0]);
        assert_eq!(judged, "– | at least 1 | not measured");
    }

    #[test]
    fn differences_have_the_unit_of_the_table() {
        let contest = ALL.iter().find(|contest| contest.id == "observing").unwrap();
        let mut runs = [ran("goodput", 99.0, 1.02), ran("goodput --no-observe", 100.0, 1.0)];
        for (ran, share) in runs.iter_mut().zip([3.0, 2.0]) {
            let RunOutcome::Values(values) = &mut ran.came else { continue };
            values.insert(BESIDE.id.into(), share);
        }
        let runs: Vec<&RunRecord> = runs.iter().collect();
        let everyone = contest.contestants(&[]);
        let values: Vec<f64> = contest
            .goals
            .iter()
            .map(|goal| value(&everyone, goal, None, &runs).unwrap().round())
            .collect();
        assert_eq!(values, [1.0, 1.0, 2.0]);
    }
}
