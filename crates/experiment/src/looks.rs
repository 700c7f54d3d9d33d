//! When an arm is looked at, and how much of the allowed error each look may spend.
//!
//! Looking after every block and stopping at the first success multiplies a false-alarm rate of 5 %. This design has
//! at most seven looks, whose errors add up to 5 % over all arms together. So it makes no assumption on how looks or
//! arms depend on each other (Bonferroni over looks, Holm over arms). The first look spends most: its n is the
//! smallest at which the exact test can claim anything (two-sided p = 2^(1-n) if all n blocks agree, .031 for 6). So
//! large effects, the common case, end early. Every doubling of the arms moves all looks by one block.
//!
//! Two claims have an error each: "there is a difference", and "there is none that counts". The second is two
//! one-sided tests, of which at most one can err, so an interval of 10 % gives 5 % (Schuirmann, 1987). It spends most
//! at the last look, because equal arms need many blocks.
//!
//! Pocock's equal levels (.0182 for four looks) were tried first. They are designed for normal data and equal steps:
//! with Student's t they gave 6 to 8 % false alarms in simulation, and the exact test can't reach .0182 with 6 blocks.

/// One look.
struct Look {
    /// Blocks after the first look.
    after: u32,
    /// Error of the two-sided interval that shows a difference. The sum of all looks is .05.
    difference: f64,
    /// Error of the two-sided interval that shows no difference. The sum of all looks is .10.
    equivalence: f64,
}

/// Blocks at the first look with two arms.
const FIRST_BLOCKS: u32 = 6;

/// If runs spread by 3 %, nine in ten pairs of equal arms end in "no difference" with 33 blocks, by 4 % with 62: the
/// number grows with the square of the spread (docs/decisions/comparing.md). Late looks cost the others little, and use
/// only the time that the user gives.
const LOOKS: [Look; 7] = [
    Look { after: 0, difference: 0.03125, equivalence: 0.03125 },
    Look { after: 4, difference: 0.003125, equivalence: 0.003 },
    Look { after: 10, difference: 0.003125, equivalence: 0.007 },
    Look { after: 18, difference: 0.003125, equivalence: 0.0125 },
    Look { after: 30, difference: 0.003125, equivalence: 0.01875 },
    Look { after: 48, difference: 0.003125, equivalence: 0.01375 },
    Look { after: 74, difference: 0.003125, equivalence: 0.01375 },
];

/// Blocks after the first look, after which only undecided arms go on.
const USUAL_END: u32 = 30;

/// The errors that the intervals of one arm may have at one look, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Levels {
    /// Of the interval that shows a difference.
    pub difference: f64,
    /// Of the interval that shows no difference.
    pub equivalence: f64,
}

/// Arms that were already shown. Each leaves its error to the others (Holm's step-down procedure, 1979).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shown {
    /// To differ.
    pub different: u32,
    /// To be no different.
    pub equal: u32,
}

/// The looks at a comparison of a given number of arms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looks {
    /// Arms that are compared with the baseline; at least 1.
    candidates: u32,
}

impl Looks {
    /// The looks for `arms` arms, the baseline included.
    pub fn for_arms(arms: usize) -> Self {
        Self { candidates: u32::try_from(arms.saturating_sub(1)).unwrap_or(u32::MAX).max(1) }
    }

    /// Blocks at the first look; with fewer, nothing can be claimed. 6 for two arms.
    pub fn first(self) -> u32 {
        FIRST_BLOCKS + self.extra()
    }

    /// Blocks at the last look. 80 for two arms.
    pub fn last(self) -> u32 {
        self.first() + LOOKS[LOOKS.len() - 1].after
    }

    /// Blocks after which only undecided arms go on. 36 for two arms.
    pub fn usual_end(self) -> u32 {
        self.first() + USUAL_END
    }

    /// Whether to look at an arm with `blocks` blocks.
    pub fn is_due(self, blocks: u32) -> bool {
        LOOKS.iter().any(|look| self.first() + look.after == blocks)
    }

    /// Blocks at the next look at an arm with `blocks` blocks. `None` after the last.
    pub fn next_after(self, blocks: u32) -> Option<u32> {
        LOOKS.iter().map(|look| self.first() + look.after).find(|due| *due > blocks)
    }

    /// Errors that one arm may have in a look at `blocks` blocks, after others were `shown`. An unplanned look, such
    /// as when time is up, replaces the next planned one.
    pub fn levels(self, blocks: u32, shown: Shown) -> Levels {
        let planned = LOOKS.iter().find(|look| blocks <= self.first() + look.after);
        let look = planned.unwrap_or(&LOOKS[LOOKS.len() - 1]);
        let of_each =
            |all: f64, shown: u32| all / f64::from(self.candidates.saturating_sub(shown).max(1));
        Levels {
            difference: of_each(look.difference, shown.different),
            equivalence: of_each(look.equivalence, shown.equal),
        }
    }

    /// log2 of the candidates, rounded up.
    fn extra(self) -> u32 {
        u32::BITS - (self.candidates - 1).leading_zeros()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_arms_are_looked_at_with_6_10_16_24_36_54_and_80_blocks() {
        let looks = Looks::for_arms(2);
        let due: Vec<u32> = (0..100).filter(|n| looks.is_due(*n)).collect();
        assert_eq!(due, [6, 10, 16, 24, 36, 54, 80]);
        assert_eq!((looks.first(), looks.usual_end(), looks.last()), (6, 36, 80));
        assert!(looks.is_due(looks.usual_end()));
        let next = [0, 5, 6, 35, 36, 80].map(|blocks| looks.next_after(blocks));
        assert_eq!(next, [Some(6), Some(6), Some(10), Some(36), Some(54), None]);
    }

    #[test]
    fn all_looks_at_all_arms_together_spend_5_percent_and_twice_that_for_equivalence() {
        for arms in 2..40 {
            let looks = Looks::for_arms(arms);
            let due = || (0..100).filter(|n| looks.is_due(*n));
            let spent = |of: fn(Levels) -> f64| -> f64 {
                let each: f64 = due().map(|n| of(looks.levels(n, Shown::default()))).sum();
                each * (arms - 1) as f64
            };
            assert!((spent(|levels| levels.difference) - 0.05).abs() < 1e-12, "{arms} arms");
            assert!((spent(|levels| levels.equivalence) - 0.10).abs() < 1e-12, "{arms} arms");
        }
    }

    #[test]
    fn what_is_shown_leaves_its_error_to_the_others() {
        let looks = Looks::for_arms(5);
        let levels = |different, equal| looks.levels(8, Shown { different, equal });
        assert_eq!(levels(3, 0).difference, 4.0 * levels(0, 0).difference);
        assert_eq!(levels(3, 0).equivalence, levels(0, 0).equivalence);
        assert_eq!(levels(0, 2).equivalence, 2.0 * levels(0, 0).equivalence);
    }

    #[test]
    fn the_first_look_is_the_first_at_which_the_exact_test_can_speak() {
        for arms in 2..40 {
            let looks = Looks::for_arms(arms);
            let smallest_p = |n: u32| 2f64.powi(1 - n as i32);
            let level = |n| looks.levels(n, Shown::default()).difference;
            assert!(smallest_p(looks.first()) <= level(looks.first()), "{arms} arms");
            assert!(smallest_p(looks.first() - 1) > level(looks.first()), "{arms} arms");
        }
    }
}
