//! A difference that is obvious after a few blocks: enough to choose what is compared again, and no proof.
//!
//! The exact test needs six blocks before it can claim anything, whatever their size, because it only looks at signs and
//! ranks. A path that a fault slows down a hundredfold takes most of the time for just these blocks. Who only chooses what
//! a later comparison has to prove may use the size instead: each of three blocks has at least twice as much.
//!
//! The order within each block is random, so equal arms all differ in this direction in one of eight comparisons at most,
//! whatever their runs do. That they differ twofold as well takes runs that spread enormously: if the logarithms of runs
//! spread by 1, three blocks do in 3 % of all comparisons, and if by .5, in .4 % (`tests/obvious.rs`). The first look errs in
//! 1.6 %. What is chosen wrongly costs time, and the last comparison does not prove it: that has its whole error still, as
//! nothing is proven by these runs (docs/decisions/tuning.md).

use goodput_model::{Response, Trial};

use crate::design::Design;
use crate::judge::Preference;
use crate::pairs::Runs;
use crate::responses::{for_ratio, preference};

/// Blocks after which a difference may be obvious.
pub const BLOCKS_TO_BE_OBVIOUS: usize = 3;
/// How many times as much each block must show.
const LEAST_RATIO: f64 = 2.0;

/// What is obvious about an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obvious {
    /// It is better than the baseline by a factor.
    Better,
    /// It is worse than the baseline by a factor.
    Worse,
}

/// Whether `arm` differs obviously from the baseline in a response that may prove it better. It is not obviously better if
/// each block is worse by another response of the design.
pub fn obvious(design: &Design, trials: &[Trial], arm: usize) -> Option<Obvious> {
    obvious_in(design, &Runs::of(trials, design.arms), arm)
}

/// The same of runs that are sorted already.
pub(crate) fn obvious_in(design: &Design, runs: &Runs, arm: usize) -> Option<Obvious> {
    let gains = |response: &Response| gains(runs, arm, *response);
    let (least, counts) = (LEAST_RATIO.ln(), (design.threshold_percent / 100.0).ln_1p());
    let ways = design.responses.iter().take(design.ways_to_win);
    let found = ways.map(gains).find_map(|gains| match () {
        () if gains.len() < BLOCKS_TO_BE_OBVIOUS => None,
        () if gains.iter().all(|gain| *gain >= least) => Some(Obvious::Better),
        () if gains.iter().all(|gain| *gain <= -least) => Some(Obvious::Worse),
        () => None,
    })?;
    let loses = |gains: Vec<f64>| !gains.is_empty() && gains.iter().all(|gain| *gain < -counts);
    let has_price = found == Obvious::Better && design.responses.iter().map(gains).any(loses);
    (!has_price).then_some(found)
}

/// Logarithms of how many times better the arm is, block by block.
fn gains(runs: &Runs, arm: usize, response: Response) -> Vec<f64> {
    let sign = if preference(response) == Preference::Up { 1.0 } else { -1.0 };
    let pairs = runs.pairs(arm, for_ratio(response));
    pairs.iter().map(|pair| sign * pair.log_ratio).collect()
}

#[cfg(test)]
mod tests {
    use goodput_model::Known;

    use super::*;
    use crate::pairs::tests::trial;

    fn of(design: &Design, blocks: u32, arm: impl Fn(u32) -> (f64, f64)) -> Option<Obvious> {
        let one = |block, number, (goodput, cost)| Trial {
            cpu_s_per_gb: Known::Value(cost),
            ..trial(block, number, goodput * 1e6)
        };
        let block = |block| [one(block, 0, (1.0, 1.0)), one(block, 1, arm(block))];
        obvious(design, &(1..=blocks).flat_map(block).collect::<Vec<_>>(), 1)
    }

    #[test]
    fn it_takes_three_blocks_that_all_are_twofold() {
        let goodput =
            |blocks, arm: fn(u32) -> f64| of(&Design::default(), blocks, |block| (arm(block), 1.0));
        assert_eq!(goodput(3, |block| 5.0 + f64::from(block)), Some(Obvious::Better));
        assert_eq!(goodput(2, |_| 1000.0), None);
        assert_eq!(goodput(4, |block| if block == 2 { 1.9 } else { 1000.0 }), None);
        assert_eq!(goodput(3, |_| 0.01), Some(Obvious::Worse));
        assert_eq!(goodput(3, |_| 1.5), None);
    }

    #[test]
    fn what_has_a_price_is_not_obviously_better() {
        let cpu =
            Design { responses: vec![Response::Cpu, Response::Throughput], ..Design::default() };
        assert_eq!(of(&cpu, 3, |_| (1.0, 0.2)), Some(Obvious::Better));
        assert_eq!(of(&cpu, 3, |_| (0.9, 0.2)), None, "less work that moves less");
        assert_eq!(of(&cpu, 3, |_| (9.0, 1.0)), None, "goodput proves nothing here");
        assert_eq!(of(&cpu, 3, |_| (1.0, 5.0)), Some(Obvious::Worse));
    }
}
