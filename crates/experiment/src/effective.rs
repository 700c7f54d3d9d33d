//! What became of the values of a setting.
//!
//! A kernel may make one amount of several values: a route's window of 4 KB and one of 32 KB both become a window of
//! 64 KB. Runs that such a window limits report it. As a curve follows what was in effect, those values are replaced.

use goodput_model::{LimitAmount, SettingRef, Trial};

use crate::design::WARM_UP_BLOCK;
use crate::dose::doses;
use crate::pairs::Runs;

/// How far the factors of two arms may differ and still be one: what TCP reports of a window or a buffer varies a little.
const SAME_FACTOR: f64 = 0.05;

/// The `doses`, arms with their values, as they were in effect, in the unit of the setting. Kernels book a value, or twice
/// as much, and raise or cut what they find too small or too large. So the amounts of arms whose value was taken are one
/// factor times it, and the other amounts divided by this factor are what became of theirs. Unless two arms share a
/// factor, nobody knows which one was taken, and the values stay as they were written.
pub(crate) fn effective_doses(runs: &Runs, doses: &[(usize, f64)]) -> Vec<(usize, f64)> {
    let set = set_amounts(doses, |arm| usual_amount(runs, arm));
    let Some(factor) = shared_factor(&set) else { return doses.to_vec() };
    let effective = |(arm, dose): &(usize, f64)| {
        let other = set.iter().find(|set| set.arm == *arm && !set.has(factor));
        (*arm, other.map_or(*dose, |set| set.amount.value / factor))
    };
    doses.iter().map(effective).collect()
}

/// The factor between amount and value that most arms have; of two that equally many have, that of the larger values.
fn shared_factor(set: &[SetAmount]) -> Option<f64> {
    // Values that were cut to one amount may seem to share a factor.
    let sharing = |factor: f64| {
        let sharing = set.iter().filter(|set| set.has(factor));
        let mut amounts: Vec<f64> = sharing.map(|set| set.amount.value).collect();
        amounts.dedup();
        amounts.len()
    };
    let factors = set.iter().map(|set| (sharing(set.factor()), set.factor()));
    let (arms, factor) = factors.max_by_key(|(arms, _)| *arms)?;
    (arms > 1).then_some(factor)
}

/// An arm of whose value the same became as of another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Alike {
    /// The arm.
    pub arm: usize,
    /// The first arm of which the same became.
    pub like: usize,
    /// What became of both.
    pub amount: LimitAmount,
}

/// The arms that the warm-up has shown to be alike; empty unless numbers of one setting are compared. Arms that were
/// written alike are not meant: they are compared with themselves.
pub fn alike(settings: &[SettingRef], values: &[Vec<String>], warm_up: &[Trial]) -> Vec<Alike> {
    let of_arm = |arm: usize| {
        let mut runs = warm_up.iter().filter(|run| run.block == WARM_UP_BLOCK && run.arm == arm);
        runs.find_map(|run| run.amount.clone())
    };
    let mut set = set_amounts(&doses(settings, values), of_arm);
    set.sort_by_key(|set| set.arm);
    let like = |(number, one): (usize, &SetAmount)| {
        let same = set[..number].iter().find(|other| other.amount.value == one.amount.value)?;
        let differ = values.get(same.arm) != values.get(one.arm);
        differ.then(|| Alike { arm: one.arm, like: same.arm, amount: one.amount.clone() })
    };
    set.iter().enumerate().filter_map(like).collect()
}

/// An arm with its value, and what became of it.
struct SetAmount {
    arm: usize,
    dose: f64,
    amount: LimitAmount,
}

impl SetAmount {
    fn factor(&self) -> f64 {
        self.amount.value / self.dose
    }

    fn has(&self, factor: f64) -> bool {
        (self.factor() / factor - 1.0).abs() <= SAME_FACTOR
    }
}

/// The arms that are held by an amount that their setting sets, the smallest value first: one limit holds them by several
/// amounts, which grow with their values. Empty if the setting does not move the amount.
fn set_amounts(
    doses: &[(usize, f64)],
    amount: impl Fn(usize) -> Option<LimitAmount>,
) -> Vec<SetAmount> {
    let of_dose = |(arm, dose): &(usize, f64)| {
        Some(SetAmount { arm: *arm, dose: *dose, amount: amount(*arm)? })
    };
    let mut set: Vec<SetAmount> = doses.iter().filter_map(of_dose).collect();
    set.sort_by(|a, b| a.dose.total_cmp(&b.dose));
    let grow = set.windows(2).all(|two| two[0].amount.value <= two[1].amount.value);
    let is_one = set.windows(2).all(|two| two[0].amount.name == two[1].amount.name);
    let ends = set.first().zip(set.last());
    let differ = ends.is_some_and(|(least, most)| {
        0.0 < least.amount.value && least.amount.value < most.amount.value
    });
    if grow && is_one && differ { set } else { Vec::new() }
}

/// The amount of what limits most of an arm's runs, if it is the same in all that have one.
fn usual_amount(runs: &Runs, arm: usize) -> Option<LimitAmount> {
    let all = runs.compared(arm).count();
    let amounts: Vec<&LimitAmount> =
        runs.compared(arm).filter_map(|trial| trial.amount.as_ref()).collect();
    let first = *amounts.first()?;
    let is_same = |other: &&LimitAmount| other.name == first.name && other.value == first.value;
    let is_usual = 2 * amounts.len() > all && amounts.iter().all(is_same);
    is_usual.then(|| first.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::tests::trial;
    use goodput_model::Trial;

    fn effective(amounts: &[Option<f64>], doses: &[f64]) -> Vec<f64> {
        let of_block = |block| {
            let run = |(arm, amount): (usize, &Option<f64>)| Trial {
                amount: amount.map(|value| LimitAmount {
                    name: "receive_window_bytes".into(),
                    value,
                    is_proportional: true,
                }),
                ..trial(block, arm, 1e8)
            };
            amounts.iter().enumerate().map(run).collect::<Vec<_>>()
        };
        let trials: Vec<Trial> = (1..=6).flat_map(of_block).collect();
        let numbered: Vec<(usize, f64)> = doses.iter().copied().enumerate().collect();
        let all = effective_doses(&Runs::of(&trials, amounts.len()), &numbered);
        all.into_iter().map(|(_, dose)| dose).collect()
    }

    #[test]
    fn values_of_which_a_kernel_makes_one_amount_are_one_value() {
        let amounts = [Some(65_536.0), Some(65_536.0), Some(65_536.0), Some(131_072.0), None];
        let doses = [4096.0, 16_384.0, 32_768.0, 65_536.0, 1_048_576.0];
        let one = 32_768.0;
        assert_eq!(effective(&amounts, &doses), [one, one, one, 65_536.0, 1_048_576.0]);
    }

    #[test]
    fn a_value_that_was_cut_is_told_by_those_that_were_taken() {
        let amounts = [Some(131_072.0), Some(262_144.0), Some(425_984.0)];
        let doses = [65_536.0, 131_072.0, 16_777_216.0];
        assert_eq!(effective(&amounts, &doses), [65_536.0, 131_072.0, 212_992.0]);
        let cut = [Some(131_072.0), Some(262_144.0), Some(425_984.0), Some(425_984.0)];
        let near = [65_536.0, 131_072.0, 16_000_000.0, 16_500_000.0];
        assert_eq!(effective(&cut, &near), [65_536.0, 131_072.0, 212_992.0, 212_992.0]);
        let two = [amounts[0], amounts[2]];
        assert_eq!(effective(&two, &[doses[0], doses[2]]), [doses[0], doses[2]]);
    }

    #[test]
    fn arms_that_became_the_same_in_the_warm_up_are_alike() {
        let values = ["4K", "32K", "64K", "4K"].map(|value| vec![value.to_owned()]);
        let settings = ["route.window@10.0.0.0/8".parse().unwrap()];
        let found = |amounts: [f64; 4]| {
            let run = |(arm, value): (usize, f64)| Trial {
                amount: Some(LimitAmount {
                    name: "receive_window_bytes".into(),
                    value,
                    is_proportional: true,
                }),
                ..trial(WARM_UP_BLOCK, arm, 1e8)
            };
            let warm_up: Vec<Trial> = amounts.into_iter().enumerate().map(run).collect();
            let alike = alike(&settings, &values, &warm_up);
            alike.into_iter().map(|one| (one.arm, one.like)).collect::<Vec<_>>()
        };
        assert_eq!(found([65_536.0, 65_536.0, 131_072.0, 65_536.0]), [(1, 0)]);
        assert_eq!(found([65_536.0; 4]), []);
    }

    #[test]
    fn an_amount_that_the_setting_does_not_move_says_nothing_about_it() {
        let doses = [4096.0, 16_384.0, 65_536.0];
        assert_eq!(effective(&[Some(65_536.0); 3], &doses), doses);
        assert_eq!(effective(&[Some(9e4), Some(7e4), Some(8e4)], &doses), doses);
        assert_eq!(effective(&[None; 3], &doses), doses);
    }
}
