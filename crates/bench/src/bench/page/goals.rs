//! Goals: what is compared in each round, and whether the goals were met.

use std::fmt::Write;

use anyhow::Result;

use super::shown;
use crate::bench::contest::{Against, Bound, Contest, Goal};
use crate::bench::kept::{Kept, RunRecord};
use crate::bench::place::Place;
use crate::bench::quantity::Quantity;
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
    for goal in contest.goals.iter().filter(|goal| goal.bound != Bound::None) {
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
    let failed =
        runs.iter().filter(|ran| ran.entry == goal.of && ran.value(goal.quantity).is_none());
    let failed = failed.count();
    let rounds = 1..=kept.rounds();
    let values = rounds.filter_map(|round| {
        let of_round: Vec<&RunRecord> =
            runs.iter().copied().filter(|ran| ran.round == round).collect();
        value(contest, goal, &of_round)
    });
    let Some(value) = estimate(values) else {
        return format!("– | {} | not measured", goal.bound.words());
    };
    let met = match (goal.bound, failed) {
        (Bound::None, _) => "–".into(),
        (bound, 0) => bound.met(value),
        (_, failed) => format!("no: it failed in {failed} of {} rounds", kept.rounds()),
    };
    format!("{} | {} | {met}", shown(value, DECIMAL_PLACES), goal.bound.words())
}

/// The compared value of a goal, in one round. `None` if one of the two operands is missing.
fn value(contest: &Contest, goal: &Goal, runs: &[&RunRecord]) -> Option<f64> {
    let of = |name: &str| runs.iter().find(|ran| ran.entry == name)?.value(goal.quantity);
    let ours = of(goal.of)?;
    let peer = |by| best_peer(contest, by, runs)?.value(goal.quantity);
    let scale = goal.quantity.scale;
    Some(match goal.against {
        Against::Nothing => ours * scale,
        Against::BestPeer(by) => ours / peer(by)?,
        Against::BestPeerMinus(by) => (ours - peer(by)?) * scale,
        Against::Entry(name) => ours / of(name)?,
        Against::PercentOf(name) => 100.0 * ours / of(name)?,
        Against::PercentBelow(name) => 100.0 * (1.0 - ours / of(name)?),
        Against::PercentAbove(name) => 100.0 * (ours / of(name)? - 1.0),
        Against::EntryMinus(name) => (ours - of(name)?) * scale,
    })
}

fn best_peer<'a>(
    contest: &Contest,
    by: &Quantity,
    runs: &[&'a RunRecord],
) -> Option<&'a RunRecord> {
    let is_peer = |ran: &&RunRecord| contest.entry(&ran.entry).is_some_and(|entry| entry.is_peer());
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
            Self::None => true,
        }
    }

    fn words(self) -> String {
        match self {
            Self::AtLeast(bound) => format!("at least {bound}"),
            Self::Above(bound) => format!("above {bound}"),
            Self::AtMost(bound) => format!("at most {bound}"),
            Self::Below(bound) => format!("below {bound}"),
            Self::None => "none".into(),
        }
    }

    /// Whether the median meets the bound, and whether this is certain.
    fn met(self, value: Estimate) -> String {
        let met = self.meets(value.median);
        let sure = value.interval.map(|(low, high)| self.meets(low) == self.meets(high));
        let doubt = match (met, sure) {
            (_, Some(true)) => "",
            (true, Some(false)) => ", but the interval goes beyond",
            (false, Some(false)) => ", but the interval reaches it",
            (_, None) => ", by too few rounds",
        };
        if met {
            format!("yes{doubt}")
        } else {
            format!("no: {:.DECIMAL_PLACES$}{doubt}", value.median)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contests::ALL;
    use crate::bench::kept::RunOutcome;
    use crate::bench::quantity::Values;
    use crate::bench::quantity::{BESIDE, CPU, RATE};

    fn near(median: f64) -> Estimate {
        Estimate { median, interval: Some((median - 0.1, median + 0.1)) }
    }

    #[test]
    fn a_goal_can_be_met_missed_and_open() {
        let at_least = |value| Bound::AtLeast(1.0).met(value);
        assert_eq!(at_least(near(1.2)), "yes");
        assert_eq!(at_least(near(0.8)), "no: 0.800");
        assert_eq!(at_least(near(0.95)), "no: 0.950, but the interval reaches it");
        let few = Estimate { median: 2.0, interval: None };
        assert_eq!(at_least(few), "yes, by too few rounds");
        assert_eq!(Bound::Below(2.0).met(near(1.0)), "yes");
    }

    fn ran(entry: &str, rate: f64, cpu: f64) -> RunRecord {
        let values = Values::from([(RATE.id.into(), rate), (CPU.id.into(), cpu)]);
        RunRecord {
            round: 1,
            contest: ALL[0].id.into(),
            place: "veth".into(),
            entry: entry.into(),
            came: RunOutcome::Values(values),
        }
    }

    #[test]
    fn the_best_peer_is_that_of_the_round_and_no_reference() {
        let contest = ALL[0];
        let runs = [
            ran("goodput", 30.0, 4.0),
            ran("iperf3", 10.0, 1.0),
            ran("iperf", 20.0, 2.0),
            ran("copying alone, in cache", 60.0, 0.0),
        ];
        let runs: Vec<&RunRecord> = runs.iter().collect();
        let values: Vec<_> =
            contest.goals[..3].iter().map(|goal| value(contest, goal, &runs).unwrap()).collect();
        assert_eq!(values, [1.5, 2.0, 50.0]);
        assert_eq!(value(contest, &contest.goals[3], &runs), None, "in memory was not measured");
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
        let values: Vec<f64> =
            contest.goals.iter().map(|goal| value(contest, goal, &runs).unwrap().round()).collect();
        assert_eq!(values, [1.0, 1.0, 2.0]);
    }
}
