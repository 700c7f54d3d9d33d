//! The next step of a comparison: blocks in random order, and when to stop.
//!
//! Each block runs the baseline and every undecided arm once, in a new random order. The orders are deliberately not
//! balanced between blocks (AB then BA). An independent draw makes the sign of every paired difference a fair coin,
//! under any drift and any correlation between runs. The test in `signed_rank` needs only that. Balanced pairs put two
//! runs of one arm next to each other. With runs as correlated as measured (0.4), they raised the false alarms from
//! 4.0 to 5.2 %.

use std::collections::BTreeSet;
use std::fmt;

use goodput_model::Trial;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;

use crate::analyse::{Settled, analyse};
use crate::design::{Design, WARM_UP_BLOCK};
use crate::file_parts::{PartsStanding, parts_standing};
use crate::in_time::{Open, TimeLeft};

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Run one block.
    RunBlock {
        /// Its number, for [`Trial::block`].
        block: u32,
        /// Arms in running order: the baseline and the undecided arms.
        order: Vec<usize>,
        /// Whether it is the warm-up, whose runs are discarded with [`crate::WARM_UP`] as the reason.
        warm_up: bool,
    },
    /// Stop.
    Stop(StopReason),
}

/// Why a comparison ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Every arm is better, worse or no different.
    Decided {
        /// The most blocks that an arm has.
        blocks: u32,
    },
    /// The slowest part of a file transfer is known.
    PartsDecided {
        /// The most blocks that an arm has.
        blocks: u32,
    },
    /// Further runs would hardly show which part of a file transfer is the slowest.
    PartsUndecided {
        /// The most blocks that an arm has.
        blocks: u32,
    },
    /// Every interval is as narrow as requested.
    Precise {
        /// The most blocks that an arm has.
        blocks: u32,
    },
    /// The runs only choose, and the difference is obvious.
    Obvious {
        /// The most blocks that an arm has.
        blocks: u32,
    },
    /// No more blocks are planned, though some arms are undecided.
    LastLook {
        /// The most blocks that an arm has.
        blocks: u32,
    },
    /// As many blocks as allowed were run.
    MaxBlocks {
        /// Blocks that were run, without the warm-up.
        run: u32,
    },
    /// There is no time for another block.
    OutOfTime,
    /// Fewer than two arms.
    NothingToCompare,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decided { blocks } => write!(f, "every arm was decided after {blocks} blocks"),
            Self::PartsDecided { blocks } => {
                write!(f, "which part is the slowest was decided after {blocks} blocks")
            }
            Self::PartsUndecided { blocks } => {
                write!(
                    f,
                    "{blocks} blocks did not show which part is the slowest, and more would hardly show it"
                )
            }
            Self::Precise { blocks } => {
                write!(f, "every difference reached the requested precision after {blocks} blocks")
            }
            Self::Obvious { blocks } => {
                write!(f, "the difference was obvious after {blocks} blocks")
            }
            Self::LastLook { blocks } => {
                write!(
                    f,
                    "{blocks} blocks were run, and no more are planned for the undecided arms"
                )
            }
            Self::MaxBlocks { run } => write!(f, "the maximum of {run} blocks was run"),
            Self::OutOfTime => f.write_str("the time limit was reached"),
            Self::NothingToCompare => f.write_str("there was only one arm, nothing to compare"),
        }
    }
}

impl Design {
    /// What to do after the runs in `done`. A pure function of its arguments.
    ///
    /// The first block is a warm-up, unless this would leave too little time for the first look. After the warm-up at
    /// least one block counts. If there is too little time for all arms, those that do best in the warm-up go on.
    pub fn next(&self, done: &[Trial], time_left: TimeLeft) -> Step {
        if self.arms < 2 {
            return Step::Stop(StopReason::NothingToCompare);
        }
        let open = match self.open_arms(done) {
            Ok(open) => self.in_time(open, done, time_left),
            Err(enough) => return Step::Stop(enough),
        };
        // One run of each arm that goes on, and of the baseline.
        let fits = open.len() < time_left.runs as usize;
        if !fits && !self.is_only_warm(done) {
            return Step::Stop(StopReason::OutOfTime);
        }
        let block = match done.iter().map(|trial| trial.block).max() {
            Some(last) => last + 1,
            None if self.warms_up(time_left) => WARM_UP_BLOCK,
            None => WARM_UP_BLOCK + 1,
        };
        Step::RunBlock { block, order: self.order(block, open), warm_up: block == WARM_UP_BLOCK }
    }

    /// The blocks of a step and those up to the next look, for runs that can't be started one by one: at most as many
    /// as the time allows, and at least one. `order` and `block` are the step's.
    pub fn up_to_look(
        &self,
        done: &[Trial],
        time_left: TimeLeft,
        block: u32,
        order: &[usize],
    ) -> Vec<(u32, Vec<usize>)> {
        let open: Vec<usize> = (1..self.arms).filter(|arm| order.contains(arm)).collect();
        let arms = analyse(self, done);
        // An arm that lost runs is looked at later; this is the first look at any arm.
        let made = open.iter().map(|arm| arms[*arm].n as u32).max().unwrap_or(0);
        let due = self.looks().next_after(made).map_or(1, |look| look - made);
        let fit = time_left.runs / (open.len() as u32 + 1);
        let blocks = block..block + due.min(fit).max(1);
        blocks.map(|block| (block, self.order(block, open.clone()))).collect()
    }

    /// Whether only the warm-up was run. Even if it used up all the time, one block that counts still runs: without
    /// it, all this time would be wasted.
    fn is_only_warm(&self, done: &[Trial]) -> bool {
        !done.is_empty() && done.iter().all(|trial| trial.block == WARM_UP_BLOCK)
    }

    fn order(&self, block: u32, open: Vec<usize>) -> Vec<usize> {
        let mut order = [vec![0], open].concat();
        // Neighbouring seeds give unrelated streams: seed_from_u64 scrambles them.
        let seed = self.seed.wrapping_mul(0x1_0000_0001).wrapping_add(u64::from(block));
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        order
    }

    /// The arms that must still be run, or why to stop.
    fn open_arms(&self, done: &[Trial]) -> Result<Vec<Open>, StopReason> {
        let run: BTreeSet<u32> =
            done.iter().map(|trial| trial.block).filter(|block| *block != WARM_UP_BLOCK).collect();
        let run = run.len() as u32;
        let arms = analyse(self, done);
        let mut open: Vec<usize> =
            (1..self.arms).filter(|arm| arms[*arm].settled.is_none()).collect();
        let all = |settled| arms[1..].iter().all(|arm| arm.settled == Some(settled));
        let any = |settled| arms[1..].iter().any(|arm| arm.settled == Some(settled));
        let blocks = arms.iter().map(|arm| arm.n as u32).max().unwrap_or(0);
        let parts = if self.is_about_parts { parts_standing(self, done) } else { None };
        match parts {
            Some(PartsStanding::Decided) => return Err(StopReason::PartsDecided { blocks }),
            // This question doesn't depend on how the arms differ.
            Some(PartsStanding::Open) => open = (1..self.arms).collect(),
            Some(PartsStanding::Undecidable) => return Err(StopReason::PartsUndecided { blocks }),
            None => {}
        }
        match () {
            () if open.is_empty() && all(Settled::Decided) => Err(StopReason::Decided { blocks }),
            () if open.is_empty() && any(Settled::LastLook) => Err(StopReason::LastLook { blocks }),
            () if open.is_empty() && any(Settled::Obvious) => Err(StopReason::Obvious { blocks }),
            () if open.is_empty() => Err(StopReason::Precise { blocks }),
            () if run >= self.max_blocks => Err(StopReason::MaxBlocks { run }),
            () => {
                let blocks = |arm: usize| arms[arm].n as u32;
                Ok(open.into_iter().map(|arm| Open { arm, blocks: blocks(arm) }).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::WARM_UP;
    use crate::pairs::tests::trial;
    use goodput_model::{BitRate, FilesAlone, Known};
    use proptest::prelude::*;
    use rand::RngExt;

    const PLENTY: TimeLeft = TimeLeft { runs: u32::MAX };

    /// Follows the design with `goodput(block, arm)` until it stops.
    fn follow(design: &Design, goodput: impl Fn(u32, usize) -> f64) -> (Vec<Trial>, StopReason) {
        let mut done = Vec::new();
        loop {
            match design.next(&done, PLENTY) {
                Step::Stop(why) => return (done, why),
                Step::RunBlock { block, order, warm_up } => {
                    let discarded = warm_up.then(|| WARM_UP.to_string());
                    done.extend(order.into_iter().map(|arm| Trial {
                        discarded: discarded.clone(),
                        ..trial(block, arm, goodput(block, arm))
                    }));
                }
            }
        }
    }

    #[test]
    fn blocks_up_to_a_look_are_those_that_come_one_by_one() {
        let design = Design { arms: 3, ..Design::default() };
        let Step::RunBlock { block, order, .. } = design.next(&[], TimeLeft { runs: 3 }) else {
            panic!("a block fits in")
        };
        let all = design.up_to_look(&[], PLENTY, block, &order);
        assert_eq!(all.len() as u32, design.looks().first());
        let mut done = Vec::new();
        for (number, arms) in &all {
            let step = design.next(&done, TimeLeft { runs: 3 });
            let expected = Step::RunBlock { block: *number, order: arms.clone(), warm_up: false };
            assert_eq!(step, expected);
            done.extend(arms.iter().map(|arm| trial(*number, *arm, 100.0 + *arm as f64)));
        }
        let few = design.up_to_look(&[], TimeLeft { runs: 7 }, block, &order);
        assert_eq!(few, all[..2]);
        assert_eq!(design.up_to_look(&[], TimeLeft { runs: 0 }, block, &order).len(), 1);
    }

    #[test]
    fn a_large_effect_is_decided_at_the_first_look() {
        let (done, why) =
            follow(&Design::default(), |block, arm| 100.0 + f64::from(block) + 30.0 * arm as f64);
        assert_eq!(why, StopReason::Decided { blocks: 6 });
        assert_eq!(done.len(), 2 * 7);
    }

    /// The arms of each block of a comparison of 8 arms that differ much, for which there is time for so many runs. The
    /// later an arm, the better.
    fn in_the_time(mut runs: u32) -> Vec<Vec<usize>> {
        let design = Design { arms: 8, ..Design::default() };
        let (mut done, mut blocks) = (Vec::new(), Vec::new());
        while let Step::RunBlock { block, order, warm_up } = design.next(&done, TimeLeft { runs }) {
            runs = runs.saturating_sub(order.len() as u32);
            let goodput = |arm: usize| 100.0 * 1.5f64.powi(arm as i32);
            let discarded = warm_up.then(|| WARM_UP.to_string());
            done.extend(order.iter().map(|arm| Trial {
                discarded: discarded.clone(),
                ..trial(block, *arm, goodput(*arm))
            }));
            let mut arms = order;
            arms.sort_unstable();
            blocks.push(arms);
        }
        blocks
    }

    const ALL: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

    #[test]
    fn with_time_enough_all_arms_run_until_their_look() {
        // 9 blocks of 7 arms and the baseline, and the warm-up.
        let all = in_the_time(80);
        assert!(all.len() == 10 && all.iter().all(|arms| *arms == ALL), "{all:?}");
        let cold = in_the_time(72);
        assert!(cold.len() == 9 && cold.iter().all(|arms| *arms == ALL), "{cold:?}");
    }

    #[test]
    fn with_too_little_time_the_best_of_the_warm_up_are_judged() {
        let few = in_the_time(8 + 9 * 4);
        assert_eq!((few.len(), &few[0]), (10, &ALL.to_vec()));
        assert!(few[1..].iter().all(|arms| *arms == [0, 5, 6, 7]), "{few:?}");
    }

    #[test]
    fn arms_that_had_to_wait_get_what_is_left_of_the_time() {
        let blocks = in_the_time(8 + 9 * 6 + 3);
        assert!(blocks[1..10].iter().all(|arms| *arms == [0, 3, 4, 5, 6, 7]), "{blocks:?}");
        assert_eq!(blocks[10..], [[0, 1, 2]]);
    }

    #[test]
    fn what_can_not_be_judged_at_all_is_still_measured() {
        assert_eq!(in_the_time(16), [ALL, ALL]);
        assert_eq!(in_the_time(8 + 9 * 2 - 1)[0], ALL, "the first block counts then");
    }

    #[test]
    fn what_only_chooses_ends_when_the_difference_is_obvious() {
        let design = Design { chooses: true, ..Design::default() };
        let (done, why) = follow(&design, |block, arm| [1.0, 100.0 + f64::from(block)][arm]);
        assert_eq!(why, StopReason::Obvious { blocks: 3 });
        assert_eq!(done.len(), 2 * 4);
        let (_, why) = follow(&design, |block, arm| 100.0 + f64::from(block) + 30.0 * arm as f64);
        assert_eq!(why, StopReason::Decided { blocks: 6 }, "it is no factor of two");
    }

    #[test]
    fn an_arm_that_is_decided_is_no_longer_run() {
        let one_is_noisy = |block: u32, arm: usize| match arm {
            1 => 200.0,
            2 => 70.0 + f64::from(block * 37 % 61),
            _ => 100.0,
        };
        let design = Design { arms: 3, ..Design::default() };
        let (done, _) = follow(&design, one_is_noisy);
        let runs = |arm| done.iter().filter(|trial| trial.arm == arm && trial.block > 0).count();
        assert_eq!((runs(0), runs(1), runs(2)), (81, 7, 81));
    }

    #[test]
    fn noise_is_looked_at_to_the_end() {
        let noise = |block: u32, arm: usize| {
            let seed = u64::from(block) << 8 | arm as u64;
            50.0 + 100.0 * Xoshiro256PlusPlus::seed_from_u64(seed).random::<f64>()
        };
        let (_, why) = follow(&Design::default(), noise);
        assert_eq!(why, StopReason::LastLook { blocks: 80 });
    }

    #[test]
    fn an_arm_whose_direction_is_shown_does_not_go_on_to_the_late_looks() {
        let small = |block: u32, arm: usize| 100.0 + [0.0, [0.5, 6.5][block as usize % 2]][arm];
        let (_, why) = follow(&Design::default(), small);
        assert_eq!(why, StopReason::LastLook { blocks: 36 });
    }

    #[test]
    fn known_precisely_enough_it_stops_without_a_verdict() {
        let near_threshold = |block: u32, arm: usize| {
            100.0 + 3.0 * arm as f64 + 0.1 * f64::from(block % 2) * arm as f64
        };
        let (_, why) = follow(&Design::default(), near_threshold);
        assert_eq!(why, StopReason::Precise { blocks: 6 });
    }

    #[test]
    fn what_shows_no_direction_goes_on_although_it_is_known_precisely() {
        // The differences lie between -0.3 and 2.7 %, so that neither zero nor the threshold is ruled out early.
        let small = |block: u32, arm: usize| 100.0 + [0.0, [-0.3, 2.7][block as usize % 2]][arm];
        let (done, why) = follow(&Design::default(), small);
        assert!(!matches!(why, StopReason::Precise { .. }), "{why}");
        let effect = analyse(&Design::default(), &done).swap_remove(1).goodput.unwrap();
        assert_ne!(effect.judgement, goodput_model::Judgement::Inconclusive, "{effect:?}");
    }

    #[test]
    fn the_question_for_the_slowest_part_is_followed_to_its_end() {
        let design = Design { is_about_parts: true, ..Design::default() };
        // The arms soon differ much; the source and the network little.
        let noise = |block: u32| f64::from(block * 7 % 5) - 2.0;
        let source = 107.0;
        let mut done = Vec::new();
        let (why, blocks) = loop {
            match design.next(&done, PLENTY) {
                Step::Stop(why) => break (why, done.len() / 2 - 1),
                Step::RunBlock { block, order, .. } => {
                    done.extend(order.into_iter().map(|arm| Trial {
                        files_alone: (arm == 1).then(|| FilesAlone {
                            source_bits_per_s: Some(Known::Value(BitRate(source + noise(block)))),
                            sink_bits_per_s: None,
                        }),
                        ..trial(block, arm, [100.0 - noise(block), 50.0][arm])
                    }));
                }
            }
        };
        assert!(matches!(why, StopReason::PartsDecided { .. }), "{why} after {blocks}");
        let (_, alone) = follow(&Design::default(), |block, arm| [100.0 - noise(block), 50.0][arm]);
        let StopReason::Decided { blocks: of_arms } = alone else { panic!("{alone}") };
        assert!(blocks as u32 > of_arms, "{blocks} and {of_arms}");
    }

    #[test]
    fn a_comparison_that_discards_everything_ends() {
        let (done, why) = follow(&Design::default(), |_, arm| [100.0, f64::NAN][arm]);
        assert_eq!(why, StopReason::MaxBlocks { run: 96 });
        assert_eq!(done.len(), 2 * 97);
    }

    #[test]
    fn without_time_for_a_first_look_there_is_no_warm_up() {
        let step = |blocks: u32| Design::default().next(&[], TimeLeft { runs: 2 * blocks });
        assert!(matches!(step(7), Step::RunBlock { block: 0, warm_up: true, .. }));
        assert!(matches!(step(6), Step::RunBlock { block: 1, warm_up: false, .. }));
        assert_eq!(step(0), Step::Stop(StopReason::OutOfTime));
        let warm = [0, 1].map(|arm| trial(WARM_UP_BLOCK, arm, 100.0));
        let after = Design::default().next(&warm, TimeLeft { runs: 0 });
        assert!(matches!(after, Step::RunBlock { block: 1, warm_up: false, .. }));
        let alone = Design { arms: 1, ..Design::default() };
        assert_eq!(alone.next(&[], PLENTY), Step::Stop(StopReason::NothingToCompare));
    }

    #[test]
    fn orders_are_random_and_repeat_with_the_seed() {
        let orders = |seed| -> Vec<Vec<usize>> {
            let design = Design { seed, ..Design::default() };
            (1..200).map(|block| design.order(block, vec![1])).collect()
        };
        assert_eq!(orders(3), orders(3));
        assert_ne!(orders(3), orders(4));
        // Of 199 fair coins, 100 ± 35 show heads except for one seed in a million (5 standard deviations).
        let baseline_first = orders(3).iter().filter(|order| order[0] == 0).count();
        assert!((65..=135).contains(&baseline_first), "{baseline_first}");
    }

    proptest! {
        #[test]
        fn every_design_ends_and_no_block_runs_an_arm_twice(
            arms in 0usize..6, max_blocks in 0u32..40, seed: u64, precision in 0.0f64..5.0,
            lost in 0u32..5, spread in 0.0f64..100.0,
        ) {
            let design = Design {
                arms, max_blocks, seed, precision_percent: precision, ..Design::default()
            };
            let (done, _) = follow(&design, |block, arm| {
                if lost > 0 && block % lost == 1 { return f64::NAN }
                100.0 + spread * f64::from((block * 7 + arm as u32 * 3) % 5)
            });
            for trial in &done {
                let same = |other: &&Trial| other.block == trial.block && other.arm == trial.arm;
                prop_assert_eq!(done.iter().filter(same).count(), 1);
            }
            let run: BTreeSet<u32> = done.iter().map(|t| t.block).filter(|b| *b > 0).collect();
            prop_assert!(run.len() as u32 <= max_blocks);
        }
    }
}
