//! What is obvious is found in the fewest blocks, and rarely found where nothing is.

use goodput_experiment::{Design, Obvious, Step, StopReason, TimeLeft, obvious};
use goodput_model::{BitRate, Known, Trial};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

const COMPARISONS: u32 = 4000;
/// One more than the first look needs, and the warm-up.
const MOST_BLOCKS: usize = 8;

/// A standard normal number (Box and Muller, 1958).
fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    let (radius, turn): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * turn).cos()
}

/// A comparison that only chooses: its runs' logarithms spread by `spread`, and the arm is `factor` times as fast.
/// Returns why it ended, its blocks, and what is obvious then.
fn choose(seed: u32, factor: f64, spread: f64) -> (StopReason, usize, Option<Obvious>) {
    let design = Design { chooses: true, seed: seed.into(), ..Design::default() };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(u64::from(seed) << 32);
    let mut done: Vec<Trial> = Vec::new();
    loop {
        // Nothing is obvious later that was not by then.
        if done.len() > 2 * MOST_BLOCKS {
            let run = MOST_BLOCKS as u32;
            return (StopReason::MaxBlocks { run }, MOST_BLOCKS, obvious(&design, &done, 1));
        }
        match design.next(&done, TimeLeft { runs: u32::MAX }) {
            Step::Stop(why) => {
                // The warm-up is a block as well.
                return (why, done.len() / 2 - 1, obvious(&design, &done, 1));
            }
            Step::RunBlock { block, order, warm_up } => done.extend(order.into_iter().map(|arm| {
                let goodput = [1e6, factor * 1e6][arm] * (spread * normal(&mut rng)).exp();
                let discarded = warm_up.then(|| goodput_experiment::WARM_UP.into());
                Trial { discarded, ..Trial::new(block, arm, Known::Value(BitRate(goodput))) }
            })),
        }
    }
}

fn share(
    factor: f64,
    spread: f64,
    is_so: impl Fn((StopReason, usize, Option<Obvious>)) -> bool,
) -> f64 {
    let count = (0..COMPARISONS).filter(|seed| is_so(choose(*seed, factor, spread))).count();
    count as f64 / f64::from(COMPARISONS)
}

#[test]
fn a_factor_of_5_to_100_takes_three_blocks_and_any_other_difference_as_many_as_before() {
    for (factor, spread) in [(5.0, 0.2), (10.0, 0.3), (100.0, 0.5), (0.05, 0.3)] {
        let three = share(factor, spread, |(why, blocks, found)| {
            let side = if factor > 1.0 { Obvious::Better } else { Obvious::Worse };
            blocks == 3 && found == Some(side) && matches!(why, StopReason::Obvious { .. })
        });
        assert!(three > 0.98, "{factor} times, spread {spread}: {three}");
    }
    let decided = share(1.3, 0.03, |(why, ..)| why == StopReason::Decided { blocks: 6 });
    assert!(decided > 0.98, "{decided}");
}

#[test]
fn equal_arms_are_rarely_obviously_better_even_on_the_noisiest_path() {
    for (spread, most) in [(0.2, 0.0005), (0.5, 0.008), (1.0, 0.04)] {
        let better = share(1.0, spread, |(.., found)| found == Some(Obvious::Better));
        assert!(better <= most, "spread {spread}: {better}");
    }
}
