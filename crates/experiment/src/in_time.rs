//! Which arms run next if there is too little time for all of them.
//!
//! Runs of an arm that never reaches a look show nothing. So only as many arms go on as can reach theirs, those first that
//! did best in the warm-up. The warm-up never counts, so it may choose: what judges the arms are fresh runs.

use goodput_model::Trial;

use crate::design::{Design, WARM_UP_BLOCK};
use crate::judge::Preference;
use crate::looks::Looks;
use crate::responses::{for_ratio, preference};

/// The time left, as estimated by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLeft {
    /// Runs for which there is time; `u32::MAX` if time is not limited.
    pub runs: u32,
}

/// An arm that must still be run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Open {
    /// Its number.
    pub(crate) arm: usize,
    /// Blocks in which it counts.
    pub(crate) blocks: u32,
}

/// What runs first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// Its blocks are lost unless it reaches its first look.
    Begun,
    /// No block of it counts.
    New,
    /// A look has judged it, and left it undecided.
    Undecided,
}

impl Turn {
    fn of(blocks: u32, looks: Looks) -> Self {
        match blocks {
            0 => Self::New,
            blocks if blocks < looks.first() => Self::Begun,
            _ => Self::Undecided,
        }
    }
}

impl Design {
    /// Whether the first block is a warm-up: if there is time for all arms beside it, or if it has to choose those for
    /// which there is time.
    pub(crate) fn warms_up(&self, time_left: TimeLeft) -> bool {
        let (runs, first) = (time_left.runs as usize, self.looks().first() as usize);
        let blocks = runs / self.arms;
        blocks > first || blocks < first && runs >= self.arms + 2 * first
    }

    /// Those of the open arms that run next, after the runs in `done`: the most that can reach their next look in the
    /// time. If none can, those that have the most blocks.
    pub(crate) fn in_time(
        &self,
        mut open: Vec<Open>,
        done: &[Trial],
        time_left: TimeLeft,
    ) -> Vec<usize> {
        let looks = self.looks();
        if !done.is_empty() {
            let promise = |arm| self.in_warm_up(done, arm);
            open.sort_by(|a, b| promise(b.arm).total_cmp(&promise(a.arm)));
            open.sort_by_key(|one| Turn::of(one.blocks, looks));
            let due = |one: &Open| looks.next_after(one.blocks).map_or(1, |look| look - one.blocks);
            let fit = |count: &usize| {
                let blocks = open[..*count].iter().map(due).max().unwrap_or(0) as usize;
                blocks * (count + 1) <= time_left.runs as usize
            };
            match (1..=open.len()).rev().find(fit) {
                Some(count) => open.truncate(count),
                None => {
                    let most = open.iter().map(|one| one.blocks).max();
                    open.retain(|one| Some(one.blocks) == most);
                }
            }
        }
        let mut arms: Vec<usize> = open.into_iter().map(|one| one.arm).collect();
        arms.sort_unstable();
        arms
    }

    /// How well an arm did in the warm-up by the first response, more is better; least of all if that was not read.
    fn in_warm_up(&self, done: &[Trial], arm: usize) -> f64 {
        let read = |response| {
            let sign = if preference(response) == Preference::Up { 1.0 } else { -1.0 };
            let mut runs = done.iter().filter(|t| t.block == WARM_UP_BLOCK && t.arm == arm);
            runs.find_map(for_ratio(response)).map(|value| sign * value)
        };
        self.responses.first().and_then(|first| read(*first)).unwrap_or(f64::NEG_INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::tests::trial;

    #[test]
    fn less_is_better_where_it_is() {
        let design = Design { responses: vec![goodput_model::Response::Cpu], ..Design::default() };
        let run = |arm, cost| Trial {
            cpu_s_per_gb: goodput_model::Known::Value(cost),
            ..trial(WARM_UP_BLOCK, arm, 100.0)
        };
        let done = [run(0, 1.0), run(1, 2.0)];
        assert!(design.in_warm_up(&done, 0) > design.in_warm_up(&done, 1));
        assert_eq!(design.in_warm_up(&done, 2), f64::NEG_INFINITY);
    }

    #[test]
    fn arms_that_have_begun_come_first_and_undecided_ones_last() {
        let design = Design { arms: 4, ..Design::default() };
        // Arm 1 was looked at, arm 2 has begun, arm 3 has not.
        let open = || [(1, 8), (2, 5), (3, 0)].map(|(arm, blocks)| Open { arm, blocks }).into();
        let done = [trial(1, 1, 100.0)];
        let in_time = |runs| design.in_time(open(), &done, TimeLeft { runs });
        assert_eq!(design.looks().first(), 8);
        assert_eq!(in_time(8 * 4), [1, 2, 3]);
        assert_eq!(in_time(8 * 4 - 1), [2, 3]);
        assert_eq!(in_time(8 * 3 - 1), [2]);
        assert_eq!(in_time(5), [1], "none reaches a look");
    }
}
